"""GEM: generative networks with the exponential mechanism (Liu, Vietri, Wu 2021), and GEM^Pub."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from margrave.mechanisms.adaptive import AdaptiveMeasurements
from margrave.mechanisms.common import Memory, Progress, parameter, release_of
from margrave.mechanisms.library import given
from margrave.mechanisms.rounds import is_whole
from margrave.models import GeneratorFit, Model
from margrave.privacy import Private
from margrave.public import Public
from margrave.release import Release


@dataclass(frozen=True, kw_only=True)
class GEM(AdaptiveMeasurements):
    """T rounds: choose the query that the network answers worst, measure it, train the network on all answers so far.

    The score of q is ``|q(D) − q(G_{t−1})|``; the release is the network whose weights are an exponential moving
    average over the second half of the rounds.

    ``workload``: None means all three-way marginals; ``queries``: linear queries instead of its cells. ``granularity``:
    a round asks for a "query" (a cell), as the paper does, or for a whole "marginal", as others have. ``rounds``: T,
    by default ``Rounds``'. ``alpha``: how a round's budget goes to choosing and to measuring, as alpha² to
    (1 − alpha)²; None means the paper's 0.67 for single queries, and 1/2 for whole marginals. ``fit``: the network and
    its training; None means ``GeneratorFit()``, and for whole marginals one that goes three times as far in a step and
    releases the last network: there are few rounds, and each teaches much.

    **Privacy:** the gate's whole budget, to the last fraction, for its unit.

    Source: Liu, Vietri, Wu (2021), Iterative methods for private synthetic data, Algorithms 3 and 4; whole marginals:
    McKenna, Mullins, Sheldon, Miklau (2022), Section 6, footnote 8. Departures: ``GeneratorFit``'s defaults.
    """

    alpha: Fraction | None = parameter(None, "Choosing and measuring get alpha² to (1 − alpha)² of a round.")
    fit: GeneratorFit | None = None

    name: ClassVar[str] = "gem"

    @property
    def share(self) -> Fraction:
        """alpha, or what it is by default."""
        usual = Fraction(1, 2) if is_whole(self.granularity) else Fraction(67, 100)
        return usual if self.alpha is None else self.alpha

    def estimator(self) -> GeneratorFit:
        """The fit, or what it is by default."""
        usual = GeneratorFit(rate=3e-3, average=0.0) if is_whole(self.granularity) else GeneratorFit()
        return usual if self.fit is None else self.fit

    def run(
        self, private: Private, *, rng: np.random.Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Choose, measure, train, T times; the weights of the second half of the rounds are averaged."""
        fit, memory = self.estimator(), Memory()
        average: Model | None = None
        for done, model in self.adapt(private, memory, rng, progress):
            if done > 0.5:
                average = fit.averaged(average, model)
        assert average is not None  # of one round at least
        return release_of(private, average, self.config(), memory)


@dataclass(frozen=True, kw_only=True)
class GEMPub(GEM):
    """GEM whose network is trained without privacy on a public table first: on its three-way marginals.

    ``public``: the public records; they may lack columns. ``fit``: None means ``GeneratorFit()``, also for whole
    marginals: larger steps lose what the public records taught. Everything else is as in ``GEM``.

    **Privacy:** the gate's whole budget, for its unit. The public records are not protected.

    Source: Liu, Vietri, Wu (2021), Appendix E.
    """

    public: Public | None = None

    name: ClassVar[str] = "gem-pub"
    informed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.public is not None and self.fit is not None and self.fit.public is not self.public:
            object.__setattr__(self, "fit", replace(self.fit, public=self.public))

    def estimator(self) -> GeneratorFit:
        """The fit, taught by the public records."""
        return GeneratorFit(public=self.public) if self.fit is None else self.fit

    def config(self) -> dict[str, Any]:
        """The parameters, and what is known of the public records."""
        return {**super().config(), "public": None if self.public is None else self.public.facts()}

    def run(
        self, private: Private, *, rng: np.random.Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Train on the public records, then as GEM."""
        given(self.public, private.domain)
        return super().run(private, rng=rng, progress=progress)
