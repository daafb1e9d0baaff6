"""The books of a release are the gate's, whatever a mechanism put there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from margrave.account import Account
from margrave.errors import ReleaseError
from margrave.release.certificate import current_versions
from margrave.release.release import Release
from margrave.schema import Schema
from margrave.transcript import PublicReading, Transcript


def stamped(
    found: object, mechanism: str, schema: Schema, transcript: Transcript, account: Account
) -> Release:
    """Return a mechanism's release with the gate's schema, entries and account in it.

    ``schema``, ``transcript`` and ``account`` are the gate's. A mechanism adds a model, hindsight, and public readings
    after the gate's entries.

    Raises:
        ReleaseError: It returned something else, or a release that differs from the gate in one of these, or one whose
            account does not follow from its transcript.
    """
    if type(found) is not Release:
        raise ReleaseError(
            f"The mechanism {mechanism} returned a {type(found).__name__} instead of a Release.",
            remedy="Its run(private) ends with self.release(private, model).",
        )
    for part in _differing(found, schema, transcript, account):
        raise ReleaseError(
            f"The mechanism {mechanism} returned a release whose {part} differs from the gate's.",
            remedy="The gate alone keeps the books: end its run(private) with self.release(private, model).",
        )
    readings = found.transcript.entries[len(transcript) :]
    own = replace(
        found,
        schema=schema,
        transcript=transcript + Transcript(readings),
        account=account,
        versions=current_versions(),
    )
    for finding in own.verify().findings:
        raise ReleaseError(
            f"The mechanism {mechanism} returned a release that does not verify: {finding}"
        )
    return own


def _differing(
    found: Release, schema: Schema, transcript: Transcript, account: Account
) -> Iterator[str]:
    entries = found.transcript.entries
    if found.schema is not schema:
        yield "schema"
    if found.account != account:
        yield "account"
    if len(entries) < len(transcript) or any(
        a is not b for a, b in zip(entries, transcript, strict=False)
    ):
        yield "transcript"
    if not all(type(entry) is PublicReading for entry in entries[len(transcript) :]):
        yield "transcript"
