"""Counting: every path gives the counts that a plain loop over records gives."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margrave.domain import Codes, Domain
from margrave.errors import DataError, ModelTooLargeError
from margrave.marginal import closure, counting
from margrave.marginal.counting import count_cliques


def some_codes(sizes: dict[str, int], rows: int, seed: int = 0) -> Codes:
    rng = np.random.default_rng(seed)
    domain = Domain.of(sizes)
    return Codes.of(domain, {a: rng.integers(0, domain.size(a), rows) for a in domain})


def by_hand(codes: Codes, clique: tuple[str, ...]) -> np.ndarray:
    counts = np.zeros(codes.domain.shape(clique), dtype=np.int64)
    for j in range(len(codes)):
        counts[tuple(int(codes.column(a)[j]) for a in clique)] += 1
    return counts


@st.composite
def questions(draw: st.DrawFn) -> tuple[Codes, list[tuple[str, ...]]]:
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    domain = {f"c{i}": s for i, s in enumerate(sizes)}
    codes = some_codes(domain, draw(st.integers(0, 60)), draw(st.integers(0, 5)))
    subsets = [c for k in range(len(sizes) + 1) for c in combinations(domain, k)]
    return codes, draw(st.lists(st.sampled_from(subsets), max_size=8))


@pytest.mark.parametrize("small", [0, 10**9])
@settings(max_examples=40, derandomize=True, deadline=None)
@given(question=questions())
def test_counts_are_those_of_a_plain_loop(
    small: int, question: tuple[Codes, list[tuple[str, ...]]]
) -> None:
    codes, cliques = question
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "MAX_NUMPY_PAIRS", small - 1)
        counts = count_cliques(codes, cliques)
    assert list(counts) == list(dict.fromkeys(cliques))
    for clique, values in counts.items():
        assert values.dtype == np.int64
        assert values.flags.c_contiguous
        assert np.array_equal(values, by_hand(codes, clique))


def test_both_paths_agree_past_one_block_and_for_wide_codes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for sizes in ({"a": 7, "b": 3, "c": 5, "d": 2}, {"a": 70_000, "b": 3, "c": 2, "d": 1}):
        codes = some_codes(sizes, 3 * counting.BLOCK + 17)
        cliques = closure([("a", "b", "c"), ("b", "c", "d")])
        monkeypatch.setattr(counting, "MAX_NUMPY_PAIRS", -1)
        compiled = count_cliques(codes, cliques)
        monkeypatch.setattr(counting, "MAX_NUMPY_PAIRS", 10**12)
        plain = count_cliques(codes, cliques)
        assert all(np.array_equal(compiled[c], plain[c]) for c in cliques)
        assert all(v.sum() == len(codes) for v in compiled.values())


def test_rows_in_another_order_count_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MAX_NUMPY_PAIRS", -1)
    codes = some_codes({"a": 9, "b": 4, "c": 6}, 5000)
    shuffled = codes.take(np.random.default_rng(1).permutation(len(codes)))
    cliques = closure([("a", "b", "c")])
    first, second = count_cliques(codes, cliques), count_cliques(shuffled, cliques)
    assert all(first[c].tobytes() == second[c].tobytes() for c in cliques)


def test_only_maximal_cliques_are_counted_over_records(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, ...]] = []
    tally = counting._tally_numpy
    monkeypatch.setattr(counting, "_tally_numpy", lambda c, q, o: (seen.append(q), tally(c, q, o)))
    codes = some_codes({"a": 3, "b": 4, "c": 5}, 40)
    count_cliques(codes, closure([("a", "b"), ("b", "c")]))
    assert seen == [("a", "b"), ("b", "c")]


def test_the_answer_shares_no_memory() -> None:
    codes = some_codes({"a": 3, "b": 4}, 40)
    counts = list(count_cliques(codes, closure([("a", "b")])).values())
    assert not any(np.shares_memory(x, y) for x, y in combinations(counts, 2))


def test_a_marginal_too_large_is_refused_by_name() -> None:
    codes = some_codes({"street": 60_000, "town": 60_000, "sex": 2}, 5)
    assert count_cliques(codes, [("sex",)])["sex",].sum() == 5
    with pytest.raises(ModelTooLargeError, match=r"street, town has 3,600,000,000 cells.*fewer"):
        count_cliques(codes, [("sex",), ("street", "town")])


def test_codes_outside_the_domain_never_reach_the_compiled_loop() -> None:
    domain = Domain.of({"a": 2, "b": 3})
    for dtype in (np.uint16, np.uint32, np.int64):
        with pytest.raises(DataError, match="'b' holds codes outside 0 … 2"):
            Codes(domain, np.array([[0, 1], [2, 3]], dtype=dtype))
    with pytest.raises(DataError, match="'a' holds codes outside 0 … 1"):
        Codes(domain, np.array([[0, -1], [2, 1]]))
    with pytest.raises(DataError, match="float64 numbers, and codes are whole"):
        Codes(domain, np.zeros((2, 2)))


def test_codes_stay_as_they_were_checked() -> None:
    codes = Codes(Domain.of({"a": 2, "b": 3}), np.array([[0, 1], [2, 2]], dtype=np.uint16))
    with pytest.raises(ValueError, match="read-only"):
        codes.values[1, 0] = 3
    with pytest.raises(ValueError, match="read-only"):
        codes.column("b")[0] = 3


def test_skewed_and_huge_counts_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MAX_NUMPY_PAIRS", -1)
    domain = Domain.of({"a": 2, "b": 2})
    codes = Codes(domain, np.zeros((2, 300_000), dtype=np.uint16))
    counts = count_cliques(codes, [("a", "b")])["a", "b"]
    expected = {cell: 300_000 if cell == (0, 0) else 0 for cell in product(range(2), repeat=2)}
    assert {cell: int(counts[cell]) for cell in expected} == expected
