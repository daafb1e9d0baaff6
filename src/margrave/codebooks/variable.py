"""A variable of a code book, and the column of a schema that it becomes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from typing import Any

from margrave.errors import SchemaError
from margrave.schema import (
    Boolean,
    Categorical,
    Column,
    Date,
    Integer,
    Learn,
    Ordinal,
    Real,
    Timestamp,
)
from margrave.schema.parsing import DateReader, number, parse_moment
from margrave.schema.person_names import (
    names_a_key,
    names_a_serial_number,
    names_an_identity,
    names_one_person,
)


class Phrase(StrEnum):
    """Words in remarks, questions and errors of several code books."""

    CORRECT = "Correct the code book."
    NO_VALUE = "No value"
    MISSING_RANGE = (
        "The code book has a range of missing codes. List those that occur as missing_codes."
    )
    SOME_LABELS = (
        "The code book labels only some values (see the comment above the column), so the run learns its values. If"
        " the labelled values are all, declare them as categories."
    )
    DATES = "The code book does not state how its dates are written. Unless they are in ISO 8601, write format."
    SEPARATORS = (
        "The code book writes its numbers with a decimal comma, separators or signs. In the table, write them with"
        " digits and a decimal point alone."
    )


@dataclass(frozen=True)
class Variable:
    """One column of a table, as a code book describes it.

    Args:
        name: The column's name in the table.
        kind: "integer", "real", "boolean", "date", "timestamp", "text", or "out" for a column that
            cannot be synthesized.
        label: What the column means, in words.
        categories: Codes in the order of the code book, each with its label ("" if it has none).
        ordered: Whether the categories have an order.
        low, high: Bounds as written in the code book.
        missing_codes: Codes that mean "no value".
        format: The pattern of dates and times in text, as of ``strptime``; None for ISO 8601.
        identifier: Whether it identifies persons or rows.
        participant: Whether it identifies participants, of whom each may have several rows.
        required: Whether every row has a value.
        notes: Facts of the code book that a schema cannot hold, in words.
        questions: Facts that the custodian has to look at before the schema is used, in sentences.
        missing_labels: Labels of missing codes, also of those that are empty in the table (.a in Stata).
    """

    name: str
    kind: str
    label: str = ""
    categories: Mapping[str, str] = field(default_factory=dict)
    ordered: bool = False
    low: Any = None
    high: Any = None
    missing_codes: Sequence[str] = ()
    format: str | None = None
    identifier: bool = False
    participant: bool = False
    required: bool = False
    notes: Sequence[str] = ()
    questions: Sequence[str] = ()
    missing_labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def names_person(self) -> bool:
        """True if the column may say whose row it is: its name or label does, and the code book lists no values."""
        return bool(self._person_texts) and not self.states_values

    @property
    def person_rank(self) -> int:
        """0 if the name suggests persons, 1 if the label does, 2 for numbers that may be of rows ("lfdnr")."""
        named = [text for text in self._person_texts if not names_a_serial_number(text)]
        return 2 if not named else int(self.name not in named)

    @property
    def _person_texts(self) -> list[str]:
        """The name and the label, each if it suggests persons."""
        # A longer label is a question: "Do you know your account number?". Of several words
        # only a key counts: "Age of the person".
        max_words = 5
        words = len(self.label.split())
        label_suggests = names_a_key if words > 1 else names_one_person
        if self.kind == "real":  # statistical programs store every number as a real one
            name_suggests = label_suggests = names_a_key
        elif self.kind in ("integer", "text", "out"):
            name_suggests = names_one_person
        else:
            return []
        found = [self.name] if name_suggests(self.name) else []
        return found + ([self.label] if words <= max_words and label_suggests(self.label) else [])

    @property
    def column(self) -> Column | None:
        """The column, with what the code book states; None if it has to be left out.

        Bounds or categories that the code book lacks are to be learned. A column has a missing
        state, unless the code book says that a value is always there.
        """
        missing = not self.required
        if self.identifier or self.kind == "out":
            return None
        listed = tuple(code for code in self.categories if code not in self.missing_codes)
        if self.kind == "boolean" and not listed:
            return Boolean(self.name, missing=missing)
        if listed:
            of = Ordinal if self.ordered else Categorical
            return of(self.name, listed, missing=missing)
        if self.kind == "text":
            identifies = names_an_identity(self.name) or names_an_identity(self.label)
            return None if identifies else Learn(self.name, "categorical")
        low, high = self._bounds
        if low is None or high is None or not self._is_declared(low, high):
            return Learn(self.name, self.kind, low=low, high=high, format=self.format)
        written = {} if self.format is None else {"format": self.format}
        made: dict[str, Callable[..., Column]] = {
            "integer": Integer, "real": Real, "date": Date, "timestamp": Timestamp,
        }  # fmt: skip
        coded = bool(self._codes_on_the_line)
        beyond = "missing" if coded else "clip"
        return made[self.kind](
            self.name, low, high, missing=missing or coded, outside=beyond, **written
        )

    @property
    def _bounds(self) -> tuple[Any, Any]:
        """The bounds as values of the column; None for one that is absent or that stands for a missing value."""
        low, high = self._bound("low", self.low), self._bound("high", self.high)
        read = self._reader
        codes = {read(code, self.format) for code in self._codes_on_the_line} if read else set()
        if self.kind == "integer":  # the next number that is a value
            while low in codes:
                low += 1
            while high in codes:
                high -= 1
            return low, high
        return None if low in codes else low, None if high in codes else high

    def _is_declared(self, low: Any, high: Any) -> bool:
        """Return True if bins of equal width suit the column."""
        # Whole numbers of a column whose bins are not learned: ages, scores, shares in percent.
        max_values = 128
        if self.kind == "integer":
            return bool(high - low < max_values)
        return self.kind in ("date", "timestamp")

    @property
    def _codes_on_the_line(self) -> list[str]:
        """Missing codes that would be read as values of the column: numbers, dates."""
        read = self._reader
        if read is None:
            return []
        return [c for c in self.missing_codes if read(c, self.format) is not None]

    @property
    def _reader(self) -> Callable[[Any, str | None], Any] | None:
        """The function that reads a value of the column; None if it has no line of values."""
        return {"integer": _real, "real": _real, "date": _day, "timestamp": _moment}.get(self.kind)

    @property
    def title(self) -> str:
        """The label, in a line."""
        return _printable(self.label)[:1000]

    @property
    def labels(self) -> dict[str, str]:
        """The labels of the categories, without missing codes."""
        shown = {code: _printable(label)[:1000] for code, label in self.categories.items()}
        return {
            code: label
            for code, label in shown.items()
            if label not in ("", code) and code not in self.missing_codes
        }

    @property
    def states_values(self) -> bool:
        """True if the code book states bounds or categories."""
        return bool(self.categories) or self.low is not None or self.high is not None

    @property
    def remark(self) -> str:
        """The missing codes and the notes, as a comment of the schema file."""
        said = list[str]()
        labels = {code: _printable(label) for code, label in self.missing_labels.items()}
        if codes := dict.fromkeys([*self.missing_codes, *labels]):
            shown = [f"{c} ({labels[c]})" if labels.get(c, c) not in ("", c) else c for c in codes]
            said.append(f"{Phrase.NO_VALUE}: {_shortened(shown, ', ')}")
        said += self.notes
        return ". ".join(_printable(s.rstrip(".")) for s in said if s)

    def _bound(self, key: str, written: Any) -> Any:
        if written is None or (isinstance(written, str) and not written.strip()):
            return None
        read = {
            "integer": _whole, "real": _real, "date": _day, "timestamp": _moment,
        }[self.kind]  # fmt: skip
        found = None if isinstance(written, bool) else read(written, self.format)
        if found is None:
            raise SchemaError(
                f"The code book's {'lower' if key == 'low' else 'upper'} bound of {self.name!r} cannot be read as"
                f" {self.kind}.",
                remedy="Correct the code book.",
            )
        return found


def codes_within(low: Any, high: Any) -> list[str]:
    """Return the whole numbers of a range of missing codes; none if they are too many, or the range has no end.

    >>> codes_within("-3", -1.0), codes_within("-99", "")
    (['-3', '-2', '-1'], [])
    """
    # Codes that a schema lists one by one.
    max_codes = 100
    first, last = number(str(low)), number(str(high))
    if not (first % 1 == last % 1 == 0 and 0 <= last - first < max_codes):
        return []
    return [str(code) for code in range(int(first), int(last) + 1)]


def pattern_of(written: str, what: str) -> str:
    """Return a pattern of ``strptime`` for a pattern such as dd.MM.yyyy HH:mm:ss.

    Raises:
        SchemaError: The pattern has a part without an equivalent.

    >>> pattern_of("dd.MM.yyyy HH:mm", "due")
    '%d.%m.%Y %H:%M'
    """
    parts = {
        "yyyy": "%Y", "MM": "%m", "M": "%m", "dd": "%d", "d": "%d", "HH": "%H", "mm": "%M", "ss": "%S", "T": "T",
    }  # fmt: skip
    found = "".join(
        parts.get(piece, piece) for piece in re.findall(r"y+|M+|d+|H+|m+|s+|[^a-zA-Z]+|\w", written)
    )
    if "%" in written or re.search(r"(?<!%)[a-zA-SU-Z]", found):
        raise SchemaError(
            f"The code book's format of {what!r}, {written[:40]!r}, is not one that margrave reads.",
            remedy="Use yyyy, MM, dd, HH, mm and ss.",
        )
    return found


def _whole(written: Any, _: str | None) -> int | None:
    value = number(str(written))
    return int(value) if math.isfinite(value) and value % 1 == 0 else None


def _real(written: Any, _: str | None) -> float | None:
    value = number(str(written))
    return value if math.isfinite(value) else None


def _moment(written: Any, format: str | None) -> datetime | None:
    if isinstance(written, datetime):
        return written
    found = parse_moment(str(written))
    return DateReader(format)(str(written)) if found is None and format else found


def _day(written: Any, format: str | None) -> date | None:
    if isinstance(written, date) and not isinstance(written, datetime):
        return written
    found = _moment(written, format)
    return None if found is None else found.date()


def _shortened(entries: Sequence[str], separator: str) -> str:
    # Entries that the comment shows.
    max_entries = 30
    more = f"{separator}and {len(entries) - max_entries} more" if len(entries) > max_entries else ""
    return separator.join(entries[:max_entries]) + more


def _printable(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
