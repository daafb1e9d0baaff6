"""The Gaussian copula: polychoric correlations, their completion, and records that have them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtri

from margrave.domain import Domain
from margrave.errors import InputError
from margrave.marginal import LinearMap, LinearQuery
from margrave.marginal.counting import count_cliques
from margrave.models import FITS, GaussianCopulaFit, Needs
from margrave.models.copula.polychoric import completed, correlation_of, hermite_scores
from margrave.structural_zeros import StructuralZeros
from margrave.transcript import Answer, Measurement, PublicTotal, Transcript

DOMAIN = Domain.of({"a": 3, "b": 4, "c": 2})
SHARES = {"a": [0.2, 0.5, 0.3], "b": [0.4, 0.1, 0.25, 0.25], "c": [0.9, 0.1]}
LATENT = np.array([[1.0, 0.6, 0.3], [0.6, 1.0, 0.5], [0.3, 0.5, 1.0]])
ROWS = 400_000


def counts(*cliques: tuple[str, ...]) -> dict[tuple[str, ...], np.ndarray]:
    """The counts of rows of the copula."""
    rng = np.random.default_rng(0)
    latent = np.linalg.cholesky(LATENT) @ rng.standard_normal((3, ROWS))
    found = {}
    codes = {
        a: np.searchsorted(ndtri(np.cumsum(SHARES[a])[:-1]), latent[i])
        for i, a in enumerate(DOMAIN)
    }
    for clique in cliques:
        shape = DOMAIN.shape(clique)
        flat = np.ravel_multi_index(tuple(codes[a] for a in clique), shape)
        found[clique] = np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape)
    return found


def transcript(*cliques: tuple[str, ...], query: LinearMap | None = None) -> Transcript:
    measured = []
    for clique, values in counts(*cliques).items():
        if query is not None:
            values = query.apply(clique, values)
        more = {} if query is None else {"query": query}
        measured.append(Measurement(clique, values, 5.0, Fraction(1), **more))
    return Transcript((PublicTotal(ROWS), *measured))


def test_mehler_s_series_is_the_joint_distribution() -> None:
    pair = counts(("a", "b"))["a", "b"] / ROWS
    first, second = (hermite_scores(np.array(SHARES[a]), 60) for a in "ab")
    series = np.einsum("k,ki,kj->ij", 0.6 ** np.arange(61.0), first, second)
    np.testing.assert_allclose(series, pair, atol=0.003)
    np.testing.assert_allclose(first.sum(axis=1)[1:], 0.0, atol=1e-12)


@pytest.mark.parametrize("r", [-0.9, -0.3, 0.0, 0.5, 0.9])
def test_the_correlation_is_recovered_and_the_prior_draws_to_zero(r: float) -> None:
    first, second = (hermite_scores(np.array(SHARES[a]), 60) for a in "ab")
    pair = np.einsum("k,ki,kj->ij", r ** np.arange(61.0), first, second)
    exact = correlation_of(pair, first, second, 1e-9, prior_variance=0.25, largest=0.98)
    assert exact == pytest.approx(r, abs=1e-3)
    blurred = correlation_of(pair, first, second, 1e6, prior_variance=0.25, largest=0.98)
    assert blurred == pytest.approx(0.0, abs=1e-3)


def test_unknown_pairs_are_independent_given_the_others() -> None:
    known = {(0, 1): 0.6, (1, 2): 0.5, (2, 3): 0.4, (0, 3): 0.3}
    found = completed(4, known)
    for (i, j), r in known.items():
        assert found[i, j] == pytest.approx(r, abs=1e-4)
    inverse = np.linalg.inv(found)
    assert inverse[0, 2] == pytest.approx(0.0, abs=1e-3)
    assert inverse[1, 3] == pytest.approx(0.0, abs=1e-3)


def test_correlations_that_contradict_each_other_still_make_a_matrix() -> None:
    found = completed(3, {(0, 1): 0.98, (1, 2): 0.98, (0, 2): -0.9})
    assert np.linalg.eigvalsh(found).min() > 0
    np.testing.assert_allclose(np.diag(found), 1.0)


@pytest.mark.parametrize("cliques", [[("a", "b"), ("b", "c"), ("a", "c")], [("a", "b", "c")]])
def test_records_have_the_columns_and_the_pairs(cliques: list[tuple[str, ...]]) -> None:
    model = GaussianCopulaFit()(DOMAIN, transcript(*cliques), rng=np.random.default_rng(1))
    pairs = [("a", "b"), ("b", "c"), ("a", "c")]
    truth = counts(*pairs, *((a,) for a in DOMAIN))
    for clique, values in model.answer(truth).items():
        assert np.abs(values - truth[clique]).sum() < (0.004 if len(clique) == 1 else 0.03) * ROWS
    sampled = count_cliques(model.sample(1000, rng=np.random.default_rng(0)), pairs)
    assert sampled["a", "b"].sum() == 1000


def test_merged_codes_are_split_by_their_shares() -> None:
    merged = LinearMap({"b": np.array([0, 1, 1, 2])})
    both = Transcript(
        (*transcript(("b",)).entries, *transcript(("a", "b"), query=merged).measurements)
    )
    model = GaussianCopulaFit()(DOMAIN, both, rng=np.random.default_rng(1))
    truth = counts(("b",))["b",]
    assert np.abs(model.project(("b",)).values - truth).sum() < 0.004 * ROWS


def test_columns_without_answers_and_answers_without_columns() -> None:
    model = GaussianCopulaFit(records=999)(DOMAIN, transcript(("a",)), rng=np.random.default_rng(1))
    np.testing.assert_allclose(model.project(("b",)).values, ROWS / 4, rtol=0.02)
    fit, nothing = GaussianCopulaFit(records=9), Transcript((PublicTotal(0),))
    assert fit(DOMAIN, nothing, rng=np.random.default_rng(1)).total <= 1


def test_what_it_refuses() -> None:
    fit = FITS["copula"]()
    zeros = Domain.of({"a": 2}, zeros=[StructuralZeros(("a",), np.array([True, False]))])
    with pytest.raises(InputError, match="impossible combinations"):
        fit.check(zeros, Needs())
    single = Transcript((PublicTotal(9), Answer(LinearQuery(("a",), ((0,),)), 3, 1.0, Fraction(1))))
    with pytest.raises(InputError, match="cannot be fitted to single cells"):
        fit(DOMAIN, single, rng=np.random.default_rng(0))
    for bad in ({"records": 0}, {"prior": 0.0}):
        with pytest.raises(InputError):
            GaussianCopulaFit(**bad)
