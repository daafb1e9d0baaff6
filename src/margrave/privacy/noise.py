"""Noise and where it comes from: the Gaussian of a measurement, and the sources of randomness."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import version
from typing import ClassVar, NamedTuple, Protocol, final

import numpy as np
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian
from opendp.metrics import l2_distance
from opendp.mod import Measurement as Sampler
from opendp.mod import enable_features

from margrave.accounting.accountant import exact_rho
from margrave.accounting.sensitivities import Sensitivity, sensitivity
from margrave.domain import Domain
from margrave.errors import InputError, MargraveError
from margrave.marginal import IDENTITY, LinearMap, SingleQuery
from margrave.privacy.exponential import choose
from margrave.privacy.samplers import Bits, discrete_gaussian
from margrave.types import IntArray
from margrave.unit import Unit

enable_features(
    "contrib"
)  # OpenDP's word for everything it has not audited by committee, the Gaussian included

MIN_NOISE_SCALE, MAX_NOISE_SCALE = 2.0**-100, 2.0**50


class NoisePrice(NamedTuple):
    """The noise scale of each marginal of a call, and what each costs."""

    scale: float
    rho_each: Fraction


@dataclass(frozen=True)
class Gaussian:
    """Discrete Gaussian noise for a whole ``measure`` call of k marginals: give ``rho`` or ``scale``.

    ``rho`` is the price of the call, split equally: ``scale = sqrt(k · l2_squared / (2 rho))``, rounded up.
    ``scale`` is the standard deviation in each cell (a float stands for the binary fraction it is); the price follows
    exactly: ``rho = k · l2_squared / (2 scale²)``.

    **Privacy:** that rho (zCDP), for the unit of the gate, whose ``sensitivity`` gives ``l2_squared``.
    Source: Canonne, Kamath, Steinke 2020.

    >>> from margrave.accounting import AddRemoveRow
    >>> Gaussian.scale_for(Fraction(1, 200), AddRemoveRow())
    10.0
    """

    rho: Fraction | None = None
    scale: float | None = None

    def __post_init__(self) -> None:
        if (self.rho is None) == (self.scale is None):
            raise InputError(
                "Gaussian noise takes either rho or scale.", remedy="Give one of the two."
            )
        if self.rho is not None:
            object.__setattr__(self, "rho", exact_rho(self.rho, "The rho of the noise"))
        if self.scale is not None:
            object.__setattr__(self, "scale", _checked_scale(self.scale))

    def in_parts(self, parts: int) -> Gaussian:
        """Return the same noise for numbers in units of 1 / ``parts``, a power of two."""
        return self if self.scale is None else Gaussian(scale=self.scale * parts)

    def price(self, sensitivity: Sensitivity, marginals: int) -> NoisePrice:
        """Return the scale and price of each of ``marginals`` answers with this sensitivity."""
        if self.scale is not None:
            return NoisePrice(
                self.scale, Fraction(sensitivity.l2_squared) / (2 * Fraction(self.scale) ** 2)
            )
        assert self.rho is not None
        each = self.rho / marginals
        return NoisePrice(_scale_at(each, sensitivity), each)

    @staticmethod
    def scale_for(
        rho: Fraction,
        unit: Unit,
        query: LinearMap | SingleQuery = IDENTITY,
        domain: Domain | None = None,
    ) -> float:
        """Return the noise scale of one marginal, or one single query, bought with rho:
        ``sqrt(l2_squared / (2 rho))``.

        It is rounded up. A map with matrices needs the ``domain`` of its marginal.
        """
        return _scale_at(exact_rho(rho, "The rho of the noise"), sensitivity(unit, query, domain))


def _scale_at(rho: Fraction, sensitivity: Sensitivity) -> float:
    variance = sensitivity.l2_squared / (2 * rho)
    scale = _checked_scale(math.sqrt(variance) if variance < 2**200 else math.inf)
    while Fraction(scale) ** 2 < variance:
        scale = math.nextafter(scale, math.inf)
    return scale


def _checked_scale(scale: float) -> float:
    # Above 2^50 noise would crowd the range of 64-bit counts; nothing is lost below 2^-100, where it is zero.
    if (
        isinstance(scale, bool)
        or not isinstance(scale, int | float)
        or not MIN_NOISE_SCALE <= scale <= MAX_NOISE_SCALE
    ):
        raise InputError(
            f"The scale of the noise is {scale!r}.",
            remedy=f"It must be a number from {MIN_NOISE_SCALE:g} to {MAX_NOISE_SCALE:g}: change it, or rho.",
        )
    return float(scale)


class Randomness(Protocol):
    """Where noise and choices come from. It sees true counts and scores: only the gate may call it."""

    def describe(self) -> str:
        """Return a description for the certificate."""
        ...

    def gaussian(self, counts: IntArray, scale: float) -> IntArray:
        """Return the counts, each plus an independent discrete Gaussian of this scale."""
        ...

    def choose(self, scores: Sequence[int] | IntArray, temperature: Fraction) -> int:
        """Return an index, with P[r] ∝ exp(temperature · scores[r])."""
        ...


@final
class SystemRandomness:
    """The randomness of a private release: OpenDP's exact samplers and the operating system's entropy.

    A release is private if its noise comes from this exact type, whatever another source says of itself. Making the
    first one in a process runs ``self_test``. There is no seed.
    """

    __slots__ = ()  # so that no method of one object can be replaced
    _tested: ClassVar[bool] = False

    def __init__(self) -> None:
        if not SystemRandomness._tested:
            self_test(self)
            SystemRandomness._tested = True

    def describe(self) -> str:
        """Return the sampler and its version."""
        return (
            f"discrete Gaussian by OpenDP {_opendp_version()}; exponential mechanism by exact rejection on the "
            "operating system's entropy; start-up self-test passed"
        )

    def gaussian(self, counts: IntArray, scale: float) -> IntArray:
        """Return the counts plus exact discrete Gaussian noise; a sum outside 64 bits becomes the
        nearest one inside.
        """
        return _opendp_gaussian(counts, scale)

    def choose(self, scores: Sequence[int] | IntArray, temperature: Fraction) -> int:
        """Return the exponential mechanism on ``os.urandom``."""
        return choose(scores, temperature, os.urandom)


@final
class SeededRandomness:
    """FOR TESTS ONLY: noise that whoever knows the seed can take off again. A release made with it is not private."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._bits: Bits = np.random.default_rng(seed).bytes

    def describe(self) -> str:
        """Return a warning that it is not private."""
        return f"NOT PRIVATE: seeded noise for tests (seed {self._seed})"

    def gaussian(self, counts: IntArray, scale: float) -> IntArray:
        """Return the counts plus noise that follows from the seed."""
        noise = discrete_gaussian(counts.size, Fraction(scale), self._bits)
        return counts + noise.reshape(counts.shape)

    def choose(self, scores: Sequence[int] | IntArray, temperature: Fraction) -> int:
        """Return the exponential mechanism on bits that follow from the seed."""
        return choose(scores, temperature, self._bits)


# OpenDP releases the interpreter while it samples, so two threads serve. Pieces are small enough for an interrupt to
# be noticed within a fraction of a second, and one thread is enough for a single short piece.
_PIECE = 4096


def _opendp_gaussian(counts: IntArray, scale: float) -> IntArray:
    flat: list[int] = counts.reshape(
        -1
    ).tolist()  # lists: not every version of OpenDP takes every kind of array
    sampler = _sampler(scale)
    size = min(_PIECE, max(512, -(-len(flat) // 2)))
    pieces = [flat[start : start + size] for start in range(0, len(flat), size)]
    if len(pieces) == 1:
        noisy = [sampler(flat)]
    else:
        with ThreadPoolExecutor(max_workers=2) as pool:
            noisy = list(pool.map(sampler, pieces))
    return np.array([value for piece in noisy for value in piece], dtype=np.int64).reshape(
        counts.shape
    )


@functools.cache  # looking through the installed packages takes as long as a small release
def _opendp_version() -> str:
    return version("opendp")


@functools.lru_cache(maxsize=64)
def _sampler(scale: float) -> Sampler:
    return make_gaussian(vector_domain(atom_domain(T="i64")), l2_distance(T="f64"), scale=scale)


def self_test(source: Randomness, draws: int = 1200, scale: float = 10.0) -> None:
    """Draw a little, and refuse if mean or variance is far off, or the choice is.

    A sound sampler fails with probability below 4e-9; a scale wrong by 25 % either way, a bias, the same noise
    everywhere, none at all, and a choice that ignores or inverts its scores are seen. **Privacy:** none; no table
    is involved.
    """
    noise = source.gaussian(np.zeros(draws, dtype=np.int64), scale) / scale
    # x = ln(1e9): a sum of squares of n standard (sub)Gaussians leaves [n − 2 sqrt(n x), n + 2 sqrt(n x) + 2x] with
    # probability below 1e-9 on each side (Laurent and Massart 2000), the mean ±sqrt(2x/n) with 2e-9.
    x = math.log(1e9)
    squares, mean = float(noise @ noise), float(noise.mean())
    spread = 2 * math.sqrt(draws * x)
    # The worse of two candidates at odds of exp(32) is chosen, once in 32 times, with probability 1e-12.
    sound = (
        draws - spread <= squares <= draws + spread + 2 * x
        and abs(mean) <= math.sqrt(2 * x / draws)
        and all(source.choose([0, 32], Fraction(1)) == 1 for _ in range(32))
    )
    if not sound:
        raise MargraveError(
            "The noise sampler failed its self-test: nothing private can be released with it.",
            remedy="Reinstall opendp and numpy, and report this if it happens again.",
        )
