"""Estimates of what the numbers of a release state too: its noisy counts alone may call them not reliable.

The numbers count what intervals of an analysis leave out, such as clipping. So their verdict marks the estimate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from margrave.errors import InputError
from margrave.inference.caveats.context import Context
from margrave.inference.estimands import By, Mean, Proportion, Quantile, Total
from margrave.inference.estimate import Caveat
from margrave.ratios import percent
from margrave.release import ColumnNumber
from margrave.release.conditions import Condition, codes_of, cut_of
from margrave.release.numbers import group_name, numbers_of
from margrave.schema import Date, Schema, Timestamp
from margrave.schema.constraint_values import NUMERIC_KINDS

Stated = Mean | Total | Quantile | Proportion


def numbers_by_estimate(context: Context) -> dict[str, ColumnNumber]:
    """Return, by estimate, the number of the release that states the same; others have none.

    These are means, totals, quantiles and shares of categories, of all records or of one code of another column.
    """
    fit, release = context.trial.fit, context.release
    of = fit.model if isinstance(fit, By) else fit
    if (
        not isinstance(of, Stated)
        or release is None
        or None in (release.transcript, release.answers)
    ):
        return {}
    schema, conditions = release.schema, _conditions(context, of)
    columns = {of.column, *(by for by, _ in conditions.values() if by)}
    statistic = _statistic(schema, of) if columns <= set(schema.domain) else ""
    if not statistic or len(columns) > 2:
        return {}
    assert release.transcript is not None
    assert release.answers is not None
    by = next(iter(columns - {of.column}), None)
    numbers = numbers_of(
        schema, release.transcript, release.answers, context.settings.level, [of.column], by,
        quantiles={statistic: of.p} if isinstance(of, Quantile) else {},
    )  # fmt: skip
    groups: dict[str | None, ColumnNumber] = {
        n.group: n for n in numbers if n.statistic == statistic and n.low is not None
    }
    found = {name: groups.get(_group(schema, *pair)) for name, pair in conditions.items()}
    return {name: n for name, n in found.items() if n is not None}


def unreliable(context: Context) -> dict[str, tuple[str, ...]]:
    """Return, for each estimate, the column of its number if the noisy counts alone call that not reliable."""
    numbers = context.once(numbers_by_estimate)
    return {
        name: (numbers[name].column,) if name in numbers and not numbers[name].reliable else ()
        for name in context.names
    }


def check(context: Context) -> Iterator[Caveat]:
    """Yield which estimates the noisy counts alone call not reliable."""
    numbers = context.once(numbers_by_estimate)
    names = tuple(name for name, columns in context.once(unreliable).items() if columns)
    if not names:
        return
    fit, first, release = context.trial.fit, numbers[names[0]], context.release
    assert release is not None
    of = fit.model if isinstance(fit, By) else fit
    kind = "share" if isinstance(of, Proportion) else first.statistic
    text = (
        f"By their noisy counts alone {len(names)} of these {len(context.names)} {kind}s"
        f" {'is' if len(names) == 1 else 'are'} not reliable."
        if isinstance(fit, By)
        else f"By its noisy counts alone this {kind} is not reliable: {first.words}."
    )
    of_others = (
        isinstance(of, Proportion)
        and of.value is not None
        and release.schema.column(of.column).missing
    )
    whose = (
        "That share is of all rows, also those with a missing value."
        if of_others
        else "If the two disagree, take that interval."
    )
    by = first.group.partition(" = ")[0]
    where = f" margrave numbers{f' --by {by}' if by else ''} shows them."
    yield Caveat(
        "not reliable",
        names,
        True,
        f"{text} {whose}{'' if isinstance(of, Quantile) else where}",
    )


def _conditions(context: Context, of: Stated) -> Mapping[str, tuple[str, Condition]]:
    """Return, by estimate, the one column and condition that select its records; "" for all of them."""
    fit = context.trial.fit
    if not isinstance(fit, By):
        pairs = list(of.conditions.items()) or [("", None)]
        return dict.fromkeys(context.names, pairs[0]) if len(pairs) == 1 else {}
    levels = {name: context.term(name).levels for name in context.names if not of.conditions}
    return {
        name: (by, labels[0])
        for name, own in levels.items()
        for by, labels in own.items()
        if labels
    }


def _statistic(schema: Schema, of: Stated) -> str:
    """Return what the numbers call an estimand; "" if they do not state it."""
    if isinstance(of, Mean | Total):
        return "mean" if isinstance(of, Mean) else "total"
    if isinstance(of, Quantile):
        return f"{percent(of.p, 'g')} quantile"
    column = schema.column(of.column)
    if of.value is None:
        return "missing"
    codes = () if isinstance(column, NUMERIC_KINDS) else _codes(schema, of.column, of.value)
    return f"share of {column.labels()[codes[0]]}" if len(codes) == 1 else ""


def _group(schema: Schema, by: str, condition: Condition) -> str | None:
    """Return the group of the numbers that a condition selects; None if it is not one whole code."""
    if not by:
        return ""
    column = schema.column(by)
    codes = () if isinstance(column, Date | Timestamp) else _codes(schema, by, condition)
    return group_name(column, codes[0]) if len(codes) == 1 else None


def _codes(schema: Schema, name: str, condition: Condition) -> tuple[int, ...]:
    """Return the codes of a condition; none if it cuts a bin, or names what is not in the schema."""
    try:
        return () if cut_of(schema, name, condition) else codes_of(schema, name, condition)
    except InputError:
        return ()
