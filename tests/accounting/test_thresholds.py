"""Thresholds: the least that keep the chance of a unit's own value, and never less."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest

from margrave.accounting.thresholds import chance_of_release, threshold_for, upper_tail
from margrave.errors import InputError
from margrave.release.release_chance import release_chance
from margrave.unit import AddRemovePerson, AddRemoveRow, ReplacePerson, ReplaceRow, Unit

SCALES = [0.2, 0.7, 1.0, 2.5, 13.0, 71.5, 400.0]


def brute_tail(scale: float, least: int) -> float:
    """P[N >= least], by summing the weights of all whole numbers within 45 scales."""
    reach = max(least, 0) + int(45 * scale) + 2
    weights = {x: math.exp(-x * x / (2 * scale * scale)) for x in range(-reach, reach + 1)}
    mass = math.fsum(weights.values())
    return math.fsum(w for x, w in weights.items() if x >= least) / mass


def partitions(rows: int, largest: int | None = None) -> Iterator[list[int]]:
    if rows == 0:
        yield []
    for first in range(min(rows, largest or rows), 0, -1):
        for rest in partitions(rows - first, first):
            yield [first, *rest]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("deviations", [0.0, 1.0, 3.5, 6.0])
def test_tails_are_the_sums_of_the_weights(scale: float, deviations: float) -> None:
    least = 1 + int(deviations * scale)
    assert float(upper_tail(scale, least)) == pytest.approx(brute_tail(scale, least), rel=1e-11)


def test_tails_are_rounded_up() -> None:
    """Of small scales the sums are exact fractions of powers of e; a hundred digits tell them apart."""
    from decimal import Context, Decimal, localcontext

    with localcontext(Context(prec=100)):
        for scale in (1.0, 2.5, 9.0):
            square = 2 * Decimal(scale) ** 2
            weights = [(-(Decimal(x) ** 2) / square).exp() for x in range(int(60 * scale))]
            mass = weights[0] + 2 * sum(weights[1:])
            for least in (1, int(scale) + 1, int(6 * scale)):
                exact = sum(weights[least:]) / mass
                found = upper_tail(scale, least)
                assert exact <= found <= exact * (1 + Decimal("1e-19"))


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("scale", [0.7, 2.5, 13.0])
def test_the_chance_is_that_of_the_worst_partition(rows: int, scale: float) -> None:
    for threshold in (rows + 1, rows + 1 + int(2 * scale), rows + 1 + int(4 * scale)):
        tails = [brute_tail(scale, threshold - c) for c in range(1, rows + 1)]
        worst = max(
            1 - math.prod(1 - tails[c - 1] for c in partition) for partition in partitions(rows)
        )
        for unit in (AddRemovePerson(rows), ReplacePerson(rows)):
            found = float(chance_of_release(unit, scale, threshold))
            assert found == pytest.approx(worst, rel=1e-9)
        assert release_chance(rows, scale, threshold) == pytest.approx(worst, rel=1e-9)


def test_one_value_of_all_rows_is_not_always_the_worst() -> None:
    spread = 1 - (1 - brute_tail(71.5, 300 - 1)) ** 5
    assert spread > brute_tail(71.5, 300 - 5)
    assert float(chance_of_release(AddRemovePerson(5), 71.5, 300)) >= spread * (1 - 1e-12)


def test_persons_of_many_rows_have_a_bound_above_the_worst_partition() -> None:
    for scale, threshold in ((40.0, 190), (400.0, 2000)):
        bound = chance_of_release(AddRemovePerson(31), scale, threshold)
        below = chance_of_release(AddRemovePerson(30), scale, threshold)
        tails = [brute_tail(scale, threshold - c) for c in range(1, 32)]
        for partition in ([31], [1] * 31, [16, 15], [2] * 15 + [1], [4] * 7 + [3]):
            assert bound >= 1 - math.prod(1 - tails[c - 1] for c in partition)
        assert bound > below
        assert release_chance(31, scale, threshold) == pytest.approx(float(bound), rel=1e-9)


@pytest.mark.parametrize("delta", [Fraction(1, 20), Fraction(1, 10**6), Fraction(1e-10)])
@pytest.mark.parametrize("scale", [0.2, 1.0, 13.0, 400.0])
@pytest.mark.parametrize(
    "unit", [AddRemoveRow(), ReplaceRow(), AddRemovePerson(4), ReplacePerson(40)], ids=str
)
def test_thresholds_are_the_least_that_keep_delta(
    unit: Unit, scale: float, delta: Fraction
) -> None:
    rows = getattr(unit, "max_rows", 1)
    threshold = threshold_for(unit, scale, delta)
    assert threshold > rows
    assert release_chance(rows, scale, threshold) <= float(delta) * (1 + 1e-9)
    if threshold > rows + 1:
        assert release_chance(rows, scale, threshold - 1) > float(delta) * (1 - 1e-9)


def test_a_row_needs_one_more_than_the_tail() -> None:
    scale, delta = 71.0, 1e-9
    tails = np.array([brute_tail(scale, m) for m in range(400, 460)])
    least = 400 + int(np.argmax(tails <= delta))
    assert threshold_for(AddRemoveRow(), scale, Fraction(delta)) == least + 1


def test_scales_and_deltas_without_a_threshold_are_refused() -> None:
    with pytest.raises(InputError, match="no threshold shows any value"):
        threshold_for(AddRemoveRow(), 1.1e5, Fraction(1, 10**9))
    for delta in (Fraction(0), Fraction(1), Fraction(1, 10**301)):
        with pytest.raises(InputError, match="not from 1e-300"):
            threshold_for(AddRemoveRow(), 10.0, delta)


def test_the_second_accountant_takes_nothing_on_trust() -> None:
    assert release_chance(3, 5.0, 3) == 1.0
    assert release_chance(1, 2e5, 10**7) == 1.0
    assert release_chance(1, 5.0, 10**15) == 0.0
