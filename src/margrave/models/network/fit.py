"""NetworkFit: from noisy marginals to a Bayesian network."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from margrave._fields import check_fields
from margrave.domain import Domain
from margrave.errors import InputError
from margrave.marginal.simplex import clip_and_rescale, project_to_simplex, rake
from margrave.models.answers import Answers
from margrave.models.cost import Cost, FitLoad
from margrave.models.entries import check_kinds
from margrave.models.measured_cells import MeasuredCellsFit
from margrave.models.network.model import ConditionalTable, NetworkModel
from margrave.models.protocol import Needs
from margrave.models.terms import terms_of
from margrave.transcript import Transcript
from margrave.types import Attribute, Clique, FloatArray


@dataclass(frozen=True, kw_only=True)
class NetworkFit(MeasuredCellsFit):
    """A Bayesian network whose families lie in the measured marginals.

    The order and the parents follow from the measured cliques (`families_of`). Those of PrivBayes
    give its network. A marginal that completes no family only adds to the precision of others.

    A family's table is the mean of all measured marginals that contain it, weighted by precision.
    It is projected to the nearest table without negative cells, and scaled to the one-way marginals
    of its columns. Parents without counts leave the distribution of the column alone.

    Merged codes, single cells and public marginals are refused: a family needs a whole marginal.

    Args:
        clip: True for the paper's tables: negative cells become 0, and the others are rescaled.

    Raises:
        InputError: If the domain has structural zeros, to which a network gives a probability.
            ``check`` raises it first.

    Privacy:
        None spent; the fit sees the transcript only.

    References:
        Zhang, Cormode, Procopiuc, Srivastava, Xiao (2017), PrivBayes.
    """

    #: Passes over the columns of a family that scale it to their one-way marginals.
    _sweeps: ClassVar[int] = 5

    clip: bool = False

    def __post_init__(self) -> None:
        check_fields(self)

    def estimate(
        self, domain: Domain, transcript: Transcript, *, rng: np.random.Generator, warm: Any = None
    ) -> NetworkModel:
        """Return the network of the measured marginals; a column that was never measured is uniform."""
        _refuse_zeros(domain)
        check_kinds(self, transcript)
        measured = transcript.measurements
        answers = Answers(domain, transcript.total(), terms_of(domain, measured))
        known = {a for m in measured for a in m.clique}
        alone = {
            a: self._shares(answers.project((a,)).values)
            if a in known
            else np.full(domain.size(a), 1.0 / domain.size(a))
            for a in domain
        }
        conditionals = []
        for column, parents in families_of(domain, [m.clique for m in measured]):
            table = alone[column]
            if parents:
                clique = domain.clique((*parents, column))
                shares = self._shares(answers.project(clique).values)
                if not self.clip:
                    shares = rake(shares, clique, alone, sweeps=self._sweeps)
                table = _given(np.moveaxis(shares, clique.index(column), -1), alone[column])
            conditionals.append(ConditionalTable(column, parents, table))
        return NetworkModel(domain, answers.total, conditionals)

    def check(self, domain: Domain, needs: Needs) -> None:
        """Raise `InputError` if the domain has structural zeros."""
        _refuse_zeros(domain)
        super().check(domain, needs)

    def cost(self, domain: Domain, load: FitLoad) -> Cost:
        """Return the memory of the marginals and of their scales."""
        return Cost(mb=16 * load.cells / 2**20)

    def _shares(self, counts: FloatArray) -> FloatArray:
        if self.clip:
            return clip_and_rescale(counts.ravel()).reshape(counts.shape)
        total = float(counts.sum())
        if not total > 0.0:
            return np.full(counts.shape, 1.0 / counts.size)
        return project_to_simplex(counts / total)


def families_of(domain: Domain, measured: Collection[Clique]) -> list[tuple[Attribute, Clique]]:
    """Return an order of the columns, each with parents before it: together they lie in a measured clique.

    The next clique is always one with the fewest columns that are not in the order yet, at least
    one; among these the widest, and the first. Its new columns follow one after the other. A
    clique's other columns are their parents. Columns that were measured alone, or not at all, come last.

    Args:
        domain: The domain.
        measured: The cliques, in the order of their measurement.

    Example:
        >>> d = Domain.of({"a": 2, "b": 2, "c": 2})
        >>> families_of(d, [("a",), ("a", "b"), ("b", "c")])
        [('a', ()), ('b', ('a',)), ('c', ('b',))]
    """
    wide = [c for c in dict.fromkeys(measured) if len(c) > 1]
    found: dict[Attribute, Clique] = {}
    while True:
        wide = [c for c in wide if any(a not in found for a in c)]
        if not wide:
            break
        clique = min(wide, key=lambda c: (sum(a not in found for a in c), -len(c)))
        for a in [a for a in clique if a not in found]:
            found[a] = tuple(b for b in clique if b in found)
    return [*found.items(), *((a, ()) for a in domain if a not in found)]


def _given(table: FloatArray, alone: FloatArray) -> FloatArray:
    """Return the last axis given the others; ``alone`` where there is nothing."""
    sums = table.sum(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(sums > 0.0, table / sums, alone)


def _refuse_zeros(domain: Domain) -> None:
    if domain.zeros:
        raise InputError(
            "A Bayesian network gives impossible combinations of codes a probability.",
            remedy="Use another fit, such as margrave.models.GraphicalFit().",
        )
