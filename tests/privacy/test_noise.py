"""Noise: two independent samplers against the exact law, shown to fail when the scale is wrong; prices; entropy.

False-alarm rates: 1e-6 for each chi-square; the seeded runs below are the same every time.
"""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from margrave.accounting import (
    AddRemovePerson,
    AddRemoveRow,
    ReplacePerson,
    ReplaceRow,
    Unit,
    sensitivity,
)
from margrave.errors import InputError, MargraveError
from margrave.privacy import Gaussian, SeededRandomness, SystemRandomness
from margrave.privacy.noise import NoisePrice, self_test
from margrave.privacy.samplers import below, bernoulli_exp, discrete_gaussian
from margrave.types import IntArray

SCALES = [0.5, 0.7, 1.0, 1.3, 2.5, 3.7, 10.0, 10.37, 33.3, 100.0, 314.0, 1000.0]


def p_value(draws: IntArray, scale: float, bins: int = 14) -> float:
    """Chi-square of draws against the discrete Gaussian, over runs of integers of about equal probability."""
    reach = math.ceil(13 * scale) + 1
    support = np.arange(-reach, reach + 1)
    mass = np.exp(-(support**2) / (2 * scale**2))
    cumulated = np.cumsum(mass / mass.sum())
    edges = np.unique(np.searchsorted(cumulated, np.arange(1, bins) / bins))
    edges = edges[1 - cumulated[edges] > 25 / draws.size]
    expected = np.diff(np.concatenate([[0.0], cumulated[edges], [1.0]]))
    assert expected.min() * draws.size > 20
    observed = np.bincount(np.searchsorted(support[edges], draws), minlength=expected.size)
    return float(stats.chisquare(observed, expected * draws.size).pvalue)


def opendp(size: int, scale: float) -> IntArray:
    return SystemRandomness().gaussian(np.zeros(size, dtype=np.int64), scale)


def exact(size: int, scale: float) -> IntArray:
    return discrete_gaussian(size, Fraction(scale), os.urandom)


def seeded(size: int, scale: float, seed: int = 7) -> IntArray:
    return discrete_gaussian(size, Fraction(scale), np.random.default_rng(seed).bytes)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(
    ("sampler", "size"), [(opendp, 10_000), (exact, 50_000)], ids=["opendp", "exact"]
)
def test_the_law_of_the_noise(
    sampler: Callable[[int, float], IntArray], size: int, scale: float
) -> None:
    assert p_value(sampler(size, scale), scale) > 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("sampler", [opendp, exact])
def test_the_law_of_the_noise_with_many_draws(
    sampler: Callable[[int, float], IntArray], scale: float
) -> None:
    assert p_value(sampler(100_000, scale), scale) > 1e-6


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(
    ("size", "factor"), [(10_000, 0.9), (10_000, 1.1), (200_000, 0.98), (200_000, 1.02)]
)
def test_a_wrong_scale_would_be_seen(scale: float, size: int, factor: float) -> None:
    assert p_value(seeded(size, scale * factor), scale) < 1e-6


@pytest.mark.parametrize("scale", [0.01, 0.2, 2.0**20, 1e12])
def test_scales_far_out(scale: float) -> None:
    noise = seeded(20_000, scale)
    if scale < 0.1:
        assert not noise.any()
    else:
        variance = np.sum([x * x * math.exp(-x * x / (2 * scale**2)) for x in range(-3, 4)]) / np.sum(
            [math.exp(-x * x / (2 * scale**2)) for x in range(-3, 4)]
        ) if scale < 1 else scale**2  # fmt: skip
        assert np.mean(noise.astype(float) ** 2) == pytest.approx(variance, rel=0.05, abs=1e-3)


def test_the_noise_is_independent_from_cell_to_cell() -> None:
    noise = opendp(8192, 50.0).astype(float)
    for lag in (1, 2, 4096):  # 4096: from one piece, and one thread, to the next
        assert abs(np.corrcoef(noise[:-lag], noise[lag:])[0, 1]) < 5 / math.sqrt(8192 - lag)


@pytest.mark.parametrize("margin", [2.0**-30, 0.5, 0.999])
@pytest.mark.parametrize(
    "exponent", [Fraction(0), Fraction(1, 7), Fraction(1), Fraction(9, 4), Fraction(40)]
)
def test_coins_are_exact_whether_settled_at_once_or_not(exponent: Fraction, margin: float) -> None:
    """A wide margin leaves most coins open, and sends them through the arithmetic of more and more digits."""
    size = 4000
    bits = np.random.default_rng(11).bytes
    heads = bernoulli_exp(np.full(size, float(exponent)), lambda _: exponent, bits, margin)
    chance = math.exp(-exponent)
    assert stats.binomtest(int(heads.sum()), size, chance).pvalue > 1e-6


def test_the_open_coins_are_decided_by_the_exact_exponent() -> None:
    """The bits say U = 1/2 to 53 places: only more bits, and log 2 to more digits, can tell."""
    log2_below, log2_above = (
        Fraction(math.log(2)) - Fraction(1, 10**15),
        Fraction(math.log(2)) + Fraction(1, 10**15),
    )

    def half(size: int) -> bytes:
        return (
            (1 << 63).to_bytes(8, "little")
            if size == 8 and not seen.append(1) and len(seen) == 1
            else bytes(size)
        )

    for exponent, heads in ((log2_below, True), (log2_above, False)):
        seen: list[int] = []
        assert bernoulli_exp(np.array([math.log(2)]), lambda _, x=exponent: x, half)[0] == heads  # type: ignore[misc]
        assert len(seen) > 1


@pytest.mark.parametrize("bound", [2, 3, 5, 17, 575])
def test_below_is_uniform(bound: int) -> None:
    drawn = below(bound, 20_000, np.random.default_rng(3).bytes)
    assert stats.chisquare(np.bincount(drawn, minlength=bound)).pvalue > 1e-6
    assert drawn.max() < bound
    assert not below(1, 5, np.random.default_rng(3).bytes).any()


def test_below_reaches_the_largest_bounds() -> None:
    drawn = below((1 << 61) + 1, 2000, np.random.default_rng(3).bytes)
    assert drawn.min() >= 0
    assert 1 << 60 < drawn.max() <= 1 << 61


def test_values_are_integers_of_64_bits_and_saturate() -> None:
    edge = np.array([[2**63 - 1, -(2**63)], [2**62, -(2**31)]], dtype=np.int64)
    noisy = SystemRandomness().gaussian(edge, 5.0)
    assert noisy.dtype == np.int64
    assert noisy.shape == (2, 2)
    assert np.all(np.abs(noisy.astype(object) - edge.astype(object)) < 100)
    edge.flags.writeable = False  # as the gate's counts are
    assert SystemRandomness().gaussian(edge, 5.0).shape == (2, 2)
    assert SeededRandomness(1).gaussian(np.arange(3), 5.0).dtype == np.int64


# Prices.

UNITS: list[Unit] = [AddRemoveRow(), ReplaceRow(), AddRemovePerson(3), ReplacePerson(5)]


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("marginals", [1, 3, 14])
def test_the_scale_covers_the_price_by_less_than_a_hair(unit: Unit, marginals: int) -> None:
    rho, moved = Fraction(1, 7), sensitivity(unit)
    scale, each = Gaussian(rho=rho).price(moved, marginals)
    loss = Fraction(moved.l2_squared) / (2 * Fraction(scale) ** 2)
    assert each * marginals == rho
    assert loss <= each < loss * (1 + Fraction(1, 10**14))
    assert Gaussian.scale_for(rho / marginals, unit) == scale


def test_a_scale_has_its_exact_price() -> None:
    assert Gaussian(scale=10.37).price(sensitivity(ReplacePerson(3)), 4) == NoisePrice(
        10.37, Fraction(18) / (2 * Fraction(10.37) ** 2)
    )


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf, 1e300, 1e-300, True, "1"])
def test_no_scale(scale: float) -> None:
    with pytest.raises(InputError, match="scale"):
        Gaussian(scale=scale)


@pytest.mark.parametrize("rho", [0, Fraction(-1), 0.5, "1", True, 10**900])
def test_no_rho(rho: Fraction) -> None:
    with pytest.raises(InputError, match="rho"):
        Gaussian(rho=rho)


def test_one_of_rho_and_scale() -> None:
    for arguments in ({}, {"rho": Fraction(1), "scale": 1.0}):
        with pytest.raises(InputError, match="either"):
            Gaussian(**arguments)  # type: ignore[arg-type]


def test_a_price_too_small_to_draw_is_refused() -> None:
    for rho in (Fraction(1, 10**40), Fraction(1, 10**900)):
        with pytest.raises(InputError, match="scale"):
            Gaussian(rho=rho).price(sensitivity(AddRemoveRow()), 1)


# The self-test.


class Planted:
    """A source with a fault."""

    def __init__(
        self, fault: Callable[[IntArray, float], IntArray], pick: Callable[[Sequence[int]], int]
    ) -> None:
        self.fault, self.pick = fault, pick
        self.bits = np.random.default_rng(5).bytes

    def describe(self) -> str:
        return "planted"

    def gaussian(self, counts: IntArray, scale: float) -> IntArray:
        return self.fault(counts, scale)

    def choose(self, scores: Sequence[int], temperature: Fraction) -> int:
        return self.pick(scores)


def best(scores: Sequence[int]) -> int:
    return int(np.argmax(scores))


def worst(scores: Sequence[int]) -> int:
    return int(np.argmin(scores))


def sound(counts: IntArray, scale: float) -> IntArray:
    return counts + seeded(counts.size, scale)


FAULTS: dict[str, tuple[Callable[[IntArray, float], IntArray], Callable[[Sequence[int]], int]]] = {
    "too small": (lambda c, s: c + seeded(c.size, 0.75 * s), best),
    "too large": (lambda c, s: c + seeded(c.size, 1.25 * s), best),
    "none": (lambda c, s: c, best),
    "the same everywhere": (lambda c, s: c + 10, best),
    "biased": (lambda c, s: c + seeded(c.size, s) + 3, best),
    "one-sided": (lambda c, s: c + np.abs(seeded(c.size, s)), best),
    "inverted choice": (sound, worst),
    "choice that ignores scores": (sound, lambda scores: random.randrange(len(scores))),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_self_test_sees(fault: str) -> None:
    with pytest.raises(MargraveError, match="self-test"):
        self_test(Planted(*FAULTS[fault]))


def test_the_self_test_passes_what_is_sound() -> None:
    self_test(Planted(sound, best))
    for seed in range(30):
        self_test(SeededRandomness(seed))


def test_the_gate_does_not_open_on_a_failed_self_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SystemRandomness, "_tested", False)
    monkeypatch.setattr(SystemRandomness, "gaussian", lambda self, counts, scale: counts)
    for _ in range(2):  # a failure is not forgotten
        with pytest.raises(MargraveError, match="self-test"):
            SystemRandomness()


# Where the entropy comes from.


def test_global_seeds_do_not_reach_the_noise() -> None:
    draws = []
    system = SystemRandomness()  # its self-test draws, so it comes first
    for _ in range(2):
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002
        draws.append(
            (
                system.gaussian(np.zeros(8, dtype=np.int64), 1e9),
                [system.choose([0] * 4096, Fraction(1)) for _ in range(8)],
            )
        )
    assert not np.array_equal(draws[0][0], draws[1][0])
    assert draws[0][1] != draws[1][1]


def test_a_seed_gives_the_same_noise_and_says_it_is_not_private() -> None:
    one, two = SeededRandomness(4), SeededRandomness(4)
    zeros = np.zeros((5, 2), dtype=np.int64)
    assert np.array_equal(one.gaussian(zeros, 9.0), two.gaussian(zeros, 9.0))
    assert one.choose([1, 2, 3] * 50, Fraction(1, 9)) == two.choose([1, 2, 3] * 50, Fraction(1, 9))
    assert "NOT PRIVATE" in one.describe()


WORKERS = """
import multiprocessing, sys
import numpy as np
from fractions import Fraction
from margrave.privacy import SystemRandomness

def draw(_):
    system = SystemRandomness()
    noise = system.gaussian(np.zeros(4, dtype=np.int64), 1e12).tolist()
    return [*noise, *(system.choose([0] * 100_000, Fraction(1)) for _ in range(2))]

if __name__ == "__main__":
    how, count = sys.argv[1], int(sys.argv[2])
    draw(0)  # the parent has a generator in use when it forks
    with multiprocessing.get_context(how).Pool(count) as pool:
        blocks = [draw(0), *pool.map(draw, range(count), chunksize=1)]
    noise = [value for block in blocks for value in block[:4]]
    choices = [tuple(block[4:]) for block in blocks]
    print(len(blocks), len(noise) - len(set(noise)), len(choices) - len(set(choices)))
"""


def repeats(how: str, count: int, tmp_path: os.PathLike[str]) -> list[int]:
    script = os.path.join(tmp_path, "workers.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(WORKERS)
    done = subprocess.run(
        [sys.executable, script, how, str(count)], capture_output=True, text=True, check=True
    )
    return [int(word) for word in done.stdout.split()]


def test_forked_workers_repeat_nothing(tmp_path: os.PathLike[str]) -> None:
    assert repeats("fork", 4, tmp_path) == [5, 0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_64_workers_repeat_nothing(how: str, tmp_path: os.PathLike[str]) -> None:
    assert repeats(how, 64, tmp_path) == [65, 0, 0]
