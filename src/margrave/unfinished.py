"""A run that fails after it has spent: its noisy answers and its account are kept, in a release without a model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from margrave.error_sanitizer import failure_of
from margrave.errors import LedgerError, MargraveError, UnfinishedError, UnlearnableError
from margrave.models import NoModel
from margrave.privacy import Private
from margrave.provenance import Provenance
from margrave.release import Release
from margrave.transcript import PublicReading, PublicTotal


@dataclass
class Attempt:
    """One run of a mechanism: its gate once that is open, and its release once there is one."""

    provenance: Provenance
    gate: Private | None = None
    release: Release | None = None


@contextmanager
def answers_kept(
    attempt: Attempt, *, journal: str | Path | None, sealed: bool = False
) -> Iterator[None]:
    """Raise an ``UnfinishedError`` with a release if the block fails after budget was spent.

    Args:
        attempt: The run.
        journal: That of the run, if it has one. A fault of its journal or ledger then stays a ``LedgerError``, since
            the answers are in the journal.
        sealed: Neither the error nor its release says how the run failed, and no fault stays what it is.

    Privacy:
        None spent. The release and the texts are functions of the transcript and of public values; of an exception
        that is not margrave's own, the text has only the type and the line of code.
    """
    try:
        yield
    except Exception as error:
        gate = attempt.gate
        if gate is None or not gate.account().debits:
            raise
        resumable = journal is not None
        if resumable and not sealed and isinstance(error, LedgerError):
            go_on = (
                f"All answers so far are in {journal}: after that, --resume (in Python resume=True) goes on and pays"
                " nothing twice."
            )
            raise LedgerError(
                error.message, remedy=f"{error.remedy or ''} {go_on}".strip()
            ) from error
        words = failure_of(error).words
        reason, advice = words, ""
        if isinstance(error, MargraveError):
            reason, advice = error.message, error.remedy or ""
        if sealed:
            words = reason = "the run was sealed"
            advice = ""
        account = gate.account()
        spent = f"rho {float(account.rho_spent):.6g} of {float(account.rho_budget):.6g}"
        release = attempt.release or _release_of(
            gate, attempt.provenance, reason, advice, resumable=resumable
        )
        raise UnfinishedError(
            f"The run failed after {spent} was spent: {words.rstrip('.')}.",
            remedy=_remedy(
                release,
                resumable=resumable,
                says_how=isinstance(error, UnlearnableError) and not sealed,
            ),
            release=release,
        ) from error


def _remedy(release: Release, *, resumable: bool, says_how: bool) -> str:
    kept = "Nothing paid for is lost: this error's release holds every noisy answer."
    if release.transcript.counts_something:
        kept += " Its refit(...) fits a model to them at no cost."
    if resumable and says_how:
        return kept
    if resumable:
        return f"{kept} Once the cause is gone, resume=True with the same journal goes on and pays nothing twice."
    return f'{kept} The run cannot be resumed, because it has no journal: pass journal="FILE" to the next one.'


def _release_of(
    gate: Private, provenance: Provenance, reason: str, advice: str, *, resumable: bool
) -> Release:
    transcript = gate.transcript
    account = gate.account()
    free = PublicTotal | PublicReading
    answered = sum((entry.rho for entry in transcript if not isinstance(entry, free)), Fraction(0))
    stopped = bool(gate.remaining) or account.rho_spent != answered
    remedy = NoModel.refit
    if not transcript.counts_something:
        go_on = "Resume the run from its journal." if resumable else "Make another run."
        remedy = f"It holds no marginal that a model could be fitted to. {advice or go_on}"
    model = NoModel(gate.domain, transcript.total(), f"the run failed: {reason}", remedy=remedy)
    return Release(
        gate.schema, model, transcript, account, replace(provenance, stopped_early=stopped)
    )
