"""Means, totals, quantiles and shares of every column, each with an interval and a verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import product
from shlex import quote
from typing import Any

import numpy as np
import pyarrow as pa

from margrave._fields import check_level
from margrave.bounds.gls import GLSEstimate, Unbiased
from margrave.bounds.noisy_counts import Interval, NoisyCounts
from margrave.bounds.weighted_sums import weighted_sums
from margrave.errors import InputError, ReleaseError
from margrave.models import FittedAnswers
from margrave.ratios import percent
from margrave.release.beyond_bounds import possible_limits
from margrave.release.end_cells import has_natural_end, may_clip, remedy_words
from margrave.release.number import (
    MAX_DEVIATIONS_FROM_ZERO,
    TOLERANCE,
    VERDICT_LEVEL,
    ColumnNumber,
    decimals_of,
    number,
)
from margrave.release.numeric_numbers import QUANTILES, NumericColumn
from margrave.schema import Categorical, Column, Schema
from margrave.schema.categorical import OTHER
from margrave.schema.constraint_values import NUMERIC_KINDS
from margrave.schema.numeric import Integer, Numeric, Real
from margrave.schema.remedies import bounds_remedy
from margrave.transcript import Transcript
from margrave.types import Attribute, Clique, FloatArray


def numbers_table(
    numbers: Iterable[ColumnNumber], *, grouped: bool, details: bool, texts: bool = False
) -> pa.Table:
    """Return numbers as a table with one row each.

    Args:
        numbers: The numbers.
        grouped: The numbers are of groups, and have a column of them.
        details: Add the texts, and the parts of the interval.
        texts: Add the texts.
    """
    written = ("text", "interval")
    strings = ("column", "statistic", "group", *written)
    types = dict.fromkeys(strings, pa.string()) | {"reliable": pa.bool_()}
    short = (
        "column",
        "statistic",
        *(("group",) if grouped else ()),
        "estimate",
        "low",
        "high",
        "reliable",
    )
    names = dict.fromkeys((*written, *(f.name for f in fields(ColumnNumber))))
    more = [n for n in names if n not in (*short, "group") and (details or n in written)]
    rows = list(numbers)
    return pa.table({
        name: pa.array([getattr(n, name) for n in rows], types.get(name, pa.float64()))
        for name in (*short, *(more if details or texts else ()))
    })  # fmt: skip


def numbers_of(
    schema: Schema,
    transcript: Transcript,
    model: FittedAnswers,
    level: float,
    columns: Iterable[Attribute] | None = None,
    by: Attribute | Sequence[Attribute] | None = None,
    quantiles: Mapping[str, float] = QUANTILES,
) -> tuple[ColumnNumber, ...]:
    """Return the numbers of columns, in the order of the schema, and of each by group.

    Args:
        schema: The public schema.
        transcript: The noisy answers.
        model: The release's model; one without a distribution has no synthetic rows.
        level: Probability with which each interval holds, above 0 and below 1. Verdicts do not depend on it.
        columns: These columns only; by default all.
        by: The one column whose codes make groups of the records; None for all records at once. A group's numbers
            come from the noisy marginals that contain both columns. Its mean and total come from weighted sums of
            the two as well.
        quantiles: The quantiles by name, as shares of the records below.

    Raises:
        InputError: ``by`` is not one column of the schema, or has no values, or is the only one of ``columns``.
    """
    groups = () if by is None else (_group_column(schema, by),)
    columns = None if columns is None else schema.domain.clique(columns)
    if groups and columns == groups:
        raise InputError(
            f"columns names {groups[0]!r} alone, which makes the groups.",
            remedy=f"Name another column. The shares of {groups[0]!r} are in the numbers without by.",
        )
    return tuple(numbers_by(schema, transcript, model, level, columns, groups, quantiles))


def numbers_by(
    schema: Schema,
    transcript: Transcript,
    model: FittedAnswers,
    level: float,
    columns: Iterable[Attribute] | None,
    by: Sequence[Attribute],
    quantiles: Mapping[str, float],
) -> Iterator[ColumnNumber]:
    """Yield the numbers of columns in each group, as ``numbers_of`` returns them for groups of one column.

    Args:
        schema: The public schema.
        transcript: The noisy answers.
        model: The release's model.
        level: Probability with which each interval holds, above 0 and below 1.
        columns: These columns only; None for all.
        by: The columns of the schema whose combinations of codes make groups; none for all records at once.
        quantiles: The quantiles by name, as shares of the records below.
    """
    check_level(level)
    names = schema.domain.attributes if columns is None else schema.domain.clique(columns)
    unnamed = {*by, *(c.name for c in schema.to_learn)}  # a column to learn has no values yet
    cliques = {name: schema.domain.clique([name, *by]) for name in names if name not in unnamed}
    levels = dict.fromkeys((level, VERDICT_LEVEL))
    unbiased, expected = Unbiased(schema.domain, transcript), _expected(model, cliques.values())
    for name, clique in cliques.items():
        column = schema.column(name)
        estimate = unbiased.estimate(clique) if unbiased.supports(clique) else None
        for group in _groups(schema, by):
            own, counts = estimate, expected.get(clique)
            if counts is not None:
                counts = counts[tuple(group.get(a, slice(None)) for a in clique)]
            noisy: dict[float, NoisyCounts] = {}
            if own is not None:
                for a, code in group.items():
                    own = own.slice(a, code)
                sums = weighted_sums(own, schema.domain, transcript, group)
                noisy = {at: NoisyCounts(own, at, sums) for at in levels}
            hidden = _rows_per_row_of(column, noisy.get(level), estimate) if group else None
            numbers = [
                list(_numbers(column, schema, quantiles, noisy.get(at), counts, hidden))
                for at in levels
            ]
            words = _group_words(schema, group)
            for n, v in zip(numbers[0], numbers[-1], strict=True):
                yield replace(n, reliable=v.reliable, clipping=v.clipping, group=words)


def rare_groups(schema: Schema, transcript: Transcript, *by: Attribute) -> tuple[str, ...]:
    """Return the groups of columns that may have no rows: their noisy count is below 3 of its standard deviations.

    Args:
        schema: The public schema.
        transcript: The noisy answers.
        by: The columns of groups, in the order of the schema.

    Returns:
        Their names, as ``numbers_by`` has them. None if the columns have no noisy counts.
    """
    deviations = 3.0
    unbiased = Unbiased(schema.domain, transcript)
    estimate = unbiased.estimate(by) if unbiased.supports(by) else None
    if estimate is None:
        return ()
    rare = np.ravel(estimate.values) < deviations * estimate.spread
    groups = zip(_groups(schema, by), rare, strict=True)
    return tuple(_group_words(schema, group) for group, is_rare in groups if is_rare)


def _groups(schema: Schema, by: Sequence[Attribute]) -> Iterator[dict[Attribute, int]]:
    for codes in product(*(range(schema.domain.size(a)) for a in by)):
        yield dict(zip(by, codes, strict=True))


def _group_words(schema: Schema, group: Mapping[Attribute, int]) -> str:
    return " and ".join(group_name(schema, a, code) for a, code in group.items())


def group_name(schema: Schema, name: Attribute, code: int) -> str:
    """Return the records with one code of a column as text, such as "ward = b"."""
    return f"{name} = {schema.code_words(name)[code]}"


def share_name(code: str) -> str:
    """Return what the numbers call the share of a code, which is given in words."""
    return f"share of {code}"


def _rows_per_row_of(column: Column, noisy: NoisyCounts | None, whole: GLSEstimate | None) -> float:
    """Return the number of all records with a value for each of a group's, which is at least 1.

    Records without one are not among them: the mean of a learned column is of the others.
    """
    if noisy is None or whole is None:
        return 1.0
    present = range(column.size - column.missing)
    all_values = np.take(whole.values, present, axis=whole.clique.index(column.name)).sum()
    return max(1.0, float(all_values) / max(float(noisy.counts[present].sum()), 1.0))


def headlines(numbers: Sequence[ColumnNumber]) -> list[ColumnNumber]:
    """Return one number per column: its mean, or the share of its most common category or of missing values."""
    found: dict[Attribute, ColumnNumber] = {}
    for n in numbers:
        largest = found.setdefault(n.column, n)
        if largest.statistic != "mean" and (n.estimate or 0.0) > (largest.estimate or 0.0):
            found[n.column] = n
    return list(found.values())


def category_words(
    schema: Schema, transcript: Transcript, numbers: Sequence[ColumnNumber]
) -> list[str]:
    """Return how many categories were found in each column that was learned, and for which columns other leads.

    Args:
        schema: The schema of the release.
        transcript: The noisy answers.
        numbers: ``numbers_of`` the release.
    """
    columns = {c.name: c for c in schema.columns if isinstance(c, Categorical)}
    rest = {n.column: n for n in numbers if n.statistic == f"share of {OTHER}" and not n.group}
    learned = [
        f"{d.column} has {found:,} {'category' if found == 1 else 'categories'}"
        + (
            f" ({_rest_words(rest[d.column])} of the rows are in {OTHER}{_named(columns[d.column])})"
            if d.column in rest
            else ""
        )
        for d in transcript.discoveries
        if d.column in columns
        for found in [len(set(columns[d.column].categories) - {OTHER})]
    ]
    leads = [n.column for n in headlines(numbers) if n is rest.get(n.column)]
    words = [f"Learned: {'; '.join(learned)}."] if learned else []
    if leads:
        words.append(
            f"{OTHER} is not one value: it has all rows whose value is {OTHER}, or has no category of its own. It leads"
            f" in {', '.join(leads)}."
        )
    return words


def _named(column: Categorical) -> str:
    """Return that the open category is also a value of the table, if it was learned as one."""
    return ", which is also a value of the table" if OTHER in column.categories else ""


def _rest_words(share: ColumnNumber) -> str:
    """Return a share in words: its interval if it is not reliable."""
    if share.reliable or share.low is None or share.high is None:
        return share.text
    high = percent_text(share.high)
    return f"at most {high}" if share.low <= 0.0 else f"{percent_text(share.low)} to {high}"


def clipping_words(
    schema: Schema, transcript: Transcript, numbers: Sequence[ColumnNumber]
) -> list[str]:
    """Return a sentence for each column whose mean or quantiles clipping may bias, with the key to change.

    Args:
        schema: The public schema.
        transcript: The noisy answers.
        numbers: ``numbers_of`` the release.
    """
    largest: dict[Attribute, float] = {}
    for n in numbers:
        if n.clipping:
            largest[n.column] = max(n.clipping, largest.get(n.column, 0.0))
    return [
        f"{name}: {percent_text(share)} of the records are in an end bin, far more than the bins beside it"
        " lead to expect. Values from beyond the bounds may have been counted there. Intervals cover the noise, not"
        f" this bias. {clipping_remedy(schema, transcript, name)}"
        for name, share in largest.items()
    ]


def clipping_remedy(schema: Schema, transcript: Transcript, name: Attribute) -> str:
    """Return which keys of a column to change if values of it may have been clipped, and how.

    Args:
        schema: The public schema.
        transcript: The noisy answers.
        name: The column. If its numbers show clipping in a group alone, all its ends are possible.
    """
    column: Any = schema.column(name)
    shares = clipped_ends(schema, transcript, column) or (0.0, 0.0)
    tops = [top for top, share in zip((False, True), shares, strict=True) if share]
    return remedy_words(tops or [top for top in (False, True) if not has_natural_end(column, top)])


def open_ends_words(numbers: Sequence[ColumnNumber]) -> list[str]:
    """Return a sentence for each column that has a quantile which may lie beyond a learned bound."""
    found: dict[Attribute, list[ColumnNumber]] = {}
    for n in numbers:
        if n.is_open:
            found.setdefault(n.column, []).append(n)
    sentences = []
    for name, own in found.items():
        statistics = ", ".join(dict.fromkeys(n.statistic_words for n in own))
        below, above = ({getattr(n, f"beyond_{side}") for n in own} for side in ("below", "above"))
        keys = [key for key, room in (("low", below), ("high", above)) if math.inf in room]
        sentences.append(
            f"{name}: {statistics} may lie beyond a learned bound. Rows beyond it count in the bin beside it, so no"
            f" answer shows how far beyond. In the schema of the next release, {bounds_remedy(keys)}"
        )
    return sentences


def clipped_ends(
    schema: Schema, transcript: Transcript, column: Numeric, level: float = VERDICT_LEVEL
) -> tuple[float, float] | None:
    """Return the share of the records that may be clipped at the lower and the upper bound, by the noisy answers.

    None if the column was not measured.
    """
    unbiased = Unbiased(schema.domain, transcript)
    estimate = unbiased.estimate((column.name,)) if unbiased.supports((column.name,)) else None
    if estimate is None:
        return None
    noisy = NoisyCounts(estimate, level)
    clips = may_clip(column, schema.source(column.name))
    return NumericColumn(column, noisy, None, clips=clips).clipped(noisy)


def _expected(model: FittedAnswers, cliques: Iterable[Clique]) -> Mapping[Clique, FloatArray]:
    try:
        answers = model.distribution().answer(list(cliques))
    except ReleaseError:
        return {}
    return {clique: np.asarray(counts, dtype=np.float64) for clique, counts in answers.items()}


def _group_column(schema: Schema, by: Attribute | Sequence[Attribute]) -> Attribute:
    """Return the column of groups, given as a text or a list of one."""
    names: list[Any] = list(by) if isinstance(by, list | tuple) else [by]
    if len(names) == 1 and names[0] not in schema.domain.attributes:
        names = [n.strip() for n in str(names[0]).split(",")]
    schema.domain.clique(names)
    if not names:
        raise InputError("by names 0 columns, and takes one.", remedy="Give one column.")
    if len(names) > 1:
        numeric = (c.name for c in schema.columns if isinstance(c, Integer | Real))
        number = next((n for n in numeric if n not in names), "COLUMN")
        raise InputError(
            f"by names {len(names)} columns, and takes one.",
            remedy=f"Give one column. For groups of two columns, analyze one value of {names[1]!r} at a time:"
            f" margrave analyze mean RELEASE {number} {two_groups(names, schema)} (in Python"
            f' By(Mean("{number}", where={{"{names[1]}": VALUE}}), "{names[0]}")).',
        )
    name: Attribute = names[0]
    if name in {c.name for c in schema.to_learn}:
        raise InputError(
            f"No values were learned of column {name!r}, so it makes no groups.",
            remedy="Name another column.",
        )
    return name


def two_groups(names: Sequence[Attribute], schema: Schema) -> str:
    """Return the options that analyze one value of the second of some columns by groups of the first."""
    value: str = schema.column(names[1]).labels()[0]
    return f"--by {quote(names[0])} --where {quote(f'{names[1]}={value}')}"


def _numbers(
    column: Column,
    schema: Schema,
    quantiles: Mapping[str, float],
    noisy: NoisyCounts | None,
    expected: FloatArray | None,
    rows_per_row: float | None = None,
) -> Iterator[ColumnNumber]:
    numeric = isinstance(column, NUMERIC_KINDS)
    if isinstance(column, NUMERIC_KINDS):
        limits = possible_limits(column, schema.sources)
        clips = may_clip(column, schema.source(column.name))
        own = NumericColumn(column, noisy, expected, rows_per_row, limits, quantiles, clips)
        yield from own.numbers()
    if numeric and not column.missing:
        return
    words, size = schema.code_words(column.name), column.size
    shares = [None] * size if noisy is None else noisy.shares()
    total = 1.0 if expected is None else max(float(expected.sum()), 1.0)
    for code in range(size - 1 if numeric else 0, size):
        is_missing = column.missing and code == size - 1
        name = "missing" if is_missing else share_name(words[code])
        synthetic = None if expected is None else float(expected[code]) / total
        yield _share(column.name, name, shares[code], synthetic)


def _share(
    column: Attribute, statistic: str, share: Interval | None, synthetic: float | None
) -> ColumnNumber:
    shown = percent_text
    if share is None or share.estimate is None:
        return number(column, statistic, share, show=shown, synthetic=synthetic)
    deviation = min((p * (1 - p)) ** 0.5 for p in (share.low, share.high))
    near = (
        share.estimate <= MAX_DEVIATIONS_FROM_ZERO * (share.estimate * (1 - share.estimate)) ** 0.5
    )
    tolerance = TOLERANCE * max(deviation, share.estimate if near else 0.0)
    return number(column, statistic, share, show=shown, synthetic=synthetic, tolerance=tolerance)


def percent_text(share: float, length: float = math.inf) -> str:
    """Return a share as a percentage with one or two decimals, or more in an interval of a small length.

    >>> percent_text(0.234), percent_text(0.0123), percent_text(0.00004, 0.00002)
    ('23.4 %', '1.23 %', '0.004 %')
    """
    decimals = max(2 if share < 0.1 else 1, decimals_of(100 * length))
    return percent(share, f".{decimals}f")
