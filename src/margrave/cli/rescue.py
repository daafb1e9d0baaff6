"""Keep the release and the journal of a ``synthesize`` that fails after it has spent, and report both."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from margrave._io import check_output, is_part_of
from margrave.accounting.journal import holds_answers
from margrave.cli.terminal import echo
from margrave.errors import InputError, MargraveError, UnfinishedError, UnlearnableError
from margrave.release import Release
from margrave.transcript import ColumnAnswer, Discovery, Measurement

RELEASE_ENDING, JOURNAL_ENDING = ".margrave", ".journal"


class Keeper:
    """The files that keep the answers of a run until its outputs are written: a journal, and a release if it fails."""

    def __init__(
        self,
        outputs: Mapping[str, str | None],
        journal: str | None,
        *,
        overwrite: bool,
        replaces_release: bool,
    ) -> None:
        self._outputs, self._overwrite = outputs, overwrite
        self._replaces_release = replaces_release
        self.journal = journal
        self.release: Release | None = None
        self.written: list[str] = []

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Save the answers and report their place if the block fails after the run has spent."""
        try:
            yield
        except UnfinishedError as error:
            kept = self._save(error.release)
            self._replaces_release = kept is not None and kept == self._outputs["--release"]
            raise UnfinishedError(
                error.message,
                remedy=self._advice(
                    kept, failed=error.release, hides=isinstance(error.__cause__, UnlearnableError)
                ),
                release=error.release,
            ) from error
        except MargraveError as error:
            if self.release is not None:
                more = self._advice(self._rescued(error.message))
                raise type(error)(
                    error.message, remedy=f"{error.remedy or ''} {more}".strip()
                ) from error
            raise
        except KeyboardInterrupt:
            if self._has_journal:
                echo(f"All answers so far are in {self.journal}: {self._resume}.", err=True)
            raise
        except Exception as error:
            if self.release is not None:
                echo(self._advice(self._rescued(type(error).__name__)), err=True)
            raise

    def done(self) -> None:
        """Remove the journal: all that it was kept for is on the disk."""
        if self.journal is not None:
            Path(self.journal).unlink(missing_ok=True)

    @property
    def _has_journal(self) -> bool:
        return self.journal is not None and Path(self.journal).exists()

    @property
    def _resume(self) -> str:
        replaced = "--release" if self._replaces_release else None
        there = any(
            path is not None and Path(path).exists()
            for option, path in self._outputs.items()
            if option != replaced
        )
        return f"go on by the same command with --resume{' --overwrite' if there and not self._overwrite else ''}"

    def _advice(
        self, kept: str | None, *, failed: Release | None = None, hides: bool = False
    ) -> str:
        """Return sentences that name the files with the answers and the command that continues.

        If the noise hides columns (``hides``), the error names that command.
        """
        words = []
        if kept is not None:
            words.append(f"The noisy answers are in {kept}.")
            if failed is not None and failed.transcript.counts_something:
                words.append(
                    f"Fit a model to them at no cost: margrave refit {kept} --release NEW.margrave."
                )
            elif failed is None:
                words.append(
                    f"margrave sample and margrave report make the other outputs of {kept} at no cost."
                )
        if self._has_journal:
            how = "" if hides else f": once the cause is gone, {self._resume}"
            words.append(f"All answers are also in {self.journal}{how}.")
        return " ".join(
            words
            or ["The noisy answers could not be kept: nothing could be written beside the outputs."]
        )

    def _rescued(self, why: str) -> str | None:
        """Return the path of the release, after writing it if it is not there; None if it cannot be written."""
        assert self.release is not None
        if "--release" in self.written:
            return self._outputs["--release"]
        return self._save(self.release) or self._save(
            self.release.without_model(f"it could not be written ({why})")
        )

    def _save(self, release: Release) -> str | None:
        asked = self._outputs["--release"]
        path, overwrite = (
            (asked, self._overwrite or self._replaces_release)
            if asked
            else (free_name(self._first, RELEASE_ENDING), False)
        )
        try:
            release.save(path, overwrite=overwrite)
        except Exception:  # whatever failed, the error that led here is the one to report
            return None
        return path

    @property
    def _first(self) -> str:
        return first_of(self._outputs)


def unfinished_release(path: str | None, journal: str | None) -> Release | None:
    """Return the release that a failed run left in a file, if its answers are all in a journal; else None.

    Nothing is lost if a run that goes on from the journal replaces it.

    Raises:
        LedgerError: The journal is damaged or in use.
    """
    if path is None or journal is None or not (Path(path).exists() and Path(journal).exists()):
        return None
    try:
        release = Release.load(path)
    except MargraveError:  # not a release: an output that only --overwrite replaces
        return None
    answers = tuple(
        entry.counts if isinstance(entry, Discovery) else entry.values
        for entry in release.transcript
        if isinstance(entry, Discovery | ColumnAnswer | Measurement)
    )
    return release if release.no_model and answers and holds_answers(journal, answers) else None


def first_of(outputs: Mapping[str, str | None]) -> str:
    """Return the path of the first output that is named."""
    # The outputs in the order of writing.
    order = ("--release", "-o", "--report")
    return next(path for option in order if (path := outputs[option]))


def journal_of(
    journal: str | None, outputs: Mapping[str, str | None], inputs: Mapping[str, str | None]
) -> str:
    """Return where the journal of a run is kept: if none is named, beside the first output.

    Raises:
        InputError: It is another file of the run, or part of one, or it cannot be made.
    """
    named = journal is not None
    if journal is None:
        journal = f"{first_of(outputs)}{JOURNAL_ENDING}"
    for option, path in {**outputs, **inputs}.items():
        if not path or not is_part_of(journal, path):
            continue
        if os.path.isdir(path) and not named:
            raise InputError(
                f"{path} is a folder, whose files are read as one table, and the journal of this run, {journal}, would"
                " be one of them.",
                remedy="Name one file of it; or write the outputs elsewhere, or give the journal another place:"
                " --journal FILE.",
            )
        if named:
            raise InputError(f"--journal and {option} name the same file.", remedy="Name two.")
        raise InputError(
            f"The journal of this run, {journal}, would be part of {option}, which is {path}.",
            remedy="Write the outputs elsewhere, or give the journal another place: --journal FILE.",
        )
    if named and not Path(journal).exists():
        check_output(journal, overwrite=False)
    return journal


def free_name(path: str, ending: str) -> str:
    """Return the path with the ending, and with a number before it if that file exists."""
    name, number = f"{path}{ending}", 2
    while Path(name).exists():
        name, number = f"{path}.{number}{ending}", number + 1
    return name
