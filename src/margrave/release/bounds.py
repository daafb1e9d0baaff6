"""Error bars from the transcript alone: how far real marginals can be from the model's, or a synthetic table's.

Nothing here was computed from rows; it costs no privacy. ``docs/bounds.md`` has the reasons and the small print.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from margrave.errors import InputError, ModelTooLargeError, ReleaseError
from margrave.marginal import closure
from margrave.models.protocol import Model
from margrave.release import tails
from margrave.release.unbiased import Estimate, Unbiased
from margrave.schema.domain import Domain
from margrave.transcript import Hindsight, Measurement, Selection, Transcript
from margrave.typing import Clique, FloatArray
from margrave.workload import Workload

MEASURED, MERGED, CHOSEN = "measured", "measured, rare codes together", "not chosen in round {}"
NOTHING = "no bound: not measured, and no choice tells of it"
TOO_LARGE = "no bound: the model's marginal is too large"
BATCH = 64


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


class Reference(Protocol):
    """What the real marginals are compared with."""

    def marginals(self, cliques: Sequence[Clique]) -> Mapping[Clique, FloatArray]:
        """Its counts, scaled to the release's number of records, without those that are out of reach."""
        ...

    def beyond_model(self, cliques: Sequence[Clique]) -> dict[Clique, float]:
        """Its L1 distance from the model; cliques for which that is out of reach are left out."""
        ...


class ModelReference:
    """The model itself."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def marginals(self, cliques: Sequence[Clique]) -> Mapping[Clique, FloatArray]:
        """Expected counts."""
        return exact_answers(self.model, cliques)

    def beyond_model(self, cliques: Sequence[Clique]) -> dict[Clique, float]:
        """No distance at all."""
        return dict.fromkeys(cliques, 0.0)


class TableReference:
    """A table of synthetic rows, as counts of their codes."""

    def __init__(self, model: Model, counts: Mapping[Clique, FloatArray]) -> None:
        self.model, self.counts = model, counts

    def marginals(self, cliques: Sequence[Clique]) -> Mapping[Clique, FloatArray]:
        """Scaled counts."""
        return {r: self.counts[r] for r in cliques}

    def beyond_model(self, cliques: Sequence[Clique]) -> dict[Clique, float]:
        """How far the rows are from the model that they were drawn from."""
        expected = exact_answers(self.model, cliques)
        return {r: _l1(self.counts[r] - m) for r, m in expected.items()}


def exact_answers(model: Model, cliques: Sequence[Clique]) -> dict[Clique, FloatArray]:
    """The model's exact marginals, some at a time to bound the memory, without those that are out of reach."""
    found: dict[Clique, FloatArray] = {}
    for batch in batched(cliques):
        with suppress(ModelTooLargeError, ReleaseError):
            found |= model.answer(batch)
    return found


def batched(cliques: Sequence[Clique]) -> list[Sequence[Clique]]:
    """The cliques in runs of ``BATCH``."""
    return [cliques[start : start + BATCH] for start in range(0, len(cliques), BATCH)]


@dataclass(frozen=True, eq=False)
class _Round:
    """A choice, and the measurement of what it chose."""

    number: int
    selection: Selection
    measurement: Measurement
    hindsight: Hindsight

    def slack(self, miss: float, paper: bool) -> tuple[FloatArray, FloatArray]:
        """Intercept and slope: with probability 1 − 2 miss, for every candidate r at once,

            ‖M_r(D) − estimate_r‖₁ ≤ penalty_r + (w_c (error_c − penalty_c) + gap) / w_r

        c is the chosen one, ``error_c`` a bound on its own distance, ``gap`` how far a choice can fall below the best.
        """
        s, m = self.selection, self.measurement
        beneath = tails.paper_l1_beneath if paper else tails.l1_beneath
        gap = tails.paper_choice_gap if paper else tails.choice_gap
        error = beneath(self.hindsight.surprise, m.scale, m.values.size, miss)
        weight, penalty = s.terms["weight"], s.terms["penalty"]
        c = s.candidates.index(s.chosen)
        best = weight[c] * (error - penalty[c]) + gap(len(s.candidates), s.epsilon, s.sensitivity, miss)
        return penalty, best / weight


@dataclass(frozen=True, eq=False)
class Bounds:
    """The maker of bounds for one transcript. ``miss`` is 1 − level; ``paper`` takes AIM's own form throughout."""

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
        last = self._last_rounds(set(cliques) - set(supported))
        miss = 1.0 - self.level
        each, half = miss, miss / 2.0
        if self.joint:
            each = half = miss / max(1, len(supported) + 2 * len({n.number for n, _ in last.values()}))
        found = self._unsupported(last, reference, half)
        for batch in batched(supported):
            near = reference.marginals(batch)
            found |= {r: self._supported(unbiased.estimate(r), near.get(r), each) for r in batch}
        return tuple(found.get(r) or self._bound(r, False, None, NOTHING) for r in cliques)

    def _bound(self, clique: Clique, supported: bool, records: float | None, how: str) -> Bound:
        share = None if records is None else records / self.transcript.total()
        return Bound(clique, supported, records, share, self.level, self.joint, how)

    def _supported(self, estimate: Estimate | None, near: FloatArray | None, miss: float) -> Bound:
        assert estimate is not None
        how = MERGED if estimate.groups else MEASURED
        if near is None:
            return self._bound(estimate.clique, True, None, TOO_LARGE)
        cells = estimate.values.size
        if self.paper:
            noise = tails.paper_l1_tail(cells, estimate.widest, miss)
        else:
            noise = tails.l1_tail(
                cells, estimate.spread, estimate.widest, estimate.least_scale, estimate.noisy_cells, miss
            )
        coarse = np.asarray(estimate.query.apply(estimate.clique, near))
        records = _l1(estimate.values - coarse) + noise
        if not self.paper:
            possible = possible_counts(self.domain, estimate)
            spent = _l1(estimate.values - possible)  # of the noise: the real counts are possible ones
            records = min(records, _l1(possible - coarse) + max(0.0, noise - spent))
        return self._bound(estimate.clique, True, records + 2.0 * _merged_mass(estimate, coarse), how)

    def _last_rounds(self, cliques: set[Clique]) -> dict[Clique, tuple[_Round, int]]:
        """For each clique the last round in which it was a candidate, and its place among them."""
        return {
            r: (n, i)
            for n in rounds_of(self.transcript, self.hindsight)
            for i, r in enumerate(n.selection.candidates)
            if r in cliques and np.isfinite(n.hindsight.drift[i])
        }

    def _unsupported(
        self, last: Mapping[Clique, tuple[_Round, int]], reference: Reference, miss: float
    ) -> dict[Clique, Bound]:
        slack = {n.number: n.slack(miss, self.paper) for n, _ in last.values()}
        beyond = reference.beyond_model(list(last))
        found = {}
        for r, (n, i) in last.items():
            if r not in beyond:
                found[r] = self._bound(r, False, None, TOO_LARGE)
                continue
            penalty, rest = slack[n.number]
            error = max(0.0, float(penalty[i] + rest[i])) + float(n.hindsight.drift[i])
            found[r] = self._bound(r, False, error + beyond[r], CHOSEN.format(n.number))
        return found


def rounds_of(transcript: Transcript, hindsight: Sequence[Hindsight]) -> list[_Round]:
    """The choices that hindsight tells about, each with the whole measurement that came next, in order."""
    told = {h.selection: h for h in hindsight}
    rounds, number = [], -1
    for position, entry in enumerate(transcript.entries):
        if not isinstance(entry, Selection):
            continue
        number += 1
        after = transcript.entries[position + 1 : position + 2]
        if number in told and {"weight", "penalty"} <= entry.terms.keys():
            for m in after:
                if isinstance(m, Measurement) and m.clique == entry.chosen and m.query.is_identity:
                    rounds.append(_Round(number + 1, entry, m, told[number]))
    return rounds


def intervals_of(
    domain: Domain, transcript: Transcript, clique: Clique, level: float, simultaneous: bool
) -> Intervals:
    """The unbiased estimate of a supported marginal with the half-width of its cells' intervals."""
    check_level(level)
    unbiased = Unbiased(domain, transcript)
    if not unbiased.supports(clique):
        raise ReleaseError(
            f"The marginal of {', '.join(clique)} has no error bars per cell: no measured marginal has all its cells.",
            remedy="bounds() may bound its error as a whole.",
        )
    estimate = unbiased.estimate(clique)
    assert estimate is not None
    miss = (1.0 - level) / (estimate.values.size if simultaneous else 1)
    half = tails.cell_tail(estimate.spread, estimate.least_scale, estimate.noisy_cells, miss)
    return Intervals(clique, estimate.values, half, level, simultaneous)


def cliques_of_interest(domain: Domain, transcript: Transcript, config: Mapping[str, Any]) -> tuple[Clique, ...]:
    """The downward closure of the mechanism's workload where its configuration tells; else of all that was asked."""
    workload = config.get("workload")
    if workload == "all 3-way":
        return Workload.all_kway(domain, 3).closure()
    if isinstance(workload, list):
        try:
            return Workload.of(domain, [clique for clique, _ in workload]).closure()
        except (TypeError, ValueError):
            raise ReleaseError("The release's workload is malformed.", remedy="Name the marginals.") from None
    asked = [*transcript.cliques, *(c for s in transcript.selections for c in s.candidates)]
    return closure(dict.fromkeys(asked))


def possible_counts(domain: Domain, estimate: Estimate) -> FloatArray:
    """The nearest counts that are possible: none below 0, and 0 where the schema rules records out."""
    counts = np.maximum(estimate.values, 0.0)
    for zeros in domain.zeros:
        if set(zeros.clique) <= set(estimate.clique) and not set(zeros.clique) & set(estimate.groups):
            shape = [n if a in zeros.clique else 1 for a, n in zip(estimate.clique, counts.shape, strict=True)]
            counts = counts * zeros.possible.reshape(shape)
    return np.asarray(counts, dtype=np.float64)


def check_level(level: float) -> None:
    """A level is a probability, and not a certainty."""
    if not 0.0 < level < 1.0:
        raise InputError(f"The level is {level}.", remedy="It lies between 0 and 1, such as 0.95.")


def _merged_mass(estimate: Estimate, coarse: FloatArray) -> float:
    """What lies in cells of merged codes: Σ |a_i − b_i| ≤ |Σ a_i − Σ b_i| + 2 Σ b_i for counts a, b of one cell."""
    if not estimate.groups:
        return 0.0
    sizes = np.ones(coarse.shape)
    for axis, a in enumerate(estimate.clique):
        if a in estimate.groups:
            members = np.bincount(estimate.groups[a], minlength=coarse.shape[axis])
            sizes = sizes * members.reshape([-1 if i == axis else 1 for i in range(coarse.ndim)])
    return float(np.maximum(coarse, 0.0)[sizes > 1].sum())


def _l1(values: FloatArray) -> float:
    return float(np.abs(values).sum())
