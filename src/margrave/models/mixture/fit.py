"""GeneratorFit and RelaxedFit: from noisy answers to a mixture of products, by gradients."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import ClassVar

import numpy as np

from margrave.errors import InputError
from margrave.models.entries import ALL, EntryKind
from margrave.models.mixture.recipe import Recipe
from margrave.models.protocol import Model
from margrave.parameters import check_parameters
from margrave.public import Public
from margrave.schema.domain import Domain
from margrave.transcript import Transcript
from margrave.typing import Clique, FloatArray

NEEDED = ("jax", "optax")


@dataclass(frozen=True, kw_only=True)
class GeneratorFit:
    """A network that turns Gaussian noise z into product distributions G(z): ``components`` of them are the mixture.

    With c the answers that are missed by gamma or more, Adam lowers their mean absolute error; a round's update (with
    ``warm``) ends when none is, or after ``steps``:

        gamma = threshold · e_t,    e_t = memory · e_{t−1} + (1 − memory) · (the largest error of the new answers)

    where a whole marginal's error is the mean of its cells'. To the error is added a / |c| times the mean divergence,
    KL(P_b before ‖ P_b), of the components from those that the round began with: a network that only looks at what it
    misses may lose, in a round, all else that it knew. a is ``anchor · k / (k + 20)`` after k answers; where public
    records were learned it is the whole ``anchor``, and half of it holds to what they taught. The odds of a cell move
    by about e^(1 / a) at most for one answer; ``anchor=0`` is the paper's. Without ``warm`` it learns all answers at
    once, from the start, in ``cold`` steps, none closer than their noise.

    ``hidden``: widths of the layers, ``inputs``: of z. ``resample``: draw z anew at every step and round, as the paper
    does; else one z serves throughout, so that what is trained is what is released. ``average``: beta of the average
    of weights (``averaged``). ``weighted``: weigh answers by 1 / scale of their noise. ``public``: train without
    privacy on this table's three-way marginals first, for ``pretraining`` steps; it may lack columns.

    The paper's: ``GeneratorFit(hidden=(512, 1024, 1024), rate=1e-4, threshold=0.5, resample=True, anchor=0)``. The
    defaults were more accurate in a fraction of its time.

    **Privacy:** none is spent; the public table is not protected. Errors: an InputError where JAX or Optax is missing,
    the public table is not of this domain, or the domain has structural zeros, which products cannot keep; ``cells``
    and ``check`` say so before anything is spent.

    Source: Liu, Vietri, Wu (2021), Iterative methods for private synthetic data, Algorithms 3 and 4, Appendix D and E.
    """

    entries: ClassVar[frozenset[EntryKind]] = ALL - {EntryKind.HALF_SPACE}

    hidden: tuple[int, ...] = (256,)
    inputs: int = 64
    components: int = 1000
    rate: float = 1e-3
    steps: int = 100
    threshold: float = 0.25
    memory: float = 0.5
    average: float = 0.5
    anchor: float = 0.4
    resample: bool = False
    weighted: bool = False
    cold: int = 1000
    public: Public | None = None
    pretraining: int = 2000

    def __post_init__(self) -> None:
        check_parameters(self)
        whole = min(self.inputs, self.components, self.steps, self.cold, self.pretraining, *self.hidden, 1)
        shares = all(0 <= x < 1 for x in (self.memory, self.average))
        if whole < 1 or not shares or not self.rate > 0 or not min(self.threshold, self.anchor) >= 0:
            raise InputError(
                "A generator needs widths, components, steps and a rate above 0, a threshold and an anchor of 0 or"
                " more; its memory and average are shares.",
                remedy="Correct the one that is not.",
            )

    def __call__(
        self, domain: Domain, transcript: Transcript, *, rng: np.random.Generator, warm: Model | None = None
    ) -> Model:
        """The mixture that the transcript teaches; with ``warm``, that model after one round's update."""
        self.check(domain)
        from margrave.models.mixture.learning import learned  # the optional libraries, when needed

        return learned(self.recipe, domain, transcript, rng, warm)

    def averaged(self, before: Model | None, model: Model) -> Model:
        """A model of this fit with its weights averaged: ``average · before + (1 − average) · model``."""
        from margrave.models.mixture.learning import averaged

        return averaged(self.recipe, before, model)

    @property
    def recipe(self) -> Recipe:
        """How it trains."""
        return Recipe(
            kind="generator", loss="absolute", components=self.components, inputs=self.inputs, hidden=self.hidden,
            rate=self.rate, steps=self.steps, cold=self.cold, threshold=self.threshold, memory=self.memory,
            average=self.average, resample=self.resample, weighted=self.weighted, anchor=self.anchor,
            public=self.public, pretraining=self.pretraining,
        )  # fmt: skip

    def check(self, domain: Domain) -> None:
        """Raise what would keep it from fitting this domain, before anything is spent."""
        check(domain, self.public)

    def cells(self, domain: Domain, cliques: Collection[Clique]) -> int:
        """The mixture's table, whatever is measured."""
        self.check(domain)
        return self.components * sum(domain.sizes)

    def cells_with(
        self, domain: Domain, cliques: Collection[Clique], candidates: Sequence[Clique]
    ) -> FloatArray:
        """The same for every candidate."""
        return np.full(len(candidates), float(self.cells(domain, cliques)))


@dataclass(frozen=True, kw_only=True)
class RelaxedFit:
    """A table of ``components`` relaxed records, moved freely by gradients (RAP).

    By default each record is a product distribution, a softmax of its entries (RAP^softmax). ``box``: the entries
    themselves, clipped to −1 … 1, stand for the records' one-hot codes (RAP); answers between rounds (``warm``) are
    those of the relaxed records, which no distribution need have, and the distribution released is that of the
    entries' positive parts, scaled to sum to 1 in each block.

    Adam lowers the sum of squared errors. ``spread``: the standard deviation of the entries at the start, for the box
    the share of it that they fill. The other parameters are ``GeneratorFit``'s; ``rate``: None means the paper's 0.1,
    and 0.001 for the box. The paper stops by steps alone: ``threshold=0``.

    **Privacy:** none is spent. Errors as of ``GeneratorFit``.

    Source: Aydore et al. (2021), Differentially private query release through adaptive projection; Liu, Vietri, Wu
    (2021), Appendix B.2.
    """

    entries: ClassVar[frozenset[EntryKind]] = ALL - {EntryKind.HALF_SPACE}

    box: bool = False
    components: int = 1000
    rate: float | None = None
    steps: int = 100
    threshold: float = 0.25
    memory: float = 0.5
    spread: float = 0.3
    weighted: bool = False
    cold: int = 1000
    public: Public | None = None
    pretraining: int = 2000

    def __post_init__(self) -> None:
        check_parameters(self)
        rate = 0.1 if self.rate is None else self.rate
        whole = min(self.components, self.steps, self.cold, self.pretraining)
        if whole < 1 or not min(rate, self.spread) > 0 or not self.threshold >= 0 or not 0 <= self.memory < 1:
            raise InputError(
                "A relaxed table needs records, steps and a rate above 0; its memory is a share.",
                remedy="Correct the one that is not.",
            )

    def __call__(
        self, domain: Domain, transcript: Transcript, *, rng: np.random.Generator, warm: Model | None = None
    ) -> Model:
        """The mixture that the transcript teaches; with ``warm``, that model after one round's update."""
        self.check(domain)
        from margrave.models.mixture.learning import learned  # the optional libraries, when needed

        return learned(self.recipe, domain, transcript, rng, warm)

    def distribution(self, model: Model) -> Model:
        """A model of this fit as what it is released as: a distribution."""
        from margrave.models.mixture.learning import averaged

        return averaged(self.recipe, None, model)

    @property
    def recipe(self) -> Recipe:
        """How it trains."""
        usual = 0.001 if self.box else 0.1
        return Recipe(
            kind="box" if self.box else "softmax", loss="squared", components=self.components,
            rate=usual if self.rate is None else self.rate, steps=self.steps, cold=self.cold,
            threshold=self.threshold, memory=self.memory, spread=self.spread, weighted=self.weighted,
            public=self.public, pretraining=self.pretraining,
        )  # fmt: skip

    def check(self, domain: Domain) -> None:
        """Raise what would keep it from fitting this domain, before anything is spent."""
        check(domain, self.public)

    def cells(self, domain: Domain, cliques: Collection[Clique]) -> int:
        """The mixture's table, whatever is measured."""
        self.check(domain)
        return self.components * sum(domain.sizes)

    def cells_with(
        self, domain: Domain, cliques: Collection[Clique], candidates: Sequence[Clique]
    ) -> FloatArray:
        """The same for every candidate."""
        return np.full(len(candidates), float(self.cells(domain, cliques)))


def check(domain: Domain, public: Public | None) -> None:
    """Raise an InputError where a mixture cannot be fitted."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise InputError(
            f"Fitting a mixture by gradients needs {', '.join(missing)}.",
            remedy="Install what is missing: pip install 'margrave[inference]'.",
        )
    if domain.zeros:
        other = "AIM" if public is None else "JAM"
        raise InputError(
            "The schema declares combinations impossible, and a mixture of products cannot keep them so.",
            remedy=f"Use another mechanism or fit, such as {other} with its graphical model, or leave the constraints"
            " out.",
        )
    if public is not None:
        public.check(domain)
