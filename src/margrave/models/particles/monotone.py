"""A penalty on two columns that are out of order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrave.errors import InputError
from margrave.models.particles.embedding import Embedding
from margrave.models.particles.penalties import line_rows, on_lines, present
from margrave.schema.constraint_values import NUMERIC_KINDS
from margrave.schema.numeric import Date, Timestamp
from margrave.schema.schema import Schema
from margrave.types import Attribute, FloatArray


@dataclass(frozen=True, kw_only=True)
class InOrder:
    """One column at most another, both in one unit: in every record, or, ``means``, on the average alone.

        R = mean of max(0, x_first + margin − x_second)², or max(0, mean of x_first + margin − mean of x_second)²

    ``values`` has for each of the two columns what its codes stand for, rising, without the missing state; between two
    codes x rises evenly. In R, x and ``margin`` are divided by the range of all values. A record that misses one of
    them is left alone. Particles become the records of the nearest codes, up to half a code away on each side: a
    margin of as much keeps those in order too. ``InOrder.of`` takes the values from a schema.
    """

    first: Attribute
    second: Attribute
    values: Mapping[Attribute, tuple[float, ...]]
    weight: float = 1.0
    margin: float = 0.0
    means: bool = False

    @staticmethod
    def of(schema: Schema, first: Attribute, second: Attribute, **more: Any) -> InOrder:
        """Return the penalty on two columns of numbers or dates; ``more`` are its other parameters.

        A code stands for the middle of its cell, a date for a number of days.
        """
        values: dict[Attribute, tuple[float, ...]] = {}
        units = set()
        for name in (first, second):
            column = schema.column(name)
            if not isinstance(column, NUMERIC_KINDS):
                raise InputError(
                    f"Column {name!r} is of kind {column.kind}, which has no unit.",
                    remedy="Say what its codes stand for: InOrder(..., values={...}).",
                )
            units.add(
                column.unit
                if isinstance(column, Timestamp)
                else "day"
                if isinstance(column, Date)
                else ""
            )
            least, greatest = column.cells.extremes
            values[name] = tuple(((least + greatest) / 2.0).tolist())
        if len(units) > 1:
            raise InputError(
                f"Columns {first!r} and {second!r} have different units.",
                remedy="Say what their codes stand for in one unit: InOrder(..., values={...}).",
            )
        return InOrder(first=first, second=second, values=values, **more)

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The two columns."""
        return (self.first, self.second)

    def check(self, embedding: Embedding) -> None:
        """Raise ``InputError`` unless it has two numeric columns with a rising value for every
        code.
        """
        on_lines(embedding, self.attributes)
        for attribute in self.attributes:
            values = np.array(self.values.get(attribute, ()))
            codes = embedding.domain.size(attribute) - (attribute in embedding.domain.missing)
            if self.first == self.second or len(values) != codes or not (np.diff(values) > 0).all():
                raise InputError(
                    f"An order of column {attribute!r} needs another column, and {codes} rising values, one a code.",
                    remedy="Give them, without the missing state, or take them from the schema with InOrder.of.",
                )

    def value(self, embedding: Embedding, particles: FloatArray) -> tuple[float, FloatArray]:
        """Return R and its gradient."""
        rows, count = line_rows(embedding, self.attributes), particles.shape[1]
        low = min(v[0] for v in self.values.values())
        unit = max(1e-300, max(v[-1] for v in self.values.values()) - low)
        found = [
            self._on_line(a, particles[r], low, unit)
            for a, r in zip(self.attributes, rows, strict=True)
        ]
        (one, one_slope), (other, other_slope) = found
        over = one + self.margin / unit - other
        there = present(embedding, self.attributes, particles)
        gradient = np.zeros_like(particles)
        if self.means:
            count = max(1, int(there.sum()))
            excess = max(0.0, float(over[there].sum()) / count)
            value, outer = excess**2, np.where(there, 2.0 * excess / count, 0.0)
        else:
            hinge = np.where(there, np.maximum(0.0, over), 0.0)
            value, outer = float((hinge**2).mean()), 2.0 * hinge / count
        gradient[rows[0]], gradient[rows[1]] = outer * one_slope, -outer * other_slope
        return value, gradient

    def _on_line(
        self, attribute: Attribute, line: FloatArray, low: float, unit: float
    ) -> tuple[FloatArray, FloatArray]:
        values = (np.array(self.values[attribute]) - low) / unit
        if len(values) == 1:
            return np.full(line.shape, values[0]), np.zeros(line.shape)
        place = np.clip(line * len(values) - 0.5, 0.0, len(values) - 1.0)
        code = np.minimum(place.astype(np.int64), len(values) - 2)
        rise = np.diff(values)[code]
        inside = (place > 0.0) & (place < len(values) - 1.0)
        return values[code] + rise * (place - code), np.where(inside, rise * len(values), 0.0)
