"""AIM's rounds with a mixture of products, for tables of any width."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from margrave.mechanisms.aim import AIM
from margrave.mechanisms.common import option
from margrave.models import Fit, RelaxedFit


@dataclass(frozen=True, kw_only=True)
class AIMMixture(AIM):
    """AIM's selection and annealing with a mixture of product distributions as the model.

    The size of a mixture does not depend on what is measured: any marginal is a candidate at any
    time, also in tables of a hundred columns, where a junction tree soon holds no more. It takes no
    structural zeros. The other parameters are AIM's.

    Args:
        fit: ``RelaxedFit()``, whose components are free of each other, or ``GeneratorFit()``, GEM's
            network. A network of few inputs moves columns together that were never measured
            together: on 100 columns its error was near that of independent columns, the free
            table's below half of it.
        rounds: Number of rounds the initial per-round budget is sized for; by default 4 per column,
            which was more accurate here than AIM's 16.

    Privacy:
        The gate's whole budget, to the last fraction, for its unit.

    References:
        McKenna, Mullins, Sheldon, Miklau (2022), AIM, Algorithms 2-4; Liu, Vietri, Wu (2021), for
        the mixture.
    """

    rounds: int | None = option(
        None, "Rounds the first budget is meant for; by default 4 per column.", above=0
    )
    fit: Fit = field(default_factory=RelaxedFit)

    name = "aim-mixture"
    use = "100 columns and more: AIM's rounds with a mixture of products"
    rounds_per_column = 4
    scored_at_most = math.inf
