"""Columns of separate values: categories, ordered or not, true and false, and bare codes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, TypeVar

import numpy as np
import pyarrow as pa

from margrave.schema import validators
from margrave.schema.column import Encoded, set_fields, with_missing, with_missing_code
from margrave.schema.parsing import distinct, number, numbers
from margrave.schema.spellings import Same, checked, comparable, folds, speller, spellings
from margrave.types import IntArray

K = TypeVar("K", bound=Hashable)

OTHER = "other"
TRUTHS = ("true", "false")
YES = ("true", "1", "yes", "t", "y")
NO = ("false", "0", "no", "f", "n")


@dataclass(frozen=True)
class Categorical:
    """Text from a public list, compared as text: 3, 3.0 and "3" are one category.

    The list may be an array or a Series. Values read off the rows are private, and do not belong in it.

    ``other`` opens it: a text that is not listed counts as the category "other" (which may be in the list). ``outside``
    is "other", "missing" or "refuse"; the first of these that is possible unless given. With ``same = "case"``
    texts that differ in upper and lower case, or in blanks, are one category; ``same = {"Bale": "Basel"}`` gives
    the category of other spellings, and ``same = ("case", {...})`` does both.

    >>> column = Categorical("sex", ["female", "male"], missing=True)
    >>> column.encode(pa.array(["male", None, "female"])).codes.tolist(), column.labels()
    ([1, 2, 0], ['female', 'male', '(missing)'])
    """

    name: str
    categories: Sequence[str]
    other: bool = False
    missing: bool = False
    outside: str = ""
    same: Same = field(default=None, hash=False)
    kind: ClassVar[str] = "categorical"

    def __post_init__(self) -> None:
        name = validators.name(self.name)
        missing, other = (validators.flag(name, k, getattr(self, k)) for k in ("missing", "other"))
        default = "other" if other else "missing" if missing else "refuse"
        allowed = ("other", "missing", "refuse")
        set_fields(
            self,
            categories=validators.categories(name, self.categories),
            outside=validators.policy(
                name, self.outside or default, allowed, missing=missing, other=other
            ),
        )
        set_fields(self, same=checked(name, self.same))
        self._check_same(name)
        if other and tuple(self.categories) == (OTHER,):
            raise validators.column_error(
                name,
                f"all that it lists is {OTHER!r}, the open category.",
                "List others, or leave the column out.",
            )

    def _check_same(self, name: str) -> None:
        short = comparable(self.same)
        if folds(self.same) and len(set(map(short, self.categories))) < len(self.categories):
            raise validators.column_error(
                name,
                'two of its categories are one by same = "case".',
                "List one spelling of each.",
            )
        known = set(map(short, self._values)) if folds(self.same) else self._values
        for text, category in spellings(self.same).items():
            if short(category) not in known:
                raise validators.column_error(
                    name,
                    f"same gives {text!r} the category {category!r}, which is not listed.",
                    "List it, or correct same.",
                )
            if short(text) in known and short(text) != short(category):
                raise validators.column_error(
                    name,
                    f"{text!r} is a category, and same makes it {category!r}.",
                    "Take it out of the categories, or out of same.",
                )

    @cached_property
    def _values(self) -> tuple[str, ...]:
        opened = self.other and OTHER not in self.categories
        return (*self.categories, OTHER) if opened else tuple(self.categories)

    @property
    def size(self) -> int:
        """The categories, the open one and the missing state."""
        return len(self._values) + self.missing

    @property
    def type(self) -> pa.DataType:
        """Text."""
        return pa.string()

    def labels(self) -> list[str]:
        """Return the categories."""
        return with_missing(list(self._values), self.missing)

    @cached_property
    def _find(self) -> Callable[[str], int | None]:
        exact, spelled_as = Lookup(self._values), speller(self.same)
        if self.same is None:
            return exact
        alike = Lookup(tuple(map(spelled_as, self._values)))
        return lambda text: alike(spelled_as(text)) if exact(text) is None else exact(text)

    def encode(self, values: pa.Array) -> Encoded:
        """Return the code of every value."""
        missing = len(self._values) if self.missing else None
        other = self._values.index(OTHER) if self.other else None
        homes = {"missing": missing, "other": other, "refuse": None}
        aside = next(c for c in (homes[self.outside], other, missing, 0) if c is not None)
        return encode_texts(values, self._find, aside, other if missing is None else missing)

    def decode(self, codes: IntArray, rng: np.random.Generator) -> pa.Array:
        """Return the category of every code."""
        return spelled(self._values, self.missing, codes, pa.string())


@dataclass(frozen=True)
class Ordinal:
    """Categories in their order, lowest first.

    >>> Ordinal("grade", ["low", "high"]).encode(pa.array(["high", "low"])).codes.tolist()
    [1, 0]
    """

    name: str
    categories: Sequence[str]
    missing: bool = False
    outside: str = ""
    kind: ClassVar[str] = "ordinal"

    def __post_init__(self) -> None:
        plain = self._plain
        set_fields(self, categories=plain.categories, outside=plain.outside)

    @cached_property
    def _plain(self) -> Categorical:
        return Categorical(self.name, self.categories, missing=self.missing, outside=self.outside)

    @property
    def size(self) -> int:
        """The categories and the missing state."""
        return self._plain.size

    @property
    def type(self) -> pa.DataType:
        """Text."""
        return pa.string()

    def labels(self) -> list[str]:
        """Return the categories."""
        return self._plain.labels()

    def encode(self, values: pa.Array) -> Encoded:
        """Return the code of every value."""
        return self._plain.encode(values)

    def decode(self, codes: IntArray, rng: np.random.Generator) -> pa.Array:
        """Return the category of every code."""
        return self._plain.decode(codes, rng)


@dataclass(frozen=True)
class Boolean:
    """False (code 0) and true (code 1), read from true/false, 1/0, yes/no, t/f and y/n in either case.

    >>> Boolean("smokes").encode(pa.array(["yes", "0", "TRUE"])).codes.tolist()
    [1, 0, 1]
    """

    name: str
    missing: bool = False
    outside: str = ""
    kind: ClassVar[str] = "boolean"

    def __post_init__(self) -> None:
        name = validators.name(self.name)
        missing = validators.flag(name, "missing", self.missing)
        default = "missing" if missing else "refuse"
        set_fields(
            self,
            outside=validators.policy(
                name, self.outside or default, ("missing", "refuse"), missing=missing
            ),
        )

    @property
    def size(self) -> int:
        """Two, and the missing state."""
        return 2 + self.missing

    @property
    def type(self) -> pa.DataType:
        """Boolean."""
        return pa.bool_()

    def labels(self) -> list[str]:
        """Return ``["false", "true"]``."""
        return with_missing(["false", "true"], self.missing)

    def encode(self, values: pa.Array) -> Encoded:
        """Return the code of every value."""
        home = 2 if self.missing else None
        return encode_texts(values, _truth, home or 0, home)

    def decode(self, codes: IntArray, rng: np.random.Generator) -> pa.Array:
        """Return the truth of every code."""
        return spelled((False, True), self.missing, codes, pa.bool_())


@dataclass(frozen=True)
class Coded:
    """Whole numbers 0 … size − 1 that are codes already, of 0 … ``codes`` − 1.

    >>> Coded("state", 3).labels()
    ['0', '1', '2']
    """

    name: str
    codes: int
    missing: bool = False
    outside: str = ""
    kind: ClassVar[str] = "coded"

    def __post_init__(self) -> None:
        name = validators.name(self.name)
        missing = validators.flag(name, "missing", self.missing)
        default = "missing" if missing else "refuse"
        allowed = ("clip", "missing", "refuse")
        set_fields(
            self,
            codes=validators.whole(name, "codes", self.codes, 1, (1 << 31) - 1),
            outside=validators.policy(name, self.outside or default, allowed, missing=missing),
        )

    @property
    def size(self) -> int:
        """The codes and the missing state."""
        return self.codes + self.missing

    @property
    def type(self) -> pa.DataType:
        """Whole numbers."""
        return pa.int64()

    def labels(self) -> list[str]:
        """Return the codes."""
        return with_missing([str(i) for i in range(self.codes)], self.missing)

    def encode(self, values: pa.Array) -> Encoded:
        """Return the code of every value."""
        home = self.codes if self.missing else None
        found, empty = numbers(values)
        unreadable = np.isnan(found)
        found = np.where(unreadable, 0.0, found)
        outside = (found != np.rint(found)) | (found < 0) | (found >= self.codes)
        codes = np.clip(np.rint(found), 0, self.codes - 1).astype(np.int64)
        if self.outside != "clip":
            codes[outside] = home or 0
        return with_missing_code(codes, empty, outside, unreadable, home)

    def decode(self, codes: IntArray, rng: np.random.Generator) -> pa.Array:
        """Return the codes themselves."""
        return pa.array(codes.astype(np.int64), pa.int64(), mask=codes >= self.codes)


@dataclass(frozen=True, eq=False)
class Lookup:
    """The position of a text in a list: as it is, else without blanks around it, else as the number it stands for.

    >>> find = Lookup(("01", "2", "True"))
    >>> find("01"), find(" 2.0 "), find("1"), find("true"), find("x")
    (0, 1, 0, 2, None)
    """

    values: tuple[str, ...]

    @cached_property
    def _exact(self) -> dict[str, int]:
        return {v: i for i, v in enumerate(self.values)}

    @cached_property
    def _stripped(self) -> dict[str, int]:
        return _unambiguous([v.strip() for v in self.values])

    @cached_property
    def _truths(self) -> dict[str, int]:
        return _unambiguous([v.strip().lower() for v in self.values])

    @cached_property
    def _numbers(self) -> dict[float, int]:
        places = _unambiguous(
            [math.nan if v.strip().lower() in TRUTHS else number(v) for v in self.values]
        )
        return {value: place for value, place in places.items() if math.isfinite(value)}

    def __call__(self, written: str) -> int | None:
        if written in self._exact:
            return self._exact[written]
        short = written.strip()
        if short in self._exact or short in self._stripped:
            return self._exact.get(short, self._stripped.get(short))
        if short in TRUTHS:  # a truth value; lists often write True
            return self._truths.get(short)
        return self._numbers.get(number(short)) if self._numbers else None


def _unambiguous(keys: Sequence[K]) -> dict[K, int]:
    often = Counter(keys)
    return {k: i for i, k in enumerate(keys) if often[k] == 1}


def encode_texts(
    values: pa.Array, find: Callable[[str], int | None], aside: int, home: int | None
) -> Encoded:
    """Return codes by text, looking each distinct text up once.

    Unknown texts get the code ``aside``, empty ones ``home``.
    """
    rows, texts = distinct(values)
    found = [None if t is None else find(t) for t in texts]
    codes = np.array([aside if c is None else c for c in found], dtype=np.int64)
    empty = np.array([t is None for t in texts], dtype=np.bool_)
    outside = np.array([c is None for c in found], dtype=np.bool_)
    return with_missing_code(
        codes[rows], empty[rows], outside[rows], np.zeros(len(rows), dtype=np.bool_), home
    )


def spelled(
    values: Sequence[object], missing: bool, codes: IntArray, kind: pa.DataType
) -> pa.Array:
    """Return the value of every code, null for the missing state."""
    return pa.array([*values, None] if missing else list(values), kind).take(pa.array(codes))


def _truth(written: str) -> int | None:
    word = written.strip().lower()
    if word in YES or word in NO:
        return int(word in YES)
    value = number(word)
    return int(value) if value in (0.0, 1.0) else None
