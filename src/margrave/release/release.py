"""A release: a model of noisy answers, the answers, the books, and the public schema. Nothing in it reaches rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from margrave.errors import InputError, ModelTooLargeError, ReleaseError
from margrave.files import check_ending, check_output
from margrave.marginal import Marginal, closure
from margrave.marginal.counting import count_cliques
from margrave.models import MODELS, NoModel, fit_named
from margrave.models.protocol import Fit, Model, ModelState
from margrave.models.specs import fit_config
from margrave.parameters import is_whole
from margrave.release import manifest
from margrave.release.archive import MAX_MB, open_archive, write_archive
from margrave.release.bounds import Bound, Bounds, Intervals, cliques_of_interest, intervals_of, workload_of
from margrave.release.certificate import build_certificate, current_versions
from margrave.release.completing import completed
from margrave.release.draws import Draws, draws_of
from margrave.release.evidence import Condition, codes_of
from margrave.release.misfit import Misfit, misfits_of
from margrave.release.price import Price, price_of
from margrave.release.reference import ModelReference, Reference, TableReference
from margrave.release.seeds import generator
from margrave.release.size import check_room, check_told, held, is_told
from margrave.release.together import Together, together_of, unasked
from margrave.release.verification import Verification, verify_account
from margrave.schema import Codes, Schema
from margrave.transcript import Account, Hindsight, Transcript
from margrave.typing import Attribute, Clique, FloatArray

FORMAT = "margrave-release"
FORMAT_VERSION = 1


@dataclass(frozen=True, eq=False)
class Release:
    """Synthetic rows, marginals and the certificate of one run of a mechanism.

    **Privacy:** everything here is post-processing of the transcript: nothing is spent, however often it is used.
    """

    schema: Schema
    model: Model
    transcript: Transcript
    account: Account
    config: Mapping[str, Any]
    versions: Mapping[str, str] = field(default_factory=current_versions)
    hindsight: tuple[Hindsight, ...] = ()

    def __post_init__(self) -> None:
        if not _is_plain(dict(self.config)) or not _is_plain(dict(self.versions)):
            raise ReleaseError(
                "A release's config and versions are plain data: names, numbers, texts, lists."
            )

    def __repr__(self) -> str:
        private = "" if self.account.private else ", NOT PRIVATE"
        return (
            f"Release({self.config.get('name', '?')}, {len(self.schema.columns)} columns,"
            f" epsilon={self.account.epsilon:g}, delta={self.account.delta:g}{private})"
        )

    @property
    def no_model(self) -> str:
        """Return why the release has no model, or an empty text if it has one.

        A release has none if the fit failed after the budget was spent, or if its model is of a kind that this
        installation does not know. Whatever needs a model then raises a ``ReleaseError``; ``refit`` makes one.

        **Privacy:** none spent.
        """
        return self.model.reason if isinstance(self.model, NoModel) else ""

    def without_model(self, reason: str) -> Release:
        """Return the release with its answers and account, and the reason in place of its model.

        **Privacy:** none spent.
        """
        return replace(self, model=NoModel(self.schema.domain, self.transcript.total(), reason), hindsight=())

    def _require_model(self) -> None:
        if isinstance(self.model, NoModel):
            self.model.refuse()

    def sample(self, n: int | None = None, *, seed: int | None = None) -> pa.Table:
        """Synthetic rows: ``n`` of them, or about as many as the real table is estimated to have.

        The rows come in random order. ``seed`` makes them repeatable; it touches post-processing only.

        **Privacy:** none spent. An InputError without ``n`` where ``size_told`` is False: it could be any number.
        """
        self._require_model()
        if n is None:
            check_told(self.model.total, self.transcript.total_deviation())
        return _rows(self.schema, self.model, n, seed)

    @property
    def size_told(self) -> bool:
        """Whether the number of records is known: public, or at least four times the standard deviation of its noise.

        **Privacy:** none spent.
        """
        return is_told(self.model.total, self.transcript.total_deviation())

    def codes(self, n: int | None = None, *, seed: int | None = None) -> Codes:
        """The codes of synthetic rows: those of ``sample(n, seed=seed)``, before values are drawn for them.

        **Privacy:** none spent. Errors as of ``sample``.
        """
        self._require_model()
        if n is None:
            check_told(self.model.total, self.transcript.total_deviation())
        return _codes(self.model, n, generator(seed))

    def marginal(self, attributes: Iterable[Attribute]) -> Marginal:
        """Expected counts of every combination of codes of these columns, by the model.

        The axes are in the order of the schema, and ``labels`` say what their codes stand for.

        **Privacy:** none spent.
        """
        return _labelled(self.schema, self.model, attributes)

    def condition(self, values: Mapping[Attribute, Condition]) -> Conditional:
        """Rows given the values of some columns: ``{"sex": "F", "age": (30, 40)}``.

        A plain value, a list of values, or a pair (low, high) for a range of a numeric, time or ordered column; an
        end that is None is open: ``(1000, None)``.
        Bins come whole: a value of such a column means its bin, and a range every bin that it touches, so that with
        bins of five years (30, 40) means 30 to 44. Dates may be written in ISO 8601 or to the column's ``format``.

        **Privacy:** none spent.
        """
        evidence = {a: codes_of(self.schema, a, wanted) for a, wanted in values.items()}
        model, total = self.model, self.model.total
        for a, codes in evidence.items():  # one after the other: single columns tell the share of all together
            narrowed, counts = model.condition({a: codes}), model.project((a,)).values
            total *= float(counts[list(codes)].sum() / counts.sum()) if counts.sum() > 0 else 0.0
            model = narrowed
        share = total / self.model.total if self.model.total > 0 else 0.0
        return Conditional(self.schema, model, evidence, total, self.transcript.total_deviation() * share)

    def complete(self, rows: Any, *, attestation: str, seed: int | None = None) -> pa.Table:
        """Public rows with the columns that they lack: each drawn given what the row has, by the model.

        ``rows`` is a data frame with some of the schema's columns, say a public register of the very people whose
        income is private, and ``attestation`` says where it comes from and why it is public. They come out in their
        order, with all of the schema's columns and then their own others, such as the column of persons: values as
        they were given, those that the schema cannot hold too (what is drawn beside them is drawn for the code that
        they count as), and categories as the schema spells them. ``seed`` makes what is drawn repeatable. A model of
        weighted records can only complete rows like its own.

        **Privacy:** none spent. The rows given are not protected: they come out as they are, and each with values drawn
        for rows like it, which say no more of its person than the release says of everybody alike.

        Raises an InputError where the rows have no column of the schema, or all, or one whose name is that of a column
        they lack but for case; or values together that the schema rules out.
        """
        return completed(self.schema, self.model, rows, attestation, generator(seed))

    def refit(self, fit: Fit | str, *, seed: int | None = None, max_model_mb: float = 2048.0) -> Release:
        """The release with another model of the same noisy answers.

        ``fit`` is one, such as ``ParticleFit()``, or its name on the command line, such as ``"particles"``.

        **Privacy:** none spent. A ReleaseError where there are none: DualQuery and FEM choose and do not measure; a
        ModelTooLargeError where the model of all that was counted would be above ``max_model_mb``.
        """
        if not self.transcript.counts_something:
            raise ReleaseError(
                "This release holds no noisy answers to fit another model to: its mechanism only chose queries.",
                remedy="Use the model that it has.",
            )
        fit = fit_named(fit)
        cells = fit.cells(self.schema.domain, self.transcript.counted)
        if cells * 8 > max_model_mb * 2**20:
            raise ModelTooLargeError(
                f"A model by {type(fit).__name__} of all that was counted has {cells:,} cells, above"
                f" {max_model_mb:g} MB.",
                remedy="Fit one that does not grow with the marginals, ParticleFit() or GeneticFit() (--fit particles),"
                " or raise max_model_mb.",
            )
        rng = generator(seed)  # fitting is post-processing
        model = fit(self.schema.domain, self.transcript, rng=rng, warm=None)
        first = self.config.get("first_fit", self.config.get("fit"))  # what the choices were made with
        told = {"refit": type(fit).__name__, "first_fit": first, **fit_config(fit, public="refit_public")}
        config = {**self.config, **told}
        return replace(self, model=model, config=config, hindsight=())  # which told about the model before

    def draws(
        self,
        m: int = 100,
        *,
        rows: int | None = None,
        method: str = "auto",
        seed: int | None = None,
        progress: Callable[[str, float], None] | None = None,
    ) -> Draws:
        """``m`` tables of ``rows`` independent records each, for an analysis whose intervals know of the noise.

        Table i is drawn from the i-th draw of what the distribution of the *population* may be, given the noisy
        answers: their spread holds the noise of privacy and the sampling of the real records. ``rows``: the estimated
        number of real records without. What was read of other, public records is left out. ``method``: "posterior", the
        model's own, or of its answers by ``MaxEntropyFit()``, in seconds to minutes (keep
        ``release.refit(MaxEntropyFit())`` to draw from it again); "bootstrap", refits of simulated answers, at the cost
        of m fits; or "auto", the first where its libraries are installed, it has few enough parameters and its chains
        mix, else the second. ``seed`` makes them repeatable. ``progress`` is told the share of the distributions drawn.

        **Privacy:** none spent. An InputError for a release without a distribution, such as one of answers only, for
        "posterior" where there cannot be one, and without ``rows`` where ``size_told`` is False; a ReleaseError where
        its chains have not mixed.
        Source: Räisä, Jälkö, Kaski, Honkela (2023), NAPSU-MQ; ``docs/inference.md``.
        """
        self._require_model()
        return draws_of(self, m, rows, method, seed, progress)

    def bounds(
        self,
        cliques: Iterable[Iterable[Attribute]] | None = None,
        *,
        level: float = 0.95,
        joint: bool = False,
        table: pa.Table | Codes | None = None,
        paper: bool = False,
    ) -> tuple[Bound, ...]:
        """For each marginal a number that ``||M_r(D) − M_r(model)||_1`` does not exceed, with probability ``level``.

        None means the downward closure of the workload. With a ``table`` of synthetic rows, the bounds are on the
        distance to its marginals, scaled to the release's number of records. ``joint``: the level is for all of them
        together. ``paper``: AIM's own constants and estimator instead of tighter ones. A release that was refitted
        bounds only marginals that lie in a measured one.

        **Privacy:** none spent. A function of the transcript, the model, and the table given.
        Source: McKenna, Mullins, Sheldon, Miklau 2022 (AIM), Section 5; ``docs/bounds.md``.
        """
        domain = self.schema.domain
        if cliques is None:
            asked = cliques_of_interest(domain, self.transcript, self.config)
        else:
            asked = tuple(dict.fromkeys(domain.clique(c) for c in cliques))
        if not all(asked):
            raise InputError("A marginal of no columns is asked for.", remedy="Name at least one column.")
        maker = Bounds(domain, self.transcript, self.hindsight, level, joint, paper)
        return maker.of(asked, self._reference(asked, table))

    def intervals(
        self, attributes: Iterable[Attribute], *, level: float = 0.95, simultaneous: bool = False
    ) -> Intervals:
        """The unbiased estimate of every cell of a marginal that lies in a measured one, and an interval around it.

        ``simultaneous``: all intervals hold together with probability ``level``, else each on its own. A ReleaseError
        for other marginals.

        **Privacy:** none spent.
        """
        clique = self.schema.domain.clique(attributes)
        return intervals_of(self.schema.domain, self.transcript, clique, level, simultaneous)

    def price(self, *, level: float = 0.95) -> Price:
        """The price of privacy: at least how many real rows, published as they are, would be as far off as this is.

        From ``bounds(joint=True)`` on the marginals of the workload (all three-way ones, where the mechanism has none)
        and the closed form of Appendix C. Bounds are several times the error, so the truth is well above; the custodian
        can compute it with ``margrave evaluate``.

        **Privacy:** none spent. A ReleaseError for a release without a distribution, such as one of answers only.
        Source: McKenna, Mullins, Sheldon, Miklau 2022 (AIM), Section 5 and Appendix C; ``docs/bounds.md``.
        """
        weights = workload_of(self.schema.domain, self.config).weights
        bounds = self.bounds(weights, level=level, joint=True)
        return price_of(self.model, {b.clique: b for b in bounds}, weights, level)

    def _reference(self, cliques: Sequence[Clique], table: pa.Table | Codes | None) -> Reference:
        if table is None:
            self._require_model()
            return ModelReference(self.model)
        codes = table if isinstance(table, Codes) else self.schema.encode(table)
        if difference := self.schema.domain.difference(codes.domain):
            raise InputError(
                f"The table is not of this release's schema: {difference}.", remedy="Draw one with sample() or codes()."
            )
        if not len(codes):
            raise InputError("The table has no rows of this release's schema.", remedy="Draw some with sample().")
        scale, counted = self.model.total / len(codes), count_cliques(codes, closure(cliques))
        counts: dict[Clique, FloatArray] = {c: np.asarray(v * scale) for c, v in counted.items()}
        return TableReference(self.model, counts)

    @property
    def unasked(self) -> tuple[Attribute, ...]:
        """The columns that nothing tells of: not measured, counted or read of public data, nor following from others.

        What the model says of them, mostly that all codes are as frequent, is not of the table: a workload left them
        out, or no round came to them.

        **Privacy:** none spent.
        """
        return unasked(self.schema.domain, self.transcript, self.config)

    @property
    def together(self) -> Together:
        """How many pairs of columns were measured together, and which columns with no other.

        Of a pair that was not measured the synthetic rows hold what passes through other columns, and no more of the
        real table than that: a mean by group may come out the same in every group.

        **Privacy:** none spent.
        """
        return together_of(self.schema.domain, self.transcript, self.config)

    @cached_property
    def misfits(self) -> tuple[Misfit, ...]:
        """The measured marginals that the model contradicts beyond their noise, the worst first; mostly none.

        Where public records are reweighted, what none of them has can never be; constraints rule out what rows hold
        all the same; a network may have learned too little. ``refit`` fits another model to the same answers.

        **Privacy:** none spent.
        """
        return () if self.no_model else misfits_of(self.model, self.transcript)

    def certificate(self) -> dict[str, Any]:
        """What was promised, measured and spent, as plain data that fits in JSON.

        **Privacy:** none spent.
        """
        posterior = self.model.posterior()
        facts = build_certificate(
            self.schema, self.transcript, self.account, self.config, self.versions, self.model.total,
            None if posterior is None else posterior.facts,
        )  # fmt: skip
        return {**facts, **({"no_model": self.no_model} if self.no_model else {})}

    def verify(self) -> Verification:
        """Recompute the account from the transcript and list what contradicts it.

        The computation shares no code with the gate. It uses the unit, noise scales, queries and epsilons alone.

        Returns:
            The contradictions, notes, and whether the account holds.

        Privacy:
            None spent. The result says nothing of the noisy counts themselves, which cannot be recomputed.
        """
        return verify_account(self.schema, self.transcript, self.account, self.config)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the release to one file, whole or not at all; an existing file stays unless ``overwrite``.

        Its name ends in ``.margrave``, as on the command line: an ``InputError`` where it does not.

        **Privacy:** none spent. The file holds the transcript, the model and public facts, and depends on nothing else.
        """
        check_output(path, overwrite=overwrite)
        check_ending(path, ".margrave")
        shelf = manifest.Shelf()
        plain = {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "schema": self.schema.to_toml(),
            "config": dict(self.config),
            "account": self.account.to_dict(),
            "transcript": manifest.transcript_to_plain(self.transcript, shelf),
            "model": manifest.model_to_plain(self.model.state(), shelf),
            "hindsight": manifest.hindsight_to_plain(self.hindsight, shelf),
            "versions": dict(self.versions),
        }
        write_archive(path, plain, shelf.arrays, overwrite=overwrite)

    @staticmethod
    def load(path: str | Path, *, max_mb: float = MAX_MB, verify: bool = True) -> Release:
        """Read a release. Nothing in the file is run.

        Args:
            path: The file.
            max_mb: How much of it is read at most, decompressed, in MB. A file that swells to more, or to more than 200
                times its size, is refused.
            verify: Whether to refuse a release whose account does not follow from its transcript. False is for looking
                into such a file.

        Raises:
            ReleaseError: The file is not a release, or is larger than that, or its account does not hold; the first
                contradiction is named.
        """
        with open_archive(path, max_mb) as (plain, fetch):
            if plain.get("format") != FORMAT:
                raise ReleaseError("It is not a margrave release.")
            if plain.get("version") != FORMAT_VERSION:
                raise ReleaseError(
                    "It is of a version of the format that this margrave does not know.",
                    remedy="Read it with the margrave that wrote it, or a newer one.",
                )
            release = _from_plain(plain, manifest.Shelf(fetch))
            findings = release.verify().findings if verify else ()
        if findings:
            raise ReleaseError(
                f"The account of {path} does not follow from its transcript: {findings[0]}",
                remedy="Do not rely on this file; get the original. margrave verify lists every contradiction.",
            )
        return release


def verify(release: Release | str | Path, *, max_mb: float = MAX_MB) -> Verification:
    """Recompute the account of a release, or of its file, and list what contradicts it.

    Args:
        release: A release, or the path of one; a file is read even if its account does not hold.
        max_mb: How much of a file is read at most, decompressed, in MB.

    Returns:
        The contradictions in plain sentences, notes, and whether the account ``holds``.

    Raises:
        ReleaseError: The file is malformed.

    Privacy:
        None spent. Nobody needs the rows, the gate or the custodian for this check.
    """
    found = release if isinstance(release, Release) else Release.load(release, max_mb=max_mb, verify=False)
    return found.verify()


@dataclass(frozen=True, eq=False)
class Conditional:
    """A release given the values of some columns: rows and marginals of that part alone.

    ``evidence`` names the codes that each conditioned column may take, ``total`` is how many records do, by the
    release's model, and ``deviation`` what the noise in the number of all records makes of it. ``model`` is the
    distribution within that part, scaled to any number of records.
    """

    schema: Schema
    model: Model
    evidence: Mapping[Attribute, tuple[int, ...]]
    total: float
    deviation: float = 0.0

    def sample(self, n: int | None = None, *, seed: int | None = None) -> pa.Table:
        """Synthetic rows of that part: ``n`` of them, or as many as the model expects.

        **Privacy:** none spent. An InputError without ``n`` where the number of all records is lost in noise.
        """
        if n is None:
            check_told(self.total, self.deviation)
        return _rows(self.schema, self.model, round(self.total) if n is None else n, seed)

    def marginal(self, attributes: Iterable[Attribute]) -> Marginal:
        """Expected counts within that part.

        **Privacy:** none spent.
        """
        found = _labelled(self.schema, self.model, attributes)
        return replace(found, values=found.values * (self.total / found.total() if found.total() > 0 else 0.0))


def _labelled(schema: Schema, model: Model, attributes: Iterable[Attribute]) -> Marginal:
    """A marginal of the model, with what its codes stand for."""
    clique = schema.domain.clique(attributes)
    return replace(model.project(clique), labels=tuple(tuple(schema.column(a).labels()) for a in clique))


def _rows(schema: Schema, model: Model, n: int | None, seed: int | None) -> pa.Table:
    rng = generator(seed)  # sampling is post-processing
    codes = _codes(model, n, rng)
    with held(n):
        return schema.decode(codes, rng=rng)


def _codes(model: Model, n: int | None, rng: np.random.Generator) -> Codes:
    if not (n is None or is_whole(n, 0)):
        raise InputError(
            f"{n!r} rows cannot be drawn.", remedy="The number of rows n is a whole number, at least 0."
        )
    check_room(round(model.total) if n is None else n, len(model.domain))
    with held(n):
        codes = model.sample(n, rng=rng)
        return codes.take(rng.permutation(len(codes)))


def _is_plain(value: object) -> bool:
    """Whether a value is what JSON can hold, so that nothing that reaches rows can ride along."""
    if isinstance(value, Mapping):
        return all(isinstance(k, str) and _is_plain(v) for k, v in value.items())
    if isinstance(value, list | tuple):
        return all(_is_plain(v) for v in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, str | int)


def _model_of(state: ModelState, schema: Schema, transcript: Transcript) -> Model:
    """The model of a state; one of a kind that is not known here is kept unread."""
    if state.kind in MODELS:
        return MODELS[state.kind](schema.domain, state.facts, state.arrays)
    reason = f"its model is of the kind {state.kind[:60]!r}, which this installation of margrave does not know"
    return NoModel(schema.domain, transcript.total(), reason, state)


def _from_plain(plain: Mapping[str, Any], shelf: manifest.Shelf) -> Release:
    schema = Schema.from_toml(plain["schema"])
    transcript = manifest.transcript_from_plain(plain["transcript"], shelf, schema.domain)
    account = manifest.account_from_plain(plain["account"])
    state = manifest.model_from_plain(plain["model"], shelf)
    config, versions = plain["config"], plain["versions"]
    if not isinstance(config, dict) or not isinstance(versions, dict):
        raise ReleaseError("Its configuration or versions are not tables of names.")
    model = _model_of(state, schema, transcript)
    if model.domain != schema.domain or not (np.isfinite(model.total) and model.total >= 0):
        raise ReleaseError("Its model does not fit its schema.")
    hindsight = manifest.hindsight_from_plain(plain.get("hindsight", []), shelf, transcript)
    return Release(schema, model, transcript, account, config, versions, hindsight)
