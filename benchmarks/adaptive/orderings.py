"""The paper's findings as orderings of two contenders, held against what is stored."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from benchmarks.adaptive.summary import Point, Results
from benchmarks.adaptive.tasks import EPSILONS

Verdict = Literal["lower", "equal", "higher"]


@dataclass(frozen=True)
class Ordering:
    """``better`` has the lower error, or an equal one, on these tables; ``words`` say it and where the paper does."""

    words: str
    better: str
    worse: str
    tasks: tuple[str, ...]
    where: str


SMALL = ("acs_reduced", "adult_reduced")
LARGE = ("acs", "adult")
ALL = (*SMALL, *LARGE)
STATES = "acs_reduced_us"
"""Not the paper's: it is there to see what more records do to PEP, GEM, MWEM and RAP^softmax."""

ORDERINGS = (
    Ordering("PEP ≤ MWEM", "pep", "mwem", SMALL, "Figure 1"),
    Ordering("PEP ≤ MWEM, as published", "pep", "mwem-paper", (*SMALL, STATES), "Figure 1"),
    Ordering("PEP < RAP^softmax", "pep", "rap-softmax", (*SMALL, STATES), "Figure 1"),
    Ordering("PEP < RAP^softmax, as published", "pep", "rap-softmax-paper", (*SMALL, STATES), "Figure 1"),
    Ordering("PEP < DualQuery", "pep", "dual-query", SMALL, "Figure 1"),
    Ordering("GEM < RAP^softmax", "gem", "rap-softmax", (*ALL, STATES), "Figure 1"),
    Ordering("GEM < RAP^softmax, as published", "gem", "rap-softmax-paper", (*SMALL, STATES), "Figure 1"),
    Ordering("GEM < DualQuery", "gem", "dual-query", ALL, "Figure 1"),
    Ordering("RAP^softmax < RAP", "rap-softmax", "rap", (*ALL, "adult_star"), "Figures 6, 8"),
    Ordering("past queries help MWEM", "mwem", "mwem-forgetful", SMALL, "Figure 7"),
    Ordering("GEM < RAP on ADULT*", "gem", "rap", ("adult_star",), "Figure 8"),
    Ordering("GEM < RAP^softmax on ADULT*", "gem", "rap-softmax", ("adult_star",), "Figure 8"),
    Ordering("GEM < DualQuery on ADULT*", "gem", "dual-query", ("adult_star",), "Figure 8"),
    Ordering("GEM < FEM on ADULT*", "gem", "fem", ("adult_star",), "Figure 8"),
    Ordering("GEM^Pub < GEM", "gem-pub-tenth", "gem", ("adult",), "Figure 2b"),
    Ordering("GEM^Pub (reduced) ≤ GEM", "gem-pub-reduced", "gem", ("adult",), "Figure 2b"),
    Ordering("GEM^Pub < GEM, support sufficient", "gem-pub-us", "gem", ("acs",), "Figures 1, 2a"),
    Ordering("GEM^Pub < GEM, support insufficient", "gem-pub-ca", "gem", ("acs",), "Figure 2a"),
    Ordering("PMW^Pub < GEM, support sufficient", "pmw-pub-us", "gem", ("acs",), "Figure 2a"),
    Ordering("GEM^Pub < PMW^Pub, support insufficient", "gem-pub-ca", "pmw-pub-ca", ("acs",), "Figure 2a"),
    Ordering("GEM^Pub < PEP^Pub, support insufficient", "gem-pub-ca", "pep-pub-ca", ("acs",), "Figure 4"),
)


@dataclass(frozen=True)
class Comparison:
    """What was measured of an ordering on one table: a verdict and the ratio better / worse at each epsilon."""

    verdicts: Mapping[float, Verdict]
    ratios: Mapping[float, float]

    @property
    def outcome(self) -> str:
        """In words. Within the standard error of the difference two errors are equal."""
        if not self.verdicts:
            return "not run"
        few = "" if len(self.verdicts) == len(EPSILONS) else f", at {len(self.verdicts)} of {len(EPSILONS)} ε"
        return self._told() + few

    def _told(self) -> str:
        counts = Counter(self.verdicts.values())
        if not counts["higher"]:
            return "holds" if counts["lower"] else "no difference"
        if not counts["lower"]:
            return "does not hold"
        return "holds at " + ", ".join(f"{e:g}" for e, v in self.verdicts.items() if v == "lower") + " only"

    @property
    def measured(self) -> str:
        """How often which, and the ratios."""
        if not self.verdicts:
            return ""
        counts = Counter(self.verdicts.values())
        low, high = min(self.ratios.values()), max(self.ratios.values())
        told = " · ".join(f"{counts[v]}" for v in ("lower", "equal", "higher"))
        return f"{told} of {len(EPSILONS)}; × {low:.2f} to {high:.2f}"


def compared(ordering: Ordering, results: Results, how: str, metric: str) -> Comparison:
    """The two contenders at every epsilon that both have."""
    better, worse = (results.of(how, name, metric) for name in (ordering.better, ordering.worse))
    both = [e for e in EPSILONS if e in better and e in worse]
    return Comparison(
        {e: verdict(better[e], worse[e]) for e in both}, {e: better[e].mean / worse[e].mean for e in both}
    )


def verdict(better: Point, worse: Point) -> Verdict:
    """Lower or higher where the means differ by more than the standard error of their difference."""
    gap = better.mean - worse.mean
    if abs(gap) <= math.hypot(better.error, worse.error):
        return "equal"
    return "lower" if gap < 0 else "higher"


def rows(results: Mapping[str, Results]) -> Iterator[tuple[Ordering, str]]:
    """Every ordering on each of its tables."""
    return ((o, task) for o in ORDERINGS for task in o.tasks if task in results)
