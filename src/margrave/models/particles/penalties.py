"""Penalties: what the records should be like besides their marginals, as a term of the particles' loss.

A penalty is a function R of the embedded particles with its gradient; the loss has ``weight · R`` added (Algorithm 3).
Targets are numbers that the caller gives: one that was read from the private rows must have been paid for.

Source: Donhauser, Abad, Hulkund, Yang (2024), Sections 3.3 and 4.4, Appendix B.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from margrave.errors import InputError
from margrave.models.particles.embedding import Embedding
from margrave.models.particles.possible import Nearest
from margrave.schema.elements import LINES
from margrave.schema.numeric import Date, Timestamp
from margrave.schema.schema import Schema
from margrave.typing import Attribute, FloatArray, IntArray


class Penalty(Protocol):
    """A function R of some columns' coordinates that is to be small.

    **Privacy:** none is spent. What it is told of the private table must be public, or have been paid for.
    """

    @property
    def weight(self) -> float:
        """What R is multiplied by in the loss."""
        ...

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The columns that it is a function of."""
        ...

    def check(self, embedding: Embedding) -> None:
        """Raise an InputError where the columns are not what it needs."""
        ...

    def value(self, embedding: Embedding, particles: FloatArray) -> tuple[float, FloatArray]:
        """R, and its gradient, of the shape of ``particles``.

        They have a row for each coordinate of the columns, in the order of ``attributes``, and a column a particle.
        """
        ...


class Prepared:
    """A penalty on the coordinates of one embedding; an InputError where it does not fit."""

    def __init__(self, penalty: Penalty, embedding: Embedding) -> None:
        for attribute in penalty.attributes:
            embedding.domain.index(attribute)
        penalty.check(embedding)
        if not (penalty.weight >= 0.0 and np.isfinite(penalty.weight)):
            raise InputError(f"A penalty has the weight {penalty.weight}.", remedy="Weights are 0 or more.")
        self.penalty, self.embedding, self.weight = penalty, embedding, float(penalty.weight)
        own = embedding.coordinates(penalty.attributes)
        self.coordinates: IntArray = np.sort(own)
        self._places = np.searchsorted(self.coordinates, own)

    def __call__(self, particles: FloatArray) -> tuple[float, FloatArray]:
        """R and its gradient, of particles with their rows in the order of ``coordinates``."""
        value, gradient = self.penalty.value(self.embedding, particles[self._places])
        found = np.empty_like(gradient)
        found[self._places] = gradient
        return value, found


@dataclass(frozen=True, kw_only=True)
class Statistic:
    """A mean over the records kept at a value, or away from it.

        S = mean of Σ_a coefficient_a · z_a, or, with ``threshold`` b, of sigmoid(slope · (Σ_a coefficient_a · z_a − b))
        R = (S − target)², or, ``hidden``, 0.01 / (0.0001 + (S − target)²), equation 12 of the paper

    z_a is where a column's code lies in the unit interval, code x of k (from 0) at (2x + 1) / 2k. The paper hides with
    weights from 0.01 to 10.
    """

    coefficients: Mapping[Attribute, float]
    target: float
    weight: float = 1.0
    threshold: float | None = None
    slope: float = 5.0
    hidden: bool = False

    def __post_init__(self) -> None:
        if not self.coefficients or not np.isfinite([self.target, *self.coefficients.values()]).all():
            raise InputError("A statistic needs columns with coefficients, and a target, all of them finite.")

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The columns with a coefficient."""
        return tuple(self.coefficients)

    def check(self, embedding: Embedding) -> None:
        """Its columns are on a line."""
        on_lines(embedding, self.attributes)

    def value(self, embedding: Embedding, particles: FloatArray) -> tuple[float, FloatArray]:
        """R and its gradient."""
        rows, count = line_rows(embedding, self.attributes), particles.shape[1]
        along = np.array(list(self.coefficients.values()), dtype=np.float64)
        score = along @ particles[rows]
        slopes = np.ones(count)
        if self.threshold is not None:
            score = 0.5 * (1.0 + np.tanh(0.5 * self.slope * (score - self.threshold)))
            slopes = self.slope * score * (1.0 - score)
        gap = float(score.mean()) - self.target
        gradient = np.zeros_like(particles)
        if self.hidden:
            value = 0.01 / (0.0001 + gap**2)
            outer = -200.0 * gap * value**2
        else:
            value, outer = gap**2, 2.0 * gap
        gradient[rows] = outer / count * along[:, None] * slopes
        return value, gradient


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
        """Of two columns of numbers or dates; a code stands for the middle of its cell, a date for a number of days.

        ``more``: the other parameters.
        """
        values: dict[Attribute, tuple[float, ...]] = {}
        units = set()
        for name in (first, second):
            column = schema.column(name)
            if not isinstance(column, LINES):
                raise InputError(
                    f"Column {name!r} is of kind {column.kind}, which has no unit.",
                    remedy="Say what its codes stand for: InOrder(..., values={...}).",
                )
            units.add(column.unit if isinstance(column, Timestamp) else "day" if isinstance(column, Date) else "")
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
        """They are two columns on lines, with a rising value for every code."""
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
        """R and its gradient."""
        rows, count = line_rows(embedding, self.attributes), particles.shape[1]
        low = min(v[0] for v in self.values.values())
        unit = max(1e-300, max(v[-1] for v in self.values.values()) - low)
        found = [self._on_line(a, particles[r], low, unit) for a, r in zip(self.attributes, rows, strict=True)]
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
        """What a coordinate stands for, and by how much that rises; beyond the outermost codes it stays the same."""
        values = (np.array(self.values[attribute]) - low) / unit
        if len(values) == 1:
            return np.full(line.shape, values[0]), np.zeros(line.shape)
        place = np.clip(line * len(values) - 0.5, 0.0, len(values) - 1.0)
        code = np.minimum(place.astype(np.int64), len(values) - 2)
        rise = np.diff(values)[code]
        inside = (place > 0.0) & (place < len(values) - 1.0)
        return values[code] + rise * (place - code), np.where(inside, rise * len(values), 0.0)


@dataclass(frozen=True, kw_only=True)
class Repulsion:
    """Away from what cannot occur: R = the mean of |z − p|², p the nearest possible combination's point.

    A particle counts whose nearest codes are impossible by the domain's constraints within ``clique``. Without this
    penalty such a particle is moved to p in the end all the same, and the marginals do not make up for that.
    """

    clique: tuple[Attribute, ...]
    weight: float = 1.0
    _kept: list[tuple[Embedding, Nearest]] = field(default_factory=list, init=False, repr=False, compare=False)

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The columns of the constraints."""
        return self.clique

    def check(self, embedding: Embedding) -> None:
        """They are in the domain's order, and some constraint is within them."""
        if embedding.domain.clique(self.clique) != self.clique or not self._within(embedding):
            raise InputError(
                f"No constraint lies within {', '.join(self.clique)}.",
                remedy="Name the columns of one, in the schema's order.",
            )

    def value(self, embedding: Embedding, particles: FloatArray) -> tuple[float, FloatArray]:
        """R and its gradient, with p held fast."""
        if not self._kept or self._kept[0][0] is not embedding:
            self._kept[:] = [(embedding, Nearest(embedding, self.clique))]
        wrong, points = self._kept[0][1](particles)
        gradient = np.zeros_like(particles)
        apart = particles[:, wrong] - points
        gradient[:, wrong] = 2.0 / particles.shape[1] * apart
        return float((apart**2).sum()) / particles.shape[1], gradient

    def _within(self, embedding: Embedding) -> bool:
        return any(set(z.clique) <= set(self.clique) for z in embedding.domain.zeros)


@dataclass(frozen=True, kw_only=True)
class Differentiable:
    """Any function of some columns' coordinates that JAX can differentiate.

    ``function`` takes an array with one row a coordinate, in the order of ``attributes``, and one column a particle,
    and gives a number. It must treat particles alike, and should average over them.
    """

    function: Callable[[Any], Any] = field(repr=False)
    attributes: tuple[Attribute, ...]
    weight: float = 1.0
    name: str = "a function"

    def check(self, embedding: Embedding) -> None:
        """JAX is there."""
        from importlib.util import find_spec

        if find_spec("jax") is None:
            raise InputError(
                "A penalty that is differentiated needs jax.",
                remedy="Install it: pip install 'margrave[inference]'.",
            )

    def value(self, embedding: Embedding, particles: FloatArray) -> tuple[float, FloatArray]:
        """R and its gradient."""
        import jax

        value, gradient = jax.value_and_grad(self.function)(particles.astype(np.float32))
        return float(value), np.asarray(gradient, dtype=np.float64)


def on_lines(embedding: Embedding, attributes: tuple[Attribute, ...]) -> None:
    """Raise an InputError unless each of the columns is on a line, with more than one code."""
    for attribute in attributes:
        size = embedding.domain.size(attribute)
        if embedding.points[attribute].shape[1] != 1 + (attribute in embedding.domain.missing) or size < 2:
            raise InputError(
                f"Column {attribute!r} does not lie on a line, which this penalty needs.",
                remedy='Name columns with an order, or embed names "ordered".',
            )


def line_rows(embedding: Embedding, attributes: tuple[Attribute, ...]) -> list[int]:
    """Which of the columns' coordinates are their places on their lines: the first of each."""
    widths = [embedding.points[a].shape[1] for a in attributes]
    return [int(sum(widths[:i])) for i in range(len(widths))]


def present(embedding: Embedding, attributes: tuple[Attribute, ...], particles: FloatArray) -> Any:
    """Which particles are nearer to some value than to missing, in all of the columns."""
    there = np.ones(particles.shape[1], dtype=np.bool_)
    for attribute, row in zip(attributes, line_rows(embedding, attributes), strict=True):
        if attribute in embedding.domain.missing:
            there &= particles[row + 1] < 0.5
    return there
