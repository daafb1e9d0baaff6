"""Many fits into one analysis: align by name, set aside what cannot be trusted, combine, and say so in notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import numpy as np

from margrave.errors import InputError
from margrave.inference.analysis import Analysis
from margrave.inference.combine import combine
from margrave.inference.estimate import Estimate
from margrave.inference.fits import Fitted
from margrave.inference.runs import Runs
from margrave.inference.sources import Draws
from margrave.typing import AnyArray, FloatArray

Remedy = Literal["report", "drop"]

_FEW_DF = 4.0
_MAX_TEXTS = 3


def gather(
    runs: Runs, draws: Draws, *, level: float, large: float, remedy: Remedy, notes: tuple[str, ...]
) -> Analysis:
    """Align the results by name, set aside what cannot be trusted, and combine the rest."""
    fitted: dict[int, Fitted] = runs.results
    names = _all_names(list(fitted.values()))
    points, variances, covariances = _aligned(list(fitted.values()), names)
    absent = np.isnan(points) & np.array([[n not in f.names for n in names] for f in fitted.values()])
    stuck = np.array([i in runs.troubled or not f.converged for i, f in fitted.items()])
    unstable = _unstable(points, variances, stuck, large) & ~absent
    points[unstable] = np.nan
    rows, total, m = draws.rows, draws.total, len(draws)
    estimates = tuple(
        _estimate(name, points[:, j], variances[:, j], refused=remedy == "report" and bool(unstable[:, j].any()),
                  rows=rows, total=total, m=m)
        for j, name in enumerate(names)
    )  # fmt: skip
    told = [
        *_notes_on_failures(runs, m),
        *_notes_on_absent(names, absent, m),
        *_notes_on_unstable(names, unstable, m, large, remedy),
        *_notes_on_estimates(estimates),
        *_notes_on_warnings(runs, m),
        *notes,
        *draws.notes,
    ]
    return Analysis(estimates, level, m, rows, total, draws.method, tuple(told), points, covariances)


def _all_names(fitted: Sequence[Fitted]) -> tuple[str, ...]:
    """The names in the order of the fullest data set, and then what others add."""
    for f in fitted:
        if len(set(f.names)) < len(f.names):
            twice = next(n for n, often in Counter(f.names).items() if often > 1)
            raise InputError(f"The fit returned two estimates named {twice!r}.", remedy="Name them apart.")
    fullest = max(fitted, key=lambda f: len(f.names)).names
    names = tuple(dict.fromkeys([*fullest, *(n for f in fitted for n in f.names)]))
    if not names:
        raise InputError("The fit returned no estimates.", remedy="Return at least one.")
    return names


def _aligned(fitted: Sequence[Fitted], names: tuple[str, ...]) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Estimates and variances (data sets × names), and covariances where every data set has them; NaN where absent."""
    m, k, place = len(fitted), len(names), {n: j for j, n in enumerate(names)}
    points, variances = np.full((m, k), np.nan), np.full((m, k), np.nan)
    whole = all(f.covariance is not None for f in fitted)
    covariances = np.full((m, k, k), np.nan) if whole else None
    for i, f in enumerate(fitted):
        at = [place[n] for n in f.names]
        points[i, at], variances[i, at] = f.estimates, f.variances
        if covariances is not None and f.covariance is not None:
            covariances[np.ix_([i], at, at)] = f.covariance
    return points, variances, covariances


def _unstable(points: FloatArray, variances: FloatArray, stuck: AnyArray, large: float) -> AnyArray:
    """Results not to be trusted: not finite, too spread out, or all of a fit that did not converge and is neither."""
    with np.errstate(invalid="ignore"):
        deviations = np.sqrt(variances)
    finite = np.isfinite(points) & np.isfinite(deviations)
    least = np.where(finite, deviations, np.inf).min(axis=0)
    wild = finite & (deviations > large * np.maximum(np.where(np.isfinite(least), least, 1.0), 1.0))
    blown = ~finite | wild | (stuck[:, None] & (deviations > large))
    return np.asarray(blown | (stuck & ~(blown & ~np.isnan(points)).any(axis=1))[:, None])


def _estimate(
    name: str, points: FloatArray, variances: FloatArray, *, refused: bool, rows: int, total: float | None, m: int
) -> Estimate:
    good = np.isfinite(points)
    used = int(good.sum())
    if refused or used < 2:
        ratio = None if total is None else rows / total
        return Estimate(name, np.nan, np.nan, np.nan, np.nan, np.nan, used, m, ratio)
    known = None if total is None else rows
    return combine(points[good], variances[good], rows=known, total=total, name=name, data_sets=m)


def _notes_on_failures(runs: Runs, m: int) -> list[str]:
    if not runs.failures:
        return []
    texts = "; ".join(list(dict.fromkeys(runs.failures.values()))[:_MAX_TEXTS])
    return [f"Left out: {len(runs.failures)} of {m} data sets, on which the fit failed ({texts})."]


def _notes_on_absent(names: Sequence[str], absent: AnyArray, m: int) -> list[str]:
    return [
        f"{name}: {lacking} of {m} data sets cannot tell about it (no record in its category, or in the reference's)"
        " and were left out for it."
        for name, lacking in zip(names, absent.sum(axis=0).tolist(), strict=True)
        if lacking
    ]


def _notes_on_unstable(
    names: Sequence[str], unstable: AnyArray, m: int, large: float, remedy: Remedy
) -> list[str]:
    refused = 'No interval is given; remedy="drop" (--drop-unstable) leaves them out.'
    end = "They were left out for it." if remedy == "drop" else refused
    return [
        f"{name}: {wild} of {m} data sets gave no stable estimate (not converged, not finite, or a standard deviation"
        f" above {large:g}). An empty cell often is the cause. {end}"
        for name, wild in zip(names, unstable.sum(axis=0).tolist(), strict=True)
        if wild
    ]


def _notes_on_estimates(estimates: Sequence[Estimate]) -> list[str]:
    told = []
    flat = [e.name for e in estimates if e.variance == 0]
    lacking = [e.name for e in estimates if np.isfinite(e.estimate) and not e.known and e.name not in flat]
    if lacking:
        told.append(
            f"{', '.join(lacking)}: the rule gives no positive variance. Give n, the number of real records, or draw"
            " more data sets or more records in each."
        )
    if flat:
        told.append(f"{', '.join(flat)}: every data set gave the same value and no variance, so no interval is told.")
    short = [e.name for e in estimates if e.known and e.df < _FEW_DF]
    if short:
        told.append(
            f"{', '.join(short)}: fewer than {_FEW_DF:g} degrees of freedom make the interval very wide. Draw more"
            " data sets, or more records in each."
        )
    return told


def _notes_on_warnings(runs: Runs, m: int) -> list[str]:
    return [f"Warned on {often} of {m} data sets: {text}" for text, often in runs.warned.most_common(_MAX_TEXTS)]
