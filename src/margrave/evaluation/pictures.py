"""The content of the private report: shares, associations, and the cells and subgroups that differ most.

Everything here is counted in the real rows. **Not private**, for the custodian alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from margrave.errors import InputError
from margrave.evaluation.queries import share
from margrave.purposes import Purpose
from margrave.release import Release
from margrave.schema import Schema
from margrave.types import AnyArray, Attribute, Clique, FloatArray


@dataclass(frozen=True)
class CellGap:
    """A cell of a pair of columns, and its share of the rows of each table. **Not private**."""

    cell: str
    real: float
    synthetic: float


@dataclass(frozen=True)
class GroupGap:
    """The rows with one value of a column, and how far other columns differ among them. **Not private**.

    Args:
        group: The column and its value.
        real_rows: Number of real rows in the group.
        synthetic_rows: Number of synthetic rows in the group.
        total_variation: The mean total variation over the other columns, from 0 to 1.
        furthest: The column that differs most.
        furthest_variation: Its total variation.
    """

    group: str
    real_rows: int
    synthetic_rows: int
    total_variation: float
    furthest: Attribute
    furthest_variation: float


@dataclass(frozen=True)
class PurposeGap:
    """A purpose of the release, and the differences of the marginals that it rests on. **Not private**.

    Args:
        purpose: Its words.
        marginals: Columns, total variation from 0 to 1, and whether the marginal was measured.
    """

    purpose: str
    marginals: tuple[tuple[Clique, float, bool], ...]


@dataclass(frozen=True, eq=False)
class Pictures:
    """The content of a private report. **Not private**.

    Args:
        shares: Real and synthetic shares of each column, by code.
        associations: Cramér's V of all pairs, real and synthetic: ``[0][i, j]`` of columns i and j.
        cells: The cells of pairs whose shares differ most.
        groups: The subgroups that differ most.
    """

    schema: Schema
    shares: Mapping[Attribute, tuple[FloatArray, FloatArray]]
    associations: tuple[FloatArray, FloatArray]
    cells: tuple[CellGap, ...]
    groups: tuple[GroupGap, ...]


@dataclass(eq=False)
class Gathering:
    """Counts of columns and pairs, gathered one by one.

    Args:
        schema: The schema of both tables.
    """

    schema: Schema
    _shares: dict[Attribute, tuple[FloatArray, FloatArray]] = field(default_factory=dict)
    _cells: list[tuple[float, Clique, int, float, float]] = field(default_factory=list)
    _groups: dict[tuple[Attribute, int], list[tuple[Attribute, float]]] = field(
        default_factory=dict
    )
    _rows: dict[tuple[Attribute, int], tuple[int, int]] = field(default_factory=dict)
    _associations: tuple[FloatArray, FloatArray] = field(init=False)

    def __post_init__(self) -> None:
        size = len(self.schema.columns)
        self._associations = (np.zeros((size, size)), np.zeros((size, size)))

    def add(self, clique: Clique, real: AnyArray, synthetic: AnyArray) -> None:
        """Add the counts of one column or of one pair; those of more columns are left out."""
        if len(clique) == 1:
            self._shares[clique[0]] = (share(real), share(synthetic))
        elif len(clique) == 2:
            self._add_pair(clique, real, synthetic)

    def _add_pair(self, pair: Clique, real: AnyArray, synthetic: AnyArray) -> None:
        i, j = (self.schema.domain.index(a) for a in pair)
        for found, counts in zip(self._associations, (real, synthetic), strict=True):
            found[i, j] = found[j, i] = cramers_v(counts)
        p, q = share(real), share(synthetic)
        gaps = np.abs(p - q).ravel()
        max_cells = 3  # of one pair, so that no pair fills the list
        for cell in np.argsort(-gaps, kind="stable")[:max_cells].tolist():
            self._cells.append(
                (float(gaps[cell]), pair, cell, float(p.ravel()[cell]), float(q.ravel()[cell]))
            )
        for axis in (0, 1):
            self._add_groups(
                pair[axis],
                pair[1 - axis],
                np.moveaxis(real, axis, 0),
                np.moveaxis(synthetic, axis, 0),
            )

    def _add_groups(
        self, column: Attribute, other: Attribute, real: AnyArray, synthetic: AnyArray
    ) -> None:
        if self.schema.column(column).kind not in ("categorical", "boolean", "ordinal", "coded"):
            return
        min_share = 0.005  # of the real rows: smaller groups are noise in any release
        sizes, drawn = real.sum(axis=1), synthetic.sum(axis=1)
        for code in np.flatnonzero(sizes >= max(min_share * sizes.sum(), 1)).tolist():
            far = float(np.abs(share(real[code]) - share(synthetic[code])).sum()) / 2
            far = far if drawn[code] else 1.0
            self._groups.setdefault((column, code), []).append((other, far))
            self._rows[column, code] = (int(sizes[code]), int(drawn[code]))

    def found(self) -> Pictures:
        """Return what was gathered, the largest differences first."""
        max_cells, max_groups = 25, 25
        cells = sorted(self._cells, key=lambda c: -c[0])[:max_cells]
        groups = [self._group(key, others) for key, others in self._groups.items()]
        return Pictures(
            self.schema,
            {c.name: self._shares[c.name] for c in self.schema.columns if c.name in self._shares},
            self._associations,
            tuple(CellGap(self._words(pair, cell), p, q) for _, pair, cell, p, q in cells),
            tuple(sorted(groups, key=lambda g: -g.total_variation)[:max_groups]),
        )

    def _group(self, key: tuple[Attribute, int], others: list[tuple[Attribute, float]]) -> GroupGap:
        column, code = key
        furthest, far = max(others, key=lambda pair: pair[1])
        return GroupGap(
            f"{column} = {self.schema.code_words(column)[code]}",
            *self._rows[key],
            float(np.mean([v for _, v in others])),
            furthest,
            far,
        )

    def _words(self, pair: Clique, cell: int) -> str:
        labels = [self.schema.code_words(a) for a in pair]
        row, column = divmod(cell, len(labels[1]))
        return f"{pair[0]} = {labels[0][row]}, {pair[1]} = {labels[1][column]}"


def purpose_cliques(synthetic: object) -> dict[str, tuple[Clique, ...]]:
    """Return the marginals of each purpose of a release; none for a table."""
    found: dict[str, tuple[Clique, ...]] = {}
    if isinstance(synthetic, Release):
        for support in synthetic.purposes:
            with suppress(InputError):  # a column of it was left out
                found[support.purpose] = Purpose.of(
                    support.purpose, synthetic.schema.domain
                ).cliques
    return found


def purpose_gaps(synthetic: object, errors: Mapping[Clique, float]) -> tuple[PurposeGap, ...]:
    """Return the differences of the marginals of each purpose of a release.

    Args:
        synthetic: The release; a table has no purposes.
        errors: The L1 distance of the shares, by marginal.
    """
    unmeasured = {
        s.purpose: s.unmeasured
        for s in (synthetic.purposes if isinstance(synthetic, Release) else ())
    }
    return tuple(
        PurposeGap(text, tuple((c, errors[c] / 2, c not in unmeasured[text]) for c in cliques))
        for text, cliques in purpose_cliques(synthetic).items()
    )


def cramers_v(counts: AnyArray) -> float:
    """Return Cramér's V of two columns: 0 if they are independent, 1 if one follows from the other.

    ``V = sqrt(sum (n_ij - e_ij)² / e_ij / n / (min(rows, columns) - 1))`` over rows and columns
    with records, where ``e_ij`` is the count under independence.

    Args:
        counts: Counts of records, rows × columns.

    >>> cramers_v(np.array([[5, 0], [0, 5]])), cramers_v(np.array([[4, 4], [2, 2]]))
    (1.0, 0.0)
    """
    counts = np.asarray(counts, dtype=np.float64)
    counts = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    least = min(counts.shape) - 1
    if least < 1:
        return 0.0
    total = float(counts.sum())
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / total
    squares = float(((counts - expected) ** 2 / expected).sum())
    return float(min(np.sqrt(squares / total / least), 1.0))
