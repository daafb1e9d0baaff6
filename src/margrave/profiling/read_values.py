"""Columns of a draft whose bounds and categories are those of the rows: for a person to replace.

**Privacy:** NOT private: the gate refuses such a schema, key by key.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

from margrave.profiling.bin_edges import growing_edges
from margrave.profiling.distinct_numbers import DistinctNumbers
from margrave.profiling.messages import Remark, code_like_read, far_off_read
from margrave.profiling.rounding import (
    day_of,
    rounded_outwards,
    whole_months,
)
from margrave.profiling.sentinels import marked, text_codes
from margrave.profiling.texts import (
    DatedTexts,
    dated_texts,
    says_truth,
    spelling,
)
from margrave.schema.bins import EXACT
from margrave.schema.categorical import OTHER, Boolean, Categorical
from margrave.schema.column import Column
from margrave.schema.column_profile import ColumnProfile
from margrave.schema.distinct_texts import DistinctTexts
from margrave.schema.learn import Learn
from margrave.schema.line import BINS
from margrave.schema.numeric import UNITS, Date, Integer, Real, Timestamp
from margrave.schema.parsing import at_midnight
from margrave.schema.sources import ColumnSource
from margrave.schema.text_patterns import dotted_thousands


def propose_read(evidence: ColumnProfile) -> tuple[Column, ColumnSource, str]:
    """Return a column with the values of its rows, which keys were read, and a remark for the
    person who checks it.
    """
    column, remark = _proposed(evidence)
    if len(evidence.counts) == 1 and not evidence.missing:
        remark = f"{Remark.SAME} {remark}"
    keys = ("low", "high", "edges", "atoms", "decimals", "categories")
    read = [key for key in keys if getattr(column, key, None) not in (None, ())]
    return column, ColumnSource(read=[*read, "missing"]), remark.rstrip()


def column_as_read(evidence: ColumnProfile) -> Column:
    """Return a column with the bounds or categories of its rows, and with nothing else that is read off them."""
    name, texts, missing = evidence.name, evidence.counts, evidence.missing
    if evidence.truth or says_truth(texts):
        return Boolean(name, missing=missing)
    found = dated_texts(texts)
    if found is not None:
        return _dated(evidence, found)
    if texts.are_whole:
        return Integer(name, *_whole_bounds(texts), missing=missing)
    if texts.are_numbers:
        return Real(name, *_bounds(texts), missing=missing)
    often = [t for t, _ in texts.most_common(Learn.max_categories)]
    return Categorical(
        name, sorted(often), other=len(texts) > Learn.max_categories, missing=missing
    )


def exact_bounds(evidence: ColumnProfile, column: Column) -> tuple[object, object] | None:
    """Return the least and the greatest value of the rows of a column as read, None if it has no order."""
    if isinstance(column, Integer | Real):
        return evidence.counts.numbers.min(), evidence.counts.numbers.max()
    found = dated_texts(evidence.counts) if isinstance(column, Date | Timestamp) else None
    if found is None:
        return None
    times = found.moments.times
    low, high = times.min().astype(object), times.max().astype(object)
    return (low, high) if isinstance(column, Timestamp) else (low.date(), high.date())


def _proposed(evidence: ColumnProfile) -> tuple[Column, str]:
    column = column_as_read(evidence)
    if isinstance(column, Boolean):
        return column, _missing_remark(evidence)
    found = dated_texts(evidence.counts) if isinstance(column, Date | Timestamp) else None
    if found is not None:
        return column, _date_remark(evidence, found)
    if isinstance(column, Integer):
        return _integer(evidence, column)
    if isinstance(column, Real):
        return _real(evidence, column)
    return column, _category_remark(evidence)


def _whole_bounds(texts: DistinctTexts) -> tuple[int, int]:
    least, most = int(texts.numbers.min()), int(texts.numbers.max())
    if most - least < BINS:
        return least, most
    low, high = (int(v) for v in rounded_outwards(Decimal(least), Decimal(most)))
    return max(low, -EXACT + 1), min(high, EXACT - 1)


def _integer(evidence: ColumnProfile, column: Integer) -> tuple[Column, str]:
    values = DistinctNumbers.of(evidence.counts.numbers, evidence.counts.rows)
    low, high = column.low, column.high
    atoms = [] if high - low < BINS else [int(v) for v in _heaps(values)]
    edges = [int(e) for e in growing_edges(values, atoms, low, high, whole=True)] or None
    column = Integer(column.name, low, high, edges=edges, atoms=atoms, missing=evidence.missing)
    return column, _number_remark(evidence, atoms, edges) + marked(values, far_off_read)


def _bounds(texts: DistinctTexts) -> tuple[float, float]:
    ends = (texts.numbers == texts.numbers.min()) | (texts.numbers == texts.numbers.max())
    exact = [Decimal(t) for t in texts.keep(ends)]
    low, high = (float(v) for v in rounded_outwards(min(exact), max(exact)))
    if low < high:
        return low, high
    apart = max(1.0, abs(low) / 2**20)  # beyond 2^53 one more is the same float
    return low - apart, high + apart


def _real(evidence: ColumnProfile, column: Real) -> tuple[Column, str]:
    texts, low, high = evidence.counts, column.low, column.high
    values = DistinctNumbers.of(texts.numbers, texts.rows)
    atoms = _heaps(values)
    places = _decimals(texts)
    fits = places is not None and max(abs(low), abs(high)) * 10**places < EXACT
    edges = [float(e) for e in growing_edges(values, atoms, low, high, whole=False)] or None
    column = Real(
        column.name,
        low,
        high,
        edges=edges,
        atoms=atoms,
        decimals=places if fits else None,
        missing=evidence.missing,
    )
    thousands = evidence.written and dotted_thousands(texts) is None
    remark = _number_remark(evidence, atoms, edges) + (Remark.DECIMALS if thousands else "")
    return column, remark + marked(values, far_off_read)


def _decimals(texts: DistinctTexts) -> int | None:
    """Return the most decimals of numbers, without zeros at their ends; None if there are more than six."""
    powered = texts.matches(r".*[eE].*")
    exact = [Decimal(t).normalize() for t in texts.keep(powered)]
    places = max((-int(v.as_tuple().exponent) for v in exact), default=0)
    plain = texts.keep(~powered)
    found = (k for k in range(max(places, 0), 7) if plain.all_match(rf"[^.]*(\.\d{{0,{k}}}0*)?"))
    return next(found, None)


def _dated(evidence: ColumnProfile, found: DatedTexts) -> Date | Timestamp:
    times = found.moments.times
    low, high = whole_months(times.min().astype(object), times.max().astype(object))
    form, missing = found.pattern or None, evidence.missing
    if found.unit == "":
        return Date(evidence.name, low, high, format=form, missing=missing)
    last = timedelta(seconds=86400 - UNITS[found.unit])
    start, end = at_midnight(low), at_midnight(high) + last
    return Timestamp(evidence.name, start, end, unit=found.unit, format=form, missing=missing)


def _date_remark(evidence: ColumnProfile, found: DatedTexts) -> str:
    asked = f"Are low and high public?{found.questions(evidence)}"
    return _missing_remark(evidence, asked) + marked(found.days, far_off_read, day_of)


def _category_remark(evidence: ColumnProfile) -> str:
    codes = list(text_codes(evidence.counts))
    asked = spelling(evidence, Learn.max_categories) + (code_like_read(codes) if codes else "")
    if len(evidence.counts) <= Learn.max_categories:
        return _missing_remark(evidence, f"May all of these categories be known to exist?{asked}")
    remark = (
        f"May these categories be known to exist? The {Learn.max_categories} most frequent are listed;"
        f" others become {OTHER!r}{', which is also a value of the column' if OTHER in evidence.counts else ''}."
    )
    remark += Remark.MARKED if evidence.marked else ""
    return _missing_remark(evidence, f"{remark}{asked}")


def _number_remark(evidence: ColumnProfile, atoms: list[Any], edges: list[Any] | None) -> str:
    heaps = " Are the atoms (values with a cell of their own) public?" if atoms else ""
    grow = Remark.TAIL if edges else ""
    return _missing_remark(
        evidence, f"Are low and high public? Values beyond them are moved to them.{heaps}{grow}"
    )


def _missing_remark(evidence: ColumnProfile, question: str = "") -> str:
    asked = [question] if question else []
    if evidence.missing:
        asked.append("It may be missing.")
    return " ".join(asked)


def _heaps(values: DistinctNumbers) -> list[float]:
    # Share of the rows from which a number gets a cell of its own.
    min_share = 0.2
    often: list[float] = values.points[values.rows > min_share * values.total].tolist()
    return often[:5]
