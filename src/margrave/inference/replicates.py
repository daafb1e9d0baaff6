"""Results of a fit on all data sets: run it, align them by name, and set aside what is unstable."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, Literal

import numpy as np
import pandas as pd

from margrave._card import counted
from margrave.errors import InputError, MargraveError, did_you_mean
from margrave.inference.columns import some
from margrave.inference.datasets import DataSets, Frames
from margrave.inference.fitted import Fitted, numbered
from margrave.types import AnyArray, FloatArray, IntArray

Fit = Callable[[pd.DataFrame], Any]

OnUnstable = Literal["report", "drop"]


@dataclass
class Runs:
    """Results of a fit, its failures and its warnings, by number of the data set.

    ``is_estimand`` means that a `ValueError` of the fit says what the data set lacks for it.
    """

    on_unstable: OnUnstable
    is_estimand: bool = False
    results: dict[int, Any] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)
    warned: Counter[str] = field(default_factory=Counter)
    troubled: set[int] = field(default_factory=set)

    def run(self, i: int, frame: pd.DataFrame, fit: Fit, of: int, named: bool) -> None:
        """Run the fit on one data set.

        Args:
            i: Its number, from 0.
            frame: The data set.
            fit: The fit.
            of: The number of data sets.
            named: The frame has the columns that the caller named.
        """
        trouble = ("ConvergenceWarning", "PerfectSeparationWarning", "HessianInversionWarning")
        singular = "SingularMatrixWarning"
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self._run(i, frame, fit, of, named)
        kinds = {w.category.__name__: str(w.message).splitlines()[0] for w in caught}
        if getattr(self.results.get(i), "full_rank", False):
            kinds.pop(singular, None)
        if any(k in (*trouble, singular) for k in kinds):
            self.troubled.add(i)
        self.warned.update(f"{k}: {text}" for k, text in kinds.items())

    def _run(self, i: int, frame: pd.DataFrame, fit: Fit, of: int, named: bool) -> None:
        try:
            self.results[i] = fit(frame)
        except MargraveError:
            raise
        except Exception as error:
            lacks = self.is_estimand and isinstance(error, ValueError)
            why = str(error) if lacks else f"{type(error).__name__}: {error}"
            if self.on_unstable == "report":
                raise InputError(
                    f"The fit failed on data set {i + 1} of {of} ({why}).",
                    remedy=_remedy_for(why, lacks, frame, named),
                ) from error
            self.failures[i] = why


def run_all(
    every: Sequence[Runs], draws: DataSets, frames: Frames, fits: Sequence[Fit],
    progress: Callable[[float], None], *, names: frozenset[str] | None = None,
    states_columns: bool = False,
) -> None:  # fmt: skip
    """Run all fits on one data set after the other.

    Args:
        every: The results of each fit.
        draws: The data sets.
        frames: Their conversion.
        fits: The fits.
        progress: Callback with the fraction done.
        names: The columns of every frame; None for all.
        states_columns: The results state every column that the fits use, so frames after the first have only these.

    Raises:
        InputError: A fit failed, or fewer than two results are left.
    """
    m = len(draws)
    for i in range(m):
        frame = frames.draw(draws, i, names)
        for runs, fit in zip(every, fits, strict=True):
            own = frame.copy() if len(fits) > 1 else frame  # a fit may change its frame
            runs.run(i, own, fit, m, names is not None)
        if states_columns:
            names = names or _columns_used(every, frames)
        progress((i + 1) / m)
    for runs in (r for r in every if len(r.results) < 2):
        why = next(iter(runs.failures.values()))
        on = (
            f"all but {len(runs.results)} of {m} data sets"
            if runs.results
            else f"all {m} data sets"
        )
        raise InputError(
            f"The fit failed on {on} ({why}).",
            remedy="Analyze another column or a larger part of the rows."
            if runs.is_estimand
            else _remedy_for(why, False, frame, names is not None).partition(
                ", or leave such data sets out"
            )[0],
        )


def _columns_used(every: Sequence[Runs], frames: Frames) -> frozenset[str] | None:
    """Return the columns of the first results, with those that they are a function of; None if some are unknown."""
    found: set[str] = set()
    for runs in every:
        basis = getattr(next(iter(runs.results.values()), None), "basis", None)
        if basis is None:
            return None
        found |= set(basis.columns)
    return frames.with_origins(found)


def _remedy_for(why: str, lacks: bool, frame: pd.DataFrame, named: bool) -> str:
    """Return what to do about a failed fit.

    Args:
        why: The error of the fit.
        lacks: The data set lacks what the fit needs.
        frame: A data set.
        named: Its columns are those that the caller named.
    """
    absent = re.match(r"AttributeError: 'DataFrame' object has no attribute '(\w+)'|KeyError: '(\w+)'"
                      r"|.*name '(\w+)' is not defined", why)  # fmt: skip
    if lacks:
        return (
            "Analyze another column or a larger part of the rows, or leave such data sets out with"
            ' on_unstable="drop" (--drop-unstable).'
        )
    if "endog has evaluated to an array with multiple columns" in why:
        return (
            "An outcome must be a number there: frame.assign(ill=frame.ill.astype(int)), or of a text"
            ' (frame.ill == "yes").astype(int). Logistic("ill ~ age") takes both as they are.'
        )
    if re.match("ModuleNotFoundError: No module named '(statsmodels|patsy|formulaic|scipy)", why):
        return "Install it: pip install 'margrave[inference]'."
    if absent or why.startswith("KeyError"):
        name = next(filter(None, absent.groups())) if absent else ""
        known = f"The columns of its frames are {some(frame.columns)}."
        if not named:
            return f"{did_you_mean(name, map(str, frame.columns))}{known}"
        add = (
            f"Add {name!r} to columns, if it is a column" if name else "Name all that the fit uses"
        )
        return f'{known} {add}, or pass columns="probe".'
    return 'Correct the fit, or leave such data sets out with on_unstable="drop" (--drop-unstable).'


class Status(IntEnum):
    """The status of one result. The highest value applies if a fit ran on two lots of data sets."""

    USED = 0
    UNSTABLE = 1
    NEGATIVE = 2  # unstable: a fit that converged returned a negative variance
    NAN = 3  # unstable: a fit that converged returned NaN
    UNDETERMINED = 4  # absent: the data set does not determine it
    RENAMED = 5  # absent, and no design explains it


@dataclass(frozen=True, eq=False)
class Replicates:
    """Results of k quantities on m data sets.

    Attributes:
        points: Estimates (m × k), NaN unless they are used.
        variances: Their variances (m × k).
        covariances: Their covariances (m × k × k); None if the fit gave none.
        status: What became of each (m × k), as `Status`.
    """

    points: FloatArray
    variances: FloatArray
    covariances: FloatArray | None
    status: IntArray

    @staticmethod
    def of(
        runs: Runs, places: Sequence[int], names: tuple[str, ...], max_std_error: float
    ) -> Replicates:
        """Return the results of some data sets, aligned by name."""
        fitted: list[Fitted] = [runs.results[i] for i in places]
        points, variances, covariances = _aligned(fitted, names)
        stuck = np.array([i in runs.troubled or not runs.results[i].converged for i in places])
        converged, partial = ~stuck[:, None], np.array([f.partial for f in fitted])[:, None]
        status = np.where(_unstable(points, variances, stuck, max_std_error), Status.UNSTABLE, 0)
        blown = status == Status.UNSTABLE
        status[blown & (variances < 0)] = Status.NEGATIVE
        status[blown & converged & (np.isnan(points) | np.isnan(variances))] = Status.NAN
        absent = np.array([[n not in f.names for n in names] for f in fitted])
        status[absent & partial], status[absent & ~partial] = Status.UNDETERMINED, Status.RENAMED
        return Replicates(points, variances, covariances, status)

    def joined(self, others: Sequence[Replicates]) -> Replicates:
        """Return the results with the highest status of all, and NaN where one is not used."""
        status = np.max([r.status for r in others], axis=0)
        points = np.where(status == Status.USED, self.points, np.nan)
        return replace(self, points=points, status=status)


def names_of(every: Sequence[Runs], places: Sequence[int]) -> tuple[str, ...]:
    """Return the names of the fullest data set, and then those that others add.

    Raises:
        InputError: A name occurs twice, or there are none, or the number of unnamed ones varies.
    """
    fitted = [(i, runs.results[i]) for runs in every for i in places]
    first: tuple[str, ...] = fitted[0][1].names
    unnamed = first == numbered(len(first))
    for i, names in ((i, f.names) for i, f in fitted):
        if unnamed and names == numbered(len(names)) and len(names) != len(first):
            raise InputError(
                f"The fit returned {counted(len(first), 'estimate')} without names on data set {places[0] + 1}, and"
                f" {len(names)} on data set {i + 1}.",
                remedy="Return as many on every data set, or name them (a dict or a Series).",
            )
        for name, count in Counter(names).items():
            if count > 1:
                raise InputError(
                    f"The fit returned two estimates named {name!r}.", remedy="Give them two names."
                )
    fullest = max((f for _, f in fitted), key=lambda f: len(f.names)).names
    found = tuple(dict.fromkeys([*fullest, *(n for _, f in fitted for n in f.names)]))
    if not found:
        raise InputError("The fit returned no estimates.", remedy="Return at least one.")
    return found


def _aligned(
    fitted: Sequence[Fitted], names: tuple[str, ...]
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    m, k, place = len(fitted), len(names), {n: j for j, n in enumerate(names)}
    points, variances = np.full((m, k), np.nan), np.full((m, k), np.nan)
    whole = all(f.covariance is not None for f in fitted)
    covariances = np.full((m, k, k), np.nan) if whole else None
    for i, f in enumerate(fitted):
        at = [place[n] for n in f.names]
        points[i, at], variances[i, at] = f.estimates, f.variances
        if covariances is not None:
            covariances[np.ix_([i], at, at)] = f.covariance
    return points, variances, covariances


def _unstable(
    points: FloatArray, variances: FloatArray, stuck: AnyArray, max_std_error: float
) -> AnyArray:
    """Return a mask: not finite, or too wide, or all of a fit that did not converge and is neither."""
    with np.errstate(invalid="ignore"):
        deviations = np.sqrt(variances)
    finite = np.isfinite(points) & np.isfinite(deviations)
    least = np.where(finite, deviations, np.inf).min(axis=0)
    least = np.maximum(np.where(np.isfinite(least), least, 1.0), 1.0)
    wide = finite & (deviations > max_std_error * least)
    blown = ~finite | wide | (stuck[:, None] & (deviations > max_std_error))
    return np.asarray(blown | (stuck & ~(blown & ~np.isnan(points)).any(axis=1))[:, None])
