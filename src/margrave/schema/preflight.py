"""The preflight: how many values the schema does not hold, for the custodian's eyes, before anything is spent.

**Privacy:** these are true counts of the rows. They go to the custodian and nowhere else.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from margrave.errors import DataError
from margrave.schema.causes import ALIKE, CAUSES, MARK, most
from margrave.schema.checks import POLICIES
from margrave.schema.column import Column, Encoded, some_of
from margrave.schema.constraints import Constraint, name_of
from margrave.schema.discrete import NO, OTHER, YES
from margrave.schema.domain import Codes
from margrave.schema.evidence import Evidence
from margrave.schema.toml_text import string
from margrave.schema.zeros import StructuralZeros, violating
from margrave.typing import AnyArray

LOOK = "LOOK AT THIS FIRST."
KEPT = (1, 2, 3, 5, 10, 20)
"""Bounds on the rows of a person whose effect is told."""
LOST = 0.03
"""A larger share of a column's values that the schema does not know is asked about."""
SEVERAL = 10
"""Of so many values one at least should be in the schema's range or list."""
MANY_LABELS = 1000
"""Beyond so many codes what they stand for is not told."""
MANY, LARGE = 20, 0.05
"""A person with so many rows, and more than this share of all of them, is asked about."""
MOST_PERSONS, BEYOND = 0.99, 10
"""And one with so many rows, and so many times the rows that this share of the others have at most."""

PUBLIC_TABLE = "The public table"
RECODE = (
    "Recode the public table to what the schema has, or leave the column out of it: the schema is that of the private"
    " table."
)
LEAVE_OUT = "Leave these rows, or the column, out of the public table."
"""What is said of a public table, which has to follow a schema that is not its own."""


@dataclass(frozen=True)
class ColumnCheck:
    """Counts of one column's values: empty, outside the schema, unreadable as the column's kind.

    ``home`` says whether empty and unreadable values have a state of their own; ``rows`` is how many values there are;
    ``causes`` counts what values that the schema does not hold look like, where that was asked; ``has`` are the values
    that it holds, in words.
    """

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

    @staticmethod
    def of(column: Column, encoded: Encoded, causes: Mapping[str, int] | None = None) -> ColumnCheck:
        """The counts of one piece of a column."""
        empty, outside, unreadable = (int(m.sum()) for m in (encoded.empty, encoded.outside, encoded.unreadable))
        rows = len(encoded.codes)
        has = "" if causes is None or column.size > MANY_LABELS else some_of(column.labels())
        home, kind = encoded.home, column.kind
        return ColumnCheck(
            column.name, column.outside, home, empty, outside, unreadable, rows, kind, causes or {}, has
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
            {c: self.causes.get(c, 0) + other.causes.get(c, 0) for c in {**self.causes, **other.causes}},
            self.has or other.has,
        )

    @property
    def unread(self) -> bool:
        """Whether there are values, and not one of them can be read: a mistake in the schema, not in the table."""
        unread = self.unreadable + (self.outside if self.kind == "boolean" else 0)
        return 0 < unread == self.rows - self.empty

    @property
    def unknown(self) -> bool:
        """Whether there are several values, and the schema knows not one of them; a few may well lie outside."""
        return self.outside + self.unreadable == self.rows - self.empty >= SEVERAL

    def alarm(self) -> str | None:
        """What to look at first: more than a few values are none that the schema knows, nor marks for missing."""
        lost = self.unreadable + (self.outside if self.policy == "missing" else 0)
        lost = self.causes.get(ALIKE, 0) if self.policy == "other" else lost - self.causes.get(MARK, 0)
        if lost <= LOST * (self.rows - self.empty):
            return None
        share = 100 * lost / (self.rows - self.empty)
        because = most({c: n for c, n in self.causes.items() if c != MARK}, lost) or f" {_advice(self.kind)}"
        told = f"{share:.4g} % of its values are none that the schema knows, {POLICIES[self._fate]}"
        return f"Column {self.name!r}: {told}.{because}"

    @property
    def _fate(self) -> str:
        """What becomes of most values that the schema does not know: a key of ``POLICIES``."""
        if self.policy in ("other", "refuse"):
            return self.policy
        return "missing" if self.home else "refuse"

    def refusals(self, *, public: bool = False, part: bool = False) -> Iterator[str]:
        """What stands in the way of using this column, one sentence each; of a ``public`` table, what to do there.

        ``part``: its rows may be a chosen part, and all of them beyond what the schema holds.
        """
        column = f"{PUBLIC_TABLE}, column {self.name!r}:" if public else f"Column {self.name!r}:"
        has = f" The schema has: {self.has}." if self.has else ""
        if self.unread or (self.unknown and not part):
            known = f"can be read as its kind, {self.kind}" if self.unread else "is one that the schema knows"
            remedy = f"{has}{self._because} {RECODE}" if public else self._because or f" {_advice(self.kind)}"
            yield f"{column} not one of its values {known}.{remedy}"
            return
        if self.outside and self.policy == "refuse":
            widen = "Widen the schema, or give the column another policy (outside = ...)."
            yield (
                f"{column} {_values(self.outside)} outside the schema, and its policy is 'refuse'."
                f"{f'{has} {RECODE}' if public else f' {widen}'}{self._because}"
            )
        if self.unreadable and (self.policy == "refuse" or not self.home):
            correct = "Correct the column's kind, or add missing = true."
            yield (
                f"{column} {_values(self.unreadable)} cannot be read as its kind"
                f"{', and its policy is refuse' if self.policy == 'refuse' else ''}."
                f" {RECODE if public else correct}{self._because}"
            )
        if self.empty and not self.home:
            add = "Add missing = true to the column."
            yield f"{column} {_values(self.empty)} missing. {LEAVE_OUT if public else add}"

    def notes(self, *, public: bool = False) -> Iterator[str]:
        """What happens to values that the schema does not hold as they are, one sentence each.

        Of a ``public`` table also of how many, and whether that is to be looked at first.
        """
        of = self.rows if public else None
        lost = self.outside + self.unreadable
        much = public and lost >= SEVERAL and lost > LOST * (self.rows - self.empty)
        column = f"{f'{LOOK} ' if much else ''}{f'{PUBLIC_TABLE}, c' if public else 'C'}olumn {self.name!r}:"
        if self.outside and self.policy != "refuse":
            because = "" if self.unreadable else self._because
            yield f"{column} {_values(self.outside, of)} outside the schema, {POLICIES[self.policy]}.{because}"
        if self.unreadable and self.home and self.policy != "refuse":
            yield f"{column} {_values(self.unreadable, of)} unreadable, {POLICIES['missing']}.{self._because}"
        if self.policy == "other" and self.causes.get(MARK):
            yield (
                f"{column} {_values(self.causes[MARK])} of these look like {CAUSES[MARK]}, and count as"
                f" {OTHER!r} like any text: leave such fields empty in the file."
            )

    @property
    def _because(self) -> str:
        return most(self.causes, self.unreadable or self.outside)


SPELLING = "Are they spelt as in the schema, with the same case? A column of truth values has 'true' and 'false'."
ADVICE = {
    "categorical": SPELLING,
    "ordinal": SPELLING,
    "boolean": f"Read are {', '.join(YES)} and {', '.join(NO)}, in either case:"
    " for other words write kind = 'categorical'.",
    "date": 'Say how they are written, such as format = "%d/%m/%Y".',
    "timestamp": 'Say how they are written, such as format = "%d/%m/%Y %H:%M".',
    "integer": "Numbers have a decimal point and no separators of thousands: mend the file, or the column's kind.",
    "real": "Numbers have a decimal point and no separators of thousands: mend the file, or the column's kind.",
}
"""What is mostly behind a column of some kind that cannot be read."""


READ_OFF = "Were they known without looking? If not, replace them: what was read off the rows is published as it is."
"""The question about values of a schema that are those of the rows."""


def _advice(kind: str) -> str:
    return ADVICE.get(kind, "Correct the column's kind, or what it may hold.")


def plain_name(written: str) -> str:
    """An identifier without what may be mere spelling: case, width of letters, leading zeros, ".0" behind a number.

    >>> plain_name("P0001") == plain_name("p1"), plain_name("00000007") == plain_name("7.0"), plain_name("0") == ""
    (True, True, False)
    """
    written = written if written.isascii() else unicodedata.normalize("NFKC", written)
    number = re.fullmatch(r"(\d+)\.0+", written)
    return re.sub(r"(?<![\d.])0+(?=\d)", "", number[1] if number else written.casefold())


@dataclass(frozen=True)
class PersonCheck:
    """How many persons there are, the most rows of one of them, and the share of rows kept by K rows a person.

    ``alike``: so many identifiers equal another but for case, leading zeros or ".0"; ``usual``: 99 % of the others have
    so many rows at most.
    """

    persons: int
    most: int
    rows: int
    kept: dict[int, float]
    alike: int = 0
    usual: int = 0

    @staticmethod
    def of(persons: AnyArray, names: Iterable[str] = ()) -> PersonCheck:
        """The counts of the persons' numbers, one a row; those below 0 are nobody's. ``names`` says who they are."""
        each = np.bincount(persons[persons >= 0])
        rows = int(each.sum())
        kept = {k: float(np.minimum(each, k).sum() / rows) for k in KEPT if rows}
        often = Counter(map(plain_name, names))
        alike = sum(n for n in often.values() if n > 1)
        others = np.sort(each)[:-1]
        usual = int(others[min(int(MOST_PERSONS * len(others)), len(others) - 1)]) if len(others) else 0
        return PersonCheck(len(each), int(each.max(initial=0)), rows, kept, alike, usual)

    def alarms(self) -> Iterator[str]:
        """What to look at first: an identifier with so many rows that it may be nobody's, or several of one person."""
        if self.alike:
            yield (
                f"{self.alike:,} of the {self.persons:,} identifiers of persons equal another but for case, leading"
                " zeros or '.0'. Each is taken for a person of its own, and a person who has several is not protected"
                " as one: write them alike in the file."
            )
        large, beyond = self.most > LARGE * self.rows, 0 < BEYOND * self.usual < self.most
        if self.most < MANY or not (large or beyond):
            return
        compared = "" if large else f", and 99 % of the others have {self.usual:,} at most"
        yield (
            f"One person has {self.most:,} of the {self.rows:,} rows{compared}. Is it a person, or a mark for those"
            " that are not known? Rows of several persons under one identifier are not protected as theirs."
        )

    def lines(self) -> list[str]:
        """What a unit of persons would keep, in sentences."""
        shares = ", ".join(f"{100 * share:.4g} % with {k}" for k, share in self.kept.items())
        return [
            f"{self.persons:,} persons, with {self.most:,} rows at most.",
            *([f"Rows kept by so many a person (--unit add-remove-person:K): {shares}."] if shares else []),
        ]


def overlooked(person: Evidence) -> str:
    """What to look at first: a column that is ignored looks as if it said whose row it is."""
    return (
        f"Column {person.name!r} is ignored, and looks as if it said whose row it is: {len(person.counts):,}"
        f" identifiers, one of them with {max(person.counts.values()):,} of the {person.rows:,} rows. If so, take it"
        f" out of ignore, and write person = {string(person.name)} in [schema]: without it a run protects single rows,"
        " and no persons."
    )


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

    ``nameless`` counts the rows without a person, where the schema names a column of persons; ``persons`` is about
    the others. ``further`` are alarms about the table as a whole. ``drafted`` are the columns whose bounds or
    categories are those that a draft of these very rows has.
    """

    rows: int
    columns: tuple[ColumnCheck, ...]
    nameless: int = 0
    constraints: tuple[ConstraintCheck, ...] = ()
    persons: PersonCheck | None = None
    further: tuple[str, ...] = ()
    drafted: tuple[str, ...] = ()

    def __add__(self, other: Preflight) -> Preflight:
        columns = tuple(a + b for a, b in zip(self.columns, other.columns, strict=True))
        constraints = tuple(a + b for a, b in zip(self.constraints, other.constraints, strict=True))
        return Preflight(self.rows + other.rows, columns, self.nameless + other.nameless, constraints)

    @property
    def refusals(self) -> tuple[str, ...]:
        """What stands in the way, one sentence each."""
        return self._refusals(public=False)

    def _refusals(self, *, public: bool, part: bool = False) -> tuple[str, ...]:
        found = [sentence for column in self.columns for sentence in column.refusals(public=public, part=part)]
        if self.nameless:
            found.append(
                f"{_values(self.nameless)} missing in the column of persons, or marked so (NA, unknown, -, 0, -1), or a"
                " long number that was rounded (1.23E+15). A row without a person cannot be protected: complete it or"
                " leave the row out; read long numbers as text. If such a mark is a person's own identifier, name it in"
                ' the schema\'s [schema]: person_accepts = ["0"].'
            )
        whose = f"{PUBLIC_TABLE}: " if public else ""
        correct = 'Correct the rows or the constraint, or write violating = "keep".'
        found += [
            f"{whose}{_rows(c.rows)} the constraint {c.name}, and its policy is 'refuse'."
            f" {LEAVE_OUT if public else correct}"
            for c in self.constraints
            if c.rows and c.policy == "refuse"
        ]
        return tuple(found)

    @property
    def alarms(self) -> tuple[str, ...]:
        """What passes, and is most likely a mistake, one sentence each."""
        found = [None if self.rows else "The table has no rows.", *self.further]
        found += [column.alarm() for column in self.columns]
        found += [] if self.persons is None else self.persons.alarms()
        return tuple(sentence for sentence in found if sentence is not None)

    @property
    def notes(self) -> tuple[str, ...]:
        """What will be moved, and what the release will not show, one sentence each."""
        found = [sentence for column in self.columns for sentence in column.notes()]
        found += [
            f"{_rows(c.rows)} the constraint {c.name}: counted, but no row of the release will."
            for c in self.constraints
            if c.rows and c.policy == "keep"
        ]
        if self.drafted:
            found.append(
                f"Bounds or categories as a draft of these rows has them: {', '.join(self.drafted)}. {READ_OFF}"
            )
        return tuple(found)

    @property
    def passed(self) -> bool:
        """Whether nothing stands in the way."""
        return not self.refusals

    @property
    def moved(self) -> tuple[str, ...]:
        """What becomes of values and rows of a public table that the schema does not hold, one sentence each."""
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
        """Itself; or ``DataError`` if something stands in the way. Of a ``public`` table it says so, and what to do.

        ``part``: its rows may be a chosen part.
        """
        if found := self._refusals(public=public, part=part):
            raise DataError("\n".join(found))
        return self


def _rows(count: int) -> str:
    return "1 row violates" if count == 1 else f"{count:,} rows violate"


def _values(count: int, of: int | None = None) -> str:
    if of is not None:
        return f"{count:,} of {of:,} values"
    return "1 value" if count == 1 else f"{count:,} values"
