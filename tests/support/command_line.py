"""The command line on several tables with every answer of the gate forced to be the same: all that leaves, in bytes.

Whatever differs between the tables then came to the outside by another way than the answers. Sources of chance beside
the gate (names of temporary files, identities of ledgers and runs, salts) are the same on every table too.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import logging
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from margrave.cli.main import run
from margrave.privacy import SeededRandomness, SystemRandomness
from margrave.schema import Boolean, Categorical, Integer, Real, Schema
from margrave.testing.replay import ControlFlowDiffersError, Recorder, ReplayRandomness
from margrave.types import IntArray

Row = tuple[str, ...]
COLUMNS = ("who", "job", "age", "income", "ill")

SCHEMA = Schema(
    (
        Categorical("job", ["clerk", "nurse", "pilot"], other=True),  # nobody is a pilot
        Integer("age", 0, 99, bins=4, missing=True),
        Real("income", 0.0, 1000.0, bins=3, outside="missing", missing=True),
        Boolean("ill", missing=True, outside="missing"),
    ),
    ignore=["who"],
    accepted=["values: age", "values: income", "values: ill"],
)


def some_rows(number: int, *, seed: int = 0) -> list[Row]:
    """Rows of persons who have up to a few each; some values are empty, and some lie outside the schema."""
    rng = np.random.default_rng(seed)
    jobs, ill = ("clerk", "nurse", "nurse", "cook", ""), ("true", "false", "false", "")
    return [
        (
            f"p{i // 2}", jobs[rng.integers(5)], str(rng.integers(-5, 120)),
            f"{rng.uniform(-50, 1500):.2f}" if rng.random() < 0.9 else "", ill[rng.integers(4)],
        )
        for i in range(number)
    ]  # fmt: skip


ROWS = some_rows(60)
ALIKE: Row = ("p1", "surgeon", "", "123456.75", "")

TABLES = {"itself": ROWS, "a neighbor": ROWS[:-1], "two rows alike": [ALIKE] * 2}
"""Tables that may differ in everything: a table, one row fewer, and hardly a row."""

PLAIN: Row = ("p1", "clerk", "", "5.00", "")
OF_ONE_SIZE = {
    "itself": ROWS,
    "a neighbor": [*ROWS[:-1], ALIKE],
    "rows all alike": [PLAIN] * len(ROWS),
}
"""Tables whose number of rows is public."""


def csv_of(rows: Sequence[Row], columns: Sequence[str] = COLUMNS) -> str:
    return "".join(",".join(cells) + "\n" for cells in [tuple(columns), *rows])


def write_csv(rows: Sequence[Row], path: Path) -> None:
    path.write_text(csv_of(rows), encoding="utf-8")


def write_parquet(rows: Sequence[Row], path: Path) -> None:
    """Ages as whole numbers, incomes as floats, all else as text; empty fields as null."""
    kinds: dict[str, Callable[[str], Any]] = {"age": int, "income": float}
    held = {
        name: [kinds.get(name, str)(row[i]) if row[i] else None for row in rows]
        for i, name in enumerate(COLUMNS)
    }
    types = {"age": pa.int64(), "income": pa.float64()}
    fields = [pa.field(name, types.get(name, pa.string())) for name in COLUMNS]
    pa.parquet.write_table(pa.table(held, schema=pa.schema(fields)), path)


class Forced:
    """Answers drawn for the first table and given again for the others, in place of the system's randomness."""

    def __init__(self) -> None:
        self._recorder = Recorder(SeededRandomness(17))
        self._source: Any = self._recorder
        self._left: int | None = None

    def again(self) -> None:
        """Give the recorded answers again from the first."""
        self._source, self._left = ReplayRandomness(self._recorder.steps), None

    def fail_after(self, answers: int | None) -> None:
        """Let one draw fail, after so many more answers, with the true counts in its words."""
        self._left = answers

    def gaussian(self, counts: IntArray, scale: float) -> IntArray:
        self._count_down(counts.tolist())
        return self._source.gaussian(counts, scale)  # type: ignore[no-any-return]

    def choose(self, scores: Any, temperature: Fraction) -> int:
        self._count_down(scores)
        return self._source.choose(scores, temperature)  # type: ignore[no-any-return]

    def _count_down(self, seen: object) -> None:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                self._left = None
                raise RuntimeError(f"it failed at {seen}")

    def asked(self) -> str:
        """Return what was asked otherwise than for the first table."""
        if self._source is self._recorder:
            return "as recorded"
        try:
            self._source.finish()
        except ControlFlowDiffersError as differs:
            return str(differs)
        return "as recorded"


@dataclass
class Same:
    """Chance that is the same in every run: each kind of draw by its own count."""

    def __post_init__(self) -> None:
        self._hex, self._bits = itertools.count(), itertools.count()

    def token_hex(self, nbytes: int = 32) -> str:
        return self._digest(f"hex {next(self._hex)}", nbytes).hex()

    def token_bytes(self, nbytes: int = 32) -> bytes:
        return np.random.default_rng(5).bytes(nbytes)

    def randbits(self, k: int) -> int:
        return int.from_bytes(self._digest(f"bits {next(self._bits)}", 32), "big") % (1 << k)

    def _digest(self, what: str, length: int) -> bytes:
        return hashlib.shake_256(what.encode()).digest(length)


Step = Sequence[str] | Callable[["CommandLine"], None]


class CommandLine:
    """Commands in a folder, which is made anew for every table, and all that leaves them.

    ``patch`` is for steps that change the program; it ends with the commands.
    """

    patch: pytest.MonkeyPatch
    first: dict[str, bytes]
    last: dict[str, bytes]

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]
    ) -> None:
        self.folder, self.monkeypatch, self.capture = folder / "here", monkeypatch, capture
        self.answers = Forced()

    def leaving(
        self,
        rows: Sequence[Row] | bytes,
        steps: Sequence[Step],
        *,
        table: str = "table.csv",
        files: Mapping[str, str] | None = None,
        schema: Schema = SCHEMA,
    ) -> dict[str, bytes]:
        """Run the steps beside a table, its schema and other files, and return all that leaves, by name.

        ``rows`` in bytes are the table's file as it is.
        """
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        self.monkeypatch.chdir(self.folder)
        if isinstance(rows, bytes):
            Path(table).write_bytes(rows)
        else:
            (write_parquet if table.endswith(".parquet") else write_csv)(rows, self.folder / table)
        schema.save("schema.toml")
        for name, text in (files or {}).items():
            Path(name).write_text(text, encoding="utf-8")
        before = Path(table).read_bytes()
        found: dict[str, bytes] = {}
        with self._forced(), listening() as log:
            for number, step in enumerate(steps):
                if callable(step):
                    step(self)
                    continue
                code = run(list(step))
                out, err = self.capture.readouterr()
                said = {"code": str(code), "stdout": out, "stderr": err}
                found |= {f"{name} of step {number}": text.encode() for name, text in said.items()}
        assert Path(table).read_bytes() == before
        found |= {"log": log.getvalue().encode(), "what was asked": self.answers.asked().encode()}
        return found | {
            f"file {name}": held for name, held in tree(self.folder, but=[table]).items()
        }

    def differing(
        self, tables: Mapping[str, Sequence[Row] | bytes], steps: Sequence[Step], **more: Any
    ) -> set[str]:
        """Return the names of what differs between the tables; ``first`` and ``last`` are what left two of them."""
        found: list[dict[str, bytes]] = []
        for rows in tables.values():
            if found:
                self.answers.again()
            found.append(self.leaving(rows, steps, **more))
        self.first, self.last = found[0], found[-1]
        return {
            name
            for name in set().union(*found)
            for other in found
            if other.get(name) != self.first.get(name)
        }

    @contextmanager
    def _forced(self) -> Iterator[None]:
        same = Same()
        with self.monkeypatch.context() as patch:
            for draw in ("gaussian", "choose"):
                forced = getattr(self.answers, draw)
                patch.setattr(
                    SystemRandomness, draw, lambda _, *given, forced=forced: forced(*given)
                )
            patch.setattr(SystemRandomness, "_tested", True)
            for draw in ("token_hex", "token_bytes", "randbits"):
                patch.setattr(f"secrets.{draw}", getattr(same, draw))
            patch.setattr("margrave.resuming.time_ns", lambda: 1 << 62)
            patch.setattr("margrave.cli.synthesize.reporting", told_progress)
            self.patch = patch
            yield


@contextmanager
def told_progress(progress: bool) -> Iterator[Callable[[str, float], None]]:
    """Every stage and fraction in a line on standard error."""
    yield lambda stage, done: click.echo(f"{stage} {done!r}", err=True)


@contextmanager
def listening() -> Iterator[io.StringIO]:
    """Catch every logger at every level."""
    heard, root = io.StringIO(), logging.getLogger()
    handler, level = logging.StreamHandler(heard), root.level
    handler.addFilter(
        lambda record: not record.name.startswith(("numba.", "jax."))
    )  # compiling, the first time
    root.addHandler(handler)
    root.setLevel(logging.NOTSET)
    try:
        yield heard
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


def tree(folder: Path, *, but: Sequence[str] = ()) -> dict[str, bytes]:
    """Every file and folder below a folder: its mode and its bytes."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if name in but:
            continue
        held = (
            os.readlink(path).encode()
            if path.is_symlink()
            else path.read_bytes()
            if path.is_file()
            else b""
        )
        found[name] = oct(path.lstat().st_mode).encode() + b" " + held
    return found
