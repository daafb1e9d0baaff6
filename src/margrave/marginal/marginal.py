"""A marginal: one number per cell of a clique."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

from margrave._card import Card, Facts, counted, html_card
from margrave.marginal.axes import project_array
from margrave.types import AnyArray, Clique


@dataclass(frozen=True, eq=False, repr=False)
class Marginal(Card):
    """Counts (true, noisy or expected) of every cell of a clique: ``values`` has one axis per attribute.

    The axes are in the order of the schema's columns, whatever order was asked for. ``labels`` say what each
    code of an axis stands for, where a release made the marginal; else they are empty.
    """

    clique: Clique
    values: AnyArray
    labels: tuple[tuple[str, ...], ...] = ()

    def _facts(self) -> Facts:
        shape = " x ".join(map(str, self.values.shape)) or "1"
        return Facts(
            f"{', '.join(self.clique) or 'all records'}: {shape} cell{'s' * (shape != '1')}"
        )

    def _repr_html_(self) -> str:
        """Return the first counts of a release's marginal; of any other, which may be true, the shape."""
        max_rows = 12
        if not self.labels:
            return super()._repr_html_()
        cells, counts = product(*self.labels), self.values.ravel()[:max_rows]
        rows = [(*cell, f"{count:,.1f}") for cell, count in zip(cells, counts)]
        more = self.values.size - len(rows)
        notes = [f"And {counted(more, 'more cell')}: .to_dict() has all."] if more else []
        return html_card(repr(self), [(*self.clique, "count"), *rows], notes, head=True)

    def project(self, onto: Clique) -> Marginal:
        """Return the marginal summed down to fewer attributes."""
        if onto == self.clique:
            return self
        labels = tuple(self.labels[self.clique.index(a)] for a in onto if self.labels)
        return Marginal(onto, project_array(self.values, self.clique, onto), labels)

    def to_dict(self) -> dict[str, list[Any]]:
        """Return one entry a cell, as columns of plain data: what each attribute is there, and the
        ``count``.

        ``pandas.DataFrame(marginal.to_dict())`` and ``pyarrow.table(marginal.to_dict())`` take it as it is.

        >>> import numpy as np
        >>> Marginal(("sex",), np.array([3.0, 4.0]), (("f", "m"),)).to_dict()
        {'sex': ['f', 'm'], 'count': [3.0, 4.0]}
        """
        labels = self.labels or tuple(tuple(map(str, range(size))) for size in self.values.shape)
        cells = list(product(*labels))
        count = "count"
        while count in self.clique:
            count += "_"
        named = {a: [cell[i] for cell in cells] for i, a in enumerate(self.clique)}
        return {**named, count: self.values.ravel().tolist()}

    def total(self) -> float:
        """Return the sum of all cells."""
        return float(self.values.sum())
