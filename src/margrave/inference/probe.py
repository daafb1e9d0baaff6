"""Functions of one's own: the columns they use, as named by the caller or found by trying them."""

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
from margrave.formula import columns_in, parse
from margrave.inference.datasets import Frames
from margrave.inference.fitted import Basis, EstimateTerm, Fitted, read_fit
from margrave.inference.regression_terms import terms_of
from margrave.types import Clique

#: Runs of a function that look for its columns; one with more columns remains unknown.
MAX_TRIALS = 60

Names = frozenset[str]


@dataclass(frozen=True, eq=False)
class Trial:
    """A fit, one data set and its result: how the result changes with other values.

    Attributes:
        attrs: Attributes of the data set's frame, which changed frames have too.
    """

    fit: Callable[[pd.DataFrame], Any]
    table: pa.Table
    frames: Frames
    found: Fitted
    attrs: Mapping[Any, Any] = field(default_factory=dict)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The data set as the fit gets it."""
        return self.of(self.table)

    def of(self, table: pa.Table) -> pd.DataFrame:
        """Return the frame of another table in the data set's place."""
        frame = self.frames.of(table)
        frame.attrs = dict(self.attrs)
        return frame

    def changed(self, make: Callable[[], pd.DataFrame]) -> Names:
        """Return the estimates that differ on another frame; all of them if the fit fails there."""
        return frozenset(n for n, moves in self.moves(make).items() if any(moves))

    def moves(self, make: Callable[[], pd.DataFrame]) -> Mapping[str, tuple[float, float]]:
        """Return how far each estimate and standard deviation moves; infinite if it is absent."""
        other = try_fit(self.fit, make)
        return {n: self._move(i, n, other) for i, n in enumerate(self.found.names)}

    def _move(self, i: int, name: str, other: Fitted | None) -> tuple[float, float]:
        # Two estimates are equal up to this share of themselves or of their standard deviation.
        equality_tolerance = 1e-6
        if other is None or name not in other.names:
            return np.inf, np.inf
        j = other.names.index(name)
        here = np.array([self.found.estimates[i], _deviation(self.found.variances[i])])
        there = np.array([other.estimates[j], _deviation(other.variances[j])])
        if np.isnan(here).any() or np.isnan(there).any():
            return (0.0, 0.0) if np.array_equal(here, there, equal_nan=True) else (np.inf, np.inf)
        off = there - here
        off[np.abs(off) <= equality_tolerance * np.abs(here).sum()] = 0.0
        return float(off[0]), float(off[1])


def try_fit(fit: Callable[[pd.DataFrame], Any], make: Callable[[], pd.DataFrame]) -> Fitted | None:
    """Return the result on a frame of made-up values; None if making it or the fit fails."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return read_fit(fit(make().copy()))
    except Exception:
        return None


def _deviation(variance: float) -> float:
    return float(np.sqrt(variance)) if variance >= 0 else np.nan


def named_basis(columns: Clique, names: tuple[str, ...], formula: str) -> Basis:
    """Return the basis of a function of these columns: every estimate may be about all of them."""
    terms = {name: EstimateTerm(columns, columns) for name in names}
    return _basis(columns, terms, names, formula)


def probe(trial: Trial, names: tuple[str, ...]) -> Basis | None:
    """Return the basis of a function, found by running it on changed data sets.

    A column is used by the estimates that change with other values in it, and joined by those
    that change when its values change places. None if a second run differs from the first, or
    the function has more columns than `MAX_TRIALS` runs can find.
    """
    if trial.changed(lambda: trial.frame):
        return None
    runs = _Runs(trial)
    used = runs.used(list(trial.frame.columns))
    joined = {c: runs.joined(c) for c in used}
    if runs.left < 0:
        return None
    terms = {
        name: EstimateTerm(
            tuple(c for c in used if name in used[c]), tuple(c for c in used if name in joined[c])
        )
        for name in trial.found.names
    }
    return _basis(tuple(used), terms, names, trial.found.formula)


def _basis(
    columns: Clique, terms: Mapping[str, EstimateTerm], names: tuple[str, ...], formula: str
) -> Basis:
    """Return a basis; coefficients of a formula of these columns are about the columns of their terms."""
    try:
        tree = parse(formula)
        named = (*columns_in(tree.left), *columns_in(tree.right))
    except InputError:
        named = ()
    if named and set(named) <= set(columns):
        terms = terms_of(tree, names, tuple(c for c in columns if c not in named))
    return Basis(columns, terms, columns, columns)


class _Runs:
    def __init__(self, trial: Trial) -> None:
        self.trial, self.left, self._rng = trial, MAX_TRIALS, np.random.default_rng(0)

    def used(self, columns: Sequence[str]) -> dict[str, Names]:
        """Return the estimates that use each column, by halves: most columns are not used."""
        frame = self.trial.frame
        found = self._changed({c: _skewed(frame[c], self._rng) for c in columns})
        if not found or len(columns) == 1:
            return dict.fromkeys(columns, found) if found else {}
        half = len(columns) // 2
        return {**self.used(columns[:half]), **self.used(columns[half:])}

    def joined(self, column: str) -> Names:
        values = self.trial.frame[column]
        order = self._rng.permutation(len(values))
        return self._changed({column: values.iloc[order].set_axis(values.index)})

    def _changed(self, columns: Mapping[str, pd.Series]) -> Names:
        self.left -= 1
        if self.left < 0:
            return frozenset()
        return self.trial.changed(lambda: self.trial.frame.assign(**columns))


def _skewed(values: pd.Series, rng: np.random.Generator) -> pd.Series:
    """Return mostly the greater values of a column: other moments, and no relation to anything."""
    ordered = values.sort_values(na_position="first", kind="stable")
    at = (len(values) * rng.random(len(values)) ** 0.25).astype(np.int64)
    return ordered.iloc[at].set_axis(values.index)
