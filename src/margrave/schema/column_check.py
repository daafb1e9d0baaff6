"""The check of one column: counts of its values that the schema does not have, in words for the custodian.

**Privacy:** true counts of the rows, for the custodian only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from margrave._card import counted
from margrave.schema.alarms import Alarm
from margrave.schema.categorical import OTHER
from margrave.schema.column import Column, Encoded, abbreviate
from margrave.schema.mismatches import ALIKE, CAUSES, MARK, NAMED, advice, main_cause
from margrave.schema.validators import POLICIES

LOOK = "LOOK AT THIS FIRST."
PUBLIC_TABLE = "The public table"
LEAVE_OUT = "Leave these rows, or the column, out of the public table."


@dataclass(frozen=True)
class ColumnCheck:
    """Counts of one column's values: empty, outside the schema, unreadable as the column's kind, with decimals.

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

    #: The fate of values with decimals in a column of whole numbers, and the remedy.
    of_decimals: ClassVar[str] = (
        'rounded to whole numbers. If the decimals matter, write kind = "real" (in Python Real).'
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
    decimals: int = 0

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
            0 if encoded.decimals is None else int(encoded.decimals.sum()),
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
            self.decimals + other.decimals,
        )

    def in_words(self) -> str:
        """Return the counts in a few words, for the custodian alone."""
        counts = (
            (self.empty, "missing"),
            (self.outside, f"outside the schema (policy {self.policy})"),
            (self.unreadable, "unreadable"),
            (self.decimals, "with decimals, rounded"),
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
        """Return an alarm if more than a few values are outside the schema, also if they are moved to its bounds, or
        have decimals that are rounded; missing-value codes do not count.
        """
        found = [words for words in (self._decimals_lost(), self._values_lost()) if words]
        return (
            Alarm(f"values: {self.name}", f"Column {self.name!r}: {' '.join(found)}")
            if found
            else None
        )

    @property
    def many_decimals(self) -> bool:
        """True if more than a few values have decimals in a column of whole numbers."""
        return self.decimals > self._max_share_lost * (self.rows - self.empty)

    @property
    def many_lost(self) -> bool:
        """True if more than a few values are outside the schema; missing-value codes do not count."""
        return self._lost > self._max_share_lost * (self.rows - self.empty)

    @property
    def _lost(self) -> int:
        lost = self.unreadable + (self.outside if self.policy in ("missing", "clip") else 0)
        return (
            self.causes.get(ALIKE, 0) if self.policy == "other" else lost - self.causes.get(MARK, 0)
        )

    def _decimals_lost(self) -> str:
        if not self.many_decimals:
            return ""
        return f"{self._share(self.decimals)} % of its values have decimals, {self.of_decimals}"

    def _values_lost(self) -> str:
        lost = self._lost
        if not self.many_lost:
            return ""
        because = main_cause({c: n for c, n in self.causes.items() if c != MARK}, lost)
        if self.bounds and self.outside > self.unreadable:
            because = f" Its bounds are {self.bounds}: {self._correct_bounds}."
        share_lost = f"{self._share(lost)} % of its values are not in the schema"
        return f"{share_lost}, {POLICIES[self._fate]}.{because or f' {advice(self.kind)}'}"

    def _share(self, count: int) -> str:
        return f"{100 * count / (self.rows - self.empty):.4g}"

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
                or f" {advice(self.kind, self.form)}{self._how_they_look * (not self.has)}"
            )
            yield f"{column} not one of its values {known}.{remedy}"
            return
        check = "" if public or self.has or self.causes else self._how_they_look
        if self.outside and self.policy == "refuse":
            widen = "Widen its bounds or categories if more are public, or choose what becomes of values outside."
            yield (
                f"{column} {values_in_words(self.outside)} outside the schema, and its policy is 'refuse'."
                f"{f'{has} {recode}' if public else f' {widen}'}{self._because or check}"
            )
        if self.unreadable and (self.policy == "refuse" or not self.home):
            mark = "" if self.home else " If they stand for missing values, set missing to true."
            yield (
                f"{column} {values_in_words(self.unreadable)} cannot be read as its kind"
                f"{', and its policy is refuse' if self.policy == 'refuse' else ''}."
                f" {recode if public else advice(self.kind, self.form) + mark}{self._because or check}"
            )
        if self.empty and not self.home:
            add = "Allow missing values: set missing to true."
            yield f"{column} {values_in_words(self.empty)} missing. {LEAVE_OUT if public else add}"

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
            yield f"{column} {values_in_words(self.outside, of)} outside the schema, {POLICIES[self.policy]}.{because}"
        if self.unreadable and self.home and self.policy != "refuse":
            yield f"{column} {values_in_words(self.unreadable, of)} unreadable, {POLICIES['missing']}.{self._because}"
        if self.decimals:
            verb = "has" if (of or self.decimals) == 1 else "have"
            fate = "rounded to whole numbers." if public else self.of_decimals
            yield f"{column} {values_in_words(self.decimals, of)} {verb} decimals, {fate}"
        if self.policy == "other" and self.causes.get(MARK):
            yield (
                f"{column} {values_in_words(self.causes[MARK])} of these look like {CAUSES[MARK]}, and count as"
                f" {OTHER!r} like any text: leave such fields empty in the table."
            )
        if self.outside and self.policy == "other" and self.causes.get(NAMED):
            yield (
                f"{column} {values_in_words(self.causes[NAMED])} {'is' if self.causes[NAMED] == 1 else 'are'} {OTHER!r}"
                " in the table, and the unlisted ones count as the same category. To keep them apart, write another"
                f" word than {OTHER!r} in the table, and list it."
            )

    @property
    def _because(self) -> str:
        return main_cause(self.causes, self.unreadable or self.outside)


def _wrong_bounds(public: bool) -> str:
    if public:
        return "Is it a table of the same years and units as the schema? If not, leave the column out of it."
    return "Is this the table that the schema is for, or that of another year or unit? If it is, correct low and high."


def values_in_words(count: int, of: int | None = None) -> str:
    """Return a number of values in words, of ``of`` values if given."""
    if of is not None:
        return f"{count:,} of {of:,} values"
    return counted(count, "value")
