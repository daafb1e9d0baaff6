"""How much of a measurement's noise survives: the formula against projections of real noise."""

from __future__ import annotations

import numpy as np
import pytest

from margrave.domain import Domain, StructuralZeros
from margrave.errors import InputError
from margrave.mechanisms import AIM
from margrave.mechanisms.parts.penalty import expected_error, expected_noise
from margrave.models import projected_error
from margrave.types import FloatArray


def projected(values: FloatArray, total: float) -> FloatArray:
    """The nearest numbers ≥ 0 with that sum: by sorting."""
    falling = np.sort(values)[::-1]
    shifts = (np.cumsum(falling) - total) / np.arange(1, len(values) + 1)
    return np.asarray(np.maximum(values - shifts[np.flatnonzero(falling > shifts)[-1]], 0.0))


@pytest.mark.parametrize("total", [30.0, 1e4, 1e6])
@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
def test_what_survives_is_what_projections_leave(total: float, scale: float) -> None:
    rng = np.random.default_rng(3)
    counts = rng.dirichlet(np.full(400, 0.05)) * total
    noisy = counts + scale * rng.standard_normal((200, 400))
    seen = np.mean([np.abs(projected(row, total) - counts).sum() for row in noisy])
    (found,) = projected_error({("a",): counts}, scale, Domain(("a",), (400,))).values()
    assert found == pytest.approx(seen, rel=0.05)
    assert found < expected_noise(scale, 400)


def test_noise_far_below_every_count_survives_whole() -> None:
    (found,) = projected_error({("a",): np.full(50, 1e6)}, 10.0, Domain(("a",), (50,))).values()
    assert found == pytest.approx(expected_noise(10.0, 50), rel=1e-6)


def test_noise_on_nothing_is_undone() -> None:
    assert projected_error({("a",): np.zeros(50)}, 10.0, Domain(("a",), (50,)))["a",] < 1e-6


def test_impossible_cells_add_nothing() -> None:
    possible = np.ones((3, 40), dtype=np.bool_)
    possible[:, :10] = False
    domain = Domain(("a", "b"), (3, 40), (StructuralZeros(("a", "b"), possible),))
    (found,) = projected_error({("a", "b"): np.where(possible, 8.0, 0.0)}, 5.0, domain).values()
    (alone,) = projected_error(
        {("a", "b"): np.full((3, 30), 8.0)}, 5.0, Domain(("a", "b"), (3, 30))
    ).values()
    assert found == pytest.approx(alone, rel=1e-9)


def test_the_papers_form_takes_all_of_it() -> None:
    domain = Domain(("a",), (50,))
    assert expected_error("full", {("a",): np.zeros(50)}, 10.0, domain) == {
        ("a",): expected_noise(10.0, 50)
    }


def test_another_penalty_is_an_error() -> None:
    with pytest.raises(InputError, match='"projected" or "full"'):
        AIM(penalty="half")
