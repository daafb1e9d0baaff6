"""Non-interference: given the noisy answers, every byte that leaves is the same on every table."""

from __future__ import annotations

import io
import json
import logging
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from margrave.accounting import Budget, ReplacePerson, ReplaceRow, Unit
from margrave.data import MemoryTable
from margrave.domain import Domain
from margrave.errors import ReleaseError
from margrave.marginal import closure
from margrave.mechanisms import Mechanism
from margrave.privacy import SeededRandomness
from margrave.release import Release
from margrave.report import render
from margrave.testing.gate import MakeMechanism, run_on
from margrave.testing.replay import ReplayRandomness
from margrave.testing.tables import SIZES, Row, by_person, memory_table, require, some_rows
from margrave.types import Clique

ROWS = some_rows(SIZES, 40, seed=3)

#: The names of what follows from the model.
MODEL_PARTS = ("marginal", "rows")

BUDGETS = [Budget.zcdp(Fraction(40, 3)), Budget.approx(1.0, 1e-9), Budget.approx(0.1, 1e-9)]


def check_same_answers(
    make: MakeMechanism, unit: Unit, seed: int, behind: dict[str, MemoryTable] | None = None
) -> None:
    """Check that with the same answers, a run on other rows leaves the same bytes.

    Args:
        make: Returns the mechanism for the domain of the tables.
        unit: The unit of privacy.
        seed: Seed of the noise.
        behind: The tables, "itself" among them; by default neighbors and tables far apart.

    Raises:
        AssertionError: With the names of what differs, or of what did not run.
    """
    mechanism, behind = make(Domain.of(SIZES)), behind or tables(unit)
    with tempfile.TemporaryDirectory() as folder:
        for i, budget in enumerate(BUDGETS):
            release, found = replays(mechanism, unit, budget, Path(folder), behind, seed + i)
            parts, itself = different_parts(found), found[0]
            require(
                not parts,
                f"With the same answers, other rows change what leaves a run {unit}: {sorted(parts)}.",
            )
            replayed = (itself["error"], itself["what was asked"], itself["output"])
            require(
                replayed == (b"", b"as recorded", b"") and bool(itself["progress"]),
                f"With the same answers and seed, a run {unit} fails, asks otherwise, prints, or"
                " reports no progress.",
            )
            again = leaving_release(release, Path(folder))
            require(
                all(itself[name] == again[name] for name in again if name.startswith(MODEL_PARTS)),
                f"With the same answers and seed, a run {unit} gives another model.",
            )


def tables(unit: Unit) -> dict[str, MemoryTable]:
    """Return a table, a neighbor of it, and a very different one with the same public facts."""
    rows = ROWS
    persons = [i // 2 for i in range(40)] if by_person(unit) else []
    other: Row = (1, 2, 3)
    if isinstance(unit, ReplaceRow | ReplacePerson):
        near, far = [*rows[:-2], *[other] * 2], [other] * 40
        near = near if by_person(unit) else [*rows[:-1], other]
        return {
            "itself": memory_table(SIZES, rows, persons),
            "a neighbor": memory_table(SIZES, near, persons),
            "rows all alike": memory_table(SIZES, far, persons),
        }
    fewer = 38 if by_person(unit) else 39
    return {
        "itself": memory_table(SIZES, rows, persons),
        "a neighbor": memory_table(SIZES, rows[:fewer], persons[:fewer]),
        "an empty one": nobody(unit),
    }


def nobody(unit: Unit) -> MemoryTable:
    empty = memory_table(SIZES, [])
    if not by_person(unit):
        return empty
    schema = replace(empty.schema, person="who")
    return MemoryTable(
        schema,
        schema.encode(pa.table({a: pa.array([], pa.int64()) for a in SIZES})),
        np.empty(0, int),
    )


@dataclass
class Heard:
    """The output, log records and progress calls while something ran."""

    output: io.StringIO
    progress: list[str]


@contextmanager
def listening() -> Iterator[Heard]:
    """Capture standard output and error, every logger at every level, and the progress calls."""
    heard = Heard(io.StringIO(), [])
    handler, root = logging.StreamHandler(heard.output), logging.getLogger()
    handler.addFilter(
        lambda record: not record.name.startswith("numba.")
    )  # compiling, the first time
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.NOTSET)
    try:
        with redirect_stdout(heard.output), redirect_stderr(heard.output):
            yield heard
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


def whole_text(error: BaseException) -> str:
    """Return an error as it would be printed, with all its causes."""
    return "".join(traceback.format_exception(error))


def leaving(
    mechanism: Mechanism,
    table: Any,
    unit: Unit,
    budget: Budget,
    replay: ReplayRandomness,
    folder: Path,
) -> dict[str, bytes]:
    """Return every byte that leaves a run with these answers."""
    with listening() as heard:
        try:
            release: Release | None = run_on(
                mechanism, table, unit, budget, replay,
                progress=lambda stage, done: heard.progress.append(f"{stage} {done!r}"),
            )  # fmt: skip
            error = ""
        except Exception as caught:
            release, error = None, whole_text(caught)
        found = {} if release is None else leaving_release(release, folder)
    try:
        replay.finish()
        asked = "as recorded"
    except AssertionError as differs:
        asked = str(differs)
    found |= {"error": error.encode(), "what was asked": asked.encode()}
    return found | {
        "output": heard.output.getvalue().encode(),
        "progress": "\n".join(heard.progress).encode(),
    }


def leaving_release(release: Release, folder: Path) -> dict[str, bytes]:
    """Return the bytes of everything that a release gives."""
    path = folder / "release.margrave"
    release.save(path, overwrite=True)
    found = {
        "file": path.read_bytes(),
        "report": render(release).encode(),
        "certificate": json.dumps(release.certificate()).encode(),
        "bounds": json.dumps([b.to_dict() for b in release.bounds()]).encode(),
        "words": f"{release!r} {release.account.to_dict()!r} {release.model.total!r}".encode(),
    }
    for clique in closure([("a", "b", "c")]):
        found[f"marginal {clique}"] = _or_error(partial(_marginal_bytes, release, clique))
    rows = None if release.row_count_is_known else 30
    found["rows"] = _or_error(lambda: arrow_bytes(release.sample(rows, seed=9)))
    # a model of a few records may have none of those
    found["rows given"] = _or_error(
        lambda: arrow_bytes(release.condition({"a": 1}).sample(30, seed=9))
    )
    return found


def _marginal_bytes(release: Release, clique: Clique) -> bytes:
    return release.marginal(clique).values.tobytes()


def _or_error(make: Callable[[], bytes]) -> bytes:
    try:
        return make()
    except ReleaseError as error:
        return whole_text(error).encode()


def arrow_bytes(rows: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue()


def replays(
    mechanism: Mechanism,
    unit: Unit,
    budget: Budget,
    folder: Path,
    behind: dict[str, MemoryTable],
    seed: int = 17,
) -> tuple[Release, list[dict[str, bytes]]]:
    """Return a run on the first of these tables, and what leaves its replay on each of them."""
    release = run_on(mechanism, behind["itself"], unit, budget, SeededRandomness(seed))
    return release, [
        leaving(mechanism, table, unit, budget, ReplayRandomness(release.transcript), folder)
        for table in behind.values()
    ]


def different_parts(found: list[dict[str, bytes]]) -> set[str]:
    """Return the names of what differs between replays."""
    names = set().union(*found)
    return {n for n in names for other in found if other.get(n) != found[0].get(n)}


def differing(
    mechanism: Mechanism,
    unit: Unit,
    budget: Budget,
    folder: Path,
    behind: dict[str, MemoryTable] | None = None,
) -> set[str]:
    """Return the names of what differs between the tables, given the answers of one run on the first."""
    return different_parts(replays(mechanism, unit, budget, folder, behind or tables(unit))[1])
