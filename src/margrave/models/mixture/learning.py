"""A round's update, a whole transcript's fit, and what public records teach beforehand."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import NamedTuple
from weakref import WeakKeyDictionary

import jax.numpy as jnp
import numpy as np

from margrave.marginal import TOTAL
from margrave.marginal.counting import count_cliques
from margrave.models.mixture.answering import answers_of
from margrave.models.mixture.model import Floats, MixtureModel, blocks_of
from margrave.models.mixture.recipe import Recipe
from margrave.models.mixture.targets import members_of, targets_from, targets_of
from margrave.models.mixture.training import (
    State,
    Weights,
    blended,
    current,
    improve,
    network,
    practise,
    started,
)
from margrave.models.protocol import Model
from margrave.models.terms import Term
from margrave.public import Public
from margrave.schema.domain import Domain
from margrave.transcript import Transcript
from margrave.typing import Clique, FloatArray

LARGEST_LESSON = 1 << 22
"""Cells beyond which public records teach smaller marginals."""


HALF_KNOWN = 20
"""So many answers make half of the anchor: a network that knows little has to go far."""

HELD_PUBLIC = 0.5
"""Of the anchor of columns that public records have, so much holds to what these taught, and the rest to the beginning
of the round: rounds that each stray a little would stray far."""


class Training(NamedTuple):
    """Where training stands: the loop's state, the average of largest errors, how much of the transcript it saw, and
    the weights that it began with."""

    state: State
    error: float | None
    seen: int
    origin: Weights


TRAINING: WeakKeyDictionary[Model, Training] = WeakKeyDictionary()
"""What models of this process can be trained on from. It goes when they go, and into no file."""


class BetweenRounds(MixtureModel):
    """A mixture as one round leaves it to the next: its answers come from numbers of 32 bits.

    Of a relaxed table in its box they are products of the entries as they are, which need be no probabilities.
    """

    def __init__(self, domain: Domain, total: float, entries: Floats) -> None:
        super().__init__(domain, total, np.maximum(entries, 0.0))
        self._entries = np.ascontiguousarray(entries.T)

    def answer(
        self,
        cliques: Iterable[Clique],
        *,
        rng: np.random.Generator | None = None,
        scale: float = 0.0,
        limit: int | None = None,
    ) -> dict[Clique, FloatArray]:
        """Counts of many marginals at once, good enough to choose by."""
        shares = answers_of(self._entries, self.weights, blocks_of(self._domain), cliques)
        return {c: values.astype(np.float64) * self._total for c, values in shares.items()}


def learned(
    recipe: Recipe, domain: Domain, transcript: Transcript, rng: np.random.Generator, warm: Model | None
) -> Model:
    """The model after one round's update of ``warm``, or of the whole transcript from the start."""
    before = None if warm is None else TRAINING.get(warm)
    if warm is None or before is None:  # a model of another family teaches nothing
        return _from_the_start(recipe, domain, transcript, rng)
    new = Transcript(transcript.entries[before.seen :])
    error = _largest_error(warm, new)
    if before.error is not None:
        error = recipe.memory * before.error + (1.0 - recipe.memory) * error
    state = _improved(recipe, domain, transcript, before, recipe.threshold * error, recipe.steps)
    if recipe.resample:
        state = state._replace(noise=jnp.asarray(rng.standard_normal(state.noise.shape, dtype=np.float32)))
    return _model(recipe, domain, transcript, Training(state, error, len(transcript), before.origin), between=True)


def averaged(recipe: Recipe, before: Model | None, model: Model) -> Model:
    """The weights of the model, averaged with those of an average before; the network's input is the model's."""
    now = TRAINING[model]
    if before is not None:
        weights = blended(np.float32(recipe.average), TRAINING[before].state.weights, now.state.weights)
        now = now._replace(state=now.state._replace(weights=weights))
    found = _distribution(model.domain, model.total, _entries(recipe, model.domain, now.state))
    TRAINING[found] = now
    return found


def _from_the_start(recipe: Recipe, domain: Domain, transcript: Transcript, rng: np.random.Generator) -> Model:
    """All answers at once, none learned closer than the usual noise; without answers the untrained mixture."""
    state = _untrained(recipe, domain, rng)
    if recipe.public is not None:
        state = _taught(recipe, domain, recipe.public, state)
    begun = Training(state, None, 0, state.weights)
    noises = [m.scale for m in transcript.measurements] + [a.scale for a in transcript.answers if a.query != TOTAL]
    if noises:
        threshold = float(np.median(noises)) / transcript.total()
        state = _improved(recipe, domain, transcript, begun, threshold, recipe.cold)
    trained = begun._replace(state=state, seen=len(transcript))
    return _model(recipe, domain, transcript, trained, between=False)


def _untrained(recipe: Recipe, domain: Domain, rng: np.random.Generator) -> State:
    codes = len(members_of(domain))
    noise = rng.standard_normal((recipe.components, recipe.inputs), dtype=np.float32)
    if recipe.kind == "generator":
        layers = network([recipe.inputs, *recipe.hidden, codes], rng)
        return started(layers, noise, int(rng.integers(2**31)))
    shape = (recipe.components, codes)
    entries = rng.uniform(-1, 1, shape) if recipe.kind == "box" else rng.standard_normal(shape)
    return started((recipe.spread * entries).astype(np.float32), noise[:1], 0)


def _taught(recipe: Recipe, domain: Domain, public: Public, state: State) -> State:
    """Trained on the marginals of public records: of three columns, or fewer where these would be too many cells."""
    cliques = _lessons(public.domain)
    counts = count_cliques(public.codes, cliques)
    terms = [Term(c, counts[c].astype(np.float64), np.ones(counts[c].shape)) for c in cliques]
    targets = targets_from(domain, terms, [], float(len(public.codes)), weighted=False)
    trained = practise(
        state, targets, np.int32(recipe.pretraining), np.float32(recipe.rate),
        kind=recipe.kind, loss=recipe.loss, resample=recipe.resample,
    )  # fmt: skip
    return started(trained.weights, np.asarray(trained.noise), 0)._replace(key=trained.key)


def _lessons(domain: Domain) -> list[Clique]:
    ways = min(3, len(domain))
    while True:
        cliques = [domain.clique(c) for c in combinations(domain, ways)]
        if ways == 1 or sum(domain.cells(c) for c in cliques) <= LARGEST_LESSON:
            return cliques
        ways -= 1


def _improved(
    recipe: Recipe, domain: Domain, transcript: Transcript, before: Training, threshold: float, steps: int
) -> State:
    """Training on all answers: the more were known before, the more there is to keep. Public records are much."""
    share = 1.0 if recipe.public is not None else before.seen / (before.seen + HALF_KNOWN)
    targets = targets_of(domain, transcript, weighted=recipe.weighted)
    pull = np.zeros(len(targets.members), dtype=np.float32)
    for attribute in () if recipe.public is None else recipe.public.domain:
        pull[blocks_of(domain)[attribute]] = HELD_PUBLIC
    improved: State = improve(
        before.state, targets, np.float32(threshold), np.int32(steps), np.float32(recipe.rate),
        np.float32(recipe.anchor * share), before.origin, pull, kind=recipe.kind, loss=recipe.loss,
        resample=recipe.resample, anchored=recipe.anchor * share > 0,
    )[0]  # fmt: skip
    return improved


def _largest_error(model: Model, new: Transcript) -> float:
    """Of the new answers, as a share of the records; a marginal's error is the mean of its cells'."""
    measured, asked = new.measurements, [a for a in new.answers if a.query != TOTAL]
    values = model.answer(dict.fromkeys([*(m.clique for m in measured), *(a.query.clique for a in asked)]))
    errors = [float(np.abs(m.values - m.query.apply(m.clique, values[m.clique])).mean()) for m in measured]
    errors += [abs(a.value - a.query.count(values[a.query.clique])) for a in asked]
    return max(errors, default=0.0) / model.total


def _entries(recipe: Recipe, domain: Domain, state: State) -> Floats:
    table = current(state.weights, state.noise, members_of(domain), kind=recipe.kind)
    entries: Floats = np.asarray(table)[:, : sum(domain.sizes)]
    return entries


def _model(
    recipe: Recipe, domain: Domain, transcript: Transcript, training: Training, *, between: bool
) -> Model:
    entries, total = _entries(recipe, domain, training.state), transcript.total()
    model: Model = BetweenRounds(domain, total, entries) if between else _distribution(domain, total, entries)
    TRAINING[model] = training
    return model


def _distribution(domain: Domain, total: float, entries: Floats) -> MixtureModel:
    """The entries of a box may be negative: their positive parts are scaled to probabilities."""
    return MixtureModel(domain, total, np.maximum(entries, 0.0))
