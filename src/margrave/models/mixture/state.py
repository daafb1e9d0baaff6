"""The update of a round, the fit of a whole transcript, and the pretraining on public records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from margrave.domain import Domain
from margrave.marginal import TOTAL
from margrave.marginal.counting import count_cliques
from margrave.models.mixture.config import MixtureConfig
from margrave.models.mixture.marginals import answers_of
from margrave.models.mixture.model import Floats, MixtureModel, blocks_of
from margrave.models.mixture.optim_jax import (
    State,
    Weights,
    blended,
    current,
    network,
    pretrain,
    started,
    update,
)
from margrave.models.mixture.targets import members_of, targets_from, targets_of
from margrave.models.protocol import Answerer
from margrave.models.terms import Term
from margrave.public_table import PublicTable
from margrave.transcript import Transcript
from margrave.types import Clique, FloatArray


class Training(NamedTuple):
    """Where training stands: the loop's state, the average of largest errors, and the weights that it began with."""

    state: State
    error: float | None
    origin: Weights


@dataclass(frozen=True, eq=False)
class MixtureState:
    """The state of a mixture's fit: None before the first round.

    Attributes:
        training: Where training stands.
        total: The number of records.
        seen: How many entries of the transcript it has been trained on.
        average: The moving average of the weights over the second half of the rounds.
    """

    domain: Domain
    training: Training | None = None
    total: float = 0.0
    seen: int = 0
    average: Weights | None = None


class RelaxedAnswers(Answerer):
    """The answers of a mixture between rounds, in numbers of 32 bits.

    Those of a relaxed table in its box are products of the entries as they are, which need not be probabilities.
    """

    def __init__(self, domain: Domain, total: float, entries: Floats) -> None:
        self._domain, self._total = domain, total
        self._entries = np.ascontiguousarray(entries.T)
        self._weights = np.full(len(entries), 1.0 / len(entries))

    def answer(
        self,
        cliques: Iterable[Clique],
        *,
        rng: np.random.Generator | None = None,
        scale: float = 0.0,
        limit: int | None = None,
    ) -> dict[Clique, FloatArray]:
        """Return counts of many marginals at once, good enough to choose by."""
        shares = answers_of(self._entries, self._weights, blocks_of(self._domain), cliques)
        return {c: values.astype(np.float64) * self._total for c, values in shares.items()}


def updated(
    recipe: MixtureConfig,
    before: MixtureState,
    transcript: Transcript,
    rng: np.random.Generator,
    done: float,
) -> MixtureState:
    """Return the state after one round's update, or after the whole transcript if there was none before."""
    domain, total = before.domain, transcript.total()
    if before.training is None:
        training = _from_the_start(recipe, domain, transcript, rng)
        return MixtureState(domain, training, total, len(transcript))
    new = Transcript(transcript.entries[before.seen :])
    error = _largest_error(answers(recipe, before), new)
    if before.training.error is not None:
        error = recipe.error_ema * before.training.error + (1.0 - recipe.error_ema) * error
    threshold = recipe.active_threshold * error
    state = _improved(
        recipe, domain, transcript, before.training, before.seen, threshold, recipe.steps
    )
    if recipe.resample:
        state = state._replace(
            noise=jnp.asarray(rng.standard_normal(state.noise.shape, dtype=np.float32))
        )
    training = Training(state, error, before.training.origin)
    average = _averaged(recipe, before.average, state.weights) if done > 0.5 else None
    return MixtureState(domain, training, total, len(transcript), average)


def answers(recipe: MixtureConfig, state: MixtureState) -> Answerer:
    """Return the answers between rounds; before the first round those of the distribution."""
    assert state.training is not None
    if state.training.error is None:
        return released(recipe, state)
    entries = _entries(recipe, state.domain, state.training.state)
    return RelaxedAnswers(state.domain, state.total, entries)


def released(recipe: MixtureConfig, state: MixtureState) -> MixtureModel:
    """Return the distribution, of the average of the weights where there is one; the network's input is the last.

    The entries of a box may be negative: their positive parts are scaled to probabilities.
    """
    assert state.training is not None
    last = state.training.state
    if state.average is not None:
        last = last._replace(weights=state.average)
    entries = _entries(recipe, state.domain, last)
    return MixtureModel(state.domain, state.total, np.maximum(entries, 0.0))


def _averaged(recipe: MixtureConfig, before: Weights | None, weights: Weights) -> Weights:
    if before is None:
        return weights
    found: Weights = blended(np.float32(recipe.ema_decay), before, weights)
    return found


def _from_the_start(
    recipe: MixtureConfig, domain: Domain, transcript: Transcript, rng: np.random.Generator
) -> Training:
    state = _untrained(recipe, domain, rng)
    if recipe.public is not None:
        state = _pretrained(recipe, domain, recipe.public, state)
    begun = Training(state, None, state.weights)
    noises = [m.scale for m in transcript.measurements] + [
        a.scale for a in transcript.answers if a.query != TOTAL
    ]
    if noises:
        threshold = float(np.median(noises)) / transcript.total()
        state = _improved(recipe, domain, transcript, begun, 0, threshold, recipe.cold_steps)
    return begun._replace(state=state)


def _untrained(recipe: MixtureConfig, domain: Domain, rng: np.random.Generator) -> State:
    codes = len(members_of(domain))
    noise = rng.standard_normal((recipe.components, recipe.latent_dim), dtype=np.float32)
    if recipe.kind == "generator":
        layers = network([recipe.latent_dim, *recipe.hidden, codes], rng)
        return started(layers, noise, int(rng.integers(2**31)))
    shape = (recipe.components, codes)
    entries = rng.uniform(-1, 1, shape) if recipe.kind == "box" else rng.standard_normal(shape)
    return started((recipe.init_scale * entries).astype(np.float32), noise[:1], 0)


def _pretrained(recipe: MixtureConfig, domain: Domain, public: PublicTable, state: State) -> State:
    cliques = _pretraining_cliques(public.domain)
    counts = count_cliques(public.codes, cliques)
    terms = [Term(c, counts[c].astype(np.float64), np.ones(counts[c].shape)) for c in cliques]
    targets = targets_from(domain, terms, [], float(len(public.codes)), weighted=False)
    trained = pretrain(
        state, targets, np.int32(recipe.pretraining), np.float32(recipe.rate),
        kind=recipe.kind, loss=recipe.loss, resample=recipe.resample,
    )  # fmt: skip
    return started(trained.weights, np.asarray(trained.noise), 0)._replace(key=trained.key)


def _pretraining_cliques(domain: Domain) -> list[Clique]:
    # Cells beyond which pretraining uses smaller marginals.
    max_pretraining_cells = 1 << 22
    ways = min(3, len(domain))
    while True:
        cliques = [domain.clique(c) for c in combinations(domain, ways)]
        if ways == 1 or sum(domain.cells(c) for c in cliques) <= max_pretraining_cells:
            return cliques
        ways -= 1


def _improved(
    recipe: MixtureConfig,
    domain: Domain,
    transcript: Transcript,
    before: Training,
    seen: int,
    threshold: float,
    steps: int,
) -> State:
    """Train on all answers; the anchor grows with the number of earlier ones."""
    # Answers at which the anchor reaches half: an untrained network has to move far.
    answers_at_half_anchor = 20
    # Share of the anchor towards the pretrained components; the rest is towards the start of the
    # round, because rounds that each drift a little drift far.
    public_anchor_share = 0.5
    share = 1.0 if recipe.public is not None else seen / (seen + answers_at_half_anchor)
    targets = targets_of(domain, transcript, weighted=recipe.weighted)
    pull = np.zeros(len(targets.members), dtype=np.float32)
    for attribute in () if recipe.public is None else recipe.public.domain:
        pull[blocks_of(domain)[attribute]] = public_anchor_share
    improved: State = update(
        before.state, targets, np.float32(threshold), np.int32(steps), np.float32(recipe.rate),
        np.float32(recipe.kl_weight * share), before.origin, pull, kind=recipe.kind, loss=recipe.loss,
        resample=recipe.resample, anchored=recipe.kl_weight * share > 0,
    )[0]  # fmt: skip
    return improved


def _largest_error(model: Answerer, new: Transcript) -> float:
    measured, asked = new.measurements, [a for a in new.answers if a.query != TOTAL]
    values = model.answer(
        dict.fromkeys([*(m.clique for m in measured), *(a.query.clique for a in asked)])
    )
    errors = [
        float(np.abs(m.values - m.query.apply(m.clique, values[m.clique])).mean()) for m in measured
    ]
    errors += [abs(a.value - a.query.count(values[a.query.clique])) for a in asked]
    return max(errors, default=0.0) / model.total


def _entries(recipe: MixtureConfig, domain: Domain, state: State) -> Floats:
    table = current(state.weights, state.noise, members_of(domain), kind=recipe.kind)
    entries: Floats = np.asarray(table)[:, : sum(domain.sizes)]
    return entries
