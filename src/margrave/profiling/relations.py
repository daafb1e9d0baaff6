"""Questions on constraints: relations between columns that hold in all rows.

Only a person can say whether they always hold.

**Privacy:** NOT private. No draft has a constraint: it would be a fact about the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise, permutations
from typing import Any, ClassVar

import numpy as np

from margrave.data.batch_sources import open_source, sampled_frame
from margrave.error_sanitizer import hide_rows
from margrave.frames import each_column
from margrave.schema.categorical import Categorical
from margrave.schema.column import Column
from margrave.schema.constraint_values import NUMERIC_KINDS
from margrave.schema.elapsed import Elapsed, since_of
from margrave.schema.learn import Learn
from margrave.schema.numeric import UNITS, Date, Integer, Real, Timestamp
from margrave.schema.parsing import MARKS, distinct
from margrave.schema.schema import Schema
from margrave.schema.toml_text import written
from margrave.types import FloatArray, IntArray

Pair = tuple[str, str]


@dataclass(frozen=True)
class ConstraintQuestion:
    """A relation that holds in all rows of a table.

    Args:
        kind: The constraint that would state it: "ordered", "depends" or "allowed"; or "elapsed", the kind of the
            second column that would.
        columns: Its columns, as the constraint would name them.
        words: The relation, in a sentence without a value of the rows.
        absent: Of "allowed", the number of combinations that do not occur.
    """

    kind: str
    columns: tuple[str, ...]
    words: str
    absent: int = 0

    #: Rows that would contradict a relation by chance, from which on it is worth a question.
    min_contradictions: ClassVar[float] = 20.0

    @property
    def remark(self) -> str:
        """The question for the comments of a draft."""
        names = written(self.columns)
        if self.kind == Elapsed.kind:
            start, end = self.columns
            return (
                f'{self.words} Is that always true? Then write kind = "elapsed", since = {written(start)} and low = 0'
                f" for {end!r}, and take its hour and weekday out: the time between them is then kept."
            )
        if self.kind == "ordered":
            return f"{self.words} Is that always true? Then add a [[constraint]] with ordered = {names}."
        return (
            f"{self.words} Is that always true? Then add a [[constraint]] with columns = {names} and"
            f' {self.kind} = "FILE.csv", a public list of the combinations that may occur.'
        )


@hide_rows
def constraint_questions(source: Any, schema: Schema) -> tuple[ConstraintQuestion, ...]:
    """Return questions on relations between the columns of a schema that hold in all rows.

    A relation is worth a question if many rows would contradict it by chance.

    Args:
        source: A path to a file, or a frame.
        schema: A draft for it.

    Returns:
        At most ten questions of each kind. None of them quotes a value of the rows.

    Privacy:
        NOT private: they are facts about the rows. An answer must rest on what is public.

    Example:
        >>> import pyarrow as pa
        >>> table = {"start": list(range(100)), "end": [i + i % 9 for i in range(100)]}
        >>> open_schema = Schema([Learn("start", "integer"), Learn("end", "integer")])
        >>> [q.columns for q in constraint_questions(pa.table(table), open_schema)]
        [('start', 'end')]
    """
    most = 10
    frame = source if open_source(source) is None else sampled_frame(source)
    points: dict[str, FloatArray] = {}
    codes: dict[str, IntArray] = {}
    for name, pieces in each_column(frame, [c.name for c in schema.output_columns]):
        column = schema.column(name)
        if since_of(column):  # a bound states its order
            continue
        if _has_points(column):
            points[name] = np.concatenate([_points(column, p) for p in pieces])
        elif column.kind == Categorical.kind:
            codes[name] = _codes(pieces)
    follows = [(a, b) for a, b in permutations(codes, 2) if _follows(codes[a], codes[b])]
    return (
        *_ordered(points, schema)[:most],
        *_dependencies(follows)[:most],
        *_allowed(codes, {frozenset(pair) for pair in follows})[:most],
    )


def with_questions(
    schema: Schema, questions: Sequence[ConstraintQuestion], notes: Sequence[str] = ()
) -> Schema:
    """Return a draft with questions, and notes for the custodian, among the comments at its head."""
    pairs = [q for q in questions if q.absent]
    listed = (
        [
            f"{in_short(pairs)[0]} Can they not occur? Then add for each pair a [[constraint]] such as columns ="
            f' {written(pairs[0].columns)} and allowed = "FILE.csv", a public list of the combinations that may occur.'
        ]
        if pairs
        else []
    )
    others = (q.remark for q in questions if not q.absent)
    head = "\n".join([schema.remarks.get("", ""), *notes, *others, *listed])
    return replace(schema, remarks={**schema.remarks, "": head.strip()})


def in_short(questions: Sequence[ConstraintQuestion]) -> list[str]:
    """Return the relations in few sentences: one for all pairs of which combinations do not occur."""
    pairs = [f"{q.columns[0]!r} and {q.columns[1]!r} ({q.absent:,})" for q in questions if q.absent]
    words = [q.words for q in questions if not q.absent]
    if pairs:
        words.append(
            f"Some combinations never occur in these rows, though chance would give each many: of {', '.join(pairs)}."
        )
    return words


def _has_points(column: Column) -> bool:
    if isinstance(column, Integer):
        return column.high - column.low > 1  # 0 and 1 are an answer, not a quantity
    return isinstance(column, NUMERIC_KINDS) or (isinstance(column, Learn) and column.is_number)


def _points(column: Any, piece: Any) -> FloatArray:
    if isinstance(column, Learn):
        return column.points(piece)
    points, empty = column.points(piece)
    return np.where(empty, np.nan, points)


def _codes(pieces: Iterable[Any]) -> IntArray:
    """Return a number for each text, -1 for empty fields and missing-value codes."""
    seen: dict[str, int] = {}
    found = []
    for piece in pieces:
        rows, texts = distinct(piece)
        short = ["" if t is None or t.strip().lower() in MARKS else t.strip() for t in texts]
        codes = [seen.setdefault(t, len(seen)) if t else -1 for t in short]
        found.append(np.array(codes, dtype=np.int64)[rows])
    return np.concatenate(found)


def _is_temporal(column: Column) -> bool:
    return column.kind in (Date.kind, Timestamp.kind)


def _line_of(column: Any) -> tuple[str, str]:
    """Return what columns must have in common to be compared in one constraint."""
    kind = "number" if column.kind in (Integer.kind, Real.kind) else column.kind
    return kind, getattr(column, "unit", None) or ""


# Orders.


def _ordered(points: Mapping[str, FloatArray], schema: Schema) -> list[ConstraintQuestion]:
    columns = {name: schema.column(name) for name in points}
    pairs = {
        (a, b)
        for a, b in permutations(points, 2)
        if _are_comparable(columns[a], columns[b])
        and _in_order(_in_unit_of(columns[b], columns[a], points[a]), points[b])
    }
    asked = []
    for chain in _chains(pairs):
        lines = {_line_of(columns[name]) for name in chain}
        if len(lines) > 1 or any(columns[name].kind == Real.kind for name in chain):
            chain = chain[:2]  # more cannot be in one order
        temporal = _is_temporal(columns[chain[0]])
        lower = "before" if temporal else "below"
        steps = [f"{b!r} is never {lower} {a!r}" for a, b in pairwise(chain)]
        words = f"In these rows {', and '.join(steps)}."
        two_times = temporal and len(chain) == 2
        if temporal and not two_times:
            words += (
                " Their differences are as coarse as their bins, which may be weeks: if the time between them"
                ' matters, keep each but the first as the time since it (kind = "elapsed").'
            )
        asked.append(ConstraintQuestion(Elapsed.kind if two_times else "ordered", chain, words))
    return asked


def _are_comparable(first: Column, second: Column) -> bool:
    both_temporal = _is_temporal(first) and _is_temporal(second)
    return both_temporal or _line_of(first) == _line_of(second)


def _in_unit_of(column: Column, other: Column, points: FloatArray) -> FloatArray:
    """Return points of one column of dates or times in the unit of another, rounded down."""
    if not _is_temporal(column):
        return points
    seconds, own = (
        UNITS[getattr(c, "unit", None) or "day"] if c.kind == Timestamp.kind else UNITS["day"]
        for c in (other, column)
    )
    return np.asarray(np.floor_divide(points * seconds, own))


def _in_order(first: FloatArray, second: FloatArray) -> bool:
    both = np.isfinite(first) & np.isfinite(second)
    below, above = first[both], second[both]
    if not len(below) or (below > above).any() or not (below < above).any():
        return False
    expected = np.searchsorted(np.sort(above), below).sum() / len(below)  # if they were independent
    return bool(expected >= ConstraintQuestion.min_contradictions)


def _chains(pairs: set[Pair]) -> list[tuple[str, ...]]:
    """Return chains of columns, each column in one of them, that the pairs put in order."""
    after: dict[str, list[str]] = {}
    for first, second in sorted(pairs):
        after.setdefault(first, []).append(second)
    found: list[tuple[str, ...]] = []
    used: set[str] = set()
    while left := {
        a: [b for b in then if b not in used] for a, then in after.items() if a not in used
    }:
        chain = [max(left, key=lambda a: len(left[a]))]
        rest = left[chain[0]]
        while rest:
            chain.append(max(rest, key=lambda a: len(left.get(a, ()))))
            rest = [b for b in rest if b in left.get(chain[-1], ())]
        used.update(chain)
        if len(chain) > 1:
            found.append(tuple(chain))
    return found


# Lists of combinations.


def _dependencies(pairs: Sequence[Pair]) -> list[ConstraintQuestion]:
    both_ways = {p for p in pairs if p[::-1] in pairs}
    one_way = set(pairs) - both_ways
    through = {(a, c) for a, b in one_way for b_, c in one_way if b == b_}
    return [
        ConstraintQuestion("depends", (a, b), f"In these rows each {a!r} has one {b!r} only.")
        for a, b in pairs
        if (a, b) not in through and ((a, b) in one_way or a < b)
    ]


def _follows(first: IntArray, second: IntArray) -> bool:
    """Return True if every value has one value that follows, and rows would contradict it by chance."""
    both = (first >= 0) & (second >= 0)
    on, to = first[both], second[both]
    if not len(on):
        return False
    follows = np.full(int(on.max()) + 1, -1)
    follows[on] = to
    if (follows[on] != to).any():
        return False
    repeated = len(on) - np.count_nonzero(follows >= 0)
    shares = np.bincount(to) / len(to)
    expected = repeated * (1.0 - (shares**2).sum())
    return bool(expected >= ConstraintQuestion.min_contradictions)


def _allowed(
    codes: Mapping[str, IntArray], dependent: set[frozenset[str]]
) -> list[ConstraintQuestion]:
    # Categories of the largest column whose combinations are compared.
    max_categories = 100
    # Rows that a combination has by chance, from which on it is noticed that it has none.
    min_rows = 10.0
    few = {n: c for n, c in codes.items() if len(c) and c.max() < max_categories}
    asked = []
    for a, b in combinations(few, 2):
        both = (few[a] >= 0) & (few[b] >= 0)
        if frozenset((a, b)) in dependent or not both.any():
            continue
        on, to = few[a][both], few[b][both]
        width = int(to.max()) + 1
        table = np.bincount(on * width + to, minlength=width * (int(on.max()) + 1))
        table = table.reshape(-1, width)
        expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / len(on)
        if absent := int(((table == 0) & (expected >= min_rows)).sum()):
            asked.append((absent, a, b))
    return [
        ConstraintQuestion(
            "allowed",
            (a, b),
            f"In these rows {absent:,} combination{'' if absent == 1 else 's'} of {a!r} and {b!r} never"
            f" occur{'s' if absent == 1 else ''}, though by chance {min_rows:g} rows or more would have each.",
            absent,
        )
        for absent, a, b in sorted(asked, reverse=True)
    ]
