"""Error bars from the transcript alone: how far real marginals can be from the model's, or a synthetic table's.

Nothing here was computed from rows; it costs no privacy. ``docs/bounds.md`` has the reasons and the small print.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from margrave.errors import ReleaseError
from margrave.marginal import closure
from margrave.parameters import check_level
from margrave.release import tails
from margrave.release.reference import BATCH, Reference
from margrave.release.rounds import Chances, Round, last_rounds, rounds_of
from margrave.release.supports import Support
from margrave.release.unbiased import Unbiased
from margrave.schema.domain import Domain
from margrave.transcript import Hindsight, Transcript
from margrave.typing import Attribute, Clique, FloatArray
from margrave.workload import Workload

MEASURED, MERGED = "measured", "measured, rare codes together"
CHOSEN, CHAINED = "not chosen in round {}", "not chosen in round {}, and columns measured"
NOTHING = "no bound: not measured, and no choice tells of it"
TOO_LARGE = "no bound: the model's marginal is too large"

ALL_WAYS = {"all 2-way": 2, "all 3-way": 3}
"""Workloads by the words of a mechanism's configuration."""


@dataclass(frozen=True)
class Bound:
    """With probability ``level``, ‖M_clique(D) − M_clique(model)‖₁ ≤ ``records``.

    ``share`` is ``records`` over the number of records (2 says nothing: no overlap at all). ``supported``: whether a
    measured marginal contains it. Both numbers are None where nothing can be said; ``how`` says why, or where the bound
    comes from. ``joint``: the level is for all bounds made together, else for each on its own.
    """

    clique: Clique
    supported: bool
    records: float | None
    share: float | None
    level: float
    joint: bool
    how: str

    @property
    def words(self) -> tuple[str, str]:
        """Records and share as text: a dash for no bound; a share of 2 or more is no news."""
        if self.records is None or self.share is None:
            return "-", "-"
        return f"{self.records:,.0f}", f"{self.share:.3g}" if self.share < 2.0 else "2 or more"

    @property
    def tells(self) -> bool:
        """Whether it says anything: two tables are never further apart than 2 as a share of the records."""
        return self.share is not None and self.share < 2.0

    def to_dict(self) -> dict[str, Any]:
        """Plain data that fits in JSON."""
        return {**vars(self), "clique": list(self.clique)}


@dataclass(frozen=True, eq=False)
class Intervals:
    """With probability ``level``, the real count of a cell is in ``estimate`` ± ``half_width``.

    Of each cell on its own, or of all together if ``simultaneous``. ``estimate`` has one axis per attribute; it is
    unbiased, and may be negative.
    """

    clique: Clique
    estimate: FloatArray
    half_width: float
    level: float
    simultaneous: bool

    @property
    def low(self) -> FloatArray:
        """The lower ends; no count is below 0."""
        return np.maximum(self.estimate - self.half_width, 0.0)

    @property
    def high(self) -> FloatArray:
        """The upper ends; no count is below 0."""
        return np.maximum(self.estimate + self.half_width, 0.0)


@dataclass(frozen=True, eq=False)
class Bounds:
    """The maker of bounds for one transcript. ``paper`` takes AIM's own estimator and constants throughout."""

    domain: Domain
    transcript: Transcript
    hindsight: tuple[Hindsight, ...]
    level: float = 0.95
    joint: bool = False
    paper: bool = False

    def __post_init__(self) -> None:
        check_level(self.level)

    def of(self, cliques: Sequence[Clique], reference: Reference) -> tuple[Bound, ...]:
        """One bound per clique, in their order."""
        unbiased = Unbiased(self.domain, self.transcript, paper=self.paper)
        supported = [r for r in cliques if unbiased.groups_of(r) is not None]
        rounds = rounds_of(self.transcript, self.hindsight)
        told = last_rounds(rounds, set(cliques) - set(supported))
        around = [] if self.paper else [r for r in closure(told) if r not in told]
        below = [r for r in around if unbiased.groups_of(r) is not None]
        last = told | last_rounds(rounds, set(around) - set(below))
        wanted = list(dict.fromkeys([*supported, *below]))
        supports = self._supports(unbiased, wanted, reference)
        known = Known(supports, last, reference.beyond_model(list(last)), self.paper)
        total, miss = self.transcript.total(), 1.0 - self.level
        if self.joint:
            miss /= max(1, len(wanted) + 2 * len({n.number for n, _ in last.values()}))
        return tuple(self._bound(r, known, set(supported), miss, total) for r in cliques)

    def _supports(
        self, unbiased: Unbiased, cliques: Sequence[Clique], reference: Reference
    ) -> dict[Clique, Support]:
        found = {}
        for start in range(0, len(cliques), BATCH):
            for r, near in reference.marginals(cliques[start : start + BATCH]).items():
                estimate = unbiased.estimate(r)
                if estimate is not None:
                    found[r] = Support.of(estimate, near)
        return found

    def _bound(self, clique: Clique, known: Known, supported: set[Clique], miss: float, total: float) -> Bound:
        records, how = None, NOTHING
        if clique in supported:
            records, how = known.supported(clique, miss), TOO_LARGE
            if records is not None:
                how = MERGED if known.supports[clique].estimate.groups else MEASURED
        elif clique in known.last:
            chances = Chances.equal(miss) if self.joint else Chances.shared(miss, known.below(clique))
            records, how = known.unsupported(clique, chances)
        share = None if records is None else records / total
        return Bound(clique, clique in supported, records, share, self.level, self.joint, how)


@dataclass(eq=False)
class Known:
    """What bounds on unsupported marginals are put together from: distances, and the last round that tells of each."""

    supports: Mapping[Clique, Support]
    last: Mapping[Clique, tuple[Round, int]]
    beyond: Mapping[Clique, float]
    paper: bool
    _errors: dict[tuple[int, Chances], FloatArray] = field(default_factory=dict)
    _found: dict[tuple[Clique, Chances], tuple[float | None, str]] = field(default_factory=dict)

    def supported(self, clique: Clique, miss: float) -> float | None:
        """The bound of a marginal that lies in a measured one."""
        return self.supports[clique].bound(miss, paper=self.paper) if clique in self.supports else None

    def below(self, clique: Clique) -> int:
        """How many measured marginals below a marginal a way to its bound may pass by."""
        if self.paper:
            return 0
        return sum(r in self.supports for k in range(1, len(clique)) for r in combinations(clique, k))

    def unsupported(self, clique: Clique, chances: Chances) -> tuple[float | None, str]:
        """The bound of another marginal: directly, or by way of a smaller one and what was measured of one column.

        Let c be a column's commonest code in the reference B, and A the real counts. Then for r = s and that column

            ‖A_r − B_r‖₁ ≤ ‖A_s − B_s‖₁ + 2 (A(not c) + B(not c)),    A(not c) ≤ B(not c) + ‖A_column − B_column‖₁
        """
        key = (clique, chances)
        if key not in self._found:
            round_, _ = self.last[clique]
            direct = self._direct(clique, chances)
            ways = [] if self.paper else self._chained(clique, round_, chances)
            best = min([*ways, *([] if direct is None else [direct])], default=None)
            how = TOO_LARGE if best is None else CHOSEN if best == direct else CHAINED
            self._found[key] = best, how.format(round_.number)
        return self._found[key]

    def _chained(self, clique: Clique, round_: Round, chances: Chances) -> list[float]:
        """The bounds by way of each column."""
        ways = []
        for a in clique:
            rest = tuple(b for b in clique if b != a)
            inner, outside = self._below(rest, round_, chances), self._outside(a, chances.below)
            if inner is not None and outside is not None:
                ways.append(inner + outside)
        return ways

    def _direct(self, clique: Clique, chances: Chances) -> float | None:
        if clique not in self.beyond:
            return None
        round_, place = self.last[clique]
        key = (round_.number, chances)
        if key not in self._errors:
            self._errors[key] = round_.errors(chances, paper=self.paper)
        error = float(self._errors[key][place])
        return error + self.beyond[clique] if np.isfinite(error) else None

    def _below(self, clique: Clique, round_: Round, chances: Chances) -> float | None:
        """The bound of a smaller marginal, where it needs nothing to hold that the larger one's does not."""
        if clique in self.supports:
            return self.supported(clique, chances.below)
        if clique in self.last and self.last[clique][0] is round_:
            return self.unsupported(clique, chances)[0]
        return None

    def _outside(self, attribute: Attribute, miss: float) -> float | None:
        """2 (A(not c) + B(not c)) of one column, at most; None where its codes are not told apart."""
        one: Clique = (attribute,)
        if one not in self.supports or self.supports[one].estimate.groups:
            return None
        return 2.0 * (2.0 * self.supports[one].outside + self.supports[one].bound(miss, paper=self.paper))


def intervals_of(
    domain: Domain, transcript: Transcript, clique: Clique, level: float, simultaneous: bool
) -> Intervals:
    """The unbiased estimate of a supported marginal with the half-width of its cells' intervals."""
    check_level(level)
    unbiased = Unbiased(domain, transcript)
    estimate = unbiased.estimate(clique) if unbiased.supports(clique) else None
    if estimate is None:
        raise ReleaseError(
            f"The marginal of {', '.join(clique)} has no error bars per cell: no measured marginal has all its cells.",
            remedy="bounds() may bound its error as a whole.",
        )
    miss = (1.0 - level) / (estimate.values.size if simultaneous else 1)
    half = tails.cell_tail(estimate.spread, estimate.least_scale, estimate.noisy_cells, miss)
    return Intervals(clique, estimate.values, half, level, simultaneous)


def cliques_of_interest(domain: Domain, transcript: Transcript, config: Mapping[str, Any]) -> tuple[Clique, ...]:
    """The downward closure of the mechanism's workload where its configuration tells; else of all that was asked."""
    if isinstance(config.get("workload"), list) or str(config.get("workload")) in ALL_WAYS:
        return workload_of(domain, config).closure()
    asked = [*transcript.cliques, *(c for s in transcript.selections for c in s.candidates)]
    return closure(dict.fromkeys(asked))


def workload_of(domain: Domain, config: Mapping[str, Any]) -> Workload:
    """The workload that the mechanism's configuration tells, or all three-way marginals."""
    workload = config.get("workload")
    if not isinstance(workload, list):
        return Workload.all_kway(domain, ALL_WAYS.get(str(workload), 3))
    try:
        return Workload.of(domain, {tuple(clique): weight for clique, weight in workload})
    except (TypeError, ValueError):
        raise ReleaseError("The release's workload is malformed.", remedy="Name the marginals.") from None
