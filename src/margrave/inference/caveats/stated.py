"""The numbers of a release that state the same as an estimate, and those of a learned column."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from margrave.errors import InputError
from margrave.inference.caveats.context import Context
from margrave.inference.estimands import By, Mean, Proportion, Quantile, Total
from margrave.inference.estimate import Estimate, WholeBins
from margrave.marginal import covers
from margrave.ratios import percent
from margrave.release import ColumnNumber
from margrave.release.conditions import Condition, codes_of, cut_of
from margrave.release.numbers import group_name, numbers_of, share_name
from margrave.schema import Date, Schema, Timestamp
from margrave.schema.constraint_values import NUMERIC_KINDS

Stated = Mean | Total | Quantile | Proportion


def numbers_by_estimate(context: Context) -> dict[str, ColumnNumber]:
    """Return, by estimate, the number of the release that states the same; others have none.

    These are means, totals, quantiles and shares of categories, of all records or of one code of another column. A
    number without an interval is among them if its columns were measured together, but in merged codes.
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
    merged = columns & release.merged.keys() and covers(release.together, tuple(columns))
    groups: dict[str | None, ColumnNumber] = {
        n.group: n for n in numbers if n.statistic == statistic and (merged or n.low is not None)
    }
    found = {name: groups.get(_group(schema, *pair)) for name, pair in conditions.items()}
    return {name: n for name, n in found.items() if n is not None}


def quantiles_by_estimate(context: Context) -> dict[str, ColumnNumber]:
    """Return the numbers of ``numbers_by_estimate`` that are quantiles of numeric columns, with an interval."""
    fit = context.trial.fit
    if not isinstance(fit.model if isinstance(fit, By) else fit, Quantile):
        return {}
    return {name: n for name, n in context.once(numbers_by_estimate).items() if n.low is not None}


def with_open_ends(context: Context, bins: WholeBins | None) -> Context:
    """Return the context with intervals of quantiles that are open where those of the release's numbers are.

    Args:
        context: The context of an analysis.
        bins: The bins of the quantile's column; None if intervals need not contain whole ones.
    """
    numbers = {} if bins is None else context.once(quantiles_by_estimate)
    if bins is None or not any(n.is_open for n in numbers.values()):
        return context
    own = {
        name: replace(bins, is_open=(n.beyond_below == math.inf, n.beyond_above == math.inf))
        for name, n in numbers.items()
        if n.is_open
    }

    def opened(estimates: tuple[Estimate, ...]) -> tuple[Estimate, ...]:
        return tuple(replace(e, bins=own[e.name]) if e.name in own else e for e in estimates)

    return replace(context, estimates=opened(context.estimates), uncut=opened(context.uncut))


def mean_of(context: Context, name: str) -> ColumnNumber | None:
    """Return the mean of a column by the release's numbers, at the level of the analysis; None without an interval."""
    release = context.release
    if release is None or release.transcript is None or release.answers is None:
        return None
    numbers = numbers_of(
        release.schema,
        release.transcript,
        release.answers,
        context.settings.level,
        [name],
        quantiles={},
    )
    return next((n for n in numbers if n.statistic == "mean" and n.low is not None), None)


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
    return share_name(schema.code_words(of.column)[codes[0]]) if len(codes) == 1 else ""


def _group(schema: Schema, by: str, condition: Condition) -> str | None:
    """Return the group of the numbers that a condition selects; None if it is not one whole code."""
    if not by:
        return ""
    column = schema.column(by)
    codes = () if isinstance(column, Date | Timestamp) else _codes(schema, by, condition)
    return group_name(schema, by, codes[0]) if len(codes) == 1 else None


def _codes(schema: Schema, name: str, condition: Condition) -> tuple[int, ...]:
    """Return the codes of a condition; none if it cuts a bin, or names what is not in the schema."""
    try:
        return () if cut_of(schema, name, condition) else codes_of(schema, name, condition)
    except InputError:
        return ()
