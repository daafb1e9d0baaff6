"""What a function of one's own does with the columns of a data set, found by trying it on changed ones."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from margrave.errors import InputError
from margrave.inference.fits import Fitted, read_fit
from margrave.inference.formulas import columns_of, leans_on
from margrave.inference.sources import Frames
from margrave.inference.terms import joined_by
from margrave.typing import Clique

MANY_TRIES = 60
"""A function is tried at most so often: of one that uses more columns nothing is known."""
SAME = 1e-6
"""Two estimates are the same up to this share of themselves or of their standard deviation: sums in another order."""

Names = frozenset[str]


@dataclass(frozen=True, eq=False)
class Trial:
    """A function and one data set, with what it gave: how that changes with other values.

    ``told`` is what the data set's frame knows of itself, as its changed ones do.
    """

    fit: Callable[[pd.DataFrame], Any]
    table: pa.Table
    frames: Frames
    found: Fitted
    told: Mapping[Any, Any] = field(default_factory=dict)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The data set as the function gets it."""
        return self.of(self.table)

    def of(self, table: pa.Table) -> pd.DataFrame:
        """Another table in the data set's place."""
        frame = self.frames.of(table)
        frame.attrs = dict(self.told)
        return frame

    @cached_property
    def steady(self) -> bool:
        """Whether it gives the same once more."""
        return not self.changed(lambda: self.frame)

    def changed(self, make: Callable[[], pd.DataFrame]) -> Names:
        """The estimates that are not the same on another frame; all where the function fails on it, or making it."""
        return frozenset(n for n, apart in self.moves(make).items() if any(apart))

    def moves(self, make: Callable[[], pd.DataFrame]) -> Mapping[str, tuple[float, float]]:
        """How far each estimate, and its standard deviation, is from those here; infinite where there is none."""
        other = given(self.fit, make)
        return {n: self._apart(i, n, other) for i, n in enumerate(self.found.names)}

    def _apart(self, i: int, name: str, other: Fitted | None) -> tuple[float, float]:
        if other is None or name not in other.names:
            return np.inf, np.inf
        j = other.names.index(name)
        here = np.array([self.found.estimates[i], _deviation(self.found.variances[i])])
        there = np.array([other.estimates[j], _deviation(other.variances[j])])
        if np.isnan(here).any() or np.isnan(there).any():
            return (0.0, 0.0) if np.array_equal(here, there, equal_nan=True) else (np.inf, np.inf)
        off = there - here
        off[np.abs(off) <= SAME * np.abs(here).sum()] = 0.0
        return float(off[0]), float(off[1])


def given(fit: Callable[[pd.DataFrame], Any], make: Callable[[], pd.DataFrame]) -> Fitted | None:
    """What a function gives on a frame of made-up values, in making and using which anything may go wrong."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return read_fit(fit(make().copy()))
    except Exception:
        return None


def _deviation(variance: float) -> float:
    return float(np.sqrt(variance)) if variance >= 0 else np.nan


@dataclass(frozen=True, eq=False)
class Tried:
    """The columns of a function of one's own, as far as trying it shows: ``KnowsColumns``.

    ``used``: by column, the estimates that are others with other values in it. ``joined``: those that are others when
    its values change places, so that they are about its relation with other columns. ``formula`` is that of a
    statsmodels result, whose coefficients tell their columns; what is ``used`` beside it chose the records.
    """

    used: Mapping[str, Names]
    joined: Mapping[str, Names]
    formula: str = ""

    @staticmethod
    def of(trial: Trial) -> Tried | None:
        """None where the function gives something else the second time, or has more columns than tries."""
        if not trial.steady:
            return None
        tries = Tries(trial)
        used = tries.used(list(trial.frame.columns))
        joined = {c: tries.joined(c) for c in used}
        if tries.left < 0:
            return None
        return Tried(used, joined, _formula(trial, used))

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that some estimate is about, in the order of the table."""
        return tuple(self.used)

    @property
    def _part(self) -> Clique:
        return tuple(c for c in self.used if c not in columns_of(self.formula)) if self.formula else ()

    def leans(self, name: str, apart: Clique) -> bool:
        """Whether an estimate is about the relation of these columns, or about a single one."""
        if self.formula:
            return leans_on(self.formula, name, apart) or not set(self._part).isdisjoint(apart)
        by = self.joined if len(apart) > 1 else self.used
        return all(name in by.get(c, ()) for c in apart)

    def relates(self, columns: Clique) -> bool:
        """Whether any estimate is about the relation of these columns."""
        names = frozenset[str]().union(*self.joined.values())
        return bool(self.formula) or any(all(n in self.joined[c] for c in columns) for n in names)

    def joins(self, name: str) -> Clique:
        """The columns whose relation all at once an estimate may be about."""
        if self.formula:
            return (*joined_by(self.formula, name), *self._part)
        return tuple(c for c in self.joined if name in self.joined[c])


class Tries:
    """A function's runs on data sets that were changed one way or another."""

    def __init__(self, trial: Trial) -> None:
        self.trial, self.left, self._rng = trial, MANY_TRIES, np.random.default_rng(0)

    def used(self, columns: Sequence[str]) -> dict[str, Names]:
        """By column, the estimates that are others with other values in it: by halves, as most columns are not used."""
        frame = self.trial.frame
        found = self._changed({c: _skewed(frame[c], self._rng) for c in columns})
        if not found or len(columns) == 1:
            return dict.fromkeys(columns, found) if found else {}
        half = len(columns) // 2
        return {**self.used(columns[:half]), **self.used(columns[half:])}

    def joined(self, column: str) -> Names:
        """The estimates that are others when a column's values change places."""
        values = self.trial.frame[column]
        order = self._rng.permutation(len(values))
        return self._changed({column: values.iloc[order].set_axis(values.index)})

    def _changed(self, columns: Mapping[str, pd.Series]) -> Names:
        self.left -= 1
        return self.trial.changed(lambda: self.trial.frame.assign(**columns)) if self.left >= 0 else frozenset()


def _skewed(values: pd.Series, rng: np.random.Generator) -> pd.Series:
    """Values of a column, mostly of its greater ones: with another mean, other shares, and no relation to anything."""
    ordered = values.sort_values(na_position="first", kind="stable")
    return ordered.iloc[(len(values) * rng.random(len(values)) ** 0.25).astype(np.int64)].set_axis(values.index)


def _formula(trial: Trial, used: Mapping[str, Names]) -> str:
    """The formula of a statsmodels result, where it names columns of the table."""
    try:
        formula = getattr(getattr(trial.fit(trial.frame.copy()), "model", None), "formula", None)
        columns = columns_of(formula) if isinstance(formula, str) else ()
    except InputError:
        return ""
    return formula if columns and set(columns) <= set(used) and isinstance(formula, str) else ""
