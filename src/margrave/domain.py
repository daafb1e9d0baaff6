"""The discrete domain: its attributes, their numbers of codes and meanings, and combinations that cannot occur."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from itertools import chain

import numpy as np

from margrave.errors import DataError, InputError, other_column
from margrave.structural_zeros import StructuralZeros, count_possible
from margrave.types import AnyArray, Attribute, Clique, FloatArray


@dataclass(frozen=True, slots=True)
class Meaning:
    """Digests of the meaning of one attribute's codes.

    Args:
        labels: Digest of the words of categories, or of the kind and unit of a number line.
        bounds: Digest of the bounds of a number line; empty for other attributes.
        bins: Digest of the bins of a number line; empty for other attributes.
    """

    labels: str
    bounds: str = ""
    bins: str = ""


@dataclass(frozen=True, eq=False)
class Domain:
    """Attributes with their numbers of codes: attribute ``a`` takes the codes 0 … ``size(a)`` − 1.

    Two domains are equal if they have the same attributes, sizes, structural zeros and meanings.

    Args:
        attributes: Names of the columns.
        sizes: Number of codes of each, 1 or more.
        zeros: Combinations of codes that cannot occur.
        unordered: Attributes whose codes are names. The codes of all others are in an order.
        missing: Attributes whose last code stands for a missing value.
        meanings: Digests of what the codes of each attribute stand for. The domain of a schema has
            one for every column; ``Domain.of`` has none.
        functions: Attributes that are a function of a column, by function and column, such as
            {("hour", "pickup"): "pickup.hour"}.
        ignored: Columns of the table that the schema leaves out, which errors name.

    Raises:
        InputError: An attribute occurs twice or has no codes, or the zeros do not fit.

    Example:
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
    meanings: Mapping[Attribute, Meaning] = field(default_factory=dict, repr=False)
    functions: Mapping[tuple[str, str], Attribute] = field(default_factory=dict, repr=False)
    ignored: Collection[str] = field(default=(), repr=False)
    _index: dict[Attribute, int] = field(init=False, repr=False)
    _size: dict[Attribute, int] = field(init=False, repr=False)
    _possible: dict[Clique, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if len(self.attributes) != len(self.sizes) or len(set(self.attributes)) != len(
            self.attributes
        ):
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
                raise InputError(
                    f"The structural zeros of {zeros.clique} do not have the domain's shape."
                )
            if not zeros.possible.any():
                raise InputError(f"The structural zeros of {zeros.clique} leave nothing possible.")

    @staticmethod
    def of(sizes: Mapping[Attribute, int], zeros: Iterable[StructuralZeros] = ()) -> Domain:
        """Return a domain of sizes alone, from a mapping of attribute to number of codes."""
        return Domain(tuple(sizes), tuple(int(s) for s in sizes.values()), tuple(zeros))

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of all that equality covers."""
        zeros = sorted(z.key for z in self.zeros)
        stated = [
            (m.labels, m.bounds, m.bins) if (m := self.meanings.get(a)) else None
            for a in self.attributes
        ]
        covered = repr((self.attributes, self.sizes, zeros, stated))
        return sha256(covered.encode("utf-8", "backslashreplace")).hexdigest()

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Domain) and self.digest == other.digest)

    def __hash__(self) -> int:
        return hash(self.digest)

    def difference(self, other: Domain) -> str | None:
        """Describe the first difference from another domain.

        Returns:
            Part of a sentence that names the column; None if codes of one domain are codes of the
            other. A domain of sizes alone (``Domain.of``) agrees with every domain of these sizes.

        Example:
            >>> Domain.of({"age": 4}).difference(Domain.of({"age": 5}))
            "column 'age' has 4 codes in one and 5 in the other"
        """
        if self == other:
            return None
        if self.attributes != other.attributes:
            lone = [a for a in (*self, *other) if (a in self) != (a in other)]
            return (
                f"column {lone[0]!r} is in one of the two only"
                if lone
                else "the columns are in another order"
            )
        found = next((d for a in self if (d := self.difference_in(a, other)) is not None), None)
        if found is not None or self._sizes_alone or other._sizes_alone:
            return found
        zeros = {z.key for z in self.zeros} ^ {z.key for z in other.zeros}
        columns = ", ".join(min(zeros)[0]) if zeros else ""
        return (
            f"other combinations of {columns} cannot occur in one than in the other"
            if zeros
            else None
        )

    def difference_in(self, attribute: Attribute, other: Domain) -> str | None:
        """Describe how the codes of an attribute of both differ.

        Returns:
            Part of a sentence; None if they agree, or if one domain states no meaning for it.
        """
        size, theirs = self.size(attribute), other.size(attribute)
        if size != theirs:
            return f"column {attribute!r} has {size:,} code{'s' * (size != 1)} in one and {theirs:,} in the other"
        one, two = self.meanings.get(attribute), other.meanings.get(attribute)
        if one is None or two is None or one == two:
            return None
        part = next(p for p in ("labels", "bounds", "bins") if getattr(one, p) != getattr(two, p))
        return f"column {attribute!r} has other {part} in one than in the other"

    @property
    def _sizes_alone(self) -> bool:
        return not self.meanings and not self.zeros

    def __len__(self) -> int:
        return len(self.attributes)

    def __iter__(self) -> Iterator[Attribute]:
        return iter(self.attributes)

    def __contains__(self, attribute: object) -> bool:
        return attribute in self._index

    def index(self, attribute: Attribute) -> int:
        """Return the position of an attribute."""
        try:
            return self._index[attribute]
        except KeyError:
            raise InputError(
                f"There is no column {attribute!r}.",
                remedy=other_column(attribute, self.attributes, self.ignored),
            ) from None

    def size(self, attribute: Attribute) -> int:
        """Return the number of codes of an attribute."""
        size = self._size.get(attribute)
        return self.sizes[self.index(attribute)] if size is None else size

    def clique(self, attributes: Iterable[Attribute]) -> Clique:
        """Return the attributes as a clique: in the domain's order, each once.

        Raises:
            InputError: One of them is not an attribute of the domain, or they are not a list of names.
        """
        if isinstance(attributes, str):
            raise InputError(
                f"{attributes!r} is text, not a list of columns.", remedy=f"Give [{attributes!r}]."
            )
        try:
            return tuple(self.attributes[i] for i in sorted({self.index(a) for a in attributes}))
        except TypeError:  # a list in the list, or not a list
            raise InputError(
                "The columns are not a list of names.",
                remedy=f"Give such as {list(self.attributes[:2])}.",
            ) from None

    def shape(self, clique: Clique) -> tuple[int, ...]:
        """Return the shape of a marginal."""
        return tuple([self.size(a) for a in clique])

    def cells(self, clique: Iterable[Attribute] | None = None) -> int:
        """Return the exact number of cells of a marginal, or of the whole domain."""
        if clique is None:
            return math.prod(self.sizes)
        product, size = 1, self._size
        try:
            for a in clique:
                product *= size[a]
            return product
        except KeyError as unknown:
            self.index(unknown.args[0])  # raises with the names of the columns
            raise

    def cells_each(self, cliques: Sequence[Clique]) -> FloatArray:
        """Return the number of cells of each of many marginals, exact up to 2^53."""
        lengths = np.fromiter(map(len, cliques), np.int64, len(cliques))
        sizes = np.fromiter(map(self._size.__getitem__, chain.from_iterable(cliques)), np.float64)
        cells = np.ones(len(cliques))
        if sizes.size:
            filled = lengths > 0
            starts = np.cumsum(lengths) - lengths
            cells[filled] = np.multiply.reduceat(sizes, starts[filled])
        return cells

    def possible(self, clique: Clique) -> int:
        """Return an upper bound of the cells of a marginal that structural zeros inside it leave possible."""
        if not self.zeros:
            return self.cells(clique)
        if clique not in self._possible:
            self._possible[clique] = count_possible(self.zeros, clique, self.size)
        return self._possible[clique]

    def project(self, attributes: Iterable[Attribute]) -> Domain:
        """Return the domain of some attributes, with their meanings and the structural zeros among them."""
        kept = self.clique(attributes)
        zeros = tuple(z for z in self.zeros if set(z.clique) <= set(kept))
        meanings = {a: self.meanings[a] for a in kept if a in self.meanings}
        order = self.unordered.intersection(kept), self.missing.intersection(kept)
        functions = {f: a for f, a in self.functions.items() if a in kept}
        return Domain(kept, self.shape(kept), zeros, *order, meanings, functions, self.ignored)


def code_dtype(sizes: Iterable[int]) -> type[np.uint16] | type[np.uint32]:
    """Return the unsigned type that holds every code: of 16 bits if they suffice, else of 32."""
    return np.uint16 if max(sizes, default=1) <= 1 << 16 else np.uint32


def _check_codes(attribute: Attribute, column: AnyArray, size: int) -> None:
    if not np.issubdtype(column.dtype, np.integer):
        raise DataError(f"Column {attribute!r} holds {column.dtype} numbers, and codes are whole.")
    if column.size and not (
        int(column.max()) < size and (column.dtype.kind == "u" or int(column.min()) >= 0)
    ):
        raise DataError(f"Column {attribute!r} holds codes outside 0 … {size - 1}.")


@dataclass(frozen=True, eq=False)
class Codes:
    """Records as integer codes: ``values[i, j]`` is the code of attribute ``i`` in record ``j``.

    Every code is checked on construction, because compiled loops trust them. ``values`` is then
    C-contiguous, unsigned of 16 or 32 bits, and read-only.

    Args:
        domain: The attributes.
        values: Whole numbers of shape (attributes, records).

    Raises:
        InputError: ``values`` does not have one row per attribute.
        DataError: A column holds numbers that are not whole, or not codes of it.
    """

    domain: Domain
    values: AnyArray = field(repr=False)

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.shape[0] != len(self.domain):
            raise InputError("Codes need one row of values per attribute of the domain.")
        for attribute, column in zip(self.domain, self.values, strict=True):
            _check_codes(attribute, column, self.domain.size(attribute))
        values = np.ascontiguousarray(self.values, dtype=code_dtype(self.domain.sizes)).view()
        values.flags.writeable = False
        object.__setattr__(self, "values", values)

    @staticmethod
    def of(domain: Domain, columns: Mapping[Attribute, AnyArray]) -> Codes:
        """Return codes from one array of codes per attribute."""
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
        """Return the codes of one attribute, one per record."""
        column: AnyArray = self.values[self.domain.index(attribute)]
        return column

    def select(self, attributes: Iterable[Attribute]) -> Codes:
        """Return some of the attributes, in the domain's order."""
        domain = self.domain.project(attributes)
        return Codes(domain, self.values[[self.domain.index(a) for a in domain]])

    def take(self, rows: AnyArray) -> Codes:
        """Return some of the records, by position."""
        return Codes(self.domain, self.values[:, rows])
