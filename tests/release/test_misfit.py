"""Where a model contradicts what was measured: never by chance, and always where it cannot hold it."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from margrave.accounting import Budget, ReplaceRow
from margrave.domain import Codes, Domain
from margrave.mechanisms import AIM, GaussianMechanism, PEPPub, PMWPub
from margrave.models.weights import empirical
from margrave.privacy import SeededRandomness
from margrave.public_table import PublicTable
from margrave.release.diagnostics import MIN_MISFIT_SHARE, find_misfits
from margrave.report import render
from margrave.transcript import Measurement, PublicTotal, Transcript
from tests.support.conformance import codes_of, memory_table, run_on, some_rows

SIZES = {"a": 2, "b": 3, "c": 4}
DOMAIN = Domain.of(SIZES)
ROWS = some_rows(SIZES, 3000, seed=1)
TABLE = memory_table(SIZES, ROWS)
PAIRS = list(combinations(SIZES, 2))


def noisy(codes: Codes, scale: float, rng: np.random.Generator) -> Transcript:
    """All pairs, measured."""
    found = memory_table(SIZES, codes.values.T.tolist()).count(PAIRS)
    return Transcript((
        PublicTotal(len(codes)),
        *(
            Measurement(r, np.rint(v + rng.normal(0, scale, v.shape)).astype(np.int64), scale, Fraction(1))
            for r, v in found.items()
        ),
    ))  # fmt: skip


@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0])
def test_the_truth_itself_is_never_contradicted(scale: float) -> None:
    rng = np.random.default_rng(5)
    codes = codes_of(DOMAIN, ROWS)
    model = empirical(codes, 3000.0)
    assert not any(find_misfits(model, noisy(codes, scale, rng)) for _ in range(300))


@pytest.mark.parametrize("moved", [0.02, 0.2, 0.5])
def test_no_more_records_are_told_than_are_in_wrong_cells(moved: float) -> None:
    """The share is a bound from below, and close where the noise is small."""
    rng = np.random.default_rng(6)
    codes = codes_of(DOMAIN, [(0, *r[1:]) for r in ROWS])
    values = codes.values.copy()
    values[0, : int(moved * 3000)] = 1
    model = empirical(Codes(DOMAIN, values), 3000.0)
    for scale in (1.0, 20.0, 200.0):
        for _ in range(50):
            found = {m.clique: m.share for m in find_misfits(model, noisy(codes, scale, rng))}
            assert all(share <= moved for share in found.values())
            assert ("b", "c") not in found
            if scale == 1.0:
                assert set(found) == (
                    {("a", "b"), ("a", "c")} if moved > MIN_MISFIT_SHARE else set()
                )
                assert all(share > 0.97 * moved for share in found.values())


@pytest.mark.parametrize("kind", [PMWPub, PEPPub])
def test_public_records_without_a_group_are_told_of(kind: Any) -> None:
    public = PublicTable(codes_of(DOMAIN, [r for r in ROWS if r[0] == 0][:500]), "women only")
    release = run_on(
        kind(public=public), TABLE, ReplaceRow(), Budget.approx(1.0, 1e-9), SeededRandomness(0)
    )
    lacking = np.mean([r[0] == 1 for r in ROWS])
    assert 0.8 * lacking < release.misfit[0].share <= lacking + 0.02
    assert "a" in release.misfit[0].clique
    assert [m.share for m in release.misfit] == sorted(
        (m.share for m in release.misfit), reverse=True
    )
    assert "The model contradicts what was measured" in render(release)
    again = release.refit("graphical", seed=0)
    assert again.misfit == ()
    assert "The model contradicts" not in render(again)


@pytest.mark.parametrize("mechanism", [AIM(), GaussianMechanism()])
def test_models_that_hold_what_was_measured_are_not(mechanism: Any) -> None:
    for epsilon in (0.1, 1.0, 10.0):
        release = run_on(
            mechanism, TABLE, ReplaceRow(), Budget.approx(epsilon, 1e-9), SeededRandomness(3)
        )
        assert release.misfit == ()
