"""Records at the end of a column's range, where the schema may have clipped values from beyond."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pyarrow as pa

from margrave.inference.caveats.context import Context
from margrave.inference.estimate import Caveat
from margrave.models.protocol import Model
from margrave.ratios import figure, percent
from margrave.release.draws import Draws
from margrave.release.end_cells import (
    MIN_EXCESS_FACTOR,
    MIN_EXCESS_SHARE,
    has_natural_end,
    last_cell,
    may_clip,
    remedy_words,
)
from margrave.release.numbers import clipped_ends
from margrave.schema.constraint_values import NUMERIC_KINDS
from margrave.schema.numeric import Numeric
from margrave.schema.parsing import plain
from margrave.types import FloatArray

#: By estimate, how far it moves.
Moves = Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Excess:
    """An end of a column that may hold values from beyond, with its ``share`` of the records.

    Values outside the bounds are counted in the nearest cell if the schema says ``outside = "clip"``. Bounds with a
    ``cite`` are taken to be those of all values. With d_0 the density of the last cell and d_1, d_2 those of the bins
    before it, an excess is d_0 far above d_1 · min(d_1 / d_2, 2), the trend of the column. With one
    code per value the trend is at least 1. A lower bound of 0 is taken for a natural one, and of whole
    numbers 1. The ends of a short scale do not count, unless the value beside one is the rarest of all others.
    """

    column: Numeric
    top: bool
    share: float

    @staticmethod
    def of(columns: Iterable[Numeric], draws: Draws) -> tuple[Excess, ...]:
        """Return the excesses of some columns."""
        # Draws that are examined.
        max_draws_examined = 20
        able = [c for c in columns if may_clip(c, draws.schema.source(c.name))]
        models = islice(draws.models(), max_draws_examined) if able else ()
        each = [[cell_shares(c, model) for c in able] for model in models]
        found = (
            _excess(column, [shares[i] for shares in each], top)
            for i, column in enumerate(able)
            for top in (False, True)
        )
        return tuple(excess for excess in found if excess is not None)

    @property
    def cell(self) -> int:
        """The code of the last cell."""
        return self.column.cells.count - 1 if self.top else 0

    def beyond(self, table: pa.Table) -> pa.Table:
        """Return a data set with the last cell's values as far outside as the range is wide.

        If that cell is empty, the values of the last one that is not move.
        """
        name, values = self.column.name, plain(table[self.column.name].combine_chunks())
        points, empty = self.column.points(values)
        extremes = self.column.cells.extremes
        low, high = float(extremes[0][0]), float(extremes[1][-1])
        span = max(high - low, 1.0)
        outside = high + span if self.top else low - span
        codes = self.column.encode(values).codes
        present = codes[~(empty | np.isnan(points))]
        cell = (present.max() if self.top else present.min()) if len(present) else self.cell
        moved = np.where(codes == cell, outside, points)
        at = table.column_names.index(name)
        return table.set_column(at, name, self.column.written(np.where(empty, low, moved), empty))

    def text(self, names: str, example: str = "") -> str:
        """Return the caveat on the estimates named; ``example`` says how far one would be off."""
        end, beyond = ("last", "above") if self.top else ("first", "below")
        label = self.column.labels()[self.cell]
        return (
            f"{self.column.name}: {percent(self.share)} of the records are in its {end} cell, {label}, far more"
            f" than the cells beside it lead to expect. By the schema (outside = 'clip') values {beyond} it were"
            f" counted there. If there were such, their distance from it moves {names}, and no interval includes"
            f" that.{example} {remedy_words([self.top])}"
        )


def excesses(context: Context) -> tuple[tuple[Excess, Moves], ...]:
    """Return the excesses, each with the estimates that values beyond it would change, and by how much.

    The change is infinite if the fit fails, and 0 if only the standard deviation changes.
    """
    release, basis, trial = context.release, context.basis, context.trial
    if release is None:
        return ()
    sources = release.schema.sources  # learned bounds hold nearly all rows
    learned = {name for name, source in sources.items() if source.of == "learned"}
    exposed = [c for c in numeric_columns(context) if basis is None or c.name in basis.exposed]
    columns = [c for c in exposed if c.name not in learned]

    def moves(excess: Excess) -> Moves:
        moved = trial.moves(lambda: trial.of(excess.beyond(trial.table)))
        return {name: by for name, (by, spread) in moved.items() if by or spread}

    found, others = _by_numbers(context, columns)
    found += Excess.of(others, release)
    return tuple((e, {} if basis is None else moves(e)) for e in found)


def _by_numbers(
    context: Context, columns: Sequence[Numeric]
) -> tuple[tuple[Excess, ...], list[Numeric]]:
    """Return the excesses that ``Release.numbers`` marks, and the columns that it has no counts of."""
    release = context.release
    if release is None or release.transcript is None:
        return (), list(columns)
    schema, transcript = release.schema, release.transcript
    ends = [(c, clipped_ends(schema, transcript, c)) for c in columns]
    found = (
        Excess(column, top, share)
        for column, shares in ends
        for top, share in zip((False, True), shares or (), strict=False)
        if share
    )
    return tuple(found), [column for column, shares in ends if shares is None]


def check(context: Context) -> Iterator[Caveat]:
    """Yield the ends of columns that may hold clipped values."""
    for excess, moves in context.once(excesses):
        if context.basis is None:
            yield Caveat("clipped", (), False, excess.text("any result of this fit"))
        elif moves:
            names = tuple(n for n in context.names if n in moves)
            text = excess.text(context.about(names), _example(context, moves))
            yield Caveat("clipped", names, True, text)


def _example(context: Context, moves: Moves) -> str:
    able = [
        e for e in context.estimates if e.has_interval and 0 < abs(moves.get(e.name, 0)) < np.inf
    ]
    if not able:
        return ""
    level = context.settings.level
    e = max(able, key=lambda e: abs(moves[e.name]) / e.half_width(level))
    by = moves[e.name]
    ratio = figure(abs(by) / e.half_width(level), 2)
    return (
        f" If they lay as far beyond it as the range is wide, {e.name} would be {figure(abs(by), 3)}"
        f" {'more' if by > 0 else 'less'}, {ratio} times half the width of its interval."
    )


def _excess(column: Numeric, each: Sequence[FloatArray], top: bool) -> Excess | None:
    # Share of the draws in which the excess may be smaller, so that it is not noise.
    excess_quantile = 0.05
    if has_natural_end(column, top):
        return None
    last, expected = np.array([last_cell(column, shares, top) for shares in each]).T
    large = np.quantile(last - expected, excess_quantile) > MIN_EXCESS_SHARE
    large &= last.mean() > MIN_EXCESS_FACTOR * expected.mean()
    return Excess(column, top, float(last.mean())) if large else None


def cell_shares(column: Numeric, model: Model) -> FloatArray:
    """Return the share of each cell of a column in a distribution, without missing values."""
    counts = model.project((column.name,)).values[: column.cells.count]
    return np.asarray(counts / max(float(counts.sum()), np.finfo(np.float64).tiny))


def numeric_columns(context: Context) -> list[Numeric]:
    """Return the release's columns of numbers, dates and times."""
    columns = () if context.release is None else context.release.schema.columns
    return [c for c in columns if isinstance(c, NUMERIC_KINDS)]
