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


def _proposed(evidence: ColumnProfile) -> tuple[Column, str]:
    texts = evidence.counts
    if evidence.truth or says_truth(texts):
        return Boolean(evidence.name, missing=evidence.missing), _missing_remark(evidence)
    found = dated_texts(texts)
    if found is not None:
        return _dated(evidence, found)
    if texts.are_whole:
        return _integer(evidence)
    if texts.are_numbers:
        return _real(evidence)
    return _categorical(evidence)


def _integer(evidence: ColumnProfile) -> tuple[Column, str]:
    values = DistinctNumbers.of(evidence.counts.numbers, evidence.counts.rows)
    least, most = int(values.points[0]), int(values.points[-1])
    low, high = (int(v) for v in rounded_outwards(Decimal(least), Decimal(most)))
    few = most - least < BINS
    low, high = (least, most) if few else (max(low, -EXACT + 1), min(high, EXACT - 1))
    atoms = [] if few else [int(v) for v in _heaps(values)]
    edges = [int(e) for e in growing_edges(values, atoms, low, high, whole=True)] or None
    column = Integer(evidence.name, low, high, edges=edges, atoms=atoms, missing=evidence.missing)
    return column, _number_remark(evidence, atoms, edges) + marked(values, far_off_read)


def _real(evidence: ColumnProfile) -> tuple[Column, str]:
    texts = evidence.counts
    ends = (texts.numbers == texts.numbers.min()) | (texts.numbers == texts.numbers.max())
    exact = [Decimal(t) for t in texts.keep(ends)]
    low, high = (float(v) for v in rounded_outwards(min(exact), max(exact)))
    if low == high:
        apart = max(1.0, abs(low) / 2**20)  # beyond 2^53 one more is the same float
        low, high = low - apart, high + apart
    values = DistinctNumbers.of(texts.numbers, texts.rows)
    atoms = _heaps(values)
    places = _decimals(texts)
    fits = places is not None and max(abs(low), abs(high)) * 10**places < EXACT
    edges = [float(e) for e in growing_edges(values, atoms, low, high, whole=False)] or None
    column = Real(
        evidence.name,
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


def _dated(evidence: ColumnProfile, found: DatedTexts) -> tuple[Column, str]:
    times = found.moments.times
    low, high = whole_months(times.min().astype(object), times.max().astype(object))
    far = marked(found.days, far_off_read, day_of)
    remark = _missing_remark(evidence, f"Are low and high public?{found.questions(evidence)}") + far
    form, missing = found.pattern or None, evidence.missing
    if found.unit == "":
        return Date(evidence.name, low, high, format=form, missing=missing), remark
    last = timedelta(seconds=86400 - UNITS[found.unit])
    start, end = at_midnight(low), at_midnight(high) + last
    return Timestamp(
        evidence.name, start, end, unit=found.unit, format=form, missing=missing
    ), remark


def _categorical(evidence: ColumnProfile) -> tuple[Column, str]:
    often = [t for t, _ in evidence.counts.most_common()]
    codes = list(text_codes(evidence.counts))
    asked = spelling(evidence, Learn.max_categories) + (code_like_read(codes) if codes else "")
    if len(often) <= Learn.max_categories:
        column = Categorical(evidence.name, sorted(often), missing=evidence.missing)
        return column, _missing_remark(
            evidence, f"May all of these categories be known to exist?{asked}"
        )
    column = Categorical(
        evidence.name, sorted(often[: Learn.max_categories]), other=True, missing=evidence.missing
    )
    remark = (
        f"May these categories be known to exist? The {Learn.max_categories} most frequent are listed;"
        f" others become {OTHER!r}{', which is also a value of the column' if OTHER in often else ''}."
    )
    remark += Remark.MARKED if evidence.marked else ""
    return column, _missing_remark(evidence, f"{remark}{asked}")


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
