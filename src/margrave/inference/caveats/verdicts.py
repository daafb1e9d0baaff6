"""Estimates of what the numbers of a release state too: its noisy counts alone may call them not reliable.

The numbers count what intervals of an analysis leave out, such as clipping. So their verdict marks the estimate.
"""

from __future__ import annotations

from collections.abc import Iterator

from margrave.inference.caveats.beyond_learned import by_another_run
from margrave.inference.caveats.context import Context
from margrave.inference.caveats.stated import numbers_by_estimate
from margrave.inference.columns import some
from margrave.inference.estimands import By, Proportion, Quantile
from margrave.inference.estimate import Caveat
from margrave.release.numeric_numbers import QUANTILES


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
    median = isinstance(of, Quantile) and of.p == 0.5
    kind = "share" if isinstance(of, Proportion) else "median" if median else first.statistic
    by = first.group.partition(" = ")[0]
    text = (
        f"By their noisy counts alone {_of_all(len(names), len(context.names))} {kind}s"
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
    if isinstance(of, Quantile) and of.p not in QUANTILES.values():
        groups = some([f"{numbers[name].group}: {numbers[name].words}" for name in names])
        whose = f"Take these intervals: {groups}." if isinstance(fit, By) else whose
        yield Caveat("not reliable", names, True, f"{text} {whose}")
        return
    them = "them" if isinstance(fit, By) else "it"
    asked = f"margrave numbers RELEASE --columns {first.column}{f' --by {by}' if by else ''}"
    yield Caveat("not reliable", names, True, f"{text} {asked} shows {them}. {whose}")


def _of_all(count: int, every: int) -> str:
    return f"all {every}" if count == every > 1 else f"{count} of {every}"
