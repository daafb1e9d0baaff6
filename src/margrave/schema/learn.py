"""Columns to learn: their kind is public, their bounds or categories are learned under the budget."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from margrave.domain import Domain
from margrave.schema import validators
from margrave.schema.categorical import Categorical
from margrave.schema.column import Column, Encoded, set_fields, with_missing, with_missing_code
from margrave.schema.elapsed import Elapsed
from margrave.schema.numeric import Date, Integer, Numeric, Real, Timestamp
from margrave.schema.parsing import distinct
from margrave.schema.sources import ColumnSource, labels_left
from margrave.schema.spellings import Same, checked, folds, speller
from margrave.structural_zeros import StructuralZeros
from margrave.types import FloatArray, IntArray


def is_nameable(text: str) -> bool:
    """Return whether a value may be named as a category: it has 1 to 200 printable characters.

    >>> is_nameable("Genève"), is_nameable(chr(7)), is_nameable("")
    (True, False, False)
    """
    return 0 < len(text) <= 200 and text.isprintable()


@dataclass(frozen=True)
class Learn:
    """A column whose bounds and bins, or categories, the gate learns before the mechanism runs.

    Until then the column has the codes of the largest column that learning can return, so that a
    run can be planned and checked without rows.

    Args:
        name: The column's name in the table.
        of: The kind of the learned column: "integer", "real", "date", "timestamp", "elapsed" or "categorical".
        low: Public lower bound of a number, date or time; values below it are clipped.
        high: Public upper bound, likewise.
        unit: The unit of a timestamp: second (the default), minute, hour or day; of time elapsed (default: day).
        format: The pattern of dates and times in text, as of ``strptime``.
        categories: Public categories, which need no threshold.
        outside: "clip" for numbers, dates and times, "other" for categories.
        since: The column that elapsed time counts from.
        same: "case" for categories that are one if they differ in case or blanks alone; learned ones are then in
            lower case. Or other spellings, each with its category. Or both: ("case", {...}).
        learn: True.

    >>> column = Learn("price", "real", low=0.0)
    >>> column.size, column.points(pa.array(["12.5", "-3", "", "cheap"])).tolist()
    (33, [12.5, 0.0, nan, nan])
    """

    name: str
    of: str
    low: Any = None
    high: Any = None
    unit: str | None = None
    format: str | None = None
    categories: tuple[str, ...] = ()
    outside: str = ""
    since: str | None = None
    same: Same = field(default=None, hash=False)
    learn: bool = True
    missing: ClassVar[bool] = True
    numbers: ClassVar[tuple[str, ...]] = ("integer", "real", "date", "timestamp", "elapsed")
    #: The most bins and point masses of a learned number.
    max_bins: ClassVar[int] = 32
    #: The most categories that learning keeps, without the open one.
    max_categories: ClassVar[int] = 100

    def __post_init__(self) -> None:
        name = validators.name(self.name)
        if self.of not in (*self.numbers, "categorical"):
            raise validators.column_error(
                name,
                "its kind cannot be learned.",
                f"Choose one of: {', '.join(self.numbers)}, categorical.",
            )
        if self.learn is not True:
            raise validators.column_error(
                name, "learn is not true.", "Write learn = true, or declare it."
            )
        only = "other" if self.of == "categorical" else "clip"
        if self.outside not in ("", only):
            raise validators.column_error(
                name,
                f"it is learned, and its policy is {self.outside!r}: learned bounds refuse no value.",
                f'Take outside out (it is "{only}"), or declare the column instead of learning it.',
            )
        set_fields(self, same=checked(name, self.same))
        if self.same and self.of != "categorical":
            raise validators.column_error(name, "only categories have spellings.", "Take same out.")
        units = {"timestamp": "second", "elapsed": "day"}
        if self.unit and self.of not in units:
            raise validators.column_error(name, "only times have a unit.", "Take unit out.")
        set_fields(self, unit=self.unit or units.get(self.of))
        if self.since is not None and self.of != "elapsed":
            raise validators.column_error(
                name, "only elapsed time counts from a column.", 'Write kind = "elapsed".'
            )
        set_fields(self, outside=only, categories=self._public_categories())
        if self.of == "categorical" and (self.low, self.high, self.format) != (None, None, None):
            raise validators.column_error(
                name, "categories have no bounds.", "Take low, high and format out."
            )
        self._check_bounds()

    def _public_categories(self) -> tuple[str, ...]:
        if not self.categories:
            return ()
        if self.of != "categorical":
            raise validators.column_error(
                self.name, "numbers have no categories.", "Take categories out."
            )
        rule = "case" if folds(self.same) else None
        made = Categorical(self.name, self.categories, other=True, same=rule)
        listed = tuple(map(speller(self.same), made.categories)) if self.same else made.categories
        listed = tuple(dict.fromkeys(listed))
        if len(listed) > self.max_categories or not all(is_nameable(c.strip()) for c in listed):
            raise validators.column_error(
                self.name,
                f"it lists more than {self.max_categories} categories, or one with control characters or more than"
                " 200 characters.",
                "List others, or declare the column instead of learning it.",
            )
        return listed

    def _check_bounds(self) -> None:
        if self.of == "categorical":
            return
        made = self._with(self.low, self.high)
        low = None if self.low is None else made.low
        high = None if self.high is None else made.high
        set_fields(self, low=low, high=high)

    @property
    def kind(self) -> str:
        """The kind of the learned column."""
        return self.of

    @property
    def is_number(self) -> bool:
        """True for a number, date or time."""
        return self.of != "categorical"

    @property
    def is_moment(self) -> bool:
        """True for a date or time."""
        return self.of in ("date", "timestamp")

    @property
    def is_whole(self) -> bool:
        """True if its points are whole numbers."""
        return self.of not in ("real", "categorical")

    @property
    def size(self) -> int:
        """The number of codes at most, the missing state included."""
        return self.max_bins + 1 if self.is_number else self.max_categories + 2

    @property
    def type(self) -> pa.DataType:
        """The Arrow type of the learned column."""
        return self.reader.type if self.is_number else pa.string()

    def labels(self) -> list[str]:
        """Return placeholders for the codes."""
        many = self.size - 1
        return with_missing(
            [f"(to be learned, {i + 1} of {many} at most)" for i in range(many)], True
        )

    def encode(self, values: pa.Array) -> Encoded:
        """Return a placeholder code of every value, and which are empty, unreadable or beyond public bounds."""
        decimals = None
        if self.is_number:
            points, empty = self.reader.points(values)
            unreadable = np.isnan(points)
            low, high = self._ends
            outside = (points < low) | (points > high)
            decimals = self.reader.with_decimals(points)
        else:
            rows, texts = distinct(values)
            empty = np.array([t is None for t in texts], dtype=np.bool_)[rows]
            unreadable = outside = np.zeros(len(rows), dtype=np.bool_)
        codes = np.zeros(len(empty), dtype=np.int64)
        return with_missing_code(codes, empty, outside, unreadable, self.size - 1, decimals)

    def decode(self, codes: IntArray, rng: np.random.Generator) -> pa.Array:
        """Raise ``SchemaError``: codes of a column to learn have no values yet."""
        raise validators.column_error(self.name, "it is not learned yet.", "Learn it by a run.")

    @cached_property
    def reader(self) -> Numeric:
        """A declared column of its kind, for what does not depend on bounds."""
        return self._with(None, None)

    @property
    def stand_in(self) -> Column:
        """A declared column of its kind, by which constraints are checked before it is learned."""
        if self.is_number:
            return replace(self.reader, missing=True)
        listed = dict.fromkeys(("(to be learned)", *self.categories))
        return Categorical(self.name, tuple(listed), other=True, missing=True)

    def _with(self, low: Any, high: Any) -> Numeric:
        """Return a declared column between given bounds, else between bounds of no meaning."""
        match self.of:
            case "integer":
                made: Numeric = Integer(self.name, 0, 0)
            case "real":
                made = Real(self.name, 0.0, 1.0)
            case "elapsed":
                unit, since = self.unit or "day", self.since or ""
                made = Elapsed(self.name, 0, 0, since=since, unit=unit, format=self.format)
            case "date":
                made = Date(self.name, date(1970, 1, 1), date(1970, 1, 1), format=self.format)
            case _:
                first = datetime(1970, 1, 1)
                made = Timestamp(
                    self.name, first, first, unit=self.unit or "second", format=self.format
                )
        if low is None and high is None:
            return made
        if self.of == "real" and (low is None or high is None):
            bound = validators.real(self.name, "low", high if low is None else low)
            low, high = (bound - 1.0, bound) if low is None else (bound, bound + 1.0)
        else:
            low, high = (high if low is None else low), (low if high is None else high)
        return replace(made, low=low, high=high, bins=1)

    def texts(self, values: pa.Array) -> pa.Array:
        """Return the text of every value without blanks around it, or as ``same`` spells it; null if it is empty."""
        rows, texts = distinct(values)
        short = speller(self.same)
        stripped = [None if t is None else short(t) for t in texts]
        return pa.array(stripped, pa.string()).take(pa.array(rows))

    def points(self, values: pa.Array) -> FloatArray:
        """Return the point of every value on the column's line, within the public bounds; NaN if
        it is empty or cannot be read.
        """
        points, empty = self.reader.points(values)
        points = np.where(empty, np.nan, np.rint(points) if self.is_whole else points)
        return np.clip(points, *self._ends)

    @property
    def _ends(self) -> tuple[float, float]:
        """The points of its public bounds; without one, infinity."""
        low = -np.inf if self.low is None else self.reader.point(self.low)
        high = np.inf if self.high is None else self.reader.point(self.high)
        return low, high


def likely_domain(domain: Domain, learned: Iterable[Learn]) -> Domain:
    """Return the domain with as many categories as a column to learn is likely to have, not at most.

    >>> columns = [Learn("town", "categorical"), Learn("age", "integer")]
    >>> likely_domain(Domain.of({"town": 102, "age": 33}), columns).sizes
    (12, 33)
    """
    categories = 12
    open_names = {c.name for c in learned if not c.is_number}
    if not open_names:
        return domain
    sizes = {
        a: min(domain.size(a), categories) if a in open_names else domain.size(a) for a in domain
    }
    zeros = (
        StructuralZeros(z.clique, z.possible[tuple(slice(sizes[a]) for a in z.clique)])
        for z in domain.zeros  # before learning they rule out nothing in these columns
    )
    return Domain(
        domain.attributes, tuple(sizes.values()), tuple(zeros), domain.unordered, domain.missing
    )


def learned_sources(
    sources: Mapping[str, ColumnSource], to_learn: Iterable[Learn], learned: Mapping[str, Column]
) -> dict[str, ColumnSource]:
    """Return the sources after learning: the bounds of a column to learn that stayed as they were are public.

    Args:
        sources: The sources before.
        to_learn: The columns to learn.
        learned: The learned columns by name.
    """
    found = dict(sources)
    for column in (c for c in to_learn if c.name in learned):
        bounds = {key: getattr(column, key) for key in ("low", "high")}
        after = learned[column.name]
        same = (k for k, v in bounds.items() if v is not None and v == getattr(after, k, None))
        source = sources.get(column.name, ColumnSource())
        found[column.name] = replace(
            source,
            of="learned",
            public=tuple(same),
            labels=labels_left(source.labels, after),
        )
    return found
