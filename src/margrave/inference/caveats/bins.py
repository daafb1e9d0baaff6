"""Columns used more finely than their bins, within which data sets draw values evenly or as learned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import pyarrow as pa

from margrave.inference.caveats.clipping import cell_shares, numeric_columns
from margrave.inference.caveats.context import Context
from margrave.inference.caveats.merged_codes import valued
from margrave.inference.columns import date_text, days_of, is_date, some
from margrave.inference.datasets import DataSets, Frames
from margrave.inference.estimate import Bounds, Caveat, Estimate, WholeBins
from margrave.inference.fitted import Basis
from margrave.inference.probe import Names, Trial
from margrave.ratios import figure, percent
from margrave.release.beyond_bounds import possible_limits
from margrave.release.conditions import Cut, beyond_words, cuts_of
from margrave.release.draws import Draws
from margrave.schema import Real
from margrave.schema.constraint_values import NUMERIC_KINDS
from margrave.schema.numeric import Numeric
from margrave.schema.parsing import plain
from margrave.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Binned:
    """A column with bins, on the scale of an analysis: dates are days since 1970.

    Attributes:
        low: Low end of every code.
        high: High end of every code.
    """

    column: Numeric
    low: FloatArray
    high: FloatArray
    dates: bool

    #: The draws of values within bins that were declared, and within bins that were learned.
    drawn_evenly: ClassVar[str] = (
        "The release knows the bin of a value and nothing finer, so data sets draw values evenly within a bin."
    )
    drawn_as_learned: ClassVar[str] = (
        "Within a bin of a learned column data sets draw values by its learned distribution, whatever other columns"
        " hold."
    )

    @staticmethod
    def of(column: Numeric, frames: Frames) -> Binned | None:
        """Return the column; None if every code is a single value."""
        found = Binned.values_of(column, frames)
        return found if (found.high > found.low).any() else None

    @staticmethod
    def values_of(column: Numeric, frames: Frames) -> Binned:
        """Return the column, also if every code is a single value."""
        (low, dates), (high, _) = (scaled(column, p, frames) for p in column.cells.extremes)
        # The greatest value below 0 is the end of a bin that ends at 0.
        low, high = (np.where(np.abs(e) < np.finfo(np.float64).tiny, 0.0, e) for e in (low, high))
        return Binned(column, low, high, dates)

    @property
    def learned(self) -> bool:
        """True if data sets draw its values within a bin by a learned distribution, not evenly."""
        return self.column.cells.leaves is not None

    @property
    def widest(self) -> str:
        """The widest bin, with its share of the column's range."""
        widths = self.high - self.low
        share = widths.max() / (self.high.max() - self.low.min())
        first = int((widths >= widths.max() * (1 - 1e-9)).argmax())  # whatever rounding did
        return f"{self.column.labels()[first]}, {percent(share)} of the column's range"

    def codes(self, table: pa.Table) -> IntArray:
        """Return the codes of a data set's values."""
        return self.column.encode(plain(table[self.column.name].combine_chunks())).codes

    def hidden(self, table: pa.Table) -> float:
        """Return the share of a data set's variance within bins, for values as they are drawn there."""
        min_positive = float(np.finfo(np.float64).tiny)
        counts = np.bincount(self.codes(table), minlength=self.column.size)[: len(self.low)]
        shares = counts / max(int(counts.sum()), 1)
        means = self.column.cells.means
        between = float(shares @ (means - shares @ means) ** 2)
        inside = float(shares @ self.column.cells.variances)
        return inside / max(inside + between, min_positive)

    def at_ends(self, table: pa.Table) -> list[pa.Table]:
        """Return the data set with the column at the low, and at the high ends of its bins."""
        name, codes = self.column.name, self.codes(table)
        null, at = codes >= len(self.low), table.column_names.index(name)
        ends = (points[np.where(null, 0, codes)] for points in self.column.cells.extremes)
        return [table.set_column(at, name, self.column.written(points, null)) for points in ends]

    def words(self, value: float) -> str:
        """Return one of its values as text."""
        return date_text(value) if self.dates else figure(value)


@dataclass(frozen=True, eq=False)
class Shifts:
    """The change of one data set's estimates if a column moves to the ends of its bins."""

    binned: Binned
    low: Mapping[str, float]
    high: Mapping[str, float]
    hidden: float

    @staticmethod
    def of(binned: Binned, trial: Trial) -> Shifts:
        """Return the shifts of a fit on its data set."""
        low, high = (
            {n: by for n, (by, _) in trial.moves(partial(trial.of, t)).items()}
            for t in binned.at_ends(trial.table)
        )
        return Shifts(binned, low, high, binned.hidden(trial.table))

    @property
    def name(self) -> str:
        """The column's name."""
        return self.binned.column.name

    @property
    def real(self) -> bool:
        """True for real numbers, whose bins are always wide."""
        return isinstance(self.binned.column, Real)

    def ends(self, e: Estimate) -> tuple[float, float]:
        """Return what an estimate would be."""
        low, high = self.low.get(e.name, np.inf), self.high.get(e.name, np.inf)
        return e.estimate + low, e.estimate + high

    def in_std_errors(self, e: Estimate) -> float:
        """Return the larger shift of an estimate, in standard errors."""
        most = max(abs(self.low.get(e.name, np.inf)), abs(self.high.get(e.name, np.inf)))
        return most / e.bse if e.has_interval else np.inf

    def affected(self, context: Context) -> Names:
        """Return the estimates that a caveat on the column is about; none if it cannot matter."""
        # Share of a real column's variance within its bins that matters: a slope is too small by
        # it.
        min_variance_hidden = 0.01
        # Standard errors that values at the ends of real bins may move an estimate without a
        # caveat.
        max_shift = 0.5
        estimates = context.estimates
        kind = context.basis.kind if context.basis is not None else "function"
        if kind == "function":
            limit = max_shift if self.real else 0.0
            return frozenset(e.name for e in estimates if self.in_std_errors(e) > limit)
        about = [e for e in estimates if context.term(e.name).depends_on((self.name,))]
        if kind == "quantity":
            chosen = (e for e in about if not self.real or self._leaves(e, context.settings.level))
            return frozenset(e.name for e in chosen)
        if context.basis is not None and self.name not in context.basis.by_value:
            # as a category, of which values that share no bin have coefficients of their own
            return frozenset(n for n in context.names if self.low.get(n) or self.high.get(n))
        moved = any(self.low.values()) or any(self.high.values())
        slopes = any(self.in_std_errors(e) > max_shift for e in estimates if e.name != "Intercept")
        matters = moved and (not self.real or self.hidden > min_variance_hidden or slopes)
        return frozenset(e.name for e in about) if matters else frozenset()

    def _leaves(self, e: Estimate, level: float) -> bool:
        (low, high), ends = e.conf_int(level), self.ends(e)
        return not (low <= min(ends) and max(ends) <= high)


def wide_columns(context: Context) -> list[Binned]:
    """Return the release's columns with bins of several values."""
    lines = numeric_columns(context)
    return [b for b in (Binned.of(c, context.trial.frames) for c in lines) if b is not None]


def finer_columns(context: Context) -> list[Binned]:
    """Return the columns with bins of several values that an analysis may use more finely.

    These are the columns taken by value. In a regression, a column as a category has a coefficient for each value.
    """
    basis, release = context.basis, context.release
    if basis is None or release is None:
        return []
    names = {*valued(basis, release.schema)}
    names |= {*basis.columns} if basis.kind == "coefficients" else set()
    names -= context.in_whole_bins
    return [b for b in context.once(wide_columns) if b.column.name in names]


def shifts(context: Context) -> tuple[tuple[Shifts, Names], ...]:
    """Return the columns that an analysis may use more finely than their bins, with the estimates affected."""
    found = [Shifts.of(b, context.trial) for b in context.once(finer_columns)]
    return tuple((s, s.affected(context)) for s in found)


def bounds_of(basis: Basis, draws: DataSets, frames: Frames) -> Bounds | None:
    """Return the least and greatest value of estimates that the values of a column bound.

    Learned bounds leave values out, which a mean or total includes: only public ones bound them.
    """
    if basis.bounds is not None or not basis.lies or not isinstance(draws, Draws):
        return basis.bounds
    column = draws.schema.column(basis.columns[0])
    if not isinstance(column, NUMERIC_KINDS):
        return None
    low, high = (
        float(scaled(column, np.array([end]), frames)[0][0]) if np.isfinite(end) else None
        for end in possible_limits(column, draws.schema.sources)
    )
    if basis.lies == "within":
        return low, high
    positive, negative = low is not None and low >= 0, high is not None and high <= 0
    return (0.0 if positive else None), (0.0 if negative else None)


def bins_of(basis: Basis | None, draws: DataSets, frames: Frames) -> WholeBins | None:
    """Return the bins of a quantile's column, of which its intervals contain whole ones; also bins of one value.

    Returns None if a condition cuts a bin: the values of the records that it keeps are then unknown.
    """
    if basis is None or basis.ends != "bins" or not isinstance(draws, Draws):
        return None
    column = draws.schema.column(basis.columns[0])
    if not isinstance(column, NUMERIC_KINDS):
        return None
    if any(c.column.name == column.name for c in cuts_of(draws.schema, dict(basis.conditions))):
        return None
    found = Binned.values_of(column, frames)
    return WholeBins(column.name, tuple(found.low.tolist()), tuple(found.high.tolist()))


def cuts(context: Context) -> tuple[Cut, ...]:
    """Return the conditions of an analysis that are finer than the bins of their columns."""
    basis, release = context.basis, context.release
    if basis is None or release is None:
        return ()
    return cuts_of(release.schema, dict(basis.conditions))


def ends_of(context: Context) -> dict[str, tuple[float, float]]:
    """Return what means and totals would be with values at the low, at the high ends of bins.

    Values that move within a bin enter or leave a range that cuts it, so that the ends bound nothing.
    """
    basis, release = context.basis, context.release
    if basis is None or release is None or basis.ends in ("", "bins"):
        return {}
    if any(cut.column.name == basis.columns[0] for cut in context.once(cuts)):
        return {}
    found = {}
    for s, names in (own for own in context.once(shifts) if own[0].name == basis.columns[0]):
        exact = basis.ends == "shares"
        for e in (e for e in context.estimates if e.name in names):
            found[e.name] = (
                _ends_by_shares(s.binned, release, context.settings.bias_correct)
                if exact
                else s.ends(e)
            )
    return {name: ends for name, ends in found.items() if np.isfinite(ends).all()}


def check(context: Context) -> Iterator[Caveat]:
    """Yield caveats on the columns that an analysis uses more finely than their bins."""
    if context.basis is None and (wide := context.once(wide_columns)):
        widest = some([f"{b.column.name} ({b.widest})" for b in wide], "; ")
        assumption, drawn = _assumed(wide)
        text = f"This fit may use values within bins, and is valid if {assumption}: {widest}."
        yield Caveat("binned", (), False, text, drawn)
    for cut in context.once(cuts):
        yield Caveat("cut bin", context.names, False, str(cut))
    if context.basis is not None and context.release is not None:
        for text in beyond_words(context.release.schema, dict(context.basis.conditions)):
            yield Caveat("range beyond the bounds", context.names, False, text)
    found = {s: names for s, names in context.once(shifts) if names}
    about = [e for e in context.estimates if any(e.name in names for names in found.values())]
    if about:
        names, text = tuple(e.name for e in about), _text(context, list(found), about)
        yield Caveat("binned", names, False, text, _assumed([s.binned for s in found])[1])
    for column in sorted(context.in_whole_bins):
        yield Caveat(
            "whole bins", context.names, False,
            f"{column}: the release knows the bin of a value, not its place there. So intervals contain whole bins.",
        )  # fmt: skip


def _assumed(columns: Sequence[Binned]) -> tuple[str, str]:
    """Return what an analysis of values within bins assumes, and how data sets draw them."""
    learned = [b.column.name for b in columns if b.learned]
    if not learned:
        return "values are spread evenly within bins", Binned.drawn_evenly
    if len(learned) == len(columns):
        return "values within bins follow the learned distribution", Binned.drawn_as_learned
    return (
        f"values within bins are spread evenly, and those of {some(learned)} follow the learned distribution",
        f"{Binned.drawn_evenly} {Binned.drawn_as_learned}",
    )


def _text(context: Context, columns: Sequence[Shifts], about: Sequence[Estimate]) -> str:
    widest = some([f"{s.name} (the widest is {s.binned.widest})" for s in columns], "; ")
    one, names = len(about) == 1, context.about([e.name for e in about])
    text = (
        f"{widest}: the interval{'' if one else 's'} of {names} hold{'s' if one else ''} if"
        f" {_assumed([s.binned for s in columns])[0]}."
    )
    ends, level = context.once(ends_of), context.settings.level
    own = [e for e in about if e.name in ends]
    if not own:
        return text

    def half_widths(e: Estimate) -> float:
        far = max(e.estimate - ends[e.name][0], ends[e.name][1] - e.estimate)
        return far / e.half_width(level) if e.has_interval else 0.0

    most, basis = max(own, key=half_widths), context.basis
    binned = next(s.binned for s in columns if basis is not None and s.name == basis.columns[0])
    low, high = map(binned.words, ends[most.name])
    ratio = half_widths(most)
    far = f", up to {figure(ratio, 2)} times half the width of its interval away" if ratio else ""
    return (
        f"{text} With all values at the low ends of their bins {'it' if one else most.name} would be about {low}, at"
        f" the high ends {high}{far}."
    )


def _ends_by_shares(binned: Binned, draws: Draws, bias_correct: bool) -> tuple[float, float]:
    """Return the mean at either end of the bins, by the shares of codes in all distributions."""
    shares = np.mean([cell_shares(binned.column, model) for model in draws.models()], axis=0)
    own = draws.released() if bias_correct else None
    if own is not None:
        shares = 2 * cell_shares(binned.column, next(own.models())) - shares
    return float(shares @ binned.low), float(shares @ binned.high)


def scaled(column: Numeric, points: FloatArray, frames: Frames) -> tuple[FloatArray, bool]:
    values = column.written(points, np.zeros(len(points), dtype=np.bool_))
    series = frames.of(pa.table({column.name: values}))[column.name]
    dates = is_date(series)
    return (days_of(series) if dates else series).to_numpy(dtype=np.float64), dates
