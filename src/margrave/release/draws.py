"""Draws: several tables of a release, for analyses that account for its noise and for the sampling of its records."""

from __future__ import annotations

import operator
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from margrave._card import Card, Facts, counted, listed
from margrave._fields import is_whole
from margrave.account import Account
from margrave.domain import Codes, Domain
from margrave.errors import InputError, did_you_mean
from margrave.models import FAMILIES, FittedAnswers, MaxEntropyFit
from margrave.models.entries import EntryKind, kinds_of, not_taken
from margrave.models.protocol import Model, ModelState, Posterior
from margrave.provenance import Provenance
from margrave.release.bootstrap import Bootstrap, refitted_by
from margrave.release.diagnostics import (
    counted_together,
    known_together,
    merged_together,
    merged_words,
    read_together,
    without_others,
)
from margrave.release.hidden_spread import hidden_spreads
from margrave.release.sampling import check_memory, check_row_count, check_seed
from margrave.release.small_cells import CellSize, cell_sizes, sums_measured
from margrave.schema import Categorical, Ordinal, Schema
from margrave.schema.part_sampling import drawn_together
from margrave.transcript import Transcript
from margrave.types import Attribute, Clique

Progress = Callable[[str, float], None]

METHODS = ("auto", "posterior", "bootstrap")

#: Tables drawn by default.
DEFAULT_DRAWS = 100

#: Streams of randomness from one seed: models, each table's codes, values within codes, a refit.
MODELS_STREAM, ROWS_STREAM, VALUES_STREAM, FIT_STREAM = 0, 1, 2, 3

#: The note of all draws. An analysis replaces it by what was not measured of its columns.
ABSENT = (
    "Relations among columns that no measured marginal holds are absent from every draw, and no interval"
    " accounts for that."
)

MERGED = "Codes that were merged because they are rare share one count in every marginal of several columns"
#: The note of draws with merged codes. An analysis replaces it by the estimates concerned.
SHARED = "Their differences in other columns are absent from every draw."


@dataclass(frozen=True, eq=False, repr=False)
class Draws(Card):
    """Tables of independent records, table i from the i-th draw of the possible distributions.

    Analyze each table as if it were the real one, and combine. With q_i and v_i the i-th estimate and its variance,

        q̄ = Σ q_i / m,    b = Σ (q_i − q̄)² / (m − 1),    T = (1 + 1/m) b − Σ v_i / m

    q̄ estimates the quantity in the *population*, with variance T. The last term takes away what the sampling of each
    table adds to b. It is the variance of a simple random sample, so records here are drawn independently of each
    other. The rows of ``Release.sample`` are dealt out as evenly as whole records can be: estimates from them vary
    less than v_i says, T would come out too small, and intervals too short.

    Distributions that were refitted (the bootstrap) show the bias of the release's own: with q̂ the mean of the
    estimates from ``released()``, the bias is about q̄ − q̂, and 2 q̂ − q̄ is to be preferred to q̄. ``combine`` then adds
    (q̄ − q̂)² to T.

    ``draws[i]`` is made on each access, and is always the same.

    Args:
        method: The way in which the distributions were drawn, and the reason, in words.
        rows: Number of records of each table.
        total: Estimated number of real records.
        notes: Sources of uncertainty that the draws leave out, and the posterior that ``method="posterior"``
            could fit instead, in words.
        seed: Seed of all randomness.
        schema: The schema.
        states: The distributions.
        center: The release's own distribution, if the others are refits.
        together: Sets of columns whose relation the draws hold, each from a measured marginal.
        in_part: Sets of columns of which only single counts or weighted sums are known.
        read: Sets of columns of public marginals.
        merged: By column the sets of codes that share one count in every marginal of several columns.
        cell_sizes: For each marginal, its columns and its average cell in noise scales.
        sums: The columns whose weighted sums, or sums of products, were measured, with all columns of these.
        hidden_spreads: Columns of numbers whose spread the noise hides.
        transcript: The noisy answers of the release, for its numbers.
        answers: The model of the release.
        relation_notes: The notes on relations, which an analysis of known columns replaces by its own.
        runs: Number of independent runs, if each table is of one of them; the rule is then another (`combine`).

    Privacy:
        None spent.

    References:
        Raghunathan, Reiter, Rubin (2003). Räisä, Jälkö, Kaski, Honkela (2023), NAPSU-MQ, Section 2 and Appendix B.
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
    merged: Mapping[Attribute, tuple[tuple[int, ...], ...]] = field(
        default_factory=dict, repr=False
    )
    cell_sizes: tuple[CellSize, ...] = field(default=(), repr=False)
    sums: tuple[tuple[Clique, Clique], ...] = field(default=(), repr=False)
    hidden_spreads: tuple[Attribute, ...] = field(default=(), repr=False)
    transcript: Transcript | None = field(default=None, repr=False)
    answers: FittedAnswers | None = field(default=None, repr=False)
    relation_notes: tuple[str, ...] = field(default=(), repr=False)
    runs: int = field(default=0, repr=False)

    def _facts(self) -> Facts:
        line = f"{counted(len(self), 'table')} of {counted(self.rows, 'record')}"
        facts = [("drawn by", self.method), ("real records, about", f"{self.total:,.0f}")]
        facts += [("columns", listed([c.name for c in self.schema.output_columns]))]
        return Facts(line, facts, self.notes)

    def __len__(self) -> int:
        return len(self.states)

    def __getitem__(self, i: int) -> pa.Table:
        """Return the i-th table, decoded. The time since another column stays a number, for analyses of it."""
        return self.table(i)

    def __iter__(self) -> Iterator[pa.Table]:
        return (self[i] for i in range(len(self)))

    def table(self, i: int, columns: Collection[str] | None = None) -> pa.Table:
        """Return the i-th table, or some of its columns.

        Fewer columns take less time. Their values have the same distribution as in the whole table, but they are
        other values: fewer random numbers are drawn from the same seed. The table of the same columns is always the
        same.

        Args:
            i: The number of the table.
            columns: Names of columns of the table; by default all.

        Raises:
            InputError: A name is not a column.
        """
        rng = self._stream(VALUES_STREAM, self._place(i))
        if columns is None:
            return self.schema.decode(self.codes(i), rng=rng, as_numbers=True)
        wanted = [c.name for c in self.schema.output_columns if c.name in columns]
        schema = self._part(tuple(self.schema.domain.clique(columns)))
        drawn = self.codes(i, schema.domain)
        codes = Codes(
            schema.domain, drawn.values
        )  # whose domain has the zeros of other columns too
        return schema.decode(codes, rng=rng, as_numbers=True).select(wanted)

    def codes(self, i: int, columns: Iterable[str] | None = None) -> Codes:
        """Return the i-th table as codes, or some of its columns, as `table` does."""
        rng = self._stream(ROWS_STREAM, self._place(i))
        model = self._model(self._place(i))
        some = {} if columns is None else {"columns": tuple(columns)}
        return model.sample(self.rows, rng=rng, independent=True, **some)

    def total_of(self, i: int) -> float:
        """Return the number of real records of the i-th distribution. It varies if the row count is private."""
        return self._model(self._place(i)).total

    def models(self) -> Iterator[Model]:
        """Yield the distributions, in the order of the tables."""
        return (self._model(i) for i in range(len(self)))

    @cached_property
    def commonest(self) -> Mapping[Attribute, str]:
        """The label with the largest count of each column of categories.

        The counts are those of the release's own distribution, or of the first draw of a posterior.
        """
        released = self.released()
        model, found = (released or self)._model(0), dict[Attribute, str]()
        for column in (c for c in self.schema.columns if isinstance(c, Categorical | Ordinal)):
            labels = column.labels()[:-1] if column.missing else column.labels()
            counts = model.project((column.name,)).values[: len(labels)]
            found[column.name] = labels[int(np.argmax(counts))]
        return found

    def released(self) -> Draws | None:
        """Return as many tables of the release's own distribution, from the same random numbers.

        The mean estimate of these tables less that of those is the bias of the release.

        Returns:
            The tables; None for a posterior, which is not refitted and shows no bias.
        """
        if self.center is None:
            return None
        return replace(
            self,
            method="the release's own distribution",
            states=(self.center,) * len(self),
            center=None,
        )

    def _part(self, columns: Clique) -> Schema:
        """Return the schema of some columns, with those that their values are drawn with."""
        if columns not in self._parts:
            known = self.schema
            self._parts[columns] = known.select(
                drawn_together(known.columns, known.constraints, columns)
            )
        return self._parts[columns]

    @cached_property
    def _parts(self) -> dict[Clique, Schema]:
        return {}

    def _model(self, i: int) -> Model:
        state = self.states[i]
        if id(state) not in self._last:
            found = FAMILIES[state.kind].load(self.schema.domain, state.facts, state.arrays)
            self._last.clear()
            self._last[id(state)] = found.distribution()
        return self._last[id(state)]

    @cached_property
    def _last(self) -> dict[int, Model]:
        """The distribution used last, by the identity of its state: loading one takes as long as some columns."""
        return {}

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
    schema: Schema,
    transcript: Transcript,
    model: FittedAnswers,
    account: Account,
    provenance: Provenance,
    *,
    m: int | None,
    rows: int | None,
    method: str,
    seed: int | None,
    progress: Progress | None,
) -> Draws:
    """Return the draws of a release: see ``Release.draws``."""
    # a release without any draws is refused below
    if rows is None and transcript.counts_something:
        check_row_count(model.total, transcript.total_deviation())
    size = max(1, round(model.total)) if rows is None else rows
    _check(DEFAULT_DRAWS if m is None else m, size, method, seed)
    check_memory(size, len(schema.columns))
    chosen = secrets.randbits(63) if seed is None else int(seed)
    asked, tell = without_others(transcript, provenance), _onward(progress)
    rng = _stream(chosen, FIT_STREAM)

    def bootstrap() -> Bootstrap:
        return Bootstrap.of(model, transcript, provenance, rng=rng)

    if not transcript.counts_something and model.posterior() is None:
        raise InputError(
            "There are no draws of this release: its mechanism only selected queries,"
            " so that no noisy answers measure the uncertainty of its model.",
            remedy="Draw from a release whose mechanism measures, such as AIM's.",
        )
    posterior, why = _source(schema.domain, model, asked, method, tell, rng, bootstrap)
    known = posterior.transcript if isinstance(posterior, Bootstrap) else asked
    states, runs = [], int(posterior.facts.get("runs", 0))
    m = runs or DEFAULT_DRAWS if m is None else m
    for drawn in posterior.draws(m, rng=_stream(chosen, MODELS_STREAM)):
        states.append(drawn.state())
        tell("drawing distributions", len(states) / m)
    offers = method == "auto" and model.posterior() is None
    return Draws(
        method=posterior.method if runs else f"{why}: {posterior.method}",
        rows=size,
        total=model.total,
        notes=(
            *notes_of(schema, transcript, account, provenance, selected_anew=runs > 0),
            *(posterior_offer(schema.domain, asked) if offers else ()),
        ),
        runs=runs,
        relation_notes=relation_notes(schema, transcript),
        seed=chosen,
        schema=schema,
        states=tuple(states),
        center=posterior.model.state() if isinstance(posterior, Bootstrap) else None,
        together=known_together(schema.domain, known),
        in_part=counted_together(schema.domain, known),
        read=read_together(schema.domain, transcript, provenance),
        merged=merged_together(schema.domain, known),
        cell_sizes=cell_sizes(schema.domain, known),
        sums=sums_measured(schema.domain, known),
        hidden_spreads=hidden_spreads(schema, known),
        transcript=transcript,
        answers=model,
    )


def _check(m: object, rows: object, method: object, seed: object) -> None:
    # The most draws of one call: each keeps a model in memory.
    max_draws = 100_000
    if not is_whole(m, 1):
        raise InputError(
            f"{m!r} draws cannot be made.",
            remedy="m is at least 1; combining needs 2, and 100 is usual.",
        )
    if int(m) > max_draws:  # type: ignore[call-overload]
        raise InputError(f"m is more than {max_draws:,} draws.", remedy="Draw fewer; 100 is usual.")
    if not is_whole(rows, 1):
        raise InputError(
            f"Tables of {rows!r} rows cannot be drawn.", remedy="rows is at least 1, or left out."
        )
    if method not in METHODS:
        raise InputError(
            f"{method!r} is not a method.",
            remedy=f"{did_you_mean(method, METHODS)}The methods are {', '.join(METHODS)}.",
        )
    check_seed(seed)


def _source(
    domain: Domain,
    model: FittedAnswers,
    transcript: Transcript,
    method: str,
    tell: Progress,
    rng: np.random.Generator,
    bootstrap: Callable[[], Bootstrap],
) -> tuple[Posterior, str]:
    """Return the source of the distributions, and its name. ``transcript`` has no other, public records."""
    # The share of the time that it takes to find a posterior; drawing from it is quick.
    posterior_time_share = 0.95
    own = model.posterior()
    if method == "bootstrap" or (method == "auto" and own is None):
        return bootstrap(), "bootstrap"
    if own is not None and method == "auto" and not own.facts.get("good"):
        why = f"bootstrap, as {own.facts.get('why', 'the posterior failed its checks')}"
        return bootstrap(), why
    if own is not None:
        return own, "posterior"
    refitted_by(model.state().kind)  # refuses models without a distribution
    if lacking := not_taken(MaxEntropyFit(), kinds_of(transcript)):
        sums = {EntryKind.WEIGHTED_MAP: "weighted sums, as measured for purposes"}
        raise InputError(
            f"This release has {' and '.join(sums.get(k, k) for k in lacking)}, which a posterior cannot use.",
            remedy="Leave method out: the bootstrap uses all answers.",
        )
    tell("finding the posterior", 0.0)
    found = MaxEntropyFit()(
        domain,
        transcript,
        rng=rng,
        progress=lambda share: tell("finding the posterior", posterior_time_share * share),
    ).posterior()
    assert found is not None  # what MaxEntropyFit makes without a warm start has one
    return found, "posterior of the same answers"


def _onward(progress: Progress | None) -> Progress:
    """Return a progress callback that never goes back."""
    reached = 0.0

    def tell(stage: str, share: float) -> None:
        nonlocal reached
        reached = max(reached, share)
        if progress is not None:
            progress(stage, reached)

    return tell


def posterior_offer(domain: Domain, transcript: Transcript) -> tuple[str, ...]:
    """Return the note on a posterior of these answers and its time; none if it cannot be fitted."""
    fit = MaxEntropyFit()
    if fit.missing() or not fit.takes(domain, transcript):
        return ()
    return (
        'A posterior in place of the bootstrap takes a minute or more: method="posterior" (--method posterior).',
    )


def notes_of(
    schema: Schema,
    transcript: Transcript,
    account: Account,
    provenance: Provenance,
    *,
    selected_anew: bool = False,
) -> tuple[str, ...]:
    """Return the sources of uncertainty that the draws leave out, in words."""
    left_out = (
        "Public marginals are of other records. The data sets use the measurements alone, so that they"
        " differ from the release's own model."
    )
    notes = [*relation_notes(schema, transcript)]
    selected = transcript.selections or transcript.query_selections or transcript.scores
    if selected and not selected_anew:
        notes.append(
            "The mechanism chose what to measure by noisy answers about the same records. The intervals take no account"
            " of that choice."
        )
    if transcript.readings and not provenance.same_records:
        notes.append(left_out)
    if account.left_out:
        notes.append(
            "The intervals take each record for another person. Records of one person that are alike make them too"
            " narrow."
        )
        notes.append(account.left_out)
    return tuple(notes)


def relation_notes(schema: Schema, transcript: Transcript) -> tuple[str, ...]:
    """Return the notes on relations that no draw holds: on columns, and on merged codes if there are any."""
    merged = merged_together(schema.domain, transcript)
    words = f"{MERGED}: {merged_words(schema, merged)}. {SHARED}"
    return (ABSENT, words) if merged else (ABSENT,)
