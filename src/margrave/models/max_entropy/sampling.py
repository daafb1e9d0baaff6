"""From canonical queries and noisy marginals to draws of the posterior: the one module that calls the samplers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import jax
import numpy as np
from threadpoolctl import threadpool_limits

from margrave.domain import Domain
from margrave.models.max_entropy.canonical import Canonical
from margrave.models.max_entropy.density import LogPosterior
from margrave.models.max_entropy.diagnostics import mixing
from margrave.models.max_entropy.laplace import Laplace, laplace
from margrave.models.max_entropy.model import MaxEntropyModel, MergedCodes
from margrave.models.max_entropy.nuts import Chains
from margrave.models.max_entropy.sufficient import sufficient
from margrave.models.max_entropy.transport import fit_transport
from margrave.models.max_entropy.tree import layout
from margrave.models.progress import ShareProgress, no_progress, subprogress
from margrave.models.terms import Term
from margrave.types import Attribute, FloatArray

#: Progress when the mode is found, the coordinates are, and the chains are warm.
MODE, STRAIGHT, WARM = 0.05, 0.2, 0.7


class Settings(Protocol):
    """Parameters of ``MaxEntropyFit`` that the sampler reads."""

    @property
    def sampler(self) -> str: ...
    @property
    def prior(self) -> float: ...
    @property
    def accept(self) -> bool: ...
    @property
    def chains(self) -> int: ...
    @property
    def warmup(self) -> int: ...
    @property
    def max_draws(self) -> int: ...
    @property
    def r_hat(self) -> float: ...
    @property
    def effective(self) -> float: ...
    @property
    def diverged(self) -> float: ...


def sample_posterior(
    fit: Settings,
    domain: Domain,
    canonical: Canonical,
    terms: Sequence[Term],
    merged: MergedCodes,
    public_total: float | None,
    rng: np.random.Generator,
    progress: ShareProgress = no_progress,
) -> MaxEntropyModel:
    """Return the model with draws of its posterior and their diagnostics."""
    # Independent draws of a normal distribution that are stored.
    laplace_draws = 1000
    # matrices are small: threads of the linear algebra would only wait for each other, and for the other chains
    with jax.enable_x64(True), threadpool_limits(1):
        posterior = LogPosterior(
            layout(canonical), sufficient(canonical, terms, public_total), fit.prior
        )
        around = laplace(posterior, canonical)
        if fit.sampler == "laplace":
            draws, facts = around.draws(laplace_draws, rng), _facts_of(around, fit.accept)
        else:
            draws, facts = _walk(fit, posterior, canonical, around, rng, progress)
        totals = posterior.records(draws)
        total = float(posterior.records(around.mode[None])[0])
    queries = len(canonical.kept)
    back = np.argsort(posterior.layout.order)
    return MaxEntropyModel(
        domain,
        canonical,
        around.mode[:queries][back],
        total,
        np.ascontiguousarray(draws[:, :queries][:, back]),
        totals,
        merged,
        facts,
    )


def _facts_of(around: Laplace, accept: bool) -> dict[str, Any]:
    good = around.converged and around.curved
    facts: dict[str, Any] = {"method": "Laplace approximation", "good": good or accept}
    if not good:
        facts["why"] = (
            "the mode was not reached"
            if not around.converged
            else "the density is not curved at the mode"
        )
    return facts


def _walk(
    fit: Settings, posterior: LogPosterior, canonical: Canonical, around: Laplace, rng: np.random.Generator,
    progress: ShareProgress,
) -> tuple[FloatArray, dict[str, Any]]:  # fmt: skip
    # Draws of each chain between two checks of convergence.
    batch = 200
    # Draws of chains that are stored, evenly thinned.
    max_stored_draws = 2000
    straight = fit_transport(
        posterior, around, _shares(posterior, canonical), subprogress(progress, MODE, STRAIGHT)
    )
    chains = Chains(posterior, straight, straight.first_root(), fit.chains, rng)
    chains.warm_up(fit.warmup, subprogress(progress, STRAIGHT, WARM))
    at = WARM
    while True:
        chains.extend(
            batch, subprogress(progress, at, (1.0 + at) / 2)
        )  # the first batch mostly does; half of the rest, if not
        at = (1.0 + at) / 2
        seen = mixing(chains.draws, chains.diverged)
        good = seen.good(fit.r_hat, fit.effective, fit.diverged)
        if good or chains.draws.shape[1] >= fit.max_draws:
            break
    facts = {
        "method": "NUTS",
        "good": good or fit.accept,
        "chains": fit.chains,
        "draws": int(chains.draws.shape[1]),
        "r_hat": min(seen.r_hat, 1e9),
        "effective": seen.effective,
        "diverged": seen.diverged,
        "steps": float(chains.steps.mean()),
    }
    if not good:
        facts["why"] = (
            f"the chains have not mixed: R-hat {seen.r_hat:.3f}, effective sample size {seen.effective:.0f},"
            f" {seen.diverged:.1%} diverged"
        )
    pooled = chains.draws.reshape(-1, posterior.size)
    every = np.linspace(0, len(pooled) - 1, min(max_stored_draws, len(pooled))).round().astype(int)
    return pooled[every], facts


def _shares(posterior: LogPosterior, canonical: Canonical) -> dict[Attribute, FloatArray]:
    known, domain = posterior.sufficient, canonical.domain
    full = np.full(canonical.size, np.nan)
    full[canonical.kept] = known.mean / known.total
    found = {}
    for a in domain:
        share = np.full(domain.size(a), 1.0 / domain.size(a))
        if (a,) in canonical.starts:
            start = canonical.starts[a,]
            shares = np.clip(full[start : start + domain.size(a) - 1], 0.0, 1.0)
            if np.isfinite(shares).all():
                share[canonical.order(a)] = [max(0.0, 1.0 - shares.sum()), *shares]
        found[a] = share
    return found
