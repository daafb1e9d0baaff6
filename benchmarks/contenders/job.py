"""The common part of all scripts: JSON arguments in, records and a result out.

A script is started as ``python run_NAME.py '{"job": "aim", "data": ..., "out": ...}'``. Only the
standard library, NumPy and pyarrow are used here, so that it works in every environment.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from math import exp, inf, log, log1p
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
    """The arguments of one run, and the folder that its outputs go to."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        self.arguments = arguments
        self.out = Path(arguments["out"])
        self.facts: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    def get(self, name: str, default: Any = None) -> Any:
        """Return an argument, or the default."""
        return self.arguments.get(name, default)

    def table(self) -> pa.Table:
        """Return the table."""
        return pq.read_table(self["data"])

    def domain(self) -> dict[str, int]:
        """Return the published number of codes of every column, never derived from the rows."""
        columns = json.loads(Path(self["schema"]).read_text())["columns"]
        return {column["name"]: int(column["domain_size"]) for column in columns}

    def measurements(self) -> tuple[list[Clique], list[Array]]:
        """Return the cliques and their noisy counts, shaped by the domain in the clique's order."""
        return read_marginals(Path(self["measurements"]))

    def progress(self, **facts: Any) -> None:
        """Write a line for a round, so that a stopped run still says how far it came."""
        line = json.dumps({"seconds": round(time.perf_counter() - START, 3), **facts})
        with (self.out / "progress.jsonl").open("a") as stream:
            stream.write(line + "\n")

    def stage(self, name: str, since: float) -> float:
        """Record the seconds of a stage, and return the present moment."""
        now = time.perf_counter()
        self.facts.setdefault("seconds", {})[name] = round(now - since, 3)
        return now

    def write_records(self, records: pa.Table, name: str = "records") -> None:
        """Write records that were drawn; a second way of drawing has a name of its own."""
        pq.write_table(records, self.out / f"{name}.parquet")

    def write_marginals(self, cliques: Sequence[Clique], values: Sequence[Any]) -> None:
        """Write fitted marginals."""
        write_marginals(self.out / "marginals.npz", cliques, values)

    def finish(self, **facts: Any) -> None:
        """Write the result."""
        self.facts.update(facts)
        (self.out / "result.json").write_text(json.dumps(self.facts))


def main(jobs: Mapping[str, Callable[[Job], None]]) -> None:
    """Run the job that the command line names."""
    job = Job(json.loads(sys.argv[1]))
    jobs[job["job"]](job)


def write_marginals(path: Path, cliques: Sequence[Clique], values: Sequence[Any]) -> None:
    """Write one .npz: the cliques as JSON, and an array for each."""
    arrays = {f"m{i}": np.asarray(value) for i, value in enumerate(values)}
    np.savez(path, cliques=np.array(json.dumps([list(c) for c in cliques])), **arrays)


def read_marginals(path: Path) -> tuple[list[Clique], list[Array]]:
    """Return the cliques and arrays of an .npz."""
    with np.load(path) as stored:
        cliques = [tuple(c) for c in json.loads(str(stored["cliques"]))]
        return cliques, [stored[f"m{i}"] for i in range(len(cliques))]


def closure(attributes: Sequence[str], degree: int) -> list[Clique]:
    """Return all cliques of 1 to ``degree`` attributes, shorter first."""
    return [clique for k in range(1, degree + 1) for clique in combinations(attributes, k)]


def checksum(counts: Iterable[Any]) -> str:
    """Return a digest of counts as 64-bit integers in row-major order, clique after clique."""
    digest = hashlib.sha256()
    for count in counts:
        digest.update(np.ascontiguousarray(np.rint(np.asarray(count)), dtype="<i8").tobytes())
    return digest.hexdigest()[:16]


def measurement_loss(fitted: Sequence[Array], noisy: Sequence[Array], sigma: float) -> float:
    """Return Σ ||fitted − noisy||² / (2 σ²), in double precision."""
    gaps = (
        np.asarray(mu, dtype=np.float64).ravel() - np.asarray(y, dtype=np.float64).ravel()
        for mu, y in zip(fitted, noisy, strict=True)
    )
    return float(sum(float(gap @ gap) for gap in gaps) / (2.0 * sigma**2))


def delta_of(rho: float, epsilon: float) -> float:
    """Return the least delta for which rho-zCDP implies (epsilon, delta)-DP.

    min over alpha > 1 of exp((alpha - 1)(alpha rho - epsilon) + alpha log(1 - 1/alpha))
    / (alpha - 1), by bisection of the increasing derivative of the logarithm.

    References:
        Canonne, Kamath, Steinke 2020, Corollary 13.
    """
    low, high = 1.0 + 1e-12, (epsilon + 1.0) / (2.0 * rho) + 2.0
    for _ in range(200):
        alpha = (low + high) / 2.0
        if (2.0 * alpha - 1.0) * rho - epsilon + log1p(-1.0 / alpha) < 0.0:
            low = alpha
        else:
            high = alpha
    exponent = (high - 1.0) * (high * rho - epsilon) + high * log1p(-1.0 / high) - log(high - 1.0)
    return min(1.0, exp(exponent)) if exponent < 700.0 else inf


def rho_of(epsilon: float, delta: float) -> float:
    """Return the largest rho, from below, with ``delta_of(rho, epsilon) <= delta``."""
    low, high = 0.0, epsilon + 1.0
    while high - low > 1e-12 * high:
        middle = (low + high) / 2.0
        if delta_of(middle, epsilon) <= delta:
            low = middle
        else:
            high = middle
    return low
