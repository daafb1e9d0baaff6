"""Constraints between columns: what everybody knows cannot occur, declared in terms of values.

A constraint is public knowledge like the rest of a schema: it is written down before anyone looks at the rows, and it
is listed in every certificate. A model gives no probability to what it forbids, and no row of a release violates it.
A missing value violates nothing, unless the constraint speaks of missing values of that column itself.

Bins and categories of a learned column are not chosen by whoever writes a constraint. There a constraint rules out a
cell only if it rules out every value in it.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from margrave.errors import SchemaError
from margrave.schema import validators
from margrave.schema.categorical import OTHER, Categorical, Coded, Ordinal
from margrave.schema.column import Column, set_fields
from margrave.schema.constraint_values import (
    NUMERIC_KINDS,
    Element,
    code_name,
    codes_of,
    element,
    elements,
    union_of,
)
from margrave.schema.elapsed import since_of
from margrave.schema.numeric import Date, Integer, Real, Timestamp
from margrave.structural_zeros import StructuralZeros

Columns = Mapping[str, Column]
ValueTable = NDArray[np.bool_]


class Constraint(Protocol):
    """Columns that depend on each other in a way that is known beforehand."""

    kind: ClassVar[str]

    @property
    def columns(self) -> Sequence[str]:
        """The columns it is about."""
        ...

    @property
    def violating(self) -> str:
        """The policy for rows that violate the constraint: one of ``VIOLATING``."""
        ...

    @abstractmethod
    def zeros(self, columns: Columns, learned: Collection[str] = ()) -> Iterator[StructuralZeros]:
        """Return the combinations of codes that cannot occur; ``learned`` columns need not have its
        values. Raise ``SchemaError`` for unknown values of others.
        """
        ...


def name_of(constraint: Constraint) -> str:
    """Return a constraint in words: its kind and columns."""
    return f"{constraint.kind} ({', '.join(constraint.columns)})"


@dataclass(frozen=True)
class Impossible:
    """No row has one of the values of each column at once. Values are listed; a pair (low, high) is a range.

    >>> Impossible({"age": (0, 14), "marital": ["married", "widowed"]}).columns
    ('age', 'marital')
    """

    where: Mapping[str, Any] = field(hash=False)
    violating: str = "keep"
    kind: ClassVar[str] = "impossible"

    def __post_init__(self) -> None:
        _check_policy(self)
        if not isinstance(self.where, Mapping) or not self.where:
            raise SchemaError(
                "A constraint 'impossible' names no column.", remedy='Write {"age": (0, 14), ...}.'
            )
        kept = {_named(c): elements(v, f"Impossible, column {c!r}") for c, v in self.where.items()}
        set_fields(self, where=kept)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns it is about."""
        return tuple(self.where)

    def zeros(self, columns: Columns, learned: Collection[str] = ()) -> Iterator[StructuralZeros]:
        """Yield all combinations of the values."""
        possible = full_table(self.columns, columns)
        codes = (union_of(columns[c], v, learned=c in learned) for c, v in self.where.items())
        possible[np.ix_(*codes)] = False
        yield StructuralZeros(self.columns, possible)


@dataclass(frozen=True)
class Allowed:
    """Every row has one of the combinations listed, and no other.

    A row with a missing value agrees with a combination in what it has, unless one lists None for that column.

    >>> Allowed(["city", "zip"], [("York", "YO1"), ("Hull", "HU1")]).columns
    ('city', 'zip')
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    violating: str = "keep"
    kind: ClassVar[str] = "allowed"

    def __post_init__(self) -> None:
        _check_policy(self)
        names = _names(self.columns, "allowed")
        set_fields(self, columns=names, rows=_rows(self.rows, names, "allowed"))

    def zeros(self, columns: Columns, learned: Collection[str] = ()) -> Iterator[StructuralZeros]:
        """Yield all combinations that are not listed."""
        possible = full_table(self.columns, columns)
        possible[...] = False
        taken = [
            codes_of(columns[c], [row[i] for row in self.rows], learned=c in learned)
            for i, c in enumerate(self.columns)
        ]
        for combination in zip(*taken, strict=True):
            for cell in product(*combination):
                possible[cell] = True
        for axis, name in enumerate(self.columns):
            if columns[name].missing and all(row[axis] is not None for row in self.rows):
                np.moveaxis(possible, axis, 0)[-1] = possible.any(axis=axis)
        yield StructuralZeros(tuple(self.columns), possible)


@dataclass(frozen=True)
class Depends:
    """The value of ``column`` follows from that of ``on``, as the table says: a functional dependency.

    Every value of ``on`` needs a line, but for the open category and missing values: without one they go with anything.
    If ``on`` is learned, so do all values without a line.

    >>> Depends("city", "state", {"York": "England", "Hull": "England"}).columns
    ('city', 'state')
    """

    on: str
    column: str
    table: Mapping[Any, Any] = field(hash=False)
    violating: str = "keep"
    kind: ClassVar[str] = "depends"

    def __post_init__(self) -> None:
        _check_policy(self)
        _names([self.on, self.column], "depends")
        if not isinstance(self.table, Mapping) or not self.table:
            raise SchemaError(
                "A constraint 'depends' has no table.", remedy='Write {"York": "England", ...}.'
            )
        where = f"Depends, columns {self.on!r} and {self.column!r}"
        set_fields(
            self, table={element(k, where): element(v, where) for k, v in self.table.items()}
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The column that determines, and the one that is determined."""
        return (self.on, self.column)

    def zeros(self, columns: Columns, learned: Collection[str] = ()) -> Iterator[StructuralZeros]:
        """Yield all combinations that are not in the table."""
        on, column = columns[self.on], columns[self.column]
        possible = full_table(self.columns, columns)
        given = codes_of(on, list(self.table), learned=self.on in learned)
        follows = codes_of(column, list(self.table.values()), learned=self.column in learned)
        if self.on in learned:
            held = set(union_of(on, list(self.table), learned=True))
        else:
            self._check_lines(on, given, follows)
            held = {key for keys in given for key in keys}
        possible[sorted(held), :] = False
        for keys, codes in zip(given, follows, strict=True):
            possible[np.ix_(sorted(held.intersection(keys)), codes)] = True
        if column.missing and None not in self.table.values():
            possible[:, -1] = True
        yield StructuralZeros(self.columns, possible)

    def _check_lines(
        self, on: Column, lines: Sequence[Sequence[int]], follows: Sequence[tuple[int, ...]]
    ) -> None:
        """Raise ``SchemaError`` unless every value has one line."""
        known: dict[int, tuple[int, ...]] = {}
        for keys, codes in zip(lines, follows, strict=True):
            for key in keys:
                if known.setdefault(key, codes) != codes:
                    raise validators.column_error(
                        self.on,
                        f"the table of {self.column!r} has two lines for {code_name(on, key)}.",
                        "Keep one; where several values are possible, declare allowed combinations.",
                    )
        free = {on.size - 1} if on.missing else set()
        if isinstance(on, Categorical) and on.other:
            free.add(on.labels().index(OTHER))
        left = sorted(set(range(on.size)) - set(known) - free)
        if left:
            raise validators.column_error(
                self.on,
                f"the table of {self.column!r} has no line for {code_name(on, left[0])}.",
                "Add one.",
            )


@dataclass(frozen=True)
class Ordered:
    """The values of the columns never fall from one to the next: ``Ordered(["admitted", "discharged"])``.

    Columns of numbers, of dates, of times of one unit, of codes, or of one ordered list of categories. Of bins, a pair
    is impossible only if no two values in them are in order; values are then drawn within the bins so that they are.
    """

    columns: Sequence[str]
    violating: str = "keep"
    kind: ClassVar[str] = "ordered"

    def __post_init__(self) -> None:
        _check_policy(self)
        set_fields(self, columns=_names(self.columns, "ordered"))

    def zeros(self, columns: Columns, learned: Collection[str] = ()) -> Iterator[StructuralZeros]:
        """Yield all pairs of codes that cannot be in order, of every two of the columns."""
        chain = [columns[c] for c in self.columns]
        _check_line(chain, learned)
        for first, second in combinations(chain, 2):
            possible = full_table((first.name, second.name), columns)
            least, greatest = _extremes(first)[0], _extremes(second)[1]
            possible[: len(least), : len(greatest)] = least[:, None] <= greatest[None, :]
            yield StructuralZeros((first.name, second.name), possible)


def check_constraints(constraints: Sequence[Constraint]) -> None:
    """Raise ``SchemaError`` for an element that is not a constraint, and for a column in two
    orders.
    """
    known_kinds = (Impossible, Allowed, Depends, Ordered)
    ordered: dict[str, Constraint] = {}
    for constraint in constraints:
        if not isinstance(constraint, known_kinds):
            raise SchemaError(
                "A constraint is not of a known kind.",
                remedy="Make it with Impossible, Allowed, Depends or Ordered.",
            )
        if isinstance(constraint, Ordered):
            twice = [c for c in constraint.columns if c in ordered]
            if twice:
                raise validators.column_error(
                    twice[0],
                    "it stands in two orders.",
                    "Join them into one chain: ordered = [first, second, third].",
                )
            ordered.update(dict.fromkeys(constraint.columns, constraint))


def _extremes(column: Column) -> tuple[Any, Any]:
    if isinstance(column, NUMERIC_KINDS):
        return column.cells.extremes
    codes = np.arange(column.size - column.missing)
    return codes, codes


def _check_line(chain: Sequence[Column], learned: Collection[str]) -> None:
    first = chain[0]
    for column in chain:
        if since_of(column):
            raise validators.column_error(
                column.name,
                "it is the time since another column, and bounds keep its order.",
                "Write low = 0 for a column that is never before the other, and take it out of 'ordered'.",
            )
        if not isinstance(column, (*NUMERIC_KINDS, Ordinal, Coded)):
            raise validators.column_error(
                column.name, "it has no order to keep.", "Take it out of 'ordered'."
            )
        numbers = all(isinstance(c, Integer | Real) for c in (first, column))
        alike = numbers or column.kind == first.kind
        if isinstance(column, Ordinal) and isinstance(first, Ordinal):
            alike = column.categories == first.categories
        if isinstance(column, Timestamp) and isinstance(first, Timestamp):
            alike = column.unit == first.unit
        if not alike:
            raise validators.column_error(
                column.name,
                f"its values cannot be compared with those of {first.name!r}.",
                _one_kind(first, column),
            )
        if (
            len(chain) > 2
            and isinstance(column, NUMERIC_KINDS)
            and (column.atoms or column.kind != first.kind or _may_have_atoms(column, learned))
        ):
            raise validators.column_error(
                column.name,
                "an order of three or more columns takes one kind of column, no atoms, and no learned real numbers,"
                " which may have one.",
                "Take its atoms out, declare it, or order two columns only.",
            )


def _may_have_atoms(column: Column, learned: Collection[str]) -> bool:
    return isinstance(column, Real) and column.name in learned


def _one_kind(first: Column, second: Column) -> str:
    length = 'Or keep the second as the time since the first (kind = "elapsed").'
    if not all(isinstance(c, Date | Timestamp) for c in (first, second)):
        return "Give both one kind (and one unit, or one list of categories)."
    if first.kind == second.kind:
        return f"Give both one unit. {length}"
    return f'Write kind = "date" for both (of times it takes the day), or "timestamp" with one unit. {length}'


def _check_policy(constraint: Constraint) -> None:
    # Policies for rows that violate a constraint: count them, or refuse the table before anything
    # is spent.
    violating = ("keep", "refuse")
    if constraint.violating not in violating:
        raise SchemaError(
            "violating names no policy of a constraint.",
            remedy=f"Choose one of: {', '.join(violating)}.",
        )


def _named(column: Any) -> str:
    return validators.name(column, "column of a constraint")


def _names(columns: Any, kind: str) -> tuple[str, ...]:
    listed = isinstance(columns, Sequence) and not isinstance(columns, str)
    names = tuple(map(_named, columns)) if listed else ()
    if len(names) < 2 or len(set(names)) < len(names):
        raise SchemaError(
            f"A constraint {kind!r} is about two or more columns, each once.", remedy="List them."
        )
    return names


def _rows(rows: Any, names: tuple[str, ...], kind: str) -> tuple[tuple[Element, ...], ...]:
    where = f"{kind.capitalize()}, columns {', '.join(names)}"
    if isinstance(rows, str) or not isinstance(rows, Sequence) or not rows:
        raise SchemaError(f"{where}: no combinations are listed.", remedy="List at least one.")
    found = []
    for number, row in enumerate(rows, 1):
        if isinstance(row, str) or not isinstance(row, Sequence) or len(row) != len(names):
            raise SchemaError(
                f"{where}: combination {number} does not have {len(names)} values.",
                remedy="One for each column.",
            )
        found.append(tuple(element(v, where) for v in row))
    return tuple(found)


def full_table(names: Sequence[str], columns: Columns) -> ValueTable:
    """Return a table in which all combinations are possible. Raise ``SchemaError`` if it is too large."""
    # Combinations of codes of the largest constraint whose table is built at once.
    max_cells = 1 << 22
    shape = [columns[c].size for c in names]
    if math.prod(shape) > max_cells:
        widest = max(names, key=lambda c: columns[c].size)
        raise validators.column_error(
            widest,
            f"a constraint on {', '.join(names)} has {math.prod(shape):,} combinations, too many to hold.",
            "Give the columns fewer bins or categories, or split the constraint.",
        )
    return np.ones(shape, dtype=np.bool_)
