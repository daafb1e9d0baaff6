"""GeneratorFit and RelaxedFit: from noisy answers to a mixture of products, by gradients."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from margrave._fields import check_fields
from margrave.domain import Domain
from margrave.errors import InputError
from margrave.models.cost import Cost, FitLoad, calibration_cost
from margrave.models.empty_codes import WithoutEmpty
from margrave.models.entries import ALL, EntryKind
from margrave.models.mixture.config import MixtureConfig
from margrave.models.progress import ShareProgress, no_progress
from margrave.models.protocol import Answerer, Fit, Model, Needs
from margrave.public_table import PublicTable
from margrave.transcript import Transcript
from margrave.types import Clique

if TYPE_CHECKING:
    from margrave.models.mixture.state import MixtureState


class MixtureFit(Fit):
    """The common part of both fits: one training loop, and a size that does not depend on the
    measurements.
    """

    entries: ClassVar[frozenset[EntryKind]] = ALL - {EntryKind.HALF_SPACE}

    @property
    @abstractmethod
    def config(self) -> MixtureConfig:
        """The configuration of the training."""

    def init(self, domain: Domain, *, rng: np.random.Generator) -> MixtureState:
        """Return the state before any answer."""
        check(domain, self.public)  # before the optional libraries are imported
        from margrave.models.mixture.state import MixtureState

        return MixtureState(domain)

    def update(
        self,
        state: MixtureState,
        transcript: Transcript,
        *,
        rng: np.random.Generator,
        done: float = 0.0,
    ) -> MixtureState:
        """Return the state after one round's training."""
        from margrave.models.mixture.state import updated

        return updated(self.config, state, transcript, rng, done)

    def model(self, state: MixtureState) -> Answerer:
        """Return the answers between rounds."""
        from margrave.models.mixture.state import answers

        return answers(self.config, state)

    def finish(
        self,
        state: MixtureState,
        transcript: Transcript,
        *,
        rng: np.random.Generator,
        progress: ShareProgress = no_progress,
    ) -> Model:
        """Return the mixture, with its weights averaged over the second half of the rounds."""
        from margrave.models.mixture.state import released

        if state.training is None or state.seen < len(transcript):
            state = self.update(state, transcript, rng=rng, done=1.0)
        return self.without_empty(released(self.config, state), transcript)

    def check(self, domain: Domain, needs: Needs) -> None:
        """Raise if a library is missing, or the domain has structural zeros."""
        check(domain, self.public)
        super().check(domain, needs)

    def cells(self, domain: Domain, cliques: Collection[Clique]) -> int:
        """Return the size of the mixture's table, whatever is measured."""
        return self.config.components * sum(domain.sizes)

    def cost(self, domain: Domain, load: FitLoad) -> Cost:
        """Return the time of compiling and training after each round."""
        jax_seconds = 5.0  # importing and compiling it, and a first training
        jax_mb = 350.0
        seconds_per_training = 1.2  # a round's, compiled anew for what it has measured
        seconds_per_trained_column = 0.03
        seconds_per_step = 3e-11  # one cell of what was measured, in one component
        seconds_per_answer = 5e-10  # one cell of a candidate, in one component
        training = seconds_per_training + len(domain) * seconds_per_trained_column
        of_round = load.rounds / 2 * load.cells / max(1, len(load.candidates))
        of_component = (
            self.config.steps * of_round * seconds_per_step + load.cells * seconds_per_answer
        )
        seconds = max(1, load.rounds) * (training + self.config.components * of_component)
        mb = calibration_cost(domain, load).mb
        return Cost(jax_seconds + seconds, jax_mb + mb)


@dataclass(frozen=True, kw_only=True)
class GeneratorFit(MixtureFit):
    """A network that turns Gaussian noise z into product distributions G(z): ``components`` of them
    are the mixture.

    With c the answers whose error is gamma or more, Adam lowers their mean absolute error. A
    round's update (with ``warm``) ends if there are none, or after ``steps``:

        gamma = threshold · e_t,    e_t = memory · e_{t−1} + (1 − memory) · (the largest error of the new answers)

    where a whole marginal's error is the mean of its cells'. The loss also has a / |c| times the
    mean divergence, KL(P_b before ‖ P_b), of the components from those at the round's start, so
    that a round does not lose what earlier rounds fitted. a is ``anchor · k / (k + 20)`` after k
    answers. With public records it is the whole ``kl_weight``, half of it against the pretrained
    components. One answer moves the odds of a cell by about e^(1 / a) at most; ``kl_weight=0`` is
    the paper's. Without ``warm`` it fits all answers at once, from the start, in ``cold_steps``
    steps, not closer than their noise.

    ``hidden``: widths of the layers. ``latent_dim``: dimension of z. ``resample``: draw z anew at
    every step and round, as the paper does; else one z serves throughout, so that the trained
    mixture is the released one. ``ema_decay``: beta of the average of weights (``averaged``).
    ``weighted``: weigh answers by 1 / scale of their noise. ``public``: pretrain without privacy on
    this table's three-way marginals, for ``pretraining`` steps; it may lack columns. ``empty_below``:
    as in ``GraphicalFit``.

    The paper's: ``GeneratorFit(hidden=(512, 1024, 1024), rate=1e-4, active_threshold=0.5,
    resample=True, kl_weight=0, empty_below=0)``. The defaults were more accurate in a fraction of its time.

    Raises:
        InputError: JAX or Optax is missing, the public table has another domain, or the domain has
            structural zeros, which products cannot keep. ``cells`` and ``check`` raise it first.

    Privacy:
        None spent; the public table is not protected.

    References:
        Liu, Vietri, Wu (2021), Iterative methods for private synthetic data, Algorithms 3 and 4,
        Appendix D and E.
    """

    hidden: tuple[int, ...] = (256,)
    latent_dim: int = 64
    components: int = 1000
    rate: float = 1e-3
    steps: int = 100
    active_threshold: float = 0.25
    error_ema: float = 0.5
    ema_decay: float = 0.5
    kl_weight: float = 0.4
    resample: bool = False
    weighted: bool = False
    cold_steps: int = 1000
    public: PublicTable | None = None
    pretraining: int = 2000
    empty_below: float = WithoutEmpty.below

    def __post_init__(self) -> None:
        check_fields(self)
        whole = min(
            self.latent_dim,
            self.components,
            self.steps,
            self.cold_steps,
            self.pretraining,
            *self.hidden,
            1,
        )
        shares = all(0 <= x < 1 for x in (self.error_ema, self.ema_decay))
        if (
            whole < 1
            or not shares
            or not self.rate > 0
            or not min(self.active_threshold, self.kl_weight) >= 0
        ):
            raise InputError(
                "A generator needs widths, components, steps and a rate above 0, a threshold and an anchor of 0 or"
                " more; its memory and average are shares.",
                remedy="Correct the one that is not.",
            )

    def started_from(self, public: PublicTable | None) -> GeneratorFit:
        """Return the fit that is trained on a public table first."""
        return replace(self, public=public)

    @cached_property
    def config(self) -> MixtureConfig:
        """The configuration of the training."""
        return MixtureConfig(
            kind="generator",
            loss="absolute",
            components=self.components,
            latent_dim=self.latent_dim,
            hidden=self.hidden,
            rate=self.rate,
            steps=self.steps,
            cold_steps=self.cold_steps,
            active_threshold=self.active_threshold,
            error_ema=self.error_ema,
            ema_decay=self.ema_decay,
            resample=self.resample,
            weighted=self.weighted,
            kl_weight=self.kl_weight,
            public=self.public,
            pretraining=self.pretraining,
        )


@dataclass(frozen=True, kw_only=True)
class RelaxedFit(MixtureFit):
    """A table of ``components`` relaxed records, moved freely by gradients (RAP).

    By default each record is a product distribution, a softmax of its entries (RAP^softmax). ``clip``: the entries
    themselves, clipped to −1 … 1, stand for the records' one-hot codes (RAP); answers between rounds (``warm``) are
    those of the relaxed records, which no distribution need have, and the distribution released is that of the
    entries' positive parts, scaled to sum to 1 in each block.

    Adam lowers the sum of squared errors. ``init_scale``: the standard deviation of the entries at the start, for the
    box the share of it that they fill. The other parameters are ``GeneratorFit``'s; ``rate``: None means the paper's
    0.1, and 0.001 for the box. The paper stops by steps alone: ``threshold=0``.

    **Privacy:** none is spent. Errors as of ``GeneratorFit``.

    Source: Aydore et al. (2021), Differentially private query release through adaptive projection; Liu, Vietri, Wu
    (2021), Appendix B.2.
    """

    clip: bool = False
    components: int = 1000
    rate: float | None = None
    steps: int = 100
    active_threshold: float = 0.25
    error_ema: float = 0.5
    init_scale: float = 0.3
    weighted: bool = False
    cold_steps: int = 1000
    public: PublicTable | None = None
    pretraining: int = 2000
    empty_below: float = WithoutEmpty.below

    def __post_init__(self) -> None:
        check_fields(self)
        rate = 0.1 if self.rate is None else self.rate
        whole = min(self.components, self.steps, self.cold_steps, self.pretraining)
        if (
            whole < 1
            or not min(rate, self.init_scale) > 0
            or not self.active_threshold >= 0
            or not 0 <= self.error_ema < 1
        ):
            raise InputError(
                "A relaxed table needs records, steps and a rate above 0; error_ema is a share.",
                remedy="Correct the one that is not.",
            )

    def started_from(self, public: PublicTable | None) -> RelaxedFit:
        """Return the fit that is trained on a public table first."""
        return replace(self, public=public)

    @cached_property
    def config(self) -> MixtureConfig:
        """The configuration of the training."""
        usual = 0.001 if self.clip else 0.1
        return MixtureConfig(
            kind="box" if self.clip else "softmax",
            loss="squared",
            components=self.components,
            rate=usual if self.rate is None else self.rate,
            steps=self.steps,
            cold_steps=self.cold_steps,
            active_threshold=self.active_threshold,
            error_ema=self.error_ema,
            init_scale=self.init_scale,
            weighted=self.weighted,
            public=self.public,
            pretraining=self.pretraining,
        )


def check(domain: Domain, public: PublicTable | None) -> None:
    """Raise an InputError where a mixture cannot be fitted."""
    needed = ("jax", "optax")
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        raise InputError(
            f"Fitting a mixture by gradients needs {', '.join(missing)}.",
            remedy="Install what is missing: pip install 'margrave[inference]'.",
        )
    if domain.zeros:
        other = "AIM" if public is None else "AIMPub"
        raise InputError(
            "The schema declares combinations impossible, and a mixture of products cannot keep them so.",
            remedy=f"Use another mechanism or fit, such as {other} with its graphical model, or leave the constraints"
            " out.",
        )
    if public is not None:
        public.check(domain)
