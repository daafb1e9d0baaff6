"""The noise of each column's codes that a run plans, by all its measurements together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from margrave.domain import Domain
from margrave.marginal.cliques import closure
from margrave.mechanisms.common import PlannedMeasurement
from margrave.types import Attribute, Clique


@dataclass(frozen=True)
class ColumnNoise:
    """The noise of a column's codes by all measurements together.

    Args:
        scale: Its scale.
        deviation: The standard deviation of the scale's logarithm, by which marginals are selected.

    Privacy:
        A function of public inputs.
    """

    scale: float
    deviation: float


def column_noises(
    domain: Domain, steps: Sequence[PlannedMeasurement]
) -> Mapping[Attribute, ColumnNoise]:
    """Return the noise of each column's codes; only columns that have any.

    Summed down to the column, a marginal has its noise times the root of the number of its other cells. The rounds of
    a step have the same precision in total, however many they become. If there may be fewer rounds than planned, their
    number is taken to be in ratio midway between one and those. Each candidate is equally likely in each round.

    Args:
        domain: The columns with their numbers of codes.
        steps: The planned measurements. Sums and single counts are passed over.

    Privacy:
        None spent: public inputs only.

    Example:
        >>> domain = Domain.of({"town": 9, "sex": 4})
        >>> steps = [PlannedMeasurement("pairs", [("town", "sex")], 1, 10.0)]
        >>> {a: round(noise.scale, 6) for a, noise in column_noises(domain, steps).items()}
        {'town': 20.0, 'sex': 30.0}
    """
    precision: dict[Attribute, float] = {}
    variance: dict[Attribute, float] = {}
    for step in steps:
        if step.sums or step.single or not step.cliques:
            continue
        cliques = _candidates(step)
        rounds = step.marginals ** (0.5 if step.at_most else 1.0)
        chance = rounds / len(cliques)
        of_round = step.marginals / rounds * (step.weight / step.scale) ** 2
        for clique, cells in zip(cliques, domain.cells_each(cliques), strict=True):
            for column in clique:
                own = of_round * domain.size(column) / float(cells)
                precision[column] = precision.get(column, 0.0) + chance * own
                spread = max(chance * (1.0 - chance), 0.0) * own**2
                variance[column] = variance.get(column, 0.0) + spread
    return {
        a: ColumnNoise(precision[a] ** -0.5, variance[a] ** 0.5 / (2.0 * precision[a]))
        for a in domain
        if a in precision
    }


def _candidates(step: PlannedMeasurement) -> Sequence[Clique]:
    """Return the marginals that a step is likely to measure.

    Rounds whose budget grows select among the marginals of a workload and all their subsets.
    """
    return closure(step.cliques) if step.adaptive and step.at_most else step.cliques
