"""The preflight: the number of values that the schema does not have, before anything is spent.

**Privacy:** these are true counts of the rows, for the custodian only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from margrave._card import Card, Facts, counted
from margrave.domain import Codes
from margrave.errors import DataError
from margrave.schema.alarms import Alarm, how_to_accept
from margrave.schema.categorical import OTHER
from margrave.schema.column import Column, Encoded, abbreviate
from margrave.schema.constraints import Constraint, name_of
from margrave.schema.mismatches import ALIKE, CAUSES, MARK, NAMED, advice, main_cause
from margrave.schema.person_check import PersonCheck
from margrave.schema.validators import POLICIES
from margrave.structural_zeros import StructuralZeros, violating
from margrave.types import IntArray

LOOK = "LOOK AT THIS FIRST."
PUBLIC_TABLE = "The public table"
LEAVE_OUT = "Leave these rows, or the column, out of the public table."


@dataclass(frozen=True)
class ColumnCheck:
    """Counts of one column's values: empty, outside the schema, unreadable as the column's kind.

    ``home``: empty and unreadable values have a code of their own. ``rows``: the number of values.
    ``causes``: counts of values outside the schema by likely cause, if requested. ``has``: the
    values of the schema in words. ``bounds``: its public bounds in words, of a number, date or time.
    """

    #: Share of a column's values outside the schema above which an alarm is raised.
    _max_share_lost: ClassVar[float] = 0.03

    #: From this number of values on, at least one should be in the schema.
    _min_values_for_alarm: ClassVar[int] = 10
    _how_they_look: ClassVar[str] = (
        " margrave schema check (in Python check_table) says what they look like."
    )

    #: The remedy for values beyond the bounds.
    _correct_bounds: ClassVar[str] = (
        "correct low and high from what is public, or state codes for missing values as missing_codes"
    )

    name: str
    policy: str
    home: bool
    empty: int
    outside: int
    unreadable: int
    rows: int = 0
    kind: str = ""
    causes: Mapping[str, int] = field(default_factory=dict)
    has: str = ""
    bounds: str = ""
    form: str = ""

    @staticmethod
    def of(
        column: Column, encoded: Encoded, causes: Mapping[str, int] | None = None
    ) -> ColumnCheck:
        """Return the counts of one piece of a column."""
        # Codes of the largest column whose labels are listed.
        max_labels_listed = 1000
        empty, outside, unreadable = (
            int(m.sum()) for m in (encoded.empty, encoded.outside, encoded.unreadable)
        )
        rows = len(encoded.codes)
        has = (
            "" if causes is None or column.size > max_labels_listed else abbreviate(column.labels())
        )
        home, kind = encoded.home, column.kind
        ends = [getattr(column, key, None) for key in ("low", "high")]
        is_bounded = ends != [None, None]
        bounds = " to ".join("any" if e is None else str(e) for e in ends) if is_bounded else ""
        return ColumnCheck(
            column.name,
            column.outside,
            home,
            empty,
            outside,
            unreadable,
            rows,
            kind,
            causes or {},
            has,
            bounds,
            getattr(column, "format", None) or "",
        )

    def __add__(self, other: ColumnCheck) -> ColumnCheck:
        return ColumnCheck(
            self.name,
            self.policy,
            self.home,
            self.empty + other.empty,
            self.outside + other.outside,
            self.unreadable + other.unreadable,
            self.rows + other.rows,
            self.kind,
            {
                c: self.causes.get(c, 0) + other.causes.get(c, 0)
                for c in {**self.causes, **other.causes}
            },
            self.has or other.has,
            self.bounds,
            self.form,
        )

    def in_words(self) -> str:
        """Return the counts in a few words, for the custodian alone."""
        counts = (
            (self.empty, "missing"),
            (self.outside, f"outside the schema (policy {self.policy})"),
            (self.unreadable, "unreadable"),
        )
        return ", ".join(f"{n:,} {words}" for n, words in counts if n) or "all values match"

    @property
    def unread(self) -> bool:
        """True if no value can be read: the schema is wrong, not the table."""
        unread = self.unreadable + (self.outside if self.kind == "boolean" else 0)
        return 0 < unread == self.rows - self.empty

    @property
    def unknown(self) -> bool:
        """True if there are several values and none is in the schema. A few values may well lie
        outside.
        """
        return (
            self.outside + self.unreadable == self.rows - self.empty >= self._min_values_for_alarm
        )

    def alarm(self) -> Alarm | None:
        """Return an alarm if more than a few values are outside the schema, also if they are moved to its bounds;
        missing-value codes do not count.
        """
        lost = self.unreadable + (self.outside if self.policy in ("missing", "clip") else 0)
        lost = (
            self.causes.get(ALIKE, 0) if self.policy == "other" else lost - self.causes.get(MARK, 0)
        )
        if lost <= self._max_share_lost * (self.rows - self.empty):
            return None
        share = 100 * lost / (self.rows - self.empty)
        because = main_cause({c: n for c, n in self.causes.items() if c != MARK}, lost)
        if self.bounds and self.outside > self.unreadable:
            because = f" Its bounds are {self.bounds}: {self._correct_bounds}."
        share_lost = f"{share:.4g} % of its values are not in the schema"
        return Alarm(
            f"values: {self.name}",
            f"Column {self.name!r}: {share_lost}, {POLICIES[self._fate]}.{because or f' {advice(self.kind)}'}",
        )

    def remedy(self) -> str:
        """Return what becomes of values outside the schema, and what to correct: from the schema, not from rows."""
        if not self.bounds:
            return f"They are {POLICIES[self.policy]}. {advice(self.kind)}"
        fate = "count as missing" if self.policy == "missing" else "are moved to these bounds"
        unread = f" Values that cannot be read count as missing. {advice(self.kind)}" * self.home
        return f"Values beyond low and high {fate}: {self._correct_bounds}.{unread}"

    @property
    def _fate(self) -> str:
        """The policy (a key of ``POLICIES``) that applies to most values outside the schema."""
        if self.policy in ("other", "refuse") or self.outside > self.unreadable:
            return self.policy
        return "missing" if self.home else "refuse"

    def refusals(self, *, public: bool = False, part: bool = False) -> Iterator[str]:
        """Yield one sentence for each reason not to use this column; for a ``public`` table with
        its remedy.

        ``part``: the rows may be a selected part, so that all may lie outside the schema.
        """
        recode = (
            "Recode the public table to what the schema has, or leave the column out of it:"
            " the schema is that of the private table."
        )
        column = f"{PUBLIC_TABLE}, column {self.name!r}:" if public else f"Column {self.name!r}:"
        has = f" The schema has: {self.has}." if self.has else ""
        if self.unread or (self.unknown and not part):
            if self.bounds and self.outside > self.unreadable:
                yield (
                    f"{column} not one of the values that can be read lies in its bounds, {self.bounds}."
                    f" {_wrong_bounds(public)}"
                )
                return
            known = (
                f"can be read as its kind, {self.kind}"
                if self.unread
                else "is one that the schema knows"
            )
            remedy = (
                f"{has}{self._because} {recode}"
                if public
                else self._because
                or f" {advice(self.kind, self.form)}{self._how_they_look * (not public and not self.has)}"
            )
            yield f"{column} not one of its values {known}.{remedy}"
            return
        check = "" if public or self.has or self.causes else self._how_they_look
        if self.outside and self.policy == "refuse":
            widen = "Widen its bounds or categories if more are public, or choose what becomes of values outside."
            yield (
                f"{column} {_values(self.outside)} outside the schema, and its policy is 'refuse'."
                f"{f'{has} {recode}' if public else f' {widen}'}{self._because or check}"
            )
        if self.unreadable and (self.policy == "refuse" or not self.home):
            mark = "" if self.home else " If they stand for missing values, set missing to true."
            yield (
                f"{column} {_values(self.unreadable)} cannot be read as its kind"
                f"{', and its policy is refuse' if self.policy == 'refuse' else ''}."
                f" {recode if public else advice(self.kind, self.form) + mark}{self._because or check}"
            )
        if self.empty and not self.home:
            add = "Allow missing values: set missing to true."
            yield f"{column} {_values(self.empty)} missing. {LEAVE_OUT if public else add}"

    def notes(self, *, public: bool = False) -> Iterator[str]:
        """Yield one sentence for each change that is made to values outside the schema.

        For a ``public`` table the sentences also give their number and mark large losses.
        """
        of = self.rows if public else None
        lost = self.outside + self.unreadable
        much = (
            public
            and lost >= self._min_values_for_alarm
            and lost > self._max_share_lost * (self.rows - self.empty)
        )
        column = f"{f'{LOOK} ' if much else ''}{f'{PUBLIC_TABLE}, c' if public else 'C'}olumn {self.name!r}:"
        if self.outside and self.policy != "refuse":
            because = "" if self.unreadable else self._because
            yield f"{column} {_values(self.outside, of)} outside the schema, {POLICIES[self.policy]}.{because}"
        if self.unreadable and self.home and self.policy != "refuse":
            yield f"{column} {_values(self.unreadable, of)} unreadable, {POLICIES['missing']}.{self._because}"
        if self.policy == "other" and self.causes.get(MARK):
            yield (
                f"{column} {_values(self.causes[MARK])} of these look like {CAUSES[MARK]}, and count as"
                f" {OTHER!r} like any text: leave such fields empty in the table."
            )
        if self.outside and self.policy == "other" and self.causes.get(NAMED):
            yield (
                f"{column} {_values(self.causes[NAMED])} {'is' if self.causes[NAMED] == 1 else 'are'} {OTHER!r} in the"
                f" table, and the unlisted ones count as the same category. To keep them apart, write another word than"
                f" {OTHER!r} in the table, and list it."
            )

    @property
    def _because(self) -> str:
        return main_cause(self.causes, self.unreadable or self.outside)


READ_OFF = "Were they known without looking? If not, replace them: what was read off the rows is published as it is."


def as_in_rows_question(columns: Sequence[str]) -> str:
    """Return the question on columns whose bounds or categories are those of the rows."""
    return (
        f"Bounds or categories as these rows have them: {', '.join(columns)}. {READ_OFF} If they were,"
        f" {how_to_accept([f'read: {name}' for name in columns])}."
    )


def _wrong_bounds(public: bool) -> str:
    if public:
        return "Is it a table of the same years and units as the schema? If not, leave the column out of it."
    return "Is this the table that the schema is for, or that of another year or unit? If it is, correct low and high."


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
        of_columns = [n for c in self.columns for n in (c.empty, c.outside, c.unreadable, c.rows)]
        found = [self.rows, self.nameless, *of_columns, *(c.rows for c in self.constraints)]
        return np.array(found, dtype=np.int64)

    def plus(self, numbers: IntArray) -> Preflight:
        """Return the sum with the ``numbers`` of other rows."""
        rows, nameless, *rest = map(int, numbers)
        of_columns = zip(*(iter(rest[: 4 * len(self.columns)]),) * 4, strict=True)
        columns = tuple(
            replace(c, empty=e, outside=o, unreadable=u, rows=r, causes={}, has="")
            for c, (e, o, u, r) in zip(self.columns, of_columns, strict=True)
        )
        violated = zip(self.constraints, rest[4 * len(self.columns) :], strict=True)
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
                f"{_values(self.nameless)} missing in the column of persons, or marked so (NA, unknown, -, 0, -1), or a"
                " long number that was rounded (1.23E+15). A row without a person cannot be protected: complete it or"
                " leave the row out; read long numbers as text. If such a mark is a person's own identifier, name it in"
                ' the schema\'s [schema]: person_accepts = ["0"].'
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


def _values(count: int, of: int | None = None) -> str:
    if of is not None:
        return f"{count:,} of {of:,} values"
    return counted(count, "value")
