"""Means, totals, quantiles and shares of every column, each with an interval and a verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
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
from margrave.release.beyond_bounds import public_limits
from margrave.release.number import MAX_DEVIATIONS_FROM_ZERO, TOLERANCE, ColumnNumber, number
from margrave.release.numeric_numbers import QUANTILES, NumericColumn
from margrave.schema import Categorical, Column, Schema
from margrave.schema.categorical import OTHER
from margrave.schema.constraint_values import NUMERIC_KINDS
from margrave.schema.numeric import Numeric
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
        level: Probability with which each interval holds, above 0 and below 1.
        columns: These columns only; by default all.
        by: The one column whose codes make groups of the records; None for all records at once. A group's numbers
            come from the noisy marginals that contain both columns. Its mean and total come from weighted sums of
            the two as well.
        quantiles: The quantiles by name, as shares of the records below.

    Raises:
        InputError: ``by`` is not one column of the schema.
    """
    check_level(level)
    names = schema.domain.attributes if columns is None else schema.domain.clique(columns)
    groups: tuple[int | None, ...] = (None,)
    if by is not None:
        by = _group_column(schema, by)
        names = tuple(name for name in names if name != by)
        groups = tuple(range(schema.domain.size(by)))
    cliques = {name: schema.domain.clique([name] if by is None else [name, by]) for name in names}
    unbiased, expected = Unbiased(schema.domain, transcript), _expected(model, cliques.values())
    found: list[ColumnNumber] = []
    for column in map(schema.column, names):
        clique = cliques[column.name]
        estimate = unbiased.estimate(clique) if unbiased.supports(clique) else None
        for code in groups:
            own, counts = estimate, expected.get(clique)
            if by is not None and code is not None:
                own = None if estimate is None else estimate.slice(by, code)
                counts = None if counts is None else np.take(counts, code, axis=clique.index(by))
            group = None if by is None or code is None else (by, code)
            noisy = None
            if own is not None:
                sums = weighted_sums(own, schema.domain, transcript, group)
                noisy = NoisyCounts(own, level, sums)
            if code is None or by is None:
                found += _numbers(column, schema, quantiles, noisy, counts)
            else:
                name = group_name(schema.column(by), code)
                hidden = _rows_per_row_of(noisy, estimate)
                numbers = _numbers(column, schema, quantiles, noisy, counts, hidden)
                found += (replace(n, group=name) for n in numbers)
    return tuple(found)


def rare_groups(schema: Schema, transcript: Transcript, by: Attribute) -> tuple[str, ...]:
    """Return the groups of a column that may have no rows: their noisy count is below 3 of its standard deviations.

    Args:
        schema: The public schema.
        transcript: The noisy answers.
        by: The column of groups.

    Returns:
        Their names, as ``numbers_of`` has them. None if the column has no noisy counts.
    """
    deviations = 3.0
    unbiased, column = Unbiased(schema.domain, transcript), schema.column(by)
    estimate = unbiased.estimate((by,)) if unbiased.supports((by,)) else None
    if estimate is None:
        return ()
    codes = np.eye(column.size)
    scales = [max(estimate.covariance(code, code), 0.0) ** 0.5 for code in codes]
    return tuple(
        group_name(column, code)
        for code, (count, scale) in enumerate(zip(estimate.values, scales, strict=True))
        if count < deviations * scale
    )


def group_name(column: Column, code: int) -> str:
    """Return the records with one code of a column as text, such as "ward = b"."""
    return f"{column.name} = {column.labels()[code]}"


def _rows_per_row_of(noisy: NoisyCounts | None, whole: GLSEstimate | None) -> float:
    """Return the number of records for each of a group's, which is at least 1."""
    if noisy is None or whole is None:
        return 1.0
    return max(1.0, float(whole.values.sum()) / max(float(noisy.counts.sum()), 1.0))


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


def clipping_words(numbers: Sequence[ColumnNumber]) -> list[str]:
    """Return a sentence for each column whose mean or quantiles clipping may bias."""
    largest: dict[Attribute, ColumnNumber] = {}
    for n in numbers:
        if (n.clipping or 0.0) > (
            largest[n.column].clipping or 0.0 if n.column in largest else 0.0
        ):
            largest[n.column] = n
    return [
        f"{name}: {percent_text(n.clipping or 0.0)} of the records are in an end bin, far more than the bins beside it"
        " lead to expect. Values from beyond the bounds may have been counted there. Intervals cover the noise, not"
        " this bias."
        for name, n in largest.items()
    ]


def open_ends_words(numbers: Sequence[ColumnNumber]) -> list[str]:
    """Return a sentence for each column that has a quantile which may lie beyond a learned bound."""
    names: dict[Attribute, dict[str, None]] = {}
    for n in numbers:
        if n.low == -math.inf or n.high == math.inf:
            names.setdefault(n.column, {})[n.statistic] = None
    return [
        f"{name}: {', '.join(found)} may lie beyond a learned bound. Rows beyond it count in the bin beside it, so no"
        " answer shows how far beyond. Declare public bounds in the schema of the next release."
        for name, found in names.items()
    ]


def clipped_ends(
    schema: Schema, transcript: Transcript, column: Numeric, level: float
) -> tuple[float, float]:
    """Return the share of the records that may be clipped at the lower and the upper bound, by the noisy answers."""
    unbiased = Unbiased(schema.domain, transcript)
    estimate = unbiased.estimate((column.name,)) if unbiased.supports((column.name,)) else None
    if estimate is None:
        return 0.0, 0.0
    noisy = NoisyCounts(estimate, level)
    return NumericColumn(column, noisy, None).clipped(noisy)


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
    if len(names) != 1:
        raise InputError(
            f"by names {len(names)} columns, and takes one.",
            remedy="Give one column. For groups of two columns, analyze one value of the second at a time:"
            ' By(Mean("stay", where={"sex": "F"}), "ward"), or --by ward --where sex=F.',
        )
    return schema.domain.clique(names)[0]


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
        limits = public_limits(column, schema.sources)
        own = NumericColumn(column, noisy, expected, rows_per_row, limits, quantiles)
        yield from own.numbers()
    if numeric and not column.missing:
        return
    labels = column.labels()
    shares = [None] * len(labels) if noisy is None else noisy.shares()
    total = 1.0 if expected is None else max(float(expected.sum()), 1.0)
    for code in range(len(labels) - 1 if numeric else 0, len(labels)):
        is_missing = column.missing and code == len(labels) - 1
        name = "missing" if is_missing else f"share of {labels[code]}"
        synthetic = None if expected is None else float(expected[code]) / total
        yield _share(column.name, name, shares[code], synthetic)


def _share(
    column: Attribute, statistic: str, share: Interval | None, synthetic: float | None
) -> ColumnNumber:
    shown = percent_text
    if share is None or share.estimate is None:
        return number(column, statistic, share, show=shown, synthetic=synthetic)
    largest = min(max(share.low, 0.5), share.high)  # of all shares, 0.5 deviates most
    deviation = (largest * (1 - largest)) ** 0.5
    near = share.estimate <= MAX_DEVIATIONS_FROM_ZERO * deviation
    tolerance = TOLERANCE * max(deviation, share.estimate if near else 0.0)
    return number(column, statistic, share, show=shown, synthetic=synthetic, tolerance=tolerance)


def percent_text(share: float) -> str:
    """Return a share as a percentage with at least two digits."""
    return percent(share, ".2f" if share < 0.1 else ".1f")
