"""Columns that an analysis takes finer than their bins, of which the data sets know nothing but an even spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from margrave.inference.estimate import Estimate
from margrave.inference.kinds import day_in_words, days_of, is_date, some
from margrave.inference.models import Mean, OfFormula
from margrave.inference.piles import Pile
from margrave.inference.sources import Frames
from margrave.inference.totals import Total
from margrave.inference.tried import Names, Trial, Tried
from margrave.models.protocol import Model
from margrave.ratios import percent
from margrave.release.draws import Draws
from margrave.schema import Real, Schema
from margrave.schema.elements import LINES
from margrave.schema.numeric import Numeric
from margrave.schema.values import plain
from margrave.typing import FloatArray, IntArray

HIDDEN = 0.01
"""Bins of real numbers are worth a note where this share of the column's variance lies within them: what a slope on the
column is too small by, if values within a bin tell something."""

NEGLIGIBLE = 0.5
"""Standard errors that estimates may change by, with real numbers at the ends of their bins, without a note."""

UNKNOWN = "what this fit takes from it"

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
        return f"{self.column.labels()[first]}, {percent(share)} of the column's range"

    def codes(self, table: pa.Table) -> IntArray:
        """The codes of its values in a data set."""
        return self.column.encode(plain(table[self.name].combine_chunks())).codes

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
class Shifts:
    """By how much the estimates of one data set change with all values of a column at the low, at the high ends."""

    column: Binned
    low: Mapping[str, float]
    high: Mapping[str, float]
    hidden: float

    @staticmethod
    def of(column: Binned, trial: Trial) -> Shifts:
        """Of what a fit gave on a data set."""
        tables = column.moved(trial.table)
        low, high = ({n: by for n, (by, _) in trial.moves(partial(trial.of, t)).items()} for t in tables)
        return Shifts(column, low, high, column.hidden(column.shares(column.codes(trial.table))))

    @property
    def real(self) -> bool:
        """Whether it holds real numbers, whose bins are always wide."""
        return isinstance(self.column.column, Real)

    def ends(self, found: Estimate) -> tuple[float, float]:
        """What an estimate would be."""
        return found.estimate + self.low.get(found.name, np.inf), found.estimate + self.high.get(found.name, np.inf)

    def by(self, found: Estimate) -> float:
        """The larger of its two changes, in standard errors."""
        most = max(abs(self.low.get(found.name, np.inf)), abs(self.high.get(found.name, np.inf)))
        return most / found.standard_error if found.known else np.inf

    def leaves(self, found: Estimate, level: float) -> bool:
        """Whether the values within bins can move an estimate out of its interval."""
        low, high = found.interval(level)
        return not (low <= min(self.ends(found)) and max(self.ends(found)) <= high)


@dataclass(frozen=True, eq=False)
class Bins:
    """What of an analysis is finer than the bins of its columns, or lies beyond them.

    ``columns`` enter it by value and have a code that stands for several; ``piles`` are ends of columns that may hold
    values from beyond the schema's bounds, with the estimates that such values would change. ``ends`` is what the mean
    of all records would be with all values at the low, at the high ends of their bins. ``general`` is told where the
    columns of a fit are unknown.
    """

    fit: Any = None
    columns: tuple[Shifts, ...] = ()
    piles: tuple[tuple[Pile, Names], ...] = ()
    ends: tuple[float, float] | None = None
    general: tuple[str, ...] = ()

    @staticmethod
    def of(knows: Any, draws: Any, trial: Trial, *, corrected: bool) -> Bins:
        """Of a fit on draws of a release. Tables from elsewhere do not say what their bins were, nor does this.

        ``knows`` is the fit, or what a function was found to do with its columns; None where that is unknown.
        ``corrected``: the bias that refits show is taken off the estimates, and off the shares of codes here.
        """
        if not isinstance(draws, Draws):
            return Bins()
        lines = [c for c in draws.schema.columns if isinstance(c, LINES)]
        wide = [b for b in (Binned.of(c, trial.frames) for c in lines) if b is not None]
        if knows is None:
            return Bins(general=(*_general(wide), *(p.note([UNKNOWN]) for p in Pile.of(lines, draws))))
        names = _by_value(knows, draws.schema)
        taken = names if isinstance(knows, OfFormula) else knows.columns
        piles = Pile.of([c for c in lines if c.name in taken], draws)
        wide = [b for b in wide if b.name in names]
        return Bins(
            knows,
            tuple(Shifts.of(b, trial) for b in wide),
            tuple((p, trial.changed(partial(_beyond, p, trial))) for p in piles),
            _ends(wide[0], draws, corrected=corrected) if isinstance(knows, Mean) and wide and not knows.held else None,
        )

    def told(self, estimates: Sequence[Estimate], level: float) -> tuple[Estimate, ...]:
        """The estimates with the columns whose bins they are finer than, and those that may lie beyond them."""
        about = [(s, self._about(s, estimates, level)) for s in self.columns]
        return tuple(
            replace(
                e,
                binned=tuple(s.column.name for s, names in about if e.name in names),
                ends=self._ends(e, [s for s, names in about if e.name in names]),
                clipped=tuple(dict.fromkeys(p.column.name for p, names in self.piles if e.name in names)),
            )
            for e in estimates
        )

    def _ends(self, found: Estimate, shifts: Sequence[Shifts]) -> tuple[float, float] | None:
        """What a mean would be with all values at the low, at the high ends of their bins."""
        model = getattr(self.fit, "model", self.fit)
        own = [s for s in shifts if isinstance(model, Mean | Total) and s.column.name == model.column]
        return (self.ends or own[0].ends(found)) if own else None

    def _about(self, shifts: Shifts, estimates: Sequence[Estimate], level: float) -> Names:
        """The estimates that a note on a column is about; none where it cannot matter."""
        if isinstance(self.fit, Tried):
            return frozenset(e.name for e in estimates if shifts.by(e) > (NEGLIGIBLE if shifts.real else 0.0))
        about = [e for e in estimates if self.fit.leans(e.name, (shifts.column.name,))]
        if not isinstance(self.fit, OfFormula):
            return frozenset(e.name for e in about if not shifts.real or shifts.leaves(e, level))
        moved = any(shifts.low.values()) or any(shifts.high.values())
        slopes = any(shifts.by(e) > NEGLIGIBLE for e in estimates if e.name != "Intercept")
        matters = moved and (not shifts.real or shifts.hidden > HIDDEN or slopes)
        return frozenset(e.name for e in about) if matters else frozenset()

    def decisive(self) -> list[str]:
        """What may be off by any amount."""
        return [pile.note(sorted(names)) for pile, names in self.piles if names]

    def notes(self, estimates: Sequence[Estimate]) -> list[str]:
        """What else a reader must know, a note for each column."""
        told = []
        for shifts in self.columns:
            about = [e for e in estimates if shifts.column.name in e.binned]
            if about:
                told.append(_note(shifts.column, about))
        return [*told, *self.general]


def _beyond(pile: Pile, trial: Trial) -> pd.DataFrame:
    """The data set of a trial with the values of a pile beyond the bounds."""
    return trial.of(pile.beyond(trial.table))


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


def _general(wide: Sequence[Binned]) -> list[str]:
    """What is told where nobody knows which columns a fit takes by value."""
    if not wide:
        return []
    widest = some([f"{b.name} ({b.widest})" for b in wide], "; ")
    return [
        "Of some columns the release knows the bin of a value and nothing finer, and within a bin values are drawn"
        f" evenly; their widest bins: {widest}. What this fit takes from them by value rests on that."
    ]


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


def _counted(column: Numeric, points: FloatArray, frames: Frames) -> tuple[FloatArray, bool]:
    """Points of a column's line as an analysis counts them, and whether they are dates."""
    values = column.written(points, np.zeros(len(points), dtype=np.bool_))
    series = frames.of(pa.table({column.name: values}))[column.name]
    dates = is_date(series)
    return (days_of(series) if dates else series).to_numpy(dtype=np.float64), dates
