"""GEM with AIM's selection and annealing: whole marginals chosen by relevance, learned by a generator network."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from margrave.mechanisms.aim import AIM
from margrave.models import Fit, GeneratorFit


@dataclass(frozen=True, kw_only=True)
class GEMAIM(AIM):
    """AIM's rounds with a mixture of products in the place of the graphical model.

    The size of a mixture does not depend on what is measured: any marginal is a candidate at any time, also in tables
    of a hundred columns, where a junction tree soon holds no more.

    **Privacy:** the gate's whole budget, to the last fraction, for its unit.

    Source: McKenna, Mullins, Sheldon, Miklau (2022), AIM, Algorithms 2-4; Liu, Vietri, Wu (2021), GEM, for the model.
    """

    fit: Fit = field(default_factory=GeneratorFit)

    def config(self) -> dict[str, Any]:
        """The parameters."""
        return {**super().config(), "name": "gem-aim"}
