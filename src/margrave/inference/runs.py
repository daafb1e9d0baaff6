"""Running a fit on every data set, and keeping what it gave, where it failed, and what it warned of."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from margrave.errors import InputError, MargraveError
from margrave.inference.sources import Draws, Frames

Fit = Callable[[pd.DataFrame], Any]

_TROUBLE = ("ConvergenceWarning", "PerfectSeparationWarning", "HessianInversionWarning")
_SINGULAR = "SingularMatrixWarning"


@dataclass
class Runs:
    """What the fit gave on each data set: results, failures and warnings, by the data set's place."""

    keep_going: bool
    results: dict[int, Any] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)
    warned: Counter[str] = field(default_factory=Counter)
    troubled: set[int] = field(default_factory=set)

    def run(self, i: int, frame: pd.DataFrame, fit: Fit, of: int) -> None:
        """What the fit gives on one of so many data sets."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self._one(i, frame, fit, of)
        self._note(i, caught)

    def check(self, of: int) -> None:
        """An InputError where nothing can be combined."""
        if len(self.results) < 2:
            raise InputError(
                f"The fit failed on all but {len(self.results)} of {of} data sets.",
                remedy=f"The first: {next(iter(self.failures.values()))}",
            )

    def _one(self, i: int, frame: pd.DataFrame, fit: Fit, of: int) -> None:
        try:
            self.results[i] = fit(frame)
        except MargraveError:
            raise
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            if not self.keep_going:
                raise InputError(
                    f"The fit failed on data set {i + 1} of {of} ({why}).",
                    remedy=_remedy_for(why),
                ) from error
            self.failures[i] = why

    def _note(self, i: int, caught: Sequence[warnings.WarningMessage]) -> None:
        kinds = {w.category.__name__: str(w.message).splitlines()[0] for w in caught}
        if getattr(self.results.get(i), "ranked", False):
            kinds.pop(_SINGULAR, None)
        if any(k in (*_TROUBLE, _SINGULAR) for k in kinds):
            self.troubled.add(i)
        self.warned.update(f"{k}: {text}" for k, text in kinds.items())


def run_all(
    every: Sequence[Runs], draws: Draws, frames: Frames, fits: Sequence[Fit], progress: Callable[[float], None]
) -> None:
    """All fits on one data set after the other: formulas hold Python's lock, so threads are slower than none."""
    for i in range(len(draws)):
        frame = frames.draw(draws, i)
        for runs, fit in zip(every, fits, strict=True):
            runs.run(i, frame.copy() if len(fits) > 1 else frame, fit, len(draws))  # a fit may change its frame
        progress((i + 1) / len(draws))
    for runs in every:
        runs.check(len(draws))


def _remedy_for(why: str) -> str:
    """What mends a fit that failed: statsmodels makes two outcomes of one that is true or false."""
    if "endog has evaluated to an array with multiple columns" in why:
        return (
            "An outcome must be a number there: frame.assign(ill=frame.ill.astype(int)), or of a text"
            ' (frame.ill == "yes").astype(int). The ready model Logistic("ill ~ age") takes both as they are.'
        )
    return 'Mend the fit, or leave such data sets out with remedy="drop" (--drop-unstable).'
