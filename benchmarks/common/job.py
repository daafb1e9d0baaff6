"""What every contender's script shares: JSON arguments in, records and a result out.

A script is started as `python SCRIPT '{"data": ..., "schema": ..., "epsilon": ..., "out": ...}'` by run.py, which puts
this folder on PYTHONPATH. Only the standard library, NumPy and pyarrow are used here, so that it works in every
environment.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

Array = NDArray[np.float64]
Clique = tuple[str, ...]

START = time.perf_counter()


class Job:
    """The arguments of one run and the folder its outputs go to."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        self.arguments = arguments
        self.out = Path(arguments["out"])
        self.facts: dict[str, Any] = {}

    @classmethod
    def from_command_line(cls) -> Job:
        return cls(json.loads(sys.argv[1]))

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    def get(self, name: str, default: Any = None) -> Any:
        return self.arguments.get(name, default)

    # inputs

    def table(self) -> pa.Table:
        return pq.read_table(self["data"])

    def domain(self) -> dict[str, int]:
        """Column name to number of codes, as published: never a value derived from the rows."""
        columns = json.loads(Path(self["schema"]).read_text())["columns"]
        return {column["name"]: int(column["domain_size"]) for column in columns}

    def measurements(self) -> tuple[list[Clique], list[Array]]:
        """The cliques and the noisy counts of each, shaped by the domain in the clique's order."""
        return read_marginals(Path(self["measurements"]))

    # outputs

    def progress(self, **facts: Any) -> None:
        """One line a round, flushed at once: a run stopped by the timeout still says how far it came."""
        line = json.dumps({"seconds": round(time.perf_counter() - START, 3), **facts})
        with (self.out / "progress.jsonl").open("a") as stream:
            stream.write(line + "\n")

    def stage(self, name: str, since: float) -> float:
        """Record the seconds of one stage and return the present moment, the start of the next."""
        now = time.perf_counter()
        self.facts.setdefault("seconds", {})[name] = round(now - since, 3)
        return now

    def write_records(self, records: pa.Table, name: str = "records") -> None:
        pq.write_table(records, self.out / f"{name}.parquet")

    def write_marginals(self, cliques: Sequence[Clique], values: Sequence[Any]) -> None:
        write_marginals(self.out / "marginals.npz", cliques, values)

    def finish(self, **facts: Any) -> None:
        self.facts.update(facts)
        (self.out / "result.json").write_text(json.dumps(self.facts))


def write_marginals(path: Path, cliques: Sequence[Clique], values: Sequence[Any]) -> None:
    """One .npz: the cliques as JSON and one array for each, in order."""
    arrays = {f"m{i}": np.asarray(value) for i, value in enumerate(values)}
    np.savez(path, cliques=np.array(json.dumps([list(c) for c in cliques])), **arrays)


def read_marginals(path: Path) -> tuple[list[Clique], list[Array]]:
    with np.load(path) as stored:
        cliques = [tuple(c) for c in json.loads(str(stored["cliques"]))]
        return cliques, [stored[f"m{i}"] for i in range(len(cliques))]
