"""The preflight: the number of values that the schema does not have, before anything is spent.

**Privacy:** these are true counts of the rows, for the custodian only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from margrave._card import Card, Facts, counted
from margrave.domain import Codes
from margrave.errors import DataError
from margrave.schema.alarms import Alarm, how_to_accept
from margrave.schema.column_check import LEAVE_OUT, PUBLIC_TABLE, ColumnCheck, values_in_words
from margrave.schema.constraints import Constraint, name_of
from margrave.schema.person_check import PersonCheck
from margrave.structural_zeros import StructuralZeros, violating
from margrave.types import IntArray

READ_OFF = "Were they known without looking? If not, replace them: what was read off the rows is published as it is."


def as_in_rows_question(columns: Sequence[str]) -> str:
    """Return the question on columns whose bounds or categories are those of the rows."""
    return (
        f"Bounds or categories as these rows have them: {', '.join(columns)}. {READ_OFF} If they were,"
        f" {how_to_accept([f'read: {name}' for name in columns])}."
    )


@dataclass(frozen=True)
class ConstraintCheck:
    """The number of rows that violate a constraint. Rows within one pair of ordered bins are not
    judged.
    """

    name: str
    policy: str
    rows: int

    @staticmethod
    def of(
        constraint: Constraint, zeros: Sequence[StructuralZeros], codes: Codes
    ) -> ConstraintCheck:
        """Return the count of some rows."""
        wrong = violating(zeros, codes.column, len(codes))
        return ConstraintCheck(name_of(constraint), constraint.violating, int(wrong.sum()))

    def __add__(self, other: ConstraintCheck) -> ConstraintCheck:
        return ConstraintCheck(self.name, self.policy, self.rows + other.rows)


@dataclass(frozen=True, repr=False)
class Preflight(Card):
    """Counts and alarms about a table, for the custodian before the run. Not for publication.

    ``nameless``: rows without a person, if the schema has a person ID column; ``persons`` covers
    the others. ``further``: alarms about the table as a whole. ``drafted``: columns whose bounds or
    categories are those of the rows. ``accepted``: the alarms that the schema says
    are answered.
    """

    rows: int
    columns: tuple[ColumnCheck, ...]
    nameless: int = 0
    constraints: tuple[ConstraintCheck, ...] = ()
    persons: PersonCheck | None = None
    further: tuple[Alarm, ...] = ()
    drafted: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()

    def _facts(self) -> Facts:
        result = "passed" if self.passed else "refused"
        line = f"NOT PRIVATE, {counted(len(self.columns), 'column')}, {result}"
        facts = [("rows", f"{self.rows:,}"), *((c.name, c.in_words()) for c in self.columns)]
        persons = () if self.persons is None else self.persons.lines()
        return Facts(line, facts, [*self.alarms, *self.refusals, *persons, *self.notes])

    def __add__(self, other: Preflight) -> Preflight:
        columns = tuple(a + b for a, b in zip(self.columns, other.columns, strict=True))
        constraints = tuple(a + b for a, b in zip(self.constraints, other.constraints, strict=True))
        return Preflight(
            self.rows + other.rows,
            columns,
            self.nameless + other.nameless,
            constraints,
            accepted=self.accepted,
        )

    def numbers(self) -> IntArray:
        """Return its counts as a vector, without persons and causes."""
        of_columns = [
            n for c in self.columns for n in (c.empty, c.outside, c.unreadable, c.rows, c.decimals)
        ]
        found = [self.rows, self.nameless, *of_columns, *(c.rows for c in self.constraints)]
        return np.array(found, dtype=np.int64)

    def plus(self, numbers: IntArray) -> Preflight:
        """Return the sum with the ``numbers`` of other rows."""
        rows, nameless, *rest = map(int, numbers)
        of_columns = zip(*(iter(rest[: 5 * len(self.columns)]),) * 5, strict=True)
        columns = tuple(
            replace(c, empty=e, outside=o, unreadable=u, rows=r, decimals=d, causes={}, has="")
            for c, (e, o, u, r, d) in zip(self.columns, of_columns, strict=True)
        )
        violated = zip(self.constraints, rest[5 * len(self.columns) :], strict=True)
        return self + Preflight(
            rows, columns, nameless, tuple(replace(c, rows=n) for c, n in violated)
        )

    @property
    def refusals(self) -> tuple[str, ...]:
        """The reasons to refuse the table, one sentence each."""
        empty = "The table has no rows: the budget would be spent on nothing. Is it the right file?"
        return (*((empty,) if not self.rows else ()), *self._refusals(public=False))

    def _refusals(self, *, public: bool, part: bool = False) -> tuple[str, ...]:
        found = [
            sentence
            for column in self.columns
            for sentence in column.refusals(public=public, part=part)
        ]
        if self.nameless:
            found.append(
                f"{values_in_words(self.nameless)} missing in the column of persons, or marked so (NA, unknown, -, 0,"
                " -1), or a long number that was rounded (1.23E+15). A row without a person cannot be protected: "
                "complete it or leave the row out; read long numbers as text. If such a mark is a person's own"
                ' identifier, name it in the schema\'s [schema]: person_accepts = ["0"].'
            )
        whose = f"{PUBLIC_TABLE}: " if public else ""
        correct = (
            "Correct the rows, take the constraint back, or let it keep such rows (violating)."
        )
        found += [
            f"{whose}{_rows(c.rows)} the constraint {c.name}, and its policy is 'refuse'."
            f" {LEAVE_OUT if public else correct}"
            for c in self.constraints
            if c.rows and c.policy == "refuse"
        ]
        return tuple(found)

    @property
    def alarms(self) -> tuple[str, ...]:
        """Likely mistakes that do not refuse the table and are not accepted, in a sentence or two each."""
        found = [*self.further, *(column.alarm() for column in self.columns)]
        found += [] if self.persons is None else self.persons.alarms()
        empty = () if self.rows else ("The table has no rows.",)
        raised = (alarm for alarm in found if alarm is not None)
        return (*empty, *(str(alarm) for alarm in raised if alarm.key not in self.accepted))

    @property
    def notes(self) -> tuple[str, ...]:
        """Changes to values, and rows that the release will not show, one sentence each."""
        answered = {c.name for c in self.columns if f"values: {c.name}" in self.accepted}
        columns = [replace(c, causes={}) if c.name in answered else c for c in self.columns]
        found = [sentence for column in columns for sentence in column.notes()]
        found += [
            f"{_rows(c.rows)} the constraint {c.name}: counted, but no row of the release will."
            for c in self.constraints
            if c.rows and c.policy == "keep"
        ]
        if drafted := [name for name in self.drafted if f"read: {name}" not in self.accepted]:
            found.append(as_in_rows_question(drafted))
        return tuple(found)

    @property
    def passed(self) -> bool:
        """True if there is no reason to refuse the table."""
        return not self.refusals

    @property
    def changes(self) -> tuple[str, ...]:
        """Changes to values and rows of a public table outside the schema, one sentence each."""
        return (
            *(note for column in self.columns for note in column.notes(public=True)),
            *(
                f"{PUBLIC_TABLE}: {_rows(c.rows)} the constraint {c.name}, of {self.rows:,}: what they break is not"
                " learned from them."
                for c in self.constraints
                if c.rows
            ),
        )

    def require(self, *, public: bool = False, part: bool = False) -> Preflight:
        """Return the preflight. Raise ``DataError`` if there is a reason to refuse the table.

        ``part``: the rows of a ``public`` table may be a selected part.
        """
        if found := self._refusals(public=public, part=part):
            raise DataError("\n".join(found))
        return self


def _rows(count: int) -> str:
    return f"{counted(count, 'row')} violate{'s' * (count == 1)}"
