"""From canonical queries and noisy marginals to draws of the posterior: the one module that calls the samplers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from threadpoolctl import threadpool_limits

from margrave.models.max_entropy.canonical import Canonical
from margrave.models.max_entropy.coordinates import coordinates
from margrave.models.max_entropy.density import Posterior
from margrave.models.max_entropy.diagnostics import mixing
from margrave.models.max_entropy.laplace import Laplace, laplace
from margrave.models.max_entropy.model import MaxEntropyModel, Merged
from margrave.models.max_entropy.nuts import Chains
from margrave.models.max_entropy.sufficient import sufficient
from margrave.models.max_entropy.told import Told, part, silent
from margrave.models.max_entropy.tree import layout
from margrave.models.terms import Term
from margrave.schema.domain import Domain
from margrave.typing import Attribute, FloatArray

if TYPE_CHECKING:
    from margrave.models.max_entropy.fit import MaxEntropyFit

BATCH = 200
"""Draws of each chain between two looks at how they mix."""
LAPLACE_DRAWS = 1000
"""Independent draws of a normal distribution that are kept."""
KEPT = 2000
"""Draws of chains that are kept, evenly."""
MODE, STRAIGHT, WARM = 0.05, 0.2, 0.7
"""The shares of the search that are done when the mode is found, the coordinates are, and the chains are warm."""


def sample_posterior(
    fit: MaxEntropyFit,
    domain: Domain,
    canonical: Canonical,
    terms: Sequence[Term],
    merged: Merged,
    public_total: float | None,
    rng: np.random.Generator,
    told: Told = silent,
) -> MaxEntropyModel:
    """The model with draws of its posterior, and what tells whether they can be believed."""
    # matrices are small: threads of the linear algebra would only wait for each other, and for the other chains
    with jax.enable_x64(True), threadpool_limits(1):
        posterior = Posterior(layout(canonical), sufficient(canonical, terms, public_total), fit.prior)
        around = laplace(posterior, canonical)
        if fit.sampler == "laplace":
            draws, facts = around.draws(LAPLACE_DRAWS, rng), _facts_of(around, fit.accept)
        else:
            draws, facts = _walk(fit, posterior, canonical, around, rng, told)
        totals = posterior.records(draws)
        total = float(posterior.records(around.mode[None])[0])
    queries = len(canonical.kept)
    back = np.argsort(posterior.layout.order)
    return MaxEntropyModel(
        domain, canonical, around.mode[:queries][back], total,
        np.ascontiguousarray(draws[:, :queries][:, back]), totals, merged, facts,
    )


def _facts_of(around: Laplace, accept: bool) -> dict[str, Any]:
    good = around.converged and around.curved
    facts: dict[str, Any] = {"method": "Laplace approximation", "good": good or accept}
    if not good:
        facts["why"] = "the mode was not reached" if not around.converged else "the density is not curved at the mode"
    return facts


def _walk(
    fit: MaxEntropyFit, posterior: Posterior, canonical: Canonical, around: Laplace, rng: np.random.Generator,
    told: Told,
) -> tuple[FloatArray, dict[str, Any]]:  # fmt: skip
    """Chains until they have mixed, or have come to their limit."""
    straight = coordinates(posterior, around, _shares(posterior, canonical), part(told, MODE, STRAIGHT))
    chains = Chains(posterior, straight, straight.first_root(), fit.chains, rng)
    chains.warm_up(fit.warmup, part(told, STRAIGHT, WARM))
    at = WARM
    while True:
        chains.more(BATCH, part(told, at, (1.0 + at) / 2))  # the first batch mostly does; half of the rest, if not
        at = (1.0 + at) / 2
        seen = mixing(chains.draws, chains.diverged)
        good = seen.good(fit.r_hat, fit.effective, fit.diverged)
        if good or chains.draws.shape[1] >= fit.max_draws:
            break
    facts = {
        "method": "NUTS", "good": good or fit.accept, "chains": fit.chains, "draws": int(chains.draws.shape[1]),
        "r_hat": min(seen.r_hat, 1e9), "effective": seen.effective, "diverged": seen.diverged,
        "steps": float(chains.steps.mean()),
    }
    if not good:
        facts["why"] = (
            f"the chains have not mixed: R-hat {seen.r_hat:.3f}, effective sample size {seen.effective:.0f},"
            f" {seen.diverged:.1%} diverged"
        )
    pooled = chains.draws.reshape(-1, posterior.size)
    every = np.linspace(0, len(pooled) - 1, min(KEPT, len(pooled))).round().astype(int)
    return pooled[every], facts


def _shares(posterior: Posterior, canonical: Canonical) -> dict[Attribute, FloatArray]:
    """Each column's shares of its codes by the noisy answers, clipped; equal where its own queries are left out."""
    known, domain = posterior.sufficient, canonical.domain
    full = np.full(canonical.size, np.nan)
    full[canonical.kept] = known.mean / known.total
    found = {}
    for a in domain:
        share = np.full(domain.size(a), 1.0 / domain.size(a))
        if (a,) in canonical.starts:
            start = canonical.starts[a,]
            told = np.clip(full[start : start + domain.size(a) - 1], 0.0, 1.0)
            if np.isfinite(told).all():
                share[canonical.order(a)] = [max(0.0, 1.0 - told.sum()), *told]
        found[a] = share
    return found
