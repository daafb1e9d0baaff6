"""Penalties: what the records should be like besides their marginals, as a term of the particles' loss.

A penalty is a function R of the embedded particles with its gradient; the loss has ``weight · R`` added (Algorithm 3).
Targets are numbers that the caller gives: one that was read from the private rows must have been paid for.

Source: Donhauser, Abad, Hulkund, Yang (2024), Sections 3.3 and 4.4, Appendix B.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from margrave.errors import InputError
from margrave.models.particles.embedding import Embedding
from margrave.models.particles.feasible import Nearest
from margrave.types import Attribute, FloatArray, IntArray


class Checked(Protocol):
    """The part of a penalty that does not need a target yet."""

    @property
    def weight(self) -> float:
        """The factor of R in the loss."""
        ...

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The columns that it is a function of."""
        ...

    def check(self, embedding: Embedding) -> None:
        """Raise an InputError where the columns are not what it needs."""
        ...


class Penalty(Checked, Protocol):
    """A function R of some columns' coordinates to be minimized.

    **Privacy:** none spent. Its facts about the private table must be public, or have been paid
    for.
    """

    def value(self, embedding: Embedding, particles: FloatArray) -> tuple[float, FloatArray]:
        """Return R, and its gradient, of the shape of ``particles``.

        ``particles`` has a row for each coordinate of ``attributes``, in order, and a column per
        particle.
        """
        ...


def check_penalty(penalty: Checked, embedding: Embedding) -> None:
    """Raise an InputError where a penalty does not fit an embedding."""
    for attribute in penalty.attributes:
        embedding.domain.index(attribute)
    penalty.check(embedding)
    if not (penalty.weight >= 0.0 and np.isfinite(penalty.weight)):
        raise InputError(
            f"A penalty has the weight {penalty.weight}.", remedy="Weights are 0 or more."
        )


class Prepared:
    """A penalty on the coordinates of one embedding; an InputError where it does not fit."""

    def __init__(self, penalty: Penalty, embedding: Embedding) -> None:
        check_penalty(penalty, embedding)
        self.penalty, self.embedding, self.weight = penalty, embedding, float(penalty.weight)
        own = embedding.coordinates(penalty.attributes)
        self.coordinates: IntArray = np.sort(own)
        self._places = np.searchsorted(self.coordinates, own)

    def __call__(self, particles: FloatArray) -> tuple[float, FloatArray]:
        """Return R and its gradient for particles with rows in the order of ``coordinates``."""
        value, gradient = self.penalty.value(self.embedding, particles[self._places])
        found = np.empty_like(gradient)
        found[self._places] = gradient
        return value, found


@dataclass(frozen=True, kw_only=True)
class Repulsion:
    """Away from what cannot occur: R = the mean of |z − p|², p the nearest possible combination's point.

    A particle counts whose nearest codes are impossible by the domain's constraints within ``clique``. Without this
    penalty such a particle is moved to p in the end all the same, and the marginals do not make up for that.
    """

    clique: tuple[Attribute, ...]
    weight: float = 1.0
    _kept: list[tuple[Embedding, Nearest]] = field(
        default_factory=list, init=False, repr=False, compare=False
    )

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The columns of the constraints."""
        return self.clique

    def check(self, embedding: Embedding) -> None:
        """Raise ``InputError`` unless its columns are in the domain's order and contain a
        constraint.
        """
        if embedding.domain.clique(self.clique) != self.clique or not self._within(embedding):
            raise InputError(
                f"No constraint lies within {', '.join(self.clique)}.",
                remedy="Name the columns of one, in the schema's order.",
            )

    def value(self, embedding: Embedding, particles: FloatArray) -> tuple[float, FloatArray]:
        """Return R and its gradient, with p held fixed."""
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
        """Raise ``InputError`` if JAX is missing."""
        from importlib.util import find_spec

        if find_spec("jax") is None:
            raise InputError(
                "A penalty that is differentiated needs jax.",
                remedy="Install it: pip install 'margrave[inference]'.",
            )

    def value(self, embedding: Embedding, particles: FloatArray) -> tuple[float, FloatArray]:
        """Return R and its gradient."""
        import jax

        value, gradient = jax.value_and_grad(self.function)(particles.astype(np.float32))
        return float(value), np.asarray(gradient, dtype=np.float64)


def on_lines(embedding: Embedding, attributes: tuple[Attribute, ...]) -> None:
    """Raise an InputError unless each of the columns is on a line, with more than one code."""
    for attribute in attributes:
        size = embedding.domain.size(attribute)
        if (
            embedding.points[attribute].shape[1] != 1 + (attribute in embedding.domain.missing)
            or size < 2
        ):
            raise InputError(
                f"Column {attribute!r} does not lie on a line, which this penalty needs.",
                remedy='Name columns with an order, or embed names "ordered".',
            )


def line_rows(embedding: Embedding, attributes: tuple[Attribute, ...]) -> list[int]:
    """Return the first coordinate of each column: its position on the column's line."""
    widths = [embedding.points[a].shape[1] for a in attributes]
    return [int(sum(widths[:i])) for i in range(len(widths))]


def present(embedding: Embedding, attributes: tuple[Attribute, ...], particles: FloatArray) -> Any:
    """Return which particles are nearer to some value than to missing, in all of the columns."""
    there = np.ones(particles.shape[1], dtype=np.bool_)
    for attribute, row in zip(attributes, line_rows(embedding, attributes), strict=True):
        if attribute in embedding.domain.missing:
            there &= particles[row + 1] < 0.5
    return there
