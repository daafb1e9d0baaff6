"""The discrete domain: the attributes, how many codes each has, and which combinations cannot occur."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from margrave.errors import DataError, InputError
from margrave.schema.zeros import StructuralZeros, count_possible
from margrave.typing import AnyArray, Attribute, Clique


@dataclass(frozen=True, eq=False)
class Domain:
    """Attributes with their numbers of codes: attribute ``a`` takes the codes 0 … ``size(a)`` − 1.

    Codes are numbers in an order, but for the attributes in ``unordered`` (names), and for the last code of those in
    ``missing``. Most models treat all codes as names; neither makes two domains different.

    >>> domain = Domain.of({"age": 4, "sex": 2})
    >>> domain.cells(("age", "sex"))
    8
    >>> domain.clique(["sex", "age"])
    ('age', 'sex')
    """

    attributes: tuple[Attribute, ...]
    sizes: tuple[int, ...]
    zeros: tuple[StructuralZeros, ...] = ()
    unordered: frozenset[Attribute] = frozenset()
    missing: frozenset[Attribute] = frozenset()
    _index: dict[Attribute, int] = field(init=False, repr=False)
    _size: dict[Attribute, int] = field(init=False, repr=False)
    _possible: dict[Clique, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.attributes) != len(self.sizes) or len(set(self.attributes)) != len(self.attributes):
            raise InputError("A domain needs one size per attribute and no attribute twice.")
        for attribute, size in zip(self.attributes, self.sizes, strict=True):
            if size < 1:
                raise InputError(
                    f"Attribute {attribute!r} has {size} codes.", remedy="It needs at least one."
                )
        object.__setattr__(self, "_index", {a: i for i, a in enumerate(self.attributes)})
        object.__setattr__(self, "_size", dict(zip(self.attributes, self.sizes, strict=True)))
        object.__setattr__(self, "_possible", {})
        for zeros in self.zeros:
            if zeros.possible.shape != self.shape(zeros.clique):
                raise InputError(f"The structural zeros of {zeros.clique} do not have the domain's shape.")
            if not zeros.possible.any():
                raise InputError(f"The structural zeros of {zeros.clique} leave nothing possible.")

    @staticmethod
    def of(sizes: Mapping[Attribute, int], zeros: Iterable[StructuralZeros] = ()) -> Domain:
        """A domain from a mapping of attribute to number of codes."""
        return Domain(tuple(sizes), tuple(int(s) for s in sizes.values()), tuple(zeros))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Domain) and (self.attributes, self.sizes) == (other.attributes, other.sizes)

    def __hash__(self) -> int:
        return hash((self.attributes, self.sizes))

    def __len__(self) -> int:
        return len(self.attributes)

    def __iter__(self) -> Iterator[Attribute]:
        return iter(self.attributes)

    def __contains__(self, attribute: object) -> bool:
        return attribute in self._index

    def index(self, attribute: Attribute) -> int:
        """The position of an attribute."""
        try:
            return self._index[attribute]
        except KeyError:
            raise InputError(
                f"There is no column {attribute!r}.", remedy=f"The columns are: {', '.join(self.attributes)}."
            ) from None

    def size(self, attribute: Attribute) -> int:
        """How many codes an attribute has."""
        size = self._size.get(attribute)
        return self.sizes[self.index(attribute)] if size is None else size

    def clique(self, attributes: Iterable[Attribute]) -> Clique:
        """The attributes as a clique: in the domain's order, each once; an unknown one is an error."""
        if isinstance(attributes, str):
            raise InputError(f"{attributes!r} is text, and no list of columns.", remedy=f"Give [{attributes!r}].")
        return tuple(self.attributes[i] for i in sorted({self.index(a) for a in attributes}))

    def shape(self, clique: Clique) -> tuple[int, ...]:
        """The shape of a marginal."""
        return tuple([self.size(a) for a in clique])

    def cells(self, clique: Iterable[Attribute] | None = None) -> int:
        """The number of cells of a marginal, or of the whole domain: an exact integer, however large."""
        return math.prod(self.sizes if clique is None else [self.size(a) for a in clique])

    def possible(self, clique: Clique) -> int:
        """How many cells of a marginal the structural zeros inside it leave possible (at most; see ``zeros.py``)."""
        if not self.zeros:
            return self.cells(clique)
        if clique not in self._possible:
            self._possible[clique] = count_possible(self.zeros, clique, self.size)
        return self._possible[clique]

    def project(self, attributes: Iterable[Attribute]) -> Domain:
        """The domain of some attributes only, with those structural zeros that concern only them."""
        kept = self.clique(attributes)
        zeros = tuple(z for z in self.zeros if set(z.clique) <= set(kept))
        return Domain(kept, self.shape(kept), zeros, self.unordered.intersection(kept), self.missing.intersection(kept))


def code_dtype(sizes: Iterable[int]) -> type[np.uint16] | type[np.uint32]:
    """The unsigned type that holds every code: 16 bits where they suffice, else 32."""
    return np.uint16 if max(sizes, default=1) <= 1 << 16 else np.uint32


def _check_codes(attribute: Attribute, column: AnyArray, size: int) -> None:
    """Before numbers are stored as codes, which wraps those that are none."""
    if not np.issubdtype(column.dtype, np.integer):
        raise DataError(f"Column {attribute!r} holds {column.dtype} numbers, and codes are whole.")
    if column.size and not 0 <= int(column.min()) <= int(column.max()) < size:
        raise DataError(f"Column {attribute!r} holds codes outside 0 … {size - 1}.")


@dataclass(frozen=True, eq=False)
class Codes:
    """Records as integer codes: ``values[i, j]`` is the code of attribute ``i`` in record ``j``.

    ``values`` is C-contiguous of shape (attributes, records), of 16 or 32 bits unsigned: a column is one run of memory.
    """

    domain: Domain
    values: AnyArray

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.shape[0] != len(self.domain):
            raise InputError("Codes need one row of values per attribute of the domain.")
        wanted = code_dtype(self.domain.sizes)
        if self.values.dtype != wanted:  # else it is left to whoever counts: there are no other numbers to wrap
            for attribute, column in zip(self.domain, self.values, strict=True):
                _check_codes(attribute, column, self.domain.size(attribute))
        object.__setattr__(self, "values", np.ascontiguousarray(self.values, dtype=wanted))

    @staticmethod
    def of(domain: Domain, columns: Mapping[Attribute, AnyArray]) -> Codes:
        """Codes from one array of codes per attribute."""
        rows = len(next(iter(columns.values()))) if columns else 0
        values = np.empty((len(domain), rows), dtype=code_dtype(domain.sizes))
        for i, attribute in enumerate(domain):
            column = np.asarray(columns[attribute])
            _check_codes(attribute, column, domain.size(attribute))
            values[i] = column
        return Codes(domain, values)

    def __len__(self) -> int:
        return int(self.values.shape[1])

    def column(self, attribute: Attribute) -> AnyArray:
        """The codes of one attribute, one per record."""
        column: AnyArray = self.values[self.domain.index(attribute)]
        return column

    def take(self, rows: AnyArray) -> Codes:
        """Some of the records, by position."""
        return Codes(self.domain, self.values[:, rows])
