"""Columns that an analysis takes finer than their bins, of which the data sets know nothing but an even spread."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from margrave.inference.estimate import Estimate
from margrave.inference.fits import read_fit
from margrave.inference.formulas import day_in_words, days_of, is_date, some
from margrave.inference.models import OLS, Logistic, Mean
from margrave.inference.relations import KnowsColumns
from margrave.inference.sources import Frames
from margrave.models.protocol import Model
from margrave.release.draws import Draws
from margrave.schema import Real, Schema
from margrave.schema.elements import LINES
from margrave.schema.numeric import Numeric
from margrave.schema.values import plain
from margrave.typing import Clique, FloatArray, IntArray

HIDDEN = 0.01
"""Bins of real numbers are worth a note where this share of the column's variance lies within them: what a slope on the
column is too small by, if values within a bin tell something."""

TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, eq=False)
class Binned:
    """A column of which some codes stand for several values, counted as an analysis does: dates in days since 1970.

    ``least`` and ``greatest`` are the ends of every code.
    """

    column: Numeric
    least: FloatArray
    greatest: FloatArray
    dates: bool

    @staticmethod
    def of(column: Numeric, frames: Frames) -> Binned | None:
        """The column, if it has such a code."""
        ends = [_counted(column, points, frames) for points in column.cells.extremes]
        (least, dates), (greatest, _) = ends
        return Binned(column, least, greatest, dates) if (greatest > least).any() else None

    @property
    def name(self) -> str:
        """The column's name."""
        return self.column.name

    @property
    def widest(self) -> str:
        """The widest bin in words, with its share of the column's range."""
        widths = self.greatest - self.least
        share = widths.max() / (self.greatest.max() - self.least.min())
        first = int((widths >= widths.max() * (1 - 1e-9)).argmax())  # of bins of one width, whatever rounding did
        return f"{self.column.labels()[first]}, {100 * share:.2g} % of the column's range"

    def codes(self, table: pa.Table) -> IntArray:
        """The codes of its values in a data set."""
        return self.column.encode(plain(table[self.name])).codes

    def shares(self, codes: IntArray) -> FloatArray:
        """How often each code occurs, missing ones left out."""
        counts = np.bincount(codes, minlength=self.column.size)[: len(self.least)]
        return np.asarray(counts / max(int(counts.sum()), 1))

    def hidden(self, shares: FloatArray) -> float:
        """The share of its variance that lies within bins, as even values have it."""
        middle, within = (self.least + self.greatest) / 2, (self.greatest - self.least) ** 2 / 12
        between = shares @ (middle - shares @ middle) ** 2
        inside = float(shares @ within)
        return inside / max(inside + float(between), TINY)

    def moved(self, table: pa.Table) -> list[pa.Table]:
        """The data set with all of its values at the low ends of their bins, and with all at the high ends."""
        codes = self.codes(table)
        null, at = codes >= len(self.least), table.column_names.index(self.name)
        ends = (points[np.where(null, 0, codes)] for points in self.column.cells.extremes)
        return [table.set_column(at, self.name, self.column.written(points, null)) for points in ends]

    def words(self, value: float) -> str:
        """One of its values."""
        return day_in_words(value) if self.dates else f"{value:.4g}"


@dataclass(frozen=True, eq=False)
class Bins:
    """What of an analysis is finer than the bins of its columns.

    ``columns`` enter it by value and have a code that stands for several; ``leans`` says which estimates are about
    one. ``ends`` is what a mean would be with all values at the low, at the high ends of their bins. ``general`` is
    told where the columns of a fit are unknown.
    """

    columns: tuple[Binned, ...] = ()
    ends: tuple[float, float] | None = None
    general: str = ""
    leans: Callable[[str, Clique], bool] = lambda _name, _column: False

    @staticmethod
    def of(fit: Any, draws: Any, frames: Frames, *, corrected: bool) -> Bins:
        """Of a fit on draws of a release. Tables from elsewhere do not say what their bins were, nor does this.

        ``corrected``: the bias that refits show is taken off the estimates, and off the shares of codes here.
        """
        if not isinstance(draws, Draws):
            return Bins()
        schema, known = draws.schema, isinstance(fit, KnowsColumns)
        names = _by_value(fit, schema) if known else [c.name for c in schema.columns]
        lines = [c for c in schema.columns if c.name in names and isinstance(c, LINES)]
        wide = [b for b in (Binned.of(c, frames) for c in lines) if b is not None]
        if not wide:
            return Bins()
        table = draws[0]
        if isinstance(fit, Mean):
            (column,) = wide
            return Bins((column,), _ends(column, draws, corrected=corrected), leans=fit.leans)
        wide = [b for b in wide if not isinstance(b.column, Real) or b.hidden(b.shares(b.codes(table))) > HIDDEN]
        if not known:
            return Bins(general=_general(wide))
        if isinstance(fit, OLS | Logistic):
            wide = [b for b in wide if _moves(fit, b, table, frames)]
        return Bins(tuple(wide), leans=fit.leans)

    def told(self, found: Estimate, level: float) -> Estimate:
        """The estimate with the columns whose bins it is finer than.

        For the mean of real numbers, whose bins are always wide, only where the values within could move it out of its
        interval.
        """
        columns = [b for b in self.columns if self.leans(found.name, (b.name,))]
        if self.ends is not None and isinstance(columns[0].column, Real) and found.known:
            low, high = found.interval(level)
            columns = columns if self.ends[0] < low or self.ends[1] > high else []
        return replace(found, binned=tuple(b.name for b in columns), ends=self.ends if columns else None)

    def notes(self, estimates: Sequence[Estimate]) -> list[str]:
        """What a reader must know, a note for each column."""
        told = []
        for column in self.columns:
            about = [e for e in estimates if column.name in e.binned]
            if about:
                told.append(_note(column, about))
        return [*told, *([self.general] if self.general else [])]


def _note(column: Binned, about: Sequence[Estimate]) -> str:
    names = some([e.name for e in about])
    told = (
        f"{column.name}: the release knows the bin of a value and nothing finer (the widest is {column.widest}), and"
        " within a bin values are drawn evenly."
    )
    if about[0].ends is None:
        one = len(about) == 1
        return f"{told} The interval{'' if one else 's'} of {names} take{'s' if one else ''} that for the truth."
    low, high = (column.words(end) for end in about[0].ends)
    return (
        f"{told} The interval of {names} takes that for the truth: with all values at the low ends of their bins it"
        f" would be about {low}, at the high ends {high}."
    )


def _general(wide: Sequence[Binned]) -> str:
    """What is told where nobody knows which columns a fit takes by value."""
    if not wide:
        return ""
    widest = some([f"{b.name} ({b.widest})" for b in wide], "; ")
    return (
        "Of some columns the release knows the bin of a value and nothing finer, and within a bin values are drawn"
        f" evenly; their widest bins: {widest}. What this fit takes from them by value rests on that."
    )


def _by_value(fit: Any, schema: Schema) -> Sequence[str]:
    """The columns that a fit takes by value; all that it knows where it does not say."""
    by_value = getattr(fit, "by_value", None)
    found: Sequence[str] = fit.columns if by_value is None else by_value(schema)
    return found


def _ends(column: Binned, draws: Draws, *, corrected: bool) -> tuple[float, float]:
    """What the mean would be with all values at either end of their bins, by the shares of codes in the draws."""
    shares = np.mean([_share(column, model) for model in draws.models()], axis=0)
    own = draws.released() if corrected else None
    if own is not None:
        shares = 2 * _share(column, next(own.models())) - shares
    return float(shares @ column.least), float(shares @ column.greatest)


def _share(column: Binned, model: Model) -> FloatArray:
    counts = model.project((column.name,)).values[: len(column.least)]
    return np.asarray(counts / max(counts.sum(), TINY))


def _moves(fit: OLS | Logistic, column: Binned, table: pa.Table, frames: Frames) -> bool:
    """Whether a regression changes as values move within their bins: ``age > 65`` does not, where 66 begins a bin."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            drawn, *others = (read_fit(fit(frames.of(t))) for t in (table, *column.moved(table)))
    except Exception:  # a fit that fails on made-up values says nothing of them, and the note is the safer of the two
        return True
    return not all(
        drawn.names == other.names and np.allclose(drawn.estimates, other.estimates, equal_nan=True)
        for other in others
    )


def _counted(column: Numeric, points: FloatArray, frames: Frames) -> tuple[FloatArray, bool]:
    """Points of a column's line as an analysis counts them, and whether they are dates."""
    values = column.written(points, np.zeros(len(points), dtype=np.bool_))
    series = frames.of(pa.table({column.name: values}))[column.name]
    dates = is_date(series)
    return (days_of(series) if dates else series).to_numpy(dtype=np.float64), dates
