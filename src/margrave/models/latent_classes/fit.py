"""LatentClassFit: from noisy marginals to the posterior of latent classes (PrivLCM's model)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from margrave._fields import check_fields
from margrave.domain import Domain
from margrave.errors import InputError, ModelTooLargeError
from margrave.models.cost import Cost, FitLoad
from margrave.models.entries import check_kinds
from margrave.models.latent_classes.model import LatentClassModel
from margrave.models.latent_classes.sampling import NoisyCells, sample
from margrave.models.measured_cells import MeasuredCellsFit
from margrave.models.mixture import MixtureModel
from margrave.models.progress import ShareProgress, no_progress
from margrave.models.protocol import LastModel, Needs
from margrave.models.terms import terms_of
from margrave.transcript import Transcript
from margrave.types import Clique


@dataclass(frozen=True, kw_only=True)
class LatentClassFit(MeasuredCellsFit):
    """The posterior of latent classes: every record has one, and its columns are independent within it.

    p(π, ψ | y) ∝ Dirichlet(π; class_prior) Π_gj Dirichlet(ψ_gj; code_prior) · N(y; n μ, n Σ̂ + diag(scale²))

    y are the measured counts, μ(π, ψ) their probabilities, and Σ̂ the covariance of the cells of one record. Σ̂
    counts every record once, although it is in all marginals. It is that of the chains' mean after the warm-up,
    and stays fixed. Metropolis steps walk in the logarithms of gamma variables, one class at a time.

    A posterior that has not converged is kept, but gives no tables unless ``accept``. Merged codes, single cells
    and public marginals are refused.

    Args:
        classes: The number of classes, at most: most of them may be empty.
        class_prior: Parameter of the Dirichlet prior of the classes' weights; None means 1 / classes.
        code_prior: Parameter of the Dirichlet prior of each class's codes.
        chains: Number of chains.
        warmup: Sweeps of each chain before the first that counts.
        max_sweeps: Sweeps of each chain after these, at most.
        r_hat: The largest R̂ of a measured marginal at which the chains end.
        accept: Use draws that have not converged.

    Raises:
        InputError: The domain has structural zeros, or the marginals are too large. ``check`` raises it first.

    Privacy:
        None spent; the fit sees the transcript only.

    References:
        Nixon, Barrientos, Reiter, Slavković (2022), A latent class modeling approach for differentially
        private synthetic data for contingency tables. The covariance is as in Räisä et al. (2023), NAPSU-MQ.
    """

    samples_posterior: ClassVar[bool] = True

    #: The most measured cells: the covariance of their counts is inverted.
    _max_cells: ClassVar[int] = 1500

    #: Draws that are stored.
    _stored: ClassVar[int] = 400

    classes: int = 10
    class_prior: float | None = None
    code_prior: float = 0.5
    chains: int = 4
    warmup: int = 2000
    max_sweeps: int = 20_000
    r_hat: float = 1.05
    accept: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        if self.classes < 1 or self.chains < 2 or self.warmup < 1 or self.max_sweeps < 1:
            raise InputError(
                "The sampler needs a class, two chains, a sweep of warm-up and another one.",
                remedy="Raise the one that is below.",
            )
        if not (self.code_prior > 0 and (self.class_prior is None or self.class_prior > 0)):
            raise InputError(
                "class_prior and code_prior are parameters of Dirichlet distributions, above 0.",
                remedy="Use the defaults, None and 0.5.",
            )

    def estimate(
        self, domain: Domain, transcript: Transcript, *, rng: np.random.Generator, warm: Any = None
    ) -> MixtureModel:
        """Return the posterior of the transcript; without answers, the uniform distribution."""
        return self._posterior(domain, transcript, rng, no_progress)

    def finish(
        self,
        state: LastModel,
        transcript: Transcript,
        *,
        rng: np.random.Generator,
        progress: ShareProgress = no_progress,
    ) -> MixtureModel:
        """Return the posterior of the transcript, from the start."""
        return self._posterior(state.domain, transcript, rng, progress)

    def _posterior(
        self,
        domain: Domain,
        transcript: Transcript,
        rng: np.random.Generator,
        progress: ShareProgress,
    ) -> MixtureModel:
        _refuse_zeros(domain)
        check_kinds(self, transcript)
        total = transcript.total()
        if not transcript.measurements:
            return MixtureModel(domain, total, np.ones((1, sum(domain.sizes))))
        self._refuse_large(domain, transcript.cliques)
        prior = 1.0 / self.classes if self.class_prior is None else self.class_prior
        terms = terms_of(domain, transcript.measurements)
        walk, worst = sample(
            NoisyCells(domain, terms, total, (prior, self.code_prior)),
            classes=self.classes,
            chains=self.chains,
            warmup=self.warmup,
            max_sweeps=self.max_sweeps,
            r_hat=self.r_hat,
            rng=rng,
            progress=progress,
        )
        weights, table = walk.some(-(-self._stored // self.chains)).mixture()
        good = worst <= self.r_hat
        facts: dict[str, Any] = {
            "method": "Metropolis steps",
            "good": good or self.accept,
            "chains": self.chains,
            "draws": walk.weights.shape[1],
            "r_hat": min(worst, 1e9),
        }
        if not good:
            facts["why"] = f"the chains have not mixed: R-hat {worst:.3f}"
        deviation = transcript.total_deviation()
        totals = total + deviation * rng.standard_normal(len(weights) // self.classes)
        return LatentClassModel(domain, total, table, weights, np.maximum(totals, 1.0), facts)

    def check(self, domain: Domain, needs: Needs) -> None:
        """Raise `InputError` if the domain has structural zeros, or if there are too many cells."""
        _refuse_zeros(domain)
        if needs.adaptive:
            raise InputError(
                "LatentClassFit() takes long, and this mechanism estimates after every round.",
                remedy="Give it another fit, and refit the release with LatentClassFit().",
            )
        self._refuse_large(domain, needs.cliques)
        super().check(domain, needs)

    def takes(self, domain: Domain, transcript: Transcript) -> bool:
        """Return True if the measured marginals have few enough cells."""
        return self.cells(domain, transcript.cliques) <= self._max_cells

    def _refuse_large(self, domain: Domain, cliques: Collection[Clique]) -> None:
        cells = self.cells(domain, cliques)
        if cells > self._max_cells:
            widest = max(domain, key=domain.size)
            raise ModelTooLargeError(
                f"The measured marginals have {cells:,} cells, above {self._max_cells:,} for a posterior of latent"
                f" classes; column {widest!r} has the most codes, {domain.size(widest):,}.",
                remedy="Give it fewer bins or categories, leave columns out, or use another mechanism or fit, whose"
                " release draws by the bootstrap.",
            )

    def cost(self, domain: Domain, load: FitLoad) -> Cost:
        """Return the time of the warm-up and as many sweeps again, and the memory of the covariance."""
        seconds_per_product = 1.5e-9
        cells = min(load.cells, self._max_cells)
        sweeps = 2 * self.warmup * self.chains
        return Cost(sweeps * self.classes * cells**2 * seconds_per_product, 40 * cells**2 / 2**20)


def _refuse_zeros(domain: Domain) -> None:
    if domain.zeros:
        raise InputError(
            "Latent classes give impossible combinations of codes a probability.",
            remedy="Use another fit, such as margrave.models.GraphicalFit().",
        )
