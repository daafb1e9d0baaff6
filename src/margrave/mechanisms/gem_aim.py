"""AIM's rounds with a mixture of products: whole marginals by relevance and annealing, for tables of any width."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from margrave.mechanisms.aim import AIM
from margrave.mechanisms.common import parameter
from margrave.models import Fit, RelaxedFit
from margrave.schema.domain import Domain
from margrave.typing import Clique
from margrave.workload import Workload


@dataclass(frozen=True, kw_only=True)
class GEMAIM(AIM):
    """AIM's selection and annealing with a mixture of product distributions in the place of the graphical model.

    The size of a mixture does not depend on what is measured: any marginal is a candidate at any time, also in tables
    of a hundred columns, where a junction tree soon holds no more. It takes no structural zeros.

    ``fit``: ``RelaxedFit()``, whose components are free of each other, or ``GeneratorFit()``, GEM's network. A network
    of few inputs moves columns together that were never measured together: on 100 columns its error was near that of
    independent columns, the free table's below half of it. ``rounds``: how many the first budget is meant for; 4 per
    column, which was more accurate here than AIM's 16. The other parameters are AIM's.

    **Privacy:** the gate's whole budget, to the last fraction, for its unit.

    Source: McKenna, Mullins, Sheldon, Miklau (2022), AIM, Algorithms 2-4; Liu, Vietri, Wu (2021), for the mixture.
    """

    rounds: int | None = parameter(None, "Rounds the first budget is meant for; by default 4 per column.", above=0)
    fit: Fit = field(default_factory=RelaxedFit)

    def config(self) -> dict[str, Any]:
        """The parameters."""
        return {**super().config(), "name": "gem-aim"}

    def _first(self, domain: Domain, workload: Workload) -> tuple[list[Clique], int]:
        starts, _ = super()._first(domain, workload)
        return starts, max(self.rounds or 4 * len(domain), len(starts) + 1)
