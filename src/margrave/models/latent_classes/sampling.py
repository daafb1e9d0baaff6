"""Chains of the latent-class posterior, from noisy marginals to stored draws."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product

import numpy as np

from margrave.domain import Domain
from margrave.models.latent_classes.kernels import joint_probabilities, products, walk
from margrave.models.mixture.model import blocks_of
from margrave.models.progress import ShareProgress, subprogress
from margrave.models.terms import Term
from margrave.types import Attribute, FloatArray, IntArray


class NoisyCells:
    """Noisy marginals as one vector, and the cells that each column is part of.

    Args:
        domain: The domain.
        terms: The noisy marginals.
        records: The number of records.
        priors: The parameters of the Dirichlet priors of the classes' weights, and of their codes.
    """

    def __init__(
        self,
        domain: Domain,
        terms: Sequence[Term],
        records: float,
        priors: tuple[float, float],
    ) -> None:
        # Noise below this hides no record. More precision would only keep the chains from moving.
        min_scale = 0.5
        blocks, widest = blocks_of(domain), max(len(t.clique) for t in terms)
        cells, touched = list[list[int]](), dict[Attribute, list[int]]({a: [] for a in domain})
        self.ends = np.cumsum([t.values.size for t in terms])[:-1]
        for term in terms:
            for codes in product(*(range(domain.size(a)) for a in term.clique)):
                for a in term.clique:
                    touched[a].append(len(cells))
                own = [blocks[a].start + v for a, v in zip(term.clique, codes, strict=True)]
                cells.append(own + [-1] * (widest - len(own)))
        self.domain = domain
        self.records = records
        self.members: IntArray = np.array(cells)
        self.starts: IntArray = np.cumsum([0, *domain.sizes])
        self.column_of: IntArray = np.repeat(np.arange(len(domain)), domain.sizes)
        self.touched: IntArray = np.array([c for a in domain for c in touched[a]], dtype=np.int64)
        self.firsts: IntArray = np.cumsum([0, *(len(touched[a]) for a in domain)])
        self.counts: FloatArray = np.concatenate([t.values.ravel() for t in terms])
        scales = np.concatenate([t.scales.ravel() for t in terms])
        self.variances = np.square(np.maximum(scales, min_scale), dtype=np.float64)
        self.priors: FloatArray = np.array(priors)

    def precision(self, weights: FloatArray, table: FloatArray) -> FloatArray:
        """Return the inverse covariance of the noisy counts if the records are drawn from this mixture.

        It is n (E[a aᵀ] − E[a] E[a]ᵀ) + diag(scale²), where a marks the cells of one record.
        """
        # Classes of less weight change no entry that matters.
        heavy = weights > 1e-6
        shares = weights[heavy] / weights[heavy].sum()
        joint = np.empty((len(self.counts), len(self.counts)))
        joint_probabilities(self.members, self.column_of, shares, table[heavy], joint)
        alone = np.diag(joint)
        covariance = self.records * (joint - np.outer(alone, alone)) + np.diag(self.variances)
        inverse = np.linalg.inv(covariance)
        return np.ascontiguousarray((inverse + inverse.T) / 2, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Walk:
    """States of chains: weights (chains, states, classes), and tables (chains, states, classes, codes)."""

    weights: FloatArray
    tables: FloatArray

    def then(self, later: Walk) -> Walk:
        """Return both, one after the other."""
        return Walk(
            np.concatenate([self.weights, later.weights], axis=1),
            np.concatenate([self.tables, later.tables], axis=1),
        )

    def some(self, count: int) -> Walk:
        """Return about ``count`` states of each chain, evenly thinned, the last one included."""
        length = self.weights.shape[1]
        at = np.unique(np.linspace(0, length - 1, min(count + 1, length)).round().astype(int)[1:])
        return Walk(self.weights[:, at], self.tables[:, at])

    def mixture(self) -> tuple[FloatArray, FloatArray]:
        """Return the weights and the table of the mixture of all states."""
        classes = self.weights.shape[-1]
        weights = self.weights.reshape(-1)
        return weights * classes / len(weights), self.tables.reshape(len(weights), -1)


class ClassChains:
    """Independent chains of Metropolis steps, from random classes."""

    def __init__(
        self, problem: NoisyCells, classes: int, chains: int, rng: np.random.Generator
    ) -> None:
        self._problem = problem
        self._streams = rng.spawn(chains)
        self._states = [self._start(stream, classes) for stream in self._streams]
        self._steps = [np.full((classes, 1 + len(problem.domain)), 0.5) for _ in self._streams]
        uniform = np.concatenate([np.full(n, 1.0 / n) for n in problem.domain.sizes])
        self._precision = problem.precision(np.ones(1), uniform[None])

    def _start(self, rng: np.random.Generator, classes: int) -> tuple[FloatArray, ...]:
        starts, cells = self._problem.starts, len(self._problem.counts)
        class_logs = np.log(rng.standard_gamma(1.0, classes))
        code_logs = np.log(rng.standard_gamma(1.0, (classes, starts[-1])))
        table = np.exp(code_logs)
        table /= np.repeat(
            np.add.reduceat(table, starts[:-1], axis=1), self._problem.domain.sizes, axis=1
        )
        weights = np.exp(class_logs) / np.exp(class_logs).sum()
        return class_logs, code_logs, weights, table, np.empty((classes, cells)), np.empty(cells)

    def warm_up(self, sweeps: int, progress: ShareProgress) -> None:
        """Adapt the step sizes, and the covariance to what the chains have reached, in three stages."""
        stages, states = 3, 4
        for stage in range(stages):
            reached = self.walk(states, max(1, sweeps // (stages * states)), adapting=True)
            self._precision = self._problem.precision(*reached.some(states // 2).mixture())
            progress((stage + 1) / stages)

    def walk(self, states: int, thin: int, *, adapting: bool = False) -> Walk:
        """Return that many states of each chain, after ``thin`` sweeps each."""
        classes, codes = self._states[0][3].shape
        weights = np.empty((len(self._states), states, classes))
        tables = np.empty((len(self._states), states, classes, codes))
        known = self._problem
        problem = (
            known.members, known.starts, known.touched, known.firsts, float(known.records),
            self._precision, known.priors,
        )  # fmt: skip

        def one(i: int) -> None:
            state = self._states[i]
            products(known.members, state[3], state[4])
            state[5][:] = self._precision @ (known.records * state[2] @ state[4] - known.counts)
            walk(
                self._streams[i], problem, state, self._steps[i], adapting, thin, weights[i],
                tables[i],
            )  # fmt: skip

        with ThreadPoolExecutor(max_workers=len(self._states)) as pool:
            list(pool.map(one, range(len(self._states))))
        return Walk(weights, tables)


def sample(
    problem: NoisyCells,
    *,
    classes: int,
    chains: int,
    warmup: int,
    max_sweeps: int,
    r_hat: float,
    rng: np.random.Generator,
    progress: ShareProgress,
) -> tuple[Walk, float]:
    """Return the states of the chains, and the largest R̂ of a measured marginal.

    The chains end when it is at most ``r_hat``, or after ``max_sweeps``.
    """
    # The share of the time that the warm-up takes, if the first batch suffices.
    warm = 0.5
    # Sweeps between two states, and states between two checks of convergence.
    thin, most = 10, 100
    running = ClassChains(problem, classes, chains, rng)
    running.warm_up(warmup, subprogress(progress, 0.0, warm))
    batch, found, at = min(most, max(4, max_sweeps // thin)), None, warm
    while True:
        more = running.walk(batch, thin)
        found = more if found is None else found.then(more)
        worst = largest_r_hat(problem, found)
        at = (1.0 + at) / 2
        progress(at)
        if worst <= r_hat or found.weights.shape[1] * thin >= max_sweeps:
            return found, worst


def largest_r_hat(problem: NoisyCells, walk: Walk) -> float:
    """Return the largest split R̂ of a measured marginal.

    The variances within and between the halves of the chains are summed over a marginal's cells, so
    that cells with next to no records do not count.

    References:
        Gelman, Carlin, Stern, Dunson, Vehtari, Rubin (2013), Bayesian Data Analysis, Section 11.4.
    """
    chains, length, classes = walk.weights.shape
    half = length // 2
    shares = np.empty((chains, length, len(problem.counts)))
    chances = np.empty((classes, len(problem.counts)))
    for c in range(chains):
        for t in range(length):
            products(problem.members, walk.tables[c, t], chances)
            shares[c, t] = walk.weights[c, t] @ chances
    split = np.concatenate([shares[:, :half], shares[:, half : 2 * half]])
    within = split.var(axis=1, ddof=1).mean(axis=0)
    between = split.mean(axis=1).var(axis=0, ddof=1)
    worst = 1.0
    for w, b in zip(np.split(within, problem.ends), np.split(between, problem.ends), strict=True):
        if w.sum() > 0.0:
            worst = max(worst, float(np.sqrt((half - 1) / half + b.sum() / w.sum())))
    return worst
