"""Error bounds from the transcript alone: how far real marginals can be from those of a model or of a synthetic table.

Nothing here is computed from rows, and nothing is spent. ``docs/bounds.md`` gives the reasons and the small print.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from margrave._card import counted, html_card
from margrave._fields import check_level
from margrave.bounds import tail_bounds
from margrave.bounds.gls import GLSEstimate, Unbiased
from margrave.bounds.reference import BATCH, Reference
from margrave.bounds.selections import FailureSplit, Round, last_rounds, rounds_of
from margrave.domain import Domain
from margrave.errors import InputError, ReleaseError
from margrave.marginal import closure
from margrave.marginal.axes import multiply_along
from margrave.provenance import Provenance
from margrave.transcript import Hindsight, Transcript
from margrave.types import Attribute, Clique, FloatArray

MEASURED, MERGED = "measured", "measured, rare codes together"
CHOSEN, CHAINED = "not chosen in round {}", "not chosen in round {}, and columns measured"
TOO_MANY_CELLS = "no bound: the model's marginal is too large"


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
        """Records and share as text; a dash for no bound. A share of 2 or more is not a bound."""
        if self.records is None or self.share is None:
            return "-", "-"
        return f"{self.records:,.0f}", f"{self.share:.3g}" if self.share < 2.0 else "2 or more"

    @property
    def tells(self) -> bool:
        """True if the bound excludes anything: the distance of two tables is at most 2 as a share
        of the records.
        """
        return self.share is not None and self.share < 2.0

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that fits in JSON."""
        return {**vars(self), "clique": list(self.clique)}


class BoundTable(tuple[Bound, ...]):
    """Bounds in their order, shown as a table."""

    __slots__ = ()

    def __repr__(self) -> str:
        useful = sum(b.tells for b in self)
        return f"BoundTable({counted(len(self), 'marginal')}, {useful} with a bound below 2)"

    def __str__(self) -> str:
        rows, more = self._first_rows()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
        lines = [
            "  ".join([*(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=False)), row[-1]])
            for row in rows
        ]
        return "\n".join([repr(self), *lines, *more])

    def _repr_html_(self) -> str:
        rows, more = self._first_rows()
        return html_card(repr(self), rows, more, head=True)

    def _first_rows(self) -> tuple[list[tuple[str, ...]], list[str]]:
        max_rows = 20
        rows = [(", ".join(b.clique), *b.words, b.how) for b in self[:max_rows]]
        more = [f"And {len(self) - max_rows:,} more."] if len(self) > max_rows else []
        return [("marginal", "records", "of all", "how"), *rows], more


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
    hindsight: Sequence[Hindsight]
    level: float = 0.95
    joint: bool = False
    paper: bool = False

    def __post_init__(self) -> None:
        check_level(self.level)

    def of(self, cliques: Sequence[Clique], reference: Reference) -> tuple[Bound, ...]:
        """Return one bound per clique, in their order."""
        unbiased = Unbiased(self.domain, self.transcript, paper=self.paper)
        supported = [r for r in cliques if unbiased.groups_of(r) is not None]
        rounds = rounds_of(self.transcript, self.hindsight)
        candidates = last_rounds(rounds, set(cliques) - set(supported))
        around = [] if self.paper else [r for r in closure(candidates) if r not in candidates]
        below = [r for r in around if unbiased.groups_of(r) is not None]
        last = candidates | last_rounds(rounds, set(around) - set(below))
        wanted = list(dict.fromkeys([*supported, *below]))
        supports = self._supports(unbiased, wanted, reference)
        known = SupportedBounds(supports, last, reference.distance_to_model(list(last)), self.paper)
        total, miss = self.transcript.total(), 1.0 - self.level
        if self.joint:
            miss /= max(1, len(wanted) + 2 * len({n.number for n, _ in last.values()}))
        return tuple(self._bound(r, known, set(supported), miss, total) for r in cliques)

    def _supports(
        self, unbiased: Unbiased, cliques: Sequence[Clique], reference: Reference
    ) -> dict[Clique, SupportedEstimate]:
        found = {}
        for start in range(0, len(cliques), BATCH):
            for r, near in reference.marginals(cliques[start : start + BATCH]).items():
                estimate = unbiased.estimate(r)
                if estimate is not None:
                    found[r] = SupportedEstimate.of(estimate, near)
        return found

    def _bound(
        self,
        clique: Clique,
        known: SupportedBounds,
        supported: set[Clique],
        miss: float,
        total: float,
    ) -> Bound:
        no_bound = "no bound: not measured, and no selection bounds it"
        records, how = None, no_bound
        if clique in supported:
            records, how = known.supported(clique, miss), TOO_MANY_CELLS
            if records is not None:
                how = MERGED if known.supports[clique].estimate.groups else MEASURED
        elif clique in known.last:
            chances = (
                FailureSplit.equal(miss)
                if self.joint
                else FailureSplit.shared(miss, known.below(clique))
            )
            records, how = known.unsupported(clique, chances)
        share = None if records is None else records / total
        return Bound(clique, clique in supported, records, share, self.level, self.joint, how)


@dataclass(eq=False)
class SupportedBounds:
    """The parts of bounds on unsupported marginals: distances, and the last round that bounds each."""

    supports: Mapping[Clique, SupportedEstimate]
    last: Mapping[Clique, tuple[Round, int]]
    beyond: Mapping[Clique, float]
    paper: bool
    _errors: dict[tuple[int, FailureSplit], FloatArray] = field(default_factory=dict)
    _found: dict[tuple[Clique, FailureSplit], tuple[float | None, str]] = field(
        default_factory=dict
    )

    def supported(self, clique: Clique, miss: float) -> float | None:
        """Return the bound of a marginal that lies in a measured one."""
        return (
            self.supports[clique].bound(miss, paper=self.paper) if clique in self.supports else None
        )

    def below(self, clique: Clique) -> int:
        """Return the number of measured marginals below a marginal that its bound may use."""
        if self.paper:
            return 0
        return sum(
            r in self.supports for k in range(1, len(clique)) for r in combinations(clique, k)
        )

    def unsupported(self, clique: Clique, chances: FailureSplit) -> tuple[float | None, str]:
        """Return the bound of another marginal: directly, or by a smaller one and measured columns."""
        key = (clique, chances)
        if key not in self._found:
            round_, _ = self.last[clique]
            direct = self._direct(clique, chances)
            ways = [] if self.paper else self._chained(clique, round_, chances)
            best = min([*ways, *([] if direct is None else [direct])], default=None)
            how = TOO_MANY_CELLS if best is None else CHOSEN if best == direct else CHAINED
            self._found[key] = best, how.format(round_.number)
        return self._found[key]

    def _chained(self, clique: Clique, round_: Round, chances: FailureSplit) -> list[float]:
        ways = []
        for a in clique:
            rest = tuple(b for b in clique if b != a)
            inner, outside = self._below(rest, round_, chances), self._outside(a, chances.below)
            if inner is not None and outside is not None:
                ways.append(inner + outside)
        return ways

    def _direct(self, clique: Clique, chances: FailureSplit) -> float | None:
        if clique not in self.beyond:
            return None
        round_, place = self.last[clique]
        key = (round_.number, chances)
        if key not in self._errors:
            self._errors[key] = round_.errors(chances, paper=self.paper)
        error = float(self._errors[key][place])
        return error + self.beyond[clique] if np.isfinite(error) else None

    def _below(self, clique: Clique, round_: Round, chances: FailureSplit) -> float | None:
        if clique in self.supports:
            return self.supported(clique, chances.below)
        if clique in self.last and self.last[clique][0] is round_:
            return self.unsupported(clique, chances)[0]
        return None

    def _outside(self, attribute: Attribute, miss: float) -> float | None:
        one: Clique = (attribute,)
        if one not in self.supports or self.supports[one].estimate.groups:
            return None
        return 2.0 * (
            2.0 * self.supports[one].outside + self.supports[one].bound(miss, paper=self.paper)
        )


def intervals_of(
    domain: Domain, transcript: Transcript, clique: Clique, level: float, simultaneous: bool
) -> Intervals:
    """Return the unbiased estimate of a supported marginal with the half-width of its cells'
    intervals.
    """
    check_level(level)
    unbiased = Unbiased(domain, transcript)
    estimate = unbiased.estimate(clique) if unbiased.supports(clique) else None
    if estimate is None:
        raise ReleaseError(
            f"The marginal of {', '.join(clique)} has no error bars per cell: no measured marginal has all its cells.",
            remedy="bounds() may bound its error as a whole.",
        )
    miss = (1.0 - level) / (estimate.values.size if simultaneous else 1)
    half = tail_bounds.cell_tail(estimate.spread, estimate.least_scale, estimate.noisy_cells, miss)
    return Intervals(clique, estimate.values, half, level, simultaneous)


def cliques_of_interest(
    domain: Domain, transcript: Transcript, provenance: Provenance
) -> tuple[Clique, ...]:
    """Return the downward closure of the mechanism's workload, or of all that was asked if it has none."""
    workload = provenance.workload_on(domain)
    if workload is not None:
        return workload.closure()
    asked = [*transcript.cliques, *(c for s in transcript.selections for c in s.candidates)]
    return closure(dict.fromkeys(asked))


def cliques_asked_for(domain: Domain, cliques: Iterable[Iterable[Attribute]]) -> tuple[Clique, ...]:
    """Return the cliques of a list of lists of columns, each once.

    Raises:
        InputError: It is not such a list, or a marginal is of no columns.
    """
    listed = [cliques] if isinstance(cliques, str) else list(cliques)
    if texts := [c for c in listed if isinstance(c, str)]:
        raise InputError(
            "cliques is not a list of marginals, each a list of columns.",
            remedy=f"Give {json.dumps([texts], ensure_ascii=False)}.",
        )
    asked = tuple(dict.fromkeys(domain.clique(c) for c in listed))
    if not all(asked):
        raise InputError(
            "A marginal of no columns is asked for.", remedy="Name at least one column."
        )
    return asked


@dataclass(frozen=True, eq=False)
class SupportedEstimate:
    """An unbiased estimate of a marginal, beside a reference's counts of it.

    ‖M(D) − reference‖₁ ≤ ‖estimate − reference‖₁ + ‖noise‖₁; and, as real counts are not negative, also
    ≤ ‖possible − reference‖₁ + ‖noise‖₁ − ‖estimate − possible‖₁, with ``possible`` the estimate's positive part:
    |z − y| = |z − y'| + |y' − y| wherever z ≥ 0 and y' = max(y, 0). Structural zeros have no part in it, since rows
    that violate a constraint stay in the counts.
    """

    estimate: GLSEstimate
    apart: float  # ‖estimate − reference‖₁
    possible_apart: float  # ‖possible − reference‖₁
    spent: float  # ‖estimate − possible‖₁
    merged: float  # what the reference has in cells of merged codes
    outside: float  # what it has outside its largest cell

    @staticmethod
    def of(estimate: GLSEstimate, reference: FloatArray) -> SupportedEstimate:
        """Return an estimate with its distances from the reference."""
        coarse = np.asarray(estimate.query.apply(estimate.clique, reference))
        possible = np.maximum(estimate.values, 0.0)
        return SupportedEstimate(
            estimate,
            _l1(estimate.values - coarse),
            _l1(possible - coarse),
            _l1(estimate.values - possible),
            _merged_mass(estimate, coarse),
            float(coarse.sum() - coarse.max()),
        )

    def bound(self, miss: float, *, paper: bool) -> float:
        """Return the bound on the L1 distance of the real marginal from the reference, with
        probability 1 − miss.

        Counts in merged cells are added twice: for counts a, b of the codes of one cell, Σ |a_i −
        b_i| ≤ |Σ a_i − Σ b_i| + 2 Σ b_i.
        """
        e = self.estimate
        if paper:
            return (
                self.apart
                + tail_bounds.paper_l1_tail(e.values.size, e.widest, miss)
                + 2.0 * self.merged
            )
        noise = tail_bounds.l1_tail(
            e.values.size, e.spread, e.widest, e.least_scale, e.noisy_cells, miss
        )
        nearer = self.possible_apart + max(0.0, noise - self.spent)
        return min(self.apart + noise, nearer) + 2.0 * self.merged


def _merged_mass(estimate: GLSEstimate, coarse: FloatArray) -> float:
    if not estimate.groups:
        return 0.0
    members = {a: np.bincount(groups) for a, groups in estimate.groups.items()}
    sizes = multiply_along(np.ones(coarse.shape), estimate.clique, members)
    return float(np.maximum(coarse, 0.0)[sizes > 1].sum())


def _l1(values: FloatArray) -> float:
    return float(np.abs(values).sum())
