"""The certificate of a release as an event of Google's dp_accounting, for accountants outside margrave."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

from margrave.error_sanitizer import short_errors
from margrave.errors import InputError
from margrave.release import Release
from margrave.release.opening import release_of


@short_errors
def dp_event(release: Release | str | Path, *, delta_apart: bool = False) -> Any:
    """Return the account of a release as a ``DpEvent`` of dp_accounting.

    It is a ``ComposedDpEvent`` of one ``ZCDpEvent`` for each debit, in order. The noise is discrete Gaussian and the
    private selections are by the exponential mechanism. Both are proven in zCDP, so that is what the event states.

    Args:
        release: A release, with or without a model, or the path of one.
        delta_apart: dp_accounting has no event for a threshold that spends delta. True states that the caller adds
            ``release.account.delta_spent`` to the delta of the accountant.

    Returns:
        The event, for an accountant such as ``dp_accounting.rdp.RdpAccountant``. It protects one unit of
        ``release.account.unit``: a person with at most K rows for a unit of persons. A ``NonPrivateDpEvent`` if the
        noise did not come from the operating system's randomness.

    Raises:
        InputError: It is not a release, dp_accounting is not installed, or thresholds spent delta and ``delta_apart``
            is False.
        ReleaseError: As ``Release.load``.

    Privacy:
        None spent. The event sums what was spent; a mechanism may choose prices by earlier answers, and the promise of
        the certificate is for the whole budget.

    Example:
        >>> import pyarrow as pa
        >>> from margrave.api import synthesize
        >>> from margrave.schema import Schema
        >>> rows, schema = pa.table({"sex": [0, 1] * 50}), Schema.coded({"sex": 2})
        >>> release = synthesize(rows, schema, epsilon=1.0, delta=1e-9, mechanism="independent")
        >>> dp_event(release)
        ComposedDpEvent(events=[ZCDpEvent(rho=0.014973..., xi=0.0)])

    References:
        Bun and Steinke (2016), zCDP; Canonne, Kamath, Steinke (2020), the discrete Gaussian.
    """
    events, account = _library(), release_of(release).account
    if not account.private:
        return events.NonPrivateDpEvent()
    if account.delta_spent and not delta_apart:
        raise InputError(
            f"Thresholds of this release spent delta = {float(account.delta_spent):.6g}, and dp_accounting has no event"
            " for that.",
            remedy="Pass delta_apart=True, and add release.account.delta_spent to the accountant's delta.",
        )
    return events.ComposedDpEvent([events.ZCDpEvent(_rounded_up(d.rho)) for d in account.debits])


def _rounded_up(amount: Fraction) -> float:
    nearest = float(amount)
    return nearest if nearest >= amount else math.nextafter(nearest, math.inf)


def _library() -> Any:
    try:
        from dp_accounting import dp_event as events
    except ImportError:
        raise InputError(
            "Events for other accountants need dp_accounting, which is not installed.",
            remedy="Install it: pip install 'margrave[accounting]'.",
        ) from None
    return events
