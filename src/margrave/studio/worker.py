"""The processes that see rows: a run, and what the custodian is shown of the table.

``python -m margrave.studio.worker run FOLDER`` makes a run. With another word it reads an order from standard input
and writes an answer to standard output. Such an answer is NOT PRIVATE, and no file keeps it.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from margrave.error_sanitizer import failure_of
from margrave.errors import (
    BudgetError,
    CustodianWarning,
    DataError,
    LedgerError,
    MargraveError,
    PersonWarning,
    UnfinishedError,
    UnlearnableError,
)
from margrave.studio.job import JobFolder


def main(arguments: list[str]) -> int:
    """Do what the arguments say, and return the exit code."""
    if arguments[:1] == ["run"]:
        return run(JobFolder(Path(arguments[1])))
    found = answer(arguments[0], json.load(sys.stdin))
    json.dump(found, sys.stdout)
    return 0


def answer(verb: str, order: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer about the rows for the custodian, or the words of an error.

    Args:
        verb: "read", "check", "compare", "refusal" or "rows".
        order: The table, and the schema or the release; or the folder of a run.

    Privacy:
        NOT private: it reads the rows freely.
    """
    from margrave.studio import views

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return {"found": getattr(views, verb)(**order)}
    except Exception as error:
        return {"error": words_of(error)}


def words_of(error: BaseException) -> dict[str, Any]:
    """Return the message, the remedy and the exit code of an error, without a value of the rows."""
    error = _helpful(error)
    if isinstance(error, MargraveError):
        return {"message": error.message, "remedy": error.remedy or "", "code": error.exit_code}
    words = f"margrave failed ({failure_of(error).words})."
    return {"message": words, "remedy": "This is a fault in margrave.", "code": 70}


def _helpful(error: BaseException) -> BaseException:
    """Return the error whose remedy helps: of an unfinished run its cause."""
    cause = error.__cause__
    return (
        cause if isinstance(error, UnfinishedError) and isinstance(cause, MargraveError) else error
    )


def kept_words(error: BaseException) -> dict[str, Any]:
    """Return the part of an error that a file may keep.

    The words of an error that the rows can decide at no charge are left out, and "refused" is True. The page computes
    them anew.
    """
    words, cause = words_of(error), _helpful(error)
    public = isinstance(error, UnfinishedError | LedgerError | BudgetError)
    if public and not isinstance(cause, DataError):
        return {**words, "refused": False}
    kind = f"The run failed ({type(cause).__name__})."
    return {**words, "message": kind, "remedy": "", "refused": True}


def run(job: JobFolder) -> int:
    """Make the run of a folder, or go on with it from its journal.

    The folder gets the release, rows, a report and an outcome. Another process that is at it is left alone.

    Privacy:
        Spends what the order states, through ``Run``. Answers that the journal has are not paid again.
    """
    if not job.lock.take(2.0):
        return 1
    try:
        job.report("starting", 0.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PersonWarning)  # the page shows the check
            warnings.simplefilter("ignore", CustodianWarning)
            job.end({"state": "released", **_made(job)})
    except Exception as error:
        if isinstance(error, UnfinishedError):
            _save(error, job.path / "answers.margrave")
        job.end({"state": "failed", "hidden": _hidden(error), **kept_words(error)})
        return 1
    finally:
        job.lock.release()
    return 0


def _made(job: JobFolder) -> dict[str, Any]:
    from margrave.accounting.journal import holds_run
    from margrave.data.writer import write_table
    from margrave.learning_stage import budget_for
    from margrave.release.numbers import headlines, numbers_of
    from margrave.release.sampling import rows_if_unknown
    from margrave.report import write_report
    from margrave.run import Run, mechanism_of

    order = job.order
    schema = job.schema()
    planned = Run(
        schema=schema,
        budget=budget_for(schema, order.epsilon, order.delta),
        unit=order.unit,
        purposes=order.purposes,
        mechanism=order.choice.mechanism(schema, order.table),
        ledger=order.ledger,
        dataset=order.ledger_dataset,
        journal=job.journal,
        resume=holds_run(job.journal),
        unlearnable="drop" if order.unlearnable == "drop" else "stop",
    )
    release = planned.synthesize(order.table, progress=_Reports(job))
    job.report("writing", 1.0)
    release.save(job.path / "release.margrave", overwrite=True)
    rows, is_known = 0, True
    has_rows = mechanism_of(planned.mechanism).gives_records
    if has_rows:
        is_known = release.row_count_is_known
        drawn = release.sample(None if is_known else rows_if_unknown())
        for name in ("rows.parquet", "rows.csv"):
            write_table(drawn, str(job.path / name), overwrite=True, schema=release.schema)
        rows = drawn.num_rows
    heading = {"title": order.title, "office": order.office, "dataset": order.dataset}
    write_report(release, job.path / "report.html", overwrite=True, **heading)
    facts = release.certificate()
    level = 0.95
    numbers = headlines(numbers_of(release.schema, release.transcript, release.model, level))
    return {
        "epsilon": facts["epsilon"],
        "delta": facts["delta"],
        "unit": facts["unit"],
        "spent": facts["rho"]["spent"]["decimal"],
        "rows": rows,
        "row_count_is_known": is_known,
        "has_rows": has_rows,
        "columns": len(release.schema.columns),
        "left_out": [name for name in release.schema.ignore if name not in schema.ignore],
        "rows_left_out": release.account.left_out,
        "numbers": [
            {
                "column": n.column,
                "statistic": n.statistic,
                "words": n.words,
                "reliable": bool(n.reliable),
            }
            for n in numbers
        ],
    }


def _hidden(error: BaseException) -> list[str]:
    """Return the columns that the noise hides, if that is why a run failed."""
    cause = error.__cause__ if isinstance(error, UnfinishedError) else error
    return list(cause.columns) if isinstance(cause, UnlearnableError) else []


def _save(error: UnfinishedError, path: Path) -> None:
    with suppress(Exception):  # the first error is the one to report
        error.release.save(path, overwrite=True)


class _Reports:
    """A callback that writes progress a few times a second."""

    def __init__(self, job: JobFolder) -> None:
        self._job, self._last, self._stage = job, 0.0, ""

    def __call__(self, stage: str, done: float) -> None:
        seconds_between = 0.2
        now = time.monotonic()
        if stage != self._stage or now - self._last >= seconds_between:
            self._job.report(stage, min(max(done, 0.0), 1.0))
            self._last, self._stage = now, stage


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
