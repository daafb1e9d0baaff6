"""A release given the values of some columns."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from margrave._card import Card, Facts, counted
from margrave.error_sanitizer import short_errors
from margrave.errors import BinWarning, InputError
from margrave.frame_kinds import Kind, check_kind
from margrave.marginal import Marginal
from margrave.models.protocol import Answerer, Model
from margrave.release.conditions import (
    Condition,
    Cut,
    codes_by_column,
    cuts_of,
    in_words,
    with_missing,
)
from margrave.release.sampling import (
    as_frame,
    check_row_count,
    check_rows,
    draw_rows,
    draw_table,
    generator,
)
from margrave.schema import Schema
from margrave.schema.elapsed_values import with_moments
from margrave.types import Attribute, Clique, FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class Conditional(Card):
    """Rows and marginals of the part of a release in which some columns take given codes.

    Args:
        schema: The schema of the release.
        model: The distribution within that part, scaled to any number of records.
        evidence: The codes that each conditioned column can take.
        total: Number of records in that part, by the release's model.
        deviation: Standard deviation of ``total`` by the noise in the number of all records.
        frames: The kind of frame that rows come as by default.
        cuts: The conditions that are finer than the bins of their columns.
        kept: Share of the records with the codes of ``evidence`` whose values meet the conditions.
        values: The conditions by column.
    """

    schema: Schema
    model: Model
    evidence: Mapping[Attribute, tuple[int, ...]]
    total: float
    deviation: float = 0.0
    frames: Kind = "arrow"
    cuts: tuple[Cut, ...] = ()
    kept: float = 1.0
    values: Mapping[Attribute, Condition] = field(default_factory=dict)

    def _facts(self) -> Facts:
        asked = in_words(self.values) or "no condition"
        records = counted(round(self.total), "record")
        return Facts(f"{asked}; about {records}", notes=self.notes)

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence for each condition that is finer than the bins of its column."""
        return tuple(map(str, self.cuts))

    @short_errors
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
        rows = round(self.total) if n is None else n
        if self.kept >= 1.0:
            return draw_rows(self.schema, self.model, rows, seed, kind)
        check_kind(kind)
        return as_frame(self.schema, self._drawn(rows, generator(seed)), kind)

    def _drawn(self, n: int, rng: np.random.Generator) -> pa.Table:
        """Return n rows whose values meet the conditions, out of rows with whole bins."""
        # Rows with whole bins that are drawn at most, and at once.
        max_drawn, max_batch = 10_000_000, 100_000
        check_rows(n)
        # conditions on the time since another column are on its number of units
        draw = partial(draw_table, self.schema, self.model, rng=rng, as_numbers=True)
        kept = [draw(0)]
        missing, left = n, max_drawn
        while missing > 0:
            wanted = math.ceil(1.1 * min(missing, max_drawn) / max(self.kept, 1.0 / max_drawn)) + 10
            if wanted > 2 * left + 1000:
                raise InputError(
                    f"Rows with such values are too rare in their bins to draw {n:,} of them: {' '.join(self.notes)}",
                    remedy="Ask for whole bins, or for fewer rows.",
                )
            batch = draw(min(wanted, max_batch))
            left -= batch.num_rows
            mask = np.logical_and.reduce([c.holds(batch[c.column.name]) for c in self.cuts])
            kept.append(batch.filter(pa.array(mask)).slice(0, missing))
            missing -= kept[-1].num_rows
        return with_moments(pa.concat_tables(kept), self.schema.columns)

    @short_errors
    def marginal(self, attributes: Iterable[Attribute]) -> Marginal:
        """Return the expected counts of these columns within that part.

        Privacy:
            None spent.
        """
        found = labeled_marginal(self.schema, self.model, attributes)
        if self.cuts:
            values = weighted(self.model, self.cuts, found.clique)
            found = replace(found, values=values)
        share = self.total / found.total() if found.total() > 0 else 0.0
        return replace(found, values=found.values * share)


def labeled_marginal(schema: Schema, model: Answerer, attributes: Iterable[Attribute]) -> Marginal:
    """Return a marginal of the model, with what its codes stand for."""
    clique = schema.domain.clique(attributes)
    labels = tuple(tuple(schema.column(a).labels()) for a in clique)
    return replace(model.project(clique), labels=labels)


def part_of(
    schema: Schema,
    model: Model,
    values: Mapping[Attribute, Condition],
    deviation: float,
    frames: Kind,
) -> Conditional:
    """Return the part of a distribution in which some columns take given values.

    Args:
        schema: The schema of the release.
        model: Its distribution.
        values: The conditions by column.
        deviation: Standard deviation of the number of all records.
        frames: The kind of frame that rows come as by default.
    """
    values = with_missing(schema, values)
    evidence, cuts = codes_by_column(schema, values), cuts_of(schema, values)
    for cut in cuts:
        warnings.warn(str(cut), BinWarning, stacklevel=4)
    everything = total = model.total
    for a, codes in evidence.items():  # the share of one column at a time gives that of all
        narrowed, counts = model.condition({a: codes}), model.project((a,)).values
        total *= float(counts[list(codes)].sum() / counts.sum()) if counts.sum() > 0 else 0.0
        model = narrowed
    whole = float(model.project((cuts[0].column.name,)).values.sum()) if cuts else 0.0
    kept = float(weighted(model, cuts)) / whole if whole > 0 else 1.0
    total *= kept
    share = total / everything if everything > 0 else 0.0
    return Conditional(
        schema, model, evidence, total, deviation * share, frames, cuts, kept, values
    )


def weighted(model: Answerer, cuts: Sequence[Cut], clique: Clique = ()) -> FloatArray:
    """Return the expected counts of a marginal among the records whose values meet conditions.

    Args:
        model: The distribution, with whole bins.
        cuts: The conditions.
        clique: The columns of the marginal, in the domain's order.
    """
    names = {cut.column.name for cut in cuts} | set(clique)
    both = tuple(a for a in model.domain.attributes if a in names)
    values = np.asarray(model.project(both).values, dtype=np.float64)
    for cut in cuts:
        at = both.index(cut.column.name)
        shape = [1] * len(both)
        shape[at] = len(cut.shares)
        values = values * cut.shares.reshape(shape)
    others = tuple(i for i, a in enumerate(both) if a not in clique)
    return np.asarray(values.sum(axis=others))
