"""A release: a model of noisy answers, the answers, the account, and the public schema. Nothing in it reaches rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from margrave.account import Account
from margrave.domain import Codes
from margrave.error_sanitizer import short_errors
from margrave.errors import ReleaseError
from margrave.frame_kinds import Kind
from margrave.marginal import Marginal
from margrave.models import Cost, Fit, FittedAnswers, NoModel, fit_named
from margrave.models.specs import fit_spec
from margrave.plugins import distribution_of
from margrave.progress import Callback, reporting
from margrave.provenance import Provenance, is_plain
from margrave.release.archive import MAX_MB
from margrave.release.certificate import Certificate, build_certificate, current_versions
from margrave.release.completion import completed
from margrave.release.conditional import Conditional, labeled_marginal, part_of
from margrave.release.conditions import Condition
from margrave.release.coverage import Coverage, coverage_of
from margrave.release.diagnostics import Misfit, find_misfits, unmeasured_columns
from margrave.release.draws import Draws, draws_of
from margrave.release.estimates import Estimates
from margrave.release.purposes import PurposeSupport, supports_of
from margrave.release.refitting import check_refit, refit_cost, usable_by, warn_of_refit
from margrave.release.release_file import Parts, read_parts, write_parts
from margrave.release.sampling import (
    check_row_count,
    draw_codes,
    draw_rows,
    generator,
    row_count_is_known,
)
from margrave.release.verification import Verification, verify_account
from margrave.schema import Schema
from margrave.transcript import Hindsight, Transcript
from margrave.types import Attribute


@dataclass(frozen=True, eq=False, repr=False)
class Release(Estimates):
    """Synthetic rows, marginals and the certificate of one run of a mechanism.

    Args:
        schema: The public schema.
        model: A distribution that explains the noisy answers.
        transcript: The noisy answers, choices and public facts.
        account: The budget and what was spent of it.
        provenance: The mechanism, its parameters, fits and public tables.
        versions: Versions of the libraries that it rests on.
        hindsight: What became of the estimates that choices were scored with, for error bounds.
        frames: The kind of frame that synthetic rows come as by default, as the table came. It is not saved.

    Raises:
        ReleaseError: ``provenance`` is not a ``Provenance``, or ``versions`` are not plain data.

    Privacy:
        Everything here is post-processing of the transcript. Nothing is spent, however often it is used.
    """

    schema: Schema
    model: FittedAnswers
    transcript: Transcript
    account: Account
    provenance: Provenance
    versions: Mapping[str, str] = field(default_factory=current_versions)
    hindsight: Sequence[Hindsight] = ()
    frames: Kind = "arrow"

    def __post_init__(self) -> None:
        if type(self.provenance) is not Provenance or not is_plain(self.versions):
            raise ReleaseError(
                "A release has a Provenance, and its versions are plain data.",
                remedy="Provenance.of(mechanism.config()) makes one.",
            )

    @property
    def no_model(self) -> str:
        """The reason why the release has no model; empty if it has one.

        A release has none if the fit failed after the budget was spent, or if its model is of a
        kind that this installation does not know. Whatever needs a model then raises a
        ``ReleaseError``; ``refit`` makes one if the release holds noisy marginals.

        Privacy:
            None spent.
        """
        return self.model.absent

    def without_model(self, reason: str) -> Release:
        """Return the release with its answers and account, and the reason in place of its model.

        Privacy:
            None spent.
        """
        model = NoModel(self.schema.domain, self.transcript.total(), reason)
        return replace(self, model=model, hindsight=())

    # Rows and marginals.

    @short_errors
    def sample(
        self,
        n: int | None = None,
        *,
        where: Mapping[Attribute, Condition] | None = None,
        as_: Kind | None = None,
        seed: int | None = None,
    ) -> Any:
        """Return synthetic rows, in random order.

        Args:
            n: Number of rows; by default the estimated row count of the real table, or of its part in ``where``.
            where: Draw rows like these only, as in ``condition``.
            as_: The kind of frame: "pandas", "polars" or "arrow". By default the kind that the real table came as;
                "arrow" for a file, and for a release that was loaded. In pandas and Polars, ordered columns are
                ordered categories.
            seed: Makes the rows repeatable. It affects post-processing only.

        Raises:
            InputError: ``n`` is not given, and ``row_count_is_known`` is False.

        Privacy:
            None spent.
        """
        if where is not None:
            return self.condition(where).sample(n, as_=as_, seed=seed)
        self._check_rows(n)
        kind = self.frames if as_ is None else as_
        return draw_rows(self.schema, self.model.distribution(), n, seed, kind)

    @short_errors
    def codes(self, n: int | None = None, *, seed: int | None = None) -> Codes:
        """Return the codes of the rows of ``sample(n, seed=seed)``.

        Raises:
            InputError: As ``sample``.

        Privacy:
            None spent.
        """
        self._check_rows(n)
        return draw_codes(self.model.distribution(), n, generator(seed))

    def _check_rows(self, n: int | None) -> None:
        self._require_model()
        if n is None:
            check_row_count(self.model.total, self.transcript.total_deviation())

    @property
    def row_count_is_known(self) -> bool:
        """True if the row count is public, or at least four standard deviations of its noise.

        Privacy:
            None spent.
        """
        return row_count_is_known(self.model.total, self.transcript.total_deviation())

    @short_errors
    def marginal(self, attributes: Iterable[Attribute]) -> Marginal:
        """Return the expected counts of every combination of codes of these columns, by the model.

        Returns:
            Counts with one axis per column, in the order of the schema. ``labels`` say what the
            codes stand for.

        Privacy:
            None spent.
        """
        return labeled_marginal(self.schema, self.model, attributes)

    @short_errors
    def condition(self, values: Mapping[Attribute, Condition]) -> Conditional:
        """Return the part of the release in which some columns take given values.

        Args:
            values: For each column a value, a list of values, or a pair (low, high): a range of a numeric, time or
                ordered column, open at an end that is None. Dates are in ISO 8601 or in the column's ``format``. A
                range that cuts a bin takes the share of the bin that values drawn within it have; of real numbers and
                times, a value stands for its whole bin. ``notes`` of the result name the bins.

        Warns:
            BinWarning: A condition is finer than the bins of its column.

        Privacy:
            None spent.

        Example:
            ``release.condition({"sex": "F", "age": (30, 40)}).sample(100)``
        """
        own = self.transcript.total_deviation()
        return part_of(self.schema, self.model.distribution(), values, own, self.frames)

    @short_errors
    def complete(self, rows: Any, *, attestation: str, seed: int | None = None) -> pa.Table:
        """Return public rows with the columns that they lack, drawn given what each row has.

        Args:
            rows: A data frame with some of the schema's columns, such as a public register of the
                people whose income is private.
            attestation: Where the rows come from and why they are public.
            seed: Makes the draws repeatable.

        Returns:
            The rows in their order, with all of the schema's columns and then their own others.
            Given values stay as they are; categories are spelled as in the schema. If the schema
            cannot hold a value, the other columns are drawn for the code that it counts as.

        Raises:
            InputError: The rows have no column of the schema or all of them, a column whose name
                differs from a missing one in case only, or values that the schema rules out.

        Privacy:
            None spent. The given rows are not protected: they are returned. The drawn values reveal
            no more of a person than the release reveals of everybody alike. A model of weighted
            records can only complete rows like its own.
        """
        return completed(self.schema, self.model.distribution(), rows, attestation, generator(seed))

    # Other models of the same answers.

    @short_errors
    def refit(
        self,
        fit: Fit | str,
        *,
        seed: int | None = None,
        max_model_mb: float = 2048.0,
        progress: Callback | bool | None = None,
    ) -> Release:
        """Return the release with another model of the same noisy answers.

        Args:
            fit: A fit such as ``ParticleFit()``, or its name on the command line.
            seed: Makes the fit repeatable.
            max_model_mb: The largest model to fit, in MB.
            progress: As in ``synthesize``.

        Warns:
            RefitWarning: The fit leaves weighted sums out, or has no distribution to draw rows from.

        Raises:
            InputError: The fit does not use a kind of answer that the release has.
            ReleaseError: There are no noisy answers, as for DualQuery and FEM, which only choose.
            ModelTooLargeError: The model of all that was counted is above ``max_model_mb``.

        Privacy:
            None spent.
        """
        fit = fit_named(fit)
        answers = usable_by(fit, self.transcript)
        check_refit(fit, self.model, answers, max_model_mb)
        warn_of_refit(fit, len(self.transcript.entries) - len(answers.entries))
        with reporting(progress) as callback:
            share = partial(callback, "fitting")
            share(0.0)
            model = fit(self.schema.domain, answers, rng=generator(seed), progress=share)
        provenance = replace(self.provenance, refit=fit_spec(fit))
        # hindsight is about the model before
        return replace(self, model=model, provenance=provenance, hindsight=()).resting_on(fit)

    @short_errors
    def refit_cost(self, fit: Fit | str) -> Cost:
        """Return about the processor time and the memory of a process that refits the release.

        Args:
            fit: As in ``refit``.

        Returns:
            Its ``seconds`` and ``mb``, by the cost model of plans.

        Privacy:
            None spent.
        """
        fit = fit_named(fit)
        return refit_cost(fit, self.schema.domain, self.transcript)

    def resting_on(self, *used: object) -> Release:
        """Return the release with the distributions of these mechanisms and fits among its versions.

        Args:
            used: Objects that made it. Margrave's own, and None, add nothing.
        """
        others: dict[str, str] = {}
        for thing in used:
            others |= {} if thing is None else distribution_of(type(thing))
        return replace(self, versions={**others, **self.versions}) if others else self

    @short_errors
    def draws(
        self,
        m: int | None = None,
        *,
        rows: int | None = None,
        method: str = "auto",
        seed: int | None = None,
        progress: Callable[[str, float], None] | None = None,
    ) -> Draws:
        """Return tables for an analysis whose intervals account for the noise.

        Table i is drawn from the i-th draw of the distribution of the *population* given the noisy
        answers. The spread of the tables holds the noise of privacy and the sampling of the real
        records. Public marginals of other records are left out.

        Args:
            m: Number of tables; by default 100, or all runs of a `Repeated` release, which has no more.
            rows: Number of independent records of each; by default the estimated row count.
            method: "auto" is the posterior that the release has (`NAPSUMQ`, `PrivLCM`, or refitted), if
                its diagnosis is good, and otherwise the bootstrap. "posterior" fits one to the same
                answers by ``MaxEntropyFit()`` if the release has none, in a minute or more;
                keep ``release.refit(MaxEntropyFit())`` to draw from it again. "bootstrap" refits
                simulated answers, at the cost of m fits.
            seed: Makes the tables repeatable.
            progress: Callback with a stage and the share of the distributions that are drawn.

        Raises:
            InputError: The release has no distribution, there is no posterior for
                ``method="posterior"``, or ``rows`` is not given and ``row_count_is_known`` is False.
            ReleaseError: The posterior's chains have not mixed.

        Privacy:
            None spent.

        References:
            Räisä, Jälkö, Kaski, Honkela (2023), NAPSU-MQ; ``docs/intervals.md``.
        """
        self._require_model()
        parts = self.schema, self.transcript, self.model, self.account, self.provenance
        return draws_of(*parts, m=m, rows=rows, method=method, seed=seed, progress=progress)

    # Diagnostics, certificate and file.

    @property
    def purposes(self) -> tuple[PurposeSupport, ...]:
        """The purposes that the release was made for, and those of their marginals that were not measured.

        Privacy:
            None spent.
        """
        return supports_of(self.schema.domain, self.transcript, self.provenance)

    @property
    def unmeasured_columns(self) -> tuple[Attribute, ...]:
        """The columns that no answer or public marginal is about, and that follow from no others.

        The model's distribution of them, mostly uniform, says nothing of the table: a workload left them out, or no
        round chose them.

        Privacy:
            None spent.
        """
        return unmeasured_columns(self.schema.domain, self.transcript, self.provenance)

    @property
    def coverage(self) -> Coverage:
        """The pairs of columns that were measured together or that the noise hides, and columns that were not.

        Synthetic rows hold of an unmeasured pair only what passes through other columns: a mean by
        group can come out the same in every group.

        Privacy:
            None spent.
        """
        return coverage_of(self.schema.domain, self.transcript, self.provenance)

    @cached_property
    def misfit(self) -> tuple[Misfit, ...]:
        """The measured marginals that the model contradicts beyond their noise, the worst first.

        Mostly there are none. Reweighted public records lack combinations, constraints can exclude
        what rows hold, and a network can be trained too little. ``refit`` fits another model.

        Privacy:
            None spent.
        """
        return () if self.no_model else find_misfits(self.model, self.transcript)

    def certificate(self) -> Certificate:
        """Return what was promised, measured and spent, as plain data that fits in JSON.

        Privacy:
            None spent.
        """
        parts = self.schema, self.transcript, self.account, self.provenance
        return build_certificate(*parts, self.versions, self.model)

    def verify(self) -> Verification:
        """Recompute the account from the transcript and list what contradicts it.

        The computation shares no code with the gate's prices. It uses the unit, noise scales, queries and
        epsilons alone.

        Returns:
            The contradictions, notes, and whether the account holds.

        Privacy:
            None spent. The result says nothing of the noisy counts themselves, which cannot be recomputed.
        """
        return verify_account(self.schema, self.transcript, self.account, self.provenance)

    @short_errors
    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the release to one file, whole or not at all.

        Args:
            path: The file; its name ends in ``.margrave``.
            overwrite: Whether to replace an existing file.

        Raises:
            InputError: The file exists, or its name ends otherwise.

        Privacy:
            None spent. The file depends on the transcript, the model and public facts alone. It does not hold the kind
            of frame of the real table.
        """
        parts = Parts(*(getattr(self, name) for name in Parts._fields))
        write_parts(path, parts, overwrite=overwrite)

    @staticmethod
    @short_errors
    def load(path: str | Path, *, max_mb: float = MAX_MB, verify: bool = True) -> Release:
        """Read a release, whose rows and numbers are Arrow by default. Nothing in the file is run.

        Args:
            path: The file.
            max_mb: The most that is read of it, decompressed, in MB. A file that swells to more, or to more than 200
                times its size, is refused.
            verify: Refuse a release whose account does not follow from its transcript. False is for inspection.

        Raises:
            ReleaseError: The file is not a release, or is larger than that, or its account does not
                hold; the first contradiction is named.
        """
        release = Release(*read_parts(path, max_mb))
        findings = release.verify().findings if verify else ()
        if findings:
            raise ReleaseError(
                f"The account of {path} does not follow from its transcript: {findings[0]}",
                remedy="Do not rely on this file; get the original. margrave verify lists every contradiction.",
            )
        return release
