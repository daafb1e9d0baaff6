"""A release given the values of some columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from margrave.frame_kinds import Kind
from margrave.marginal import Marginal
from margrave.models.protocol import Answerer, Model
from margrave.release.sampling import check_row_count, draw_rows
from margrave.schema import Schema
from margrave.types import Attribute


@dataclass(frozen=True, eq=False)
class Conditional:
    """Rows and marginals of the part of a release in which some columns take given codes.

    Args:
        schema: The schema of the release.
        model: The distribution within that part, scaled to any number of records.
        evidence: The codes that each conditioned column can take.
        total: Number of records in that part, by the release's model.
        deviation: Standard deviation of ``total`` by the noise in the number of all records.
        frames: The kind of frame that rows come as by default.
    """

    schema: Schema
    model: Model
    evidence: Mapping[Attribute, tuple[int, ...]]
    total: float
    deviation: float = 0.0
    frames: Kind = "arrow"

    def sample(
        self, n: int | None = None, *, as_: Kind | None = None, seed: int | None = None
    ) -> Any:
        """Return synthetic rows of that part.

        Args:
            n: Number of rows; by default as many as the model expects.
            as_: The kind of frame, as in ``Release.sample``.
            seed: Makes the rows repeatable.

        Raises:
            InputError: ``n`` is not given, and the number of all records is lost in noise.

        Privacy:
            None spent.
        """
        if n is None:
            check_row_count(self.total, self.deviation)
        kind = self.frames if as_ is None else as_
        return draw_rows(self.schema, self.model, round(self.total) if n is None else n, seed, kind)

    def marginal(self, attributes: Iterable[Attribute]) -> Marginal:
        """Return the expected counts of these columns within that part.

        Privacy:
            None spent.
        """
        found = labeled_marginal(self.schema, self.model, attributes)
        share = self.total / found.total() if found.total() > 0 else 0.0
        return replace(found, values=found.values * share)


def labeled_marginal(schema: Schema, model: Answerer, attributes: Iterable[Attribute]) -> Marginal:
    """Return a marginal of the model, with what its codes stand for."""
    clique = schema.domain.clique(attributes)
    labels = tuple(tuple(schema.column(a).labels()) for a in clique)
    return replace(model.project(clique), labels=labels)
