"""The release file: the parts of a release written to one archive, and read back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from margrave._io import check_ending, check_output, given_path
from margrave.account import Account
from margrave.errors import InputError, ReleaseError
from margrave.models import FittedAnswers, NoModel, family_of
from margrave.models.protocol import ModelState
from margrave.provenance import Provenance
from margrave.release import serialization
from margrave.release.archive import open_archive, write_archive
from margrave.release.transcript_codec import transcript_from_plain, transcript_to_plain
from margrave.schema import Schema
from margrave.transcript import Hindsight, Transcript

FORMAT = "margrave-release"
FORMAT_VERSION = 2


class Parts(NamedTuple):
    """The fields of a release, in its order."""

    schema: Schema
    model: FittedAnswers
    transcript: Transcript
    account: Account
    provenance: Provenance
    versions: Mapping[str, str]
    hindsight: Sequence[Hindsight]


def write_parts(path: str | Path, parts: Parts, *, overwrite: bool) -> None:
    """Write a release file whole or not at all."""
    check_output(path, overwrite=overwrite)
    check_ending(path, ".margrave")
    shelf = serialization.Shelf()
    plain = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "schema": parts.schema.to_toml(),
        "provenance": parts.provenance.to_dict(),
        "account": parts.account.to_dict(),
        "transcript": transcript_to_plain(parts.transcript, shelf),
        "model": serialization.model_to_plain(parts.model.state(), shelf),
        "hindsight": serialization.hindsight_to_plain(parts.hindsight, shelf),
        "versions": dict(parts.versions),
    }
    write_archive(path, plain, shelf.arrays, overwrite=overwrite)


def read_parts(path: str | Path, max_mb: float) -> Parts:
    """Return the parts of a release from its file. Nothing in it is run."""
    with open_archive(given_path(path, "release", "visits.margrave"), max_mb) as (plain, fetch):
        if plain.get("format") != FORMAT:
            raise ReleaseError("It is not a margrave release.")
        if (version := plain.get("version")) != FORMAT_VERSION:
            raise ReleaseError(
                f"It is of version {version!r:.20} of the format, and this margrave reads version {FORMAT_VERSION}.",
                remedy="Read it with the margrave that wrote it.",
            )
        return _parts_from_plain(plain, serialization.Shelf(fetch))


def _parts_from_plain(plain: Mapping[str, Any], shelf: serialization.Shelf) -> Parts:
    schema = Schema.from_toml(plain["schema"])
    transcript = transcript_from_plain(plain["transcript"], shelf, schema.domain)
    model = _model_of(serialization.model_from_plain(plain["model"], shelf), schema, transcript)
    if model.domain != schema.domain or not (np.isfinite(model.total) and model.total >= 0):
        raise ReleaseError("Its model does not fit its schema.")
    return Parts(
        schema,
        model,
        transcript,
        serialization.account_from_plain(plain["account"]),
        serialization.provenance_from_plain(plain["provenance"], schema.domain),
        serialization.versions_from_plain(plain["versions"]),
        serialization.hindsight_from_plain(plain.get("hindsight", []), shelf, transcript),
    )


def _model_of(state: ModelState, schema: Schema, transcript: Transcript) -> FittedAnswers:
    """Return the model of a state; the state of an unknown kind is kept unread."""
    reason = f"its model is of the kind {state.kind[:60]!r}, which this installation of margrave does not know"
    try:
        family = family_of(state.kind)
    except InputError as error:  # a broken plug-in must not keep the answers from being read
        family, reason = None, f"{reason}: {error.message.rstrip('.')}"
    if family is not None:
        return family.load(schema.domain, state.facts, state.arrays)
    remedy = "Load it where the package that made its model is installed."
    if transcript.counts_something:
        remedy = f"{NoModel.refit} {remedy}"
    return NoModel(schema.domain, transcript.total(), reason, state, remedy)
