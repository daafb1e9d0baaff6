"""Draws: several tables of a release, for analyses that account for its noise and for the sampling of its records."""

from __future__ import annotations

import operator
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from margrave.errors import InputError
from margrave.models import MODELS, MaxEntropyFit
from margrave.models.protocol import Model, ModelState, Posterior
from margrave.parameters import is_whole
from margrave.release.bootstrap import Bootstrap, check_kind
from margrave.release.seeds import check_seed
from margrave.release.size import check_room, check_told
from margrave.release.together import (
    counted_together,
    known_together,
    merged_together,
    of_same_records,
    read_together,
    without_others,
)
from margrave.schema import Codes, Domain, Schema
from margrave.schema.column import some_of
from margrave.transcript import Transcript
from margrave.typing import Attribute, Clique

if TYPE_CHECKING:
    from margrave.release.release import Release

Progress = Callable[[str, float], None]

#: The most draws of one call: each keeps a model in memory.
MAX_DRAWS = 100_000
METHODS = ("auto", "posterior", "bootstrap")

FINDING = 0.95
"""The share of the time that finding a posterior takes, where one is to be found; drawing from it is quick."""

SOON = 150
"""Parameters beyond which a posterior takes more than a minute or two, and is found where it is asked for alone."""

MODELS_STREAM, ROWS_STREAM, VALUES_STREAM, FIT_STREAM = 0, 1, 2, 3
"""Independent streams of randomness from one seed: the models, each table's codes, values within codes, a refit."""

ABSENT = (
    "Relations among columns that no measured marginal holds are absent from every draw, and no interval"
    " accounts for that."
)
"""The note of all draws. An analysis that knows its columns says what was not measured of them instead."""

MERGED = "Codes that were merged because they are rare share one count in every marginal of several columns"
SHARED = "What sets one of them apart from the others in other columns is absent from every draw."
"""The note of draws with merged codes, in whose place an analysis says which of its estimates that is about."""

LEFT_OUT = (
    "What was read from public data is of other records. The data sets rest on what was measured alone, so that they"
    " differ from the release's own model."
)


@dataclass(frozen=True, eq=False)
class Draws:
    """``m`` tables of independent records, table i from the i-th draw of what the distribution may be.

    Analyse each table as if it were the real one, and combine: with q_i and v_i the i-th estimate and its variance,

        q̄ = Σ q_i / m,    b = Σ (q_i − q̄)² / (m − 1),    T = (1 + 1/m) b − Σ v_i / m

    q̄ estimates the quantity in the *population*, with variance T. The last term takes away what the sampling of each
    table adds to b. It is the variance of a simple random sample, so records here are drawn independently of each
    other. The rows of ``Release.sample`` are dealt out as evenly as whole records can be: estimates from them vary
    less than v_i says, T would come out too small, and intervals too short.

    Distributions that were refitted (the bootstrap) show the bias of the release's own: with q̂ the mean of the
    estimates from ``released()``, the bias is about q̄ − q̂, and 2 q̂ − q̄ is to be preferred to q̄, with the same T.

    ``draws[i]`` is made when asked for, and is the same each time. ``method`` says in words how the distributions were
    drawn and why so; ``total`` is the estimated number of real records; ``notes`` say what is left out of account.
    ``together`` are the sets of columns whose relation the draws hold, each from a marginal that was measured;
    ``in_part`` those of which single counts alone are known, ``read`` those that were read from public data. ``merged``
    are, by column, the sets of codes that share one count in every marginal of several columns.

    **Privacy:** none spent.

    Source: Raghunathan, Reiter, Rubin (2003); Räisä, Jälkö, Kaski, Honkela (2023), NAPSU-MQ, Section 2, Appendix B.
    """

    method: str
    rows: int
    total: float
    notes: tuple[str, ...]
    seed: int
    schema: Schema = field(repr=False)
    states: tuple[ModelState, ...] = field(repr=False)
    center: ModelState | None = field(repr=False)
    together: tuple[Clique, ...] = field(default=(), repr=False)
    in_part: tuple[Clique, ...] = field(default=(), repr=False)
    read: tuple[Clique, ...] = field(default=(), repr=False)
    merged: Mapping[Attribute, tuple[tuple[int, ...], ...]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.states)

    def __getitem__(self, i: int) -> pa.Table:
        """The i-th table, decoded."""
        codes = self.codes(i)
        return self.schema.decode(codes, rng=self._stream(VALUES_STREAM, self._place(i)))

    def __iter__(self) -> Iterator[pa.Table]:
        return (self[i] for i in range(len(self)))

    def codes(self, i: int) -> Codes:
        """The i-th table as codes."""
        rng = self._stream(ROWS_STREAM, self._place(i))
        return self._model(self._place(i)).sample(self.rows, rng=rng, independent=True)

    def total_of(self, i: int) -> float:
        """How many real records the i-th distribution stands for: they differ where that number is not public."""
        return self._model(self._place(i)).total

    def models(self) -> Iterator[Model]:
        """The distributions, in the order of the tables."""
        return (self._model(i) for i in range(len(self)))

    def released(self) -> Draws | None:
        """As many tables of the release's own distribution, from the same random numbers; None for a posterior.

        What the tables here estimate on average, less what those do, is the bias of the release: a posterior is not
        refitted, and shows none.
        """
        if self.center is None:
            return None
        return replace(self, method="the release's own distribution", states=(self.center,) * len(self), center=None)

    def _model(self, i: int) -> Model:
        state = self.states[i]
        return MODELS[state.kind](self.schema.domain, state.facts, state.arrays)

    def _place(self, i: int) -> int:
        place = operator.index(i)
        if not -len(self) <= place < len(self):
            raise IndexError(f"There are {len(self)} draws, 0 to {len(self) - 1}.")
        return place % len(self)

    def _stream(self, *which: int) -> np.random.Generator:
        return _stream(self.seed, *which)


def _stream(seed: int, *which: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=which))


def draws_of(
    release: Release,
    m: int,
    rows: int | None,
    method: str,
    seed: int | None,
    progress: Progress | None,
) -> Draws:
    """What ``Release.draws`` returns."""
    if rows is None and release.transcript.counts_something:  # what has no draws at all is told of below
        check_told(release.model.total, release.transcript.total_deviation())
    size = max(1, round(release.model.total)) if rows is None else rows
    _check(m, size, method, seed)
    check_room(size, len(release.schema.columns))
    chosen = secrets.randbits(63) if seed is None else int(seed)
    asked, tell = without_others(release.transcript, release.config), _onward(progress)
    posterior, why = _source(release, asked, method, tell, _stream(chosen, FIT_STREAM))
    known = posterior.transcript if isinstance(posterior, Bootstrap) else asked
    states = []
    for model in posterior.draws(m, rng=_stream(chosen, MODELS_STREAM)):
        states.append(model.state())
        tell("drawing distributions", len(states) / m)
    return Draws(
        method=f"{why}: {posterior.method}",
        rows=size,
        total=release.model.total,
        notes=notes_of(release),
        seed=chosen,
        schema=release.schema,
        states=tuple(states),
        center=posterior.model.state() if isinstance(posterior, Bootstrap) else None,
        together=known_together(release.schema.domain, known),
        in_part=counted_together(release.schema.domain, known),
        read=read_together(release.schema.domain, release.transcript, release.config),
        merged=merged_together(release.schema.domain, known),
    )


def _check(m: object, rows: object, method: object, seed: object) -> None:
    if not is_whole(m, 1):
        raise InputError(f"{m!r} draws cannot be made.", remedy="m is at least 1; combining needs 2, and 100 is usual.")
    if int(m) > MAX_DRAWS:  # type: ignore[call-overload]
        raise InputError(f"m is more than {MAX_DRAWS:,} draws.", remedy="Draw fewer; 100 is usual.")
    if not is_whole(rows, 1):
        raise InputError(f"Tables of {rows!r} rows cannot be drawn.", remedy="rows is at least 1, or left out.")
    if method not in METHODS:
        raise InputError(f"{method!r} is no method.", remedy=f"The methods are {', '.join(METHODS)}.")
    check_seed(seed)


def _source(
    release: Release, asked: Transcript, method: str, tell: Progress, rng: np.random.Generator
) -> tuple[Posterior, str]:
    """Where the distributions come from, and why, in words. ``asked``: its transcript without other, public records."""
    if not release.transcript.counts_something and release.model.posterior() is None:
        raise InputError(
            "There are no draws of this release: its mechanism only chose queries, so that no noisy answers tell how"
            " uncertain its model is.",
            remedy="Draw from a release whose mechanism measures, such as AIM's.",
        )
    if method == "bootstrap":
        return _bootstrap(release, rng), "bootstrap, as asked"
    own, why = release.model.posterior(), "posterior"
    if own is None:
        check_kind(release.model.state().kind)
        fit, why = MaxEntropyFit(), "posterior of the same answers"
        if method == "auto" and (lacking := _lacking(fit, release.schema.domain, asked)):
            return _bootstrap(release, rng), f"bootstrap, as the model is one best estimate and {lacking}"
        tell("finding the posterior", 0.0)
        own = fit(
            release.schema.domain,
            asked,
            rng=rng,
            told=lambda share: tell("finding the posterior", FINDING * share),
        ).posterior()
    assert own is not None  # what MaxEntropyFit makes without a warm start has one
    if method == "auto" and not own.facts.get("good"):
        return _bootstrap(release, rng), f"bootstrap, as {own.facts.get('why', 'the posterior failed its checks')}"
    return own, why


def _onward(progress: Progress | None) -> Progress:
    """Progress that never goes back, and may have nobody to tell."""
    reached = 0.0

    def tell(stage: str, share: float) -> None:
        nonlocal reached
        reached = max(reached, share)
        if progress is not None:
            progress(stage, reached)

    return tell


def _lacking(fit: MaxEntropyFit, domain: Domain, asked: Transcript) -> str:
    """Why there is no posterior of a release's answers, in words; nothing where there can be one."""
    if missing := fit.missing():
        return f"a posterior needs {', '.join(missing)} (pip install 'margrave[inference]')"
    if not fit.takes(domain, asked):
        return "its marginals have too many parameters for a posterior"
    many = fit.parameters(domain, asked)
    return f"a posterior of {many} parameters takes minutes (method posterior finds it)" if many > SOON else ""


def _bootstrap(release: Release, rng: np.random.Generator) -> Bootstrap:
    return Bootstrap.of(release.model, release.transcript, release.config, rng=rng)


def notes_of(release: Release) -> tuple[str, ...]:
    """What the draws leave out of account, in words, from public facts alone."""
    notes = [ABSENT]
    merged = merged_together(release.schema.domain, release.transcript)
    if merged:
        notes.append(f"{MERGED}: {merged_words(release.schema, merged)}. {SHARED}")
    if release.transcript.selections or release.transcript.query_selections:
        notes.append("What was measured was chosen with the same records; the draws take the choice as given.")
    if release.transcript.readings and not of_same_records(release.config):
        notes.append(LEFT_OUT)
    if "person" in release.account.unit:
        notes.append("Records are taken as independent: that a person may have several is not accounted for.")
        notes.append(release.account.left_out)
    return tuple(notes)


def merged_words(schema: Schema, merged: Mapping[Attribute, tuple[tuple[int, ...], ...]]) -> str:
    """Which codes share one count, by column."""
    told = []
    for a in sorted(merged, key=schema.domain.index):
        labels = schema.column(a).labels()
        told.append(f"{a} ({'; '.join(some_of([labels[c] for c in codes]) for codes in merged[a])})")
    return ", ".join(told)
