"""The claims of the paper on GEM and PEP, compared with stored rows."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from benchmarks.core.results import View, standard_error
from benchmarks.core.suite import DEFAULT, Setting

EPSILONS, RUNS = (0.1, 0.15, 0.2, 0.25, 0.5, 1.0), 5
HOW = ("default", "tuned")
"""With the library's number of rounds, or with the best of the paper's grid."""
METRICS = {"max": "max error", "mean": "mean error", "rmse": "root mean squared error"}
MIN_RUNS = 2
"""Runs of one setting below which it does not count."""


class Claim(NamedTuple):
    """``better`` has the lower error, or an equal one, on these tables."""

    words: str
    better: str
    worse: str
    tasks: tuple[str, ...]
    where: str


_SMALL, _LARGE, _STATES = ("acs_reduced", "adult_reduced"), ("acs", "adult"), ("acs_reduced_us",)
ALL, _STAR = (*_SMALL, *_LARGE), ("adult_star",)
"""``acs_reduced_us`` is not the paper's: it shows the effect of more records."""

CLAIMS = (
    Claim("PEP ≤ MWEM", "pep", "mwem", _SMALL, "Figure 1"),
    Claim("PEP ≤ MWEM, as published", "pep", "mwem-paper", (*_SMALL, *_STATES), "Figure 1"),
    Claim("PEP < RAP^softmax", "pep", "rap-softmax", (*_SMALL, *_STATES), "Figure 1"),
    Claim("PEP < RAP^softmax, as published", "pep", "rap-softmax-paper", (*_SMALL, *_STATES),
          "Figure 1"),
    Claim("PEP < DualQuery", "pep", "dual-query", _SMALL, "Figure 1"),
    Claim("GEM < RAP^softmax", "gem", "rap-softmax", (*ALL, *_STATES), "Figure 1"),
    Claim("GEM < RAP^softmax, as published", "gem", "rap-softmax-paper", (*_SMALL, *_STATES),
          "Figure 1"),
    Claim("GEM < DualQuery", "gem", "dual-query", ALL, "Figure 1"),
    Claim("RAP^softmax < RAP", "rap-softmax", "rap", (*ALL, *_STAR), "Figures 6, 8"),
    Claim("past queries help MWEM", "mwem", "mwem-forgetful", _SMALL, "Figure 7"),
    Claim("GEM < RAP on ADULT*", "gem", "rap", _STAR, "Figure 8"),
    Claim("GEM < RAP^softmax on ADULT*", "gem", "rap-softmax", _STAR, "Figure 8"),
    Claim("GEM < DualQuery on ADULT*", "gem", "dual-query", _STAR, "Figure 8"),
    Claim("GEM < FEM on ADULT*", "gem", "fem", _STAR, "Figure 8"),
    Claim("GEM^Pub < GEM", "gem-pub-tenth", "gem", ("adult",), "Figure 2b"),
    Claim("GEM^Pub (reduced) ≤ GEM", "gem-pub-reduced", "gem", ("adult",), "Figure 2b"),
    Claim("GEM^Pub < GEM, support sufficient", "gem-pub-us", "gem", ("acs",), "Figures 1, 2a"),
    Claim("GEM^Pub < GEM, support insufficient", "gem-pub-ca", "gem", ("acs",), "Figure 2a"),
    Claim("PMW^Pub < GEM, support sufficient", "pmw-pub-us", "gem", ("acs",), "Figure 2a"),
    Claim("GEM^Pub < PMW^Pub, support insufficient", "gem-pub-ca", "pmw-pub-ca", ("acs",),
          "Figure 2a"),
    Claim("GEM^Pub < PEP^Pub, support insufficient", "gem-pub-ca", "pep-pub-ca", ("acs",),
          "Figure 4"),
)  # fmt: skip


@dataclass(frozen=True)
class Point:
    """The mean of an error over the runs of one setting, and its standard error."""

    mean: float
    error: float
    setting: Setting


Points = dict[float, Point]


def best_of(view: View, task: str, who: str, metric: str, settings: Sequence[Setting]) -> Points:
    """Return the best mean over settings at each epsilon that has enough runs."""
    result: Points = {}
    for epsilon in EPSILONS:
        for setting in settings:
            errors = [r["errors"][metric] for r in view.finished(task, who, epsilon, setting)]
            if len(errors) >= MIN_RUNS:
                point = Point(statistics.fmean(errors), standard_error(errors), setting)
                if epsilon not in result or point.mean < result[epsilon].mean:
                    result[epsilon] = point
    return result


def points(view: View, how: str, task: str, who: str, metric: str) -> Points:
    """Return the default's errors, or the best of the paper's grid, by the true error.

    No user can choose so, but the paper reports it. Without a grid the default counts.
    """
    grid = list(view.contenders[who].grid(task)) if how == "tuned" else []
    return best_of(view, task, who, metric, grid or [DEFAULT])


@dataclass(frozen=True)
class Comparison:
    """The measured form of a claim on one table: a verdict and better / worse by epsilon."""

    verdicts: Mapping[float, str]
    ratios: Mapping[float, float]
    of: int

    @property
    def outcome(self) -> str:
        """Whether the claim holds. Errors within the standard error of their gap are equal."""
        counts, n = Counter(self.verdicts.values()), len(self.verdicts)
        if not n:
            return "not run"
        few = "" if n == self.of else f", at {n} of {self.of} ε"
        if not counts["higher"]:
            return ("holds" if counts["lower"] else "no difference") + few
        if not counts["lower"]:
            return "does not hold" + few
        lower = ", ".join(f"{e:g}" for e, v in self.verdicts.items() if v == "lower")
        return f"holds at {lower} only{few}"

    @property
    def measured(self) -> str:
        """How often each verdict, and the range of the ratios."""
        if not self.verdicts:
            return ""
        counts, ratios = Counter(self.verdicts.values()), self.ratios.values()
        often = " · ".join(f"{counts[v]}" for v in ("lower", "equal", "higher"))
        return f"{often} of {self.of}; × {min(ratios):.2f} to {max(ratios):.2f}"


def compare(view: View, claim: Claim, task: str, how: str, metric: str) -> Comparison:
    """Compare the two contenders of a claim at every epsilon that both have."""
    better, worse = (points(view, how, task, name, metric) for name in (claim.better, claim.worse))
    both = [e for e in EPSILONS if e in better and e in worse]
    verdicts = {e: verdict(better[e], worse[e]) for e in both}
    ratios = {e: better[e].mean / worse[e].mean for e in both}
    return Comparison(verdicts, ratios, len(EPSILONS))


def verdict(better: Point, worse: Point) -> str:
    """Return "lower" or "higher" where means differ by more than their gap's standard error."""
    gap = better.mean - worse.mean
    if abs(gap) <= math.hypot(better.error, worse.error):
        return "equal"
    return "lower" if gap < 0 else "higher"
