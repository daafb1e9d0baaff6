"""GEM: generative networks with the exponential mechanism (Liu, Vietri, Wu 2021), and GEM^Pub."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from margrave.mechanisms.adaptive import AdaptiveMeasurements
from margrave.mechanisms.common import option
from margrave.models import Fit, GeneratorFit
from margrave.public_table import PublicTable


@dataclass(frozen=True, kw_only=True)
class GEM(AdaptiveMeasurements):
    """T rounds: select the query that the network answers worst, measure it, train on all answers.

    The score of q is ``|q(D) − q(G_{t−1})|``; the release is the network whose weights are an
    exponential moving average over the second half of the rounds.

    Args:
        workload: The marginals; None means all three-way marginals.
        queries: Linear queries instead of the cells of the workload's marginals.
        granularity: A round asks for a "query" (a cell), as the paper does, or for a whole
            "marginal".
        rounds: T, by default what the budget is worth (``default_rounds``,
            ``default_marginal_rounds``).
        alpha: Selecting and measuring get alpha² to (1 − alpha)² of each round; None means the
            paper's 0.67 for single queries, and 1/2 for whole marginals.
        fit: The network and its training; None means ``GeneratorFit()``, and for whole marginals
            one with steps three times as large that releases the last network.

    Privacy:
        The gate's whole budget, to the last fraction, for its unit.

    References:
        Liu, Vietri, Wu (2021), Iterative methods for private synthetic data, Algorithms 3 and 4;
        whole marginals: McKenna, Mullins, Sheldon, Miklau (2022), Section 6, footnote 8.
    """

    alpha: Fraction | None = option(
        None, "Choosing and measuring get alpha² to (1 − alpha)² of a round.", share=True
    )
    fit: Fit | None = None

    name = "gem"
    use = "many columns: a generator network"

    @property
    def share(self) -> Fraction:
        """The alpha in use."""
        usual = Fraction(1, 2) if self.granularity == "marginal" else Fraction(67, 100)
        return usual if self.alpha is None else self.alpha

    def estimator(self) -> Fit:
        """Return the fit, or what it is by default."""
        whole = self.granularity == "marginal"
        return self.fit or (GeneratorFit(rate=3e-3, ema_decay=0.0) if whole else GeneratorFit())


@dataclass(frozen=True, kw_only=True)
class GEMPub(GEM):
    """GEM whose network is first trained on the three-way marginals of a public table.

    Other parameters are GEM's.

    Args:
        public: The public records; they may lack columns.
        fit: The network and its training; None means ``GeneratorFit()``, also for whole marginals:
            larger steps forget the public records.

    Privacy:
        The gate's whole budget, for its unit. The public records are not protected.

    References:
        Liu, Vietri, Wu (2021), Appendix E.
    """

    public: PublicTable | None = None

    name = "gem-pub"
    use = "a public table: trains the generator on it first"
    warm_public = True

    def estimator(self) -> Fit:
        """Return the fit, trained on the public records first."""
        return (self.fit or GeneratorFit()).started_from(self.public)
