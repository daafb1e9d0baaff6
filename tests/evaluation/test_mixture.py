"""The best mixture of public records: against brute force, and as a bound that no release goes below."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from margrave.accounting import Budget, ReplaceRow
from margrave.domain import Domain
from margrave.errors import InputError, ModelTooLargeError
from margrave.evaluation import best_mixture_error, mixture
from margrave.mechanisms import PEPPub
from margrave.privacy import SeededRandomness, protect
from margrave.public_table import PublicTable
from margrave.workload import Workload
from tests.support.conformance import codes_of, memory_table, some_rows

SIZES = {"a": 2, "b": 3, "c": 2}
DOMAIN = Domain.of(SIZES)


def public_of(rows: Sequence[tuple[int, ...]]) -> PublicTable:
    return PublicTable(codes_of(DOMAIN, rows), "made up for this test")


def test_against_every_mixture_of_three_records() -> None:
    table = memory_table(SIZES, [(0, 0, 0)] * 5 + [(1, 2, 1)] * 3 + [(0, 1, 1)] * 2)
    rows = [(0, 0, 0), (1, 2, 1), (1, 1, 0)]
    workload = Workload.of(DOMAIN, [("a", "b"), ("c",)])
    truth = table.count(workload.cliques)
    best = 1.0
    for i, j in product(range(101), repeat=2):
        weights = np.array([i, j, 100 - i - j]) / 100
        if weights[2] >= 0:
            found = {r: np.zeros(DOMAIN.shape(r)) for r in workload.cliques}
            for row, weight in zip(rows, weights, strict=True):
                for r in found:
                    found[r][tuple(row[DOMAIN.index(a)] for a in r)] += weight
            best = min(best, max(np.abs(found[r] - truth[r] / 10).max() for r in found))
    exact = best_mixture_error(table, public_of(rows), workload)
    assert exact.error <= best + 1e-9
    assert exact.error == pytest.approx(best, abs=0.01)
    assert (exact.records, exact.queries, exact.private) == (3, 8, False)


def test_a_support_that_has_every_row_costs_nothing_and_one_that_lacks_some_their_share() -> None:
    rows = some_rows(SIZES, 200, seed=1)
    table = memory_table(SIZES, rows)
    assert best_mixture_error(table, public_of(rows)).error == pytest.approx(0.0, abs=1e-9)
    apart = [(0, 0, 0)] * 60 + [(1, 2, 1)] * 40
    one = best_mixture_error(memory_table(SIZES, apart), public_of([(0, 0, 0)] * 9))
    assert one.error == pytest.approx(0.4)
    assert one.records == 1


def test_records_that_the_workload_does_not_tell_apart_are_one() -> None:
    table = memory_table(SIZES, some_rows(SIZES, 50))
    public = public_of(list(product(range(2), range(3), range(2))))
    assert best_mixture_error(table, public, Workload.of(DOMAIN, [("b",)])).records == 3


def test_no_release_is_closer() -> None:
    rows = some_rows(SIZES, 2000, seed=3)
    table, public = (
        memory_table(SIZES, rows),
        public_of([(0, 0, 0), (1, 2, 1), (0, 1, 0), (1, 0, 1)]),
    )
    least = best_mixture_error(table, public).error
    with protect(
        table, unit=ReplaceRow(), budget=Budget.zcdp(Fraction(9000)), randomness=SeededRandomness(0)
    ) as p:
        release = PEPPub(public=public, rounds=4).run(p, rng=np.random.default_rng(0))
    truth = table.count([("a", "b", "c")])[("a", "b", "c")]
    off = np.abs(release.marginal(["a", "b", "c"]).values - truth).max() / 2000
    assert least <= off <= 3 * least


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = some_rows(SIZES, 50)
    table, public = memory_table(SIZES, rows), public_of(rows)
    with pytest.raises(InputError, match="no column 'c'"):
        best_mixture_error(table, public.select(["a", "b"]))
    with pytest.raises(InputError, match="no rows"):
        best_mixture_error(memory_table(SIZES, []), public)
    with monkeypatch.context() as patched:
        patched.setattr(mixture, "MAX_PROGRAM_CELLS", 3)
        with pytest.raises(ModelTooLargeError, match="smaller workload"):
            best_mixture_error(table, public)
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(InputError, match="needs scipy"):
        best_mixture_error(table, public)
