"""Estimates of what the numbers of a release state too: its noisy counts alone may call them not reliable.

The numbers count what intervals of an analysis leave out, such as clipping. So their verdict marks the estimate.
"""

from __future__ import annotations

from collections.abc import Iterator

from margrave.inference.caveats.beyond_learned import by_another_run
from margrave.inference.caveats.context import Context
from margrave.inference.caveats.stated import numbers_by_estimate
from margrave.inference.estimands import By, Proportion, Quantile
from margrave.inference.estimate import Caveat


def unreliable(context: Context) -> dict[str, tuple[str, ...]]:
    """Return, for each estimate, the column of its number if the noisy counts alone call that not reliable."""
    numbers = context.once(numbers_by_estimate)
    return {
        name: (numbers[name].column,) if name in numbers and not numbers[name].reliable else ()
        for name in context.names
    }


def check(context: Context) -> Iterator[Caveat]:
    """Yield which estimates the noisy counts alone call not reliable."""
    numbers, others = context.once(numbers_by_estimate), context.once(by_another_run)
    names = tuple(  # an interval under another run's bounds is not the better one
        name
        for name, columns in context.once(unreliable).items()
        if columns and not set(columns) & set(others[name])
    )
    if not names:
        return
    fit, first, release = context.trial.fit, numbers[names[0]], context.release
    assert release is not None
    of = fit.model if isinstance(fit, By) else fit
    kind = "share" if isinstance(of, Proportion) else first.statistic
    by = first.group.partition(" = ")[0]
    text = (
        f"By their noisy counts alone {len(names)} of these {len(context.names)} {kind}s"
        f" {'is' if len(names) == 1 else 'are'} not reliable"
        if isinstance(fit, By)
        else f"By its noisy counts alone this {kind} is not reliable"
    )
    if first.low is None:
        yield Caveat(
            "not reliable", names, True,
            f"{text}: {first.column} and {by} were measured together in merged codes only, which share one count. Fewer"
            f" codes, or a larger budget, keep them apart.",
        )  # fmt: skip
        return
    text += "." if isinstance(fit, By) else f": {first.words}."
    of_others = (
        isinstance(of, Proportion)
        and of.value is not None
        and release.schema.column(of.column).missing
    )
    whose = (
        "That share is of all rows, also those with a missing value."
        if of_others
        else "Take the intervals there, also where they are wider."
        if isinstance(fit, By)
        else "Take that interval."
    )
    them = "them" if isinstance(fit, By) else "it"
    asked = f"margrave numbers RELEASE --columns {first.column}{f' --by {by}' if by else ''}"
    where = f" {asked} shows {them}."
    yield Caveat(
        "not reliable",
        names,
        True,
        f"{text}{'' if isinstance(of, Quantile) else where} {whose}",
    )
