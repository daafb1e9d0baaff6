"""The preflight: how many values the schema does not hold, for the custodian's eyes, before anything is spent.

**Privacy:** these are true counts of the rows. They go to the custodian and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from margrave.errors import DataError
from margrave.schema.checks import POLICIES
from margrave.schema.column import Column, Encoded
from margrave.schema.constraints import Constraint, name_of
from margrave.schema.domain import Codes
from margrave.schema.zeros import StructuralZeros, violating


@dataclass(frozen=True)
class ColumnCheck:
    """Counts of one column's values: empty, outside the schema, unreadable as the column's kind.

    ``home`` says whether empty and unreadable values have a state of their own.
    """

    name: str
    policy: str
    home: bool
    empty: int
    outside: int
    unreadable: int

    @staticmethod
    def of(column: Column, encoded: Encoded) -> ColumnCheck:
        """The counts of one piece of a column."""
        counts = (int(m.sum()) for m in (encoded.empty, encoded.outside, encoded.unreadable))
        return ColumnCheck(column.name, column.outside, encoded.home, *counts)

    def __add__(self, other: ColumnCheck) -> ColumnCheck:
        return ColumnCheck(
            self.name,
            self.policy,
            self.home,
            self.empty + other.empty,
            self.outside + other.outside,
            self.unreadable + other.unreadable,
        )

    def refusals(self) -> Iterator[str]:
        """What stands in the way of using this column, one sentence each."""
        if self.outside and self.policy == "refuse":
            yield (
                f"Column {self.name!r}: {_values(self.outside)} outside the schema, and its policy is 'refuse'."
                " Widen the schema, or give the column another policy (outside = ...)."
            )
        if self.unreadable and (self.policy == "refuse" or not self.home):
            yield (
                f"Column {self.name!r}: {_values(self.unreadable)} cannot be read as its kind"
                f"{', and its policy is refuse' if self.policy == 'refuse' else ''}."
                " Correct the column's kind, or add missing = true."
            )
        if self.empty and not self.home:
            yield f"Column {self.name!r}: {_values(self.empty)} missing. Add missing = true to the column."

    def notes(self) -> Iterator[str]:
        """What happens to values that the schema does not hold as they are, one sentence each."""
        if self.outside and self.policy != "refuse":
            yield f"Column {self.name!r}: {_values(self.outside)} outside the schema, {POLICIES[self.policy]}."
        if self.unreadable and self.home and self.policy != "refuse":
            yield f"Column {self.name!r}: {_values(self.unreadable)} unreadable, {POLICIES['missing']}."


@dataclass(frozen=True)
class ConstraintCheck:
    """How many rows lie in cells that a constraint rules out. Of bins in order, rows within one pair are not judged."""

    name: str
    policy: str
    rows: int

    @staticmethod
    def of(constraint: Constraint, zeros: Sequence[StructuralZeros], codes: Codes) -> ConstraintCheck:
        """The count of some rows."""
        wrong = violating(zeros, codes.column, len(codes))
        return ConstraintCheck(name_of(constraint), constraint.violating, int(wrong.sum()))

    def __add__(self, other: ConstraintCheck) -> ConstraintCheck:
        return ConstraintCheck(self.name, self.policy, self.rows + other.rows)


@dataclass(frozen=True)
class Preflight:
    """What the custodian learns about a table before it is protected. Not for publication.

    ``nameless`` counts the rows without a person, where the schema names a column of persons.
    """

    rows: int
    columns: tuple[ColumnCheck, ...]
    nameless: int = 0
    constraints: tuple[ConstraintCheck, ...] = ()

    def __add__(self, other: Preflight) -> Preflight:
        columns = tuple(a + b for a, b in zip(self.columns, other.columns, strict=True))
        constraints = tuple(a + b for a, b in zip(self.constraints, other.constraints, strict=True))
        return Preflight(self.rows + other.rows, columns, self.nameless + other.nameless, constraints)

    @property
    def refusals(self) -> tuple[str, ...]:
        """What stands in the way, one sentence each."""
        found = [sentence for column in self.columns for sentence in column.refusals()]
        if self.nameless:
            found.append(
                f"{_values(self.nameless)} missing in the column of persons. A row without a person cannot be"
                " protected: complete it or leave the row out."
            )
        found += [
            f"{_rows(c.rows)} the constraint {c.name}, and its policy is 'refuse'."
            " Correct the rows or the constraint, or write violating = \"keep\"."
            for c in self.constraints
            if c.rows and c.policy == "refuse"
        ]
        return tuple(found)

    @property
    def notes(self) -> tuple[str, ...]:
        """What will be moved, and what the release will not show, one sentence each."""
        found = [sentence for column in self.columns for sentence in column.notes()]
        found += [
            f"{_rows(c.rows)} the constraint {c.name}: counted, but no row of the release will."
            for c in self.constraints
            if c.rows and c.policy == "keep"
        ]
        return tuple(found)

    @property
    def passed(self) -> bool:
        """Whether nothing stands in the way."""
        return not self.refusals

    def require(self) -> Preflight:
        """Itself; or ``DataError`` if something stands in the way."""
        if self.refusals:
            raise DataError("\n".join(self.refusals))
        return self


def _rows(count: int) -> str:
    return "1 row violates" if count == 1 else f"{count:,} rows violate"


def _values(count: int) -> str:
    return "1 value" if count == 1 else f"{count:,} values"
