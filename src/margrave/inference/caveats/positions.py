"""Bins too wide for an analysis: unknown positions of values within them move an estimate beside its interval."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from margrave.inference.caveats.bins import Binned, finer_columns, shifts
from margrave.inference.caveats.context import Context
from margrave.inference.estimands import Correlation
from margrave.inference.estimate import Caveat, Estimate
from margrave.inference.probe import Names, Trial
from margrave.ratios import figure
from margrave.release.beyond_bounds import open_bounds
from margrave.release.far_values import far_values
from margrave.schema.parsing import plain
from margrave.schema.remedies import bins_remedy, bounds_remedy
from margrave.schema.sources import learned_of
from margrave.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Positions:
    """One column's values within its bins, and how far they may move the estimates of one data set.

    The values of a bin may lie anywhere in it, in each bin on its own. If they all move to one end, an
    estimate moves by at most d. With a place that is uniform over the bin, the estimate's deviation is
    d / √3. For a learned column, these bins are the parts that its learned distribution has. The values of
    a bin may also follow other columns, which drawn values do not. Values at the mean of their whole bin
    show by how much that weakens a relation.

    Attributes:
        column: Name of the column.
        spread: By estimate, the standard deviation by the places of the bins' values; infinite if some
            places leave it without a result, such as a part of the rows without any.
        weakened: By estimate, the change with all values at the mean of their bins.
        within: Estimates of values within a bin: without a result if all values are at one end of their bins,
            where others have one.
    """

    column: str
    spread: Mapping[str, float] = field(default_factory=dict)
    weakened: Mapping[str, float] = field(default_factory=dict)
    within: Names = frozenset()

    @staticmethod
    def of(binned: Binned, trial: Trial, within: Names = frozenset()) -> Positions:
        """Return the positions of a column in the trial's data set."""
        found = _Values.of(binned, trial)
        squares: dict[str, float] = {}
        for chosen, share in found.groups():
            low, high = (found.moves(np.where(chosen, end, found.points)) for end in found.ends)
            for name in trial.found.names:
                squares[name] = (
                    squares.get(name, 0.0) + share * max(low[name] ** 2, high[name] ** 2) / 3
                )
        middle = found.moves(found.means) if squares else {}
        spread = {n: math.sqrt(v) for n, v in squares.items()}
        return Positions(binned.column.name, spread, middle, within)

    def shift(self, e: Estimate, *, linear: bool) -> float:
        """Return how far an estimate may be off, in standard errors; ``linear`` for a mean or a total of the column."""
        own = math.inf if e.name in self.within else self.spread.get(e.name, 0.0)
        weakened = 0.0 if linear else self.weakened.get(e.name, 0.0) / 1.96
        return math.hypot(own, weakened) / e.bse if e.has_interval else 0.0


@dataclass(frozen=True, eq=False)
class _Values:
    """A column's values in a data set, as points on its line, with the bin of each."""

    binned: Binned
    trial: Trial
    points: FloatArray
    empty: BoolArray
    codes: IntArray
    least: FloatArray
    greatest: FloatArray

    @staticmethod
    def of(binned: Binned, trial: Trial) -> _Values:
        column, finest = binned.column, binned.column.cells.finest
        points, empty = column.points(plain(trial.table[column.name].combine_chunks()))
        empty = empty | np.isnan(points)
        points = np.where(empty, finest.extremes[0][0], points)
        return _Values(binned, trial, points, empty, finest.locate(points), *finest.extremes)

    @property
    def ends(self) -> tuple[FloatArray, FloatArray]:
        """The least and the greatest value of every value's bin."""
        return self.least[self.codes], self.greatest[self.codes]

    @property
    def means(self) -> FloatArray:
        """The mean of every value's bin, also of a learned one; of the whole numbers beside it by turns."""
        cells = self.binned.column.cells
        means = cells.means[cells.locate(self.points)]
        return np.floor(means + np.arange(len(means)) % 8 / 8) if cells.whole else means

    def groups(self) -> Iterator[tuple[BoolArray, float]]:
        """Yield masks of the values of neighboring bins, with 1 / the number of bins that count there.

        A bin counts by its number of values times its width.
        """
        max_groups = 8
        counts = np.bincount(self.codes[~self.empty], minlength=len(self.least))
        weights = counts * (self.greatest - self.least)
        total = float(weights.sum())
        if total <= 0:
            return
        group = np.minimum((np.cumsum(weights) - weights / 2) / total * max_groups, max_groups - 1)
        group = group.astype(np.int64)
        for g in np.unique(group[weights > 0]):
            own = np.where(group == g, weights, 0.0)
            yield (group[self.codes] == g) & ~self.empty, float((own**2).sum() / own.sum() ** 2)

    def moves(self, points: FloatArray) -> Mapping[str, float]:
        """Return the change of each estimate with other values; infinite if it is absent there."""
        column, table = self.binned.column, self.trial.table
        at = table.column_names.index(column.name)
        moved = table.set_column(at, column.name, column.written(points, self.empty))
        found = self.trial.moves(partial(self.trial.of, moved))
        return {n: by for n, (by, _) in found.items()}


def positions(context: Context) -> tuple[Positions, ...]:
    """Return the positions of the columns that an analysis may use more finely than their bins."""
    within = {
        s.name: frozenset(
            n for ends in (s.low, s.high) if np.isfinite([*ends.values()]).any()
            for n, by in ends.items() if not math.isfinite(by)
        )
        for s, _ in context.once(shifts)
    }  # fmt: skip
    columns = context.once(finer_columns)
    return tuple(Positions.of(b, context.trial, within[b.column.name]) for b in columns)


def coarse(context: Context) -> dict[str, tuple[str, ...]]:
    """Return, for each estimate, the columns whose bins are too wide for its interval."""
    # Standard errors that positions may move an estimate without a mark. Means and totals depend on the
    # mean of each bin alone, and the bins of a smooth column have means near their middles.
    max_shift, max_shift_of_means = 0.5, 2.0
    limit = max_shift_of_means if _is_linear(context) else max_shift
    found = {}
    for e in context.estimates:
        own = _shifts(context, e)
        whole = math.hypot(*own.values())
        wide = (c for c, s in own.items() if whole > limit and s >= whole / 2)
        found[e.name] = tuple(dict.fromkeys([*wide, *context.once(far_out)[e.name]]))
    return found


def far_out(context: Context) -> dict[str, tuple[str, ...]]:
    """Return, for each correlation and coefficient, the columns whose spread may be due to noise far out in a bin."""
    found: dict[str, tuple[str, ...]] = dict.fromkeys(context.names, ())
    release, basis = context.release, context.basis
    of_coefficients = basis is not None and basis.kind == "coefficients"
    is_relation = of_coefficients or isinstance(context.trial.fit, Correlation)
    if not is_relation or basis is None or release is None or release.transcript is None:
        return found
    far = far_values(release.schema, release.transcript)
    for e in context.estimates:
        term = context.term(e.name)
        spared = term.joins[:1] if of_coefficients else ()
        own = (c for c in term.columns if c in basis.by_value and c not in spared)
        found[e.name] = tuple(c for c in own if c in far and far[c].weakens)
    return found


def check(context: Context) -> Iterator[Caveat]:
    """Yield the columns whose bins are too wide for some estimates, and how far these may be off."""
    noisy = context.once(far_out)
    for widened in dict.fromkeys(filter(None, noisy.values())):
        few = tuple(name for name, own in noisy.items() if own == widened)
        yield Caveat(
            "coarse bins", few, True,
            f"{' and '.join(widened)}: noise may have placed values far out in the first or last bin, and these widen"
            f" the spread. So {context.about(few)} may be too close to 0 by more than the interval includes."
            f" {_remedy(context, widened)}",
        )  # fmt: skip
    by_name = context.once(coarse)
    about = [e for e in context.estimates if by_name[e.name] and not noisy[e.name]]
    if not about:
        return
    columns = [
        p.column for p in context.once(positions) if any(p.column in by_name[e.name] for e in about)
    ]
    names = tuple(e.name for e in about)
    level = context.settings.level
    moved = {e: 1.96 * math.hypot(*_shifts(context, e).values()) * e.bse for e in about}
    most = max(about, key=lambda e: moved[e] / e.half_width(level))
    by, ratio = moved[most], moved[most] / most.half_width(level)
    far = (
        f"may move {'it' if len(about) == 1 else most.name} by about {figure(by, 3)}, {figure(ratio, 2)} times"
        " half the width of its interval"
        if np.isfinite(by)
        else f"may leave {'it' if len(about) == 1 else most.name} without any value"
    )
    yield Caveat(
        "coarse bins", names, True,
        f"{' and '.join(columns)}: {'its' if len(columns) == 1 else 'their'} bins are too wide for"
        f" {context.about(names)}. The unknown positions of values within the bins {far}."
        f" {_remedy(context, columns)}",
    )  # fmt: skip


def _remedy(context: Context, columns: Sequence[str]) -> str:
    """Return what makes bins finer, apart for columns that were learned."""
    assert context.release is not None
    learned = learned_of(context.release.schema.sources).intersection(columns)
    remedies = []
    if len(learned) < len(columns):
        remedies.append(f"{bins_remedy()} Narrower public bounds help too.")
    if learned:
        remedies.append(
            f"{bounds_remedy(open_bounds(context.release.schema, learned))} Or raise the budget."
        )
    return " ".join(f"In the schema of the next release, {remedy}" for remedy in remedies)


def _is_linear(context: Context) -> bool:
    return context.basis is not None and context.basis.ends in ("shift", "shares")


def _shifts(context: Context, e: Estimate) -> dict[str, float]:
    """Return how far each column may move an estimate, in standard errors."""
    averaged = context.basis.columns[0] if context.basis and _is_linear(context) else ""
    return {p.column: p.shift(e, linear=p.column == averaged) for p in context.once(positions)}
