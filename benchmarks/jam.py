"""Public data on the tables of the JAM-PGM paper: AIM, JAM-PGM and JAM, one line of JSON a run.

``python benchmarks/jam.py adult_priv adult_pub100 --contender aim jam-pgm jam --epsilon 0.1 1 --runs 2``

The error is the mean over all three-way marginals of Σ|p_real − p_synthetic|, replacing a row, delta = 1e-9, as in the
paper. Errors are of the private table, without noise: nothing here is for a release.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
from run import default_data

from margrave.data import MemoryTable
from margrave.marginal.counting import count_cliques
from margrave.mechanisms import AIM, JAM, JAMPGM
from margrave.privacy import Budget, ReplaceRow, protect
from margrave.public import Public
from margrave.schema import Codes, Schema
from margrave.workload import Workload

CONTENDERS: dict[str, Any] = {
    "aim": lambda public: AIM(),
    "jam-pgm": lambda public: JAMPGM(public=public),
    "jam-pgm-equal": lambda public: JAMPGM(public=public, equal_weights=True),
    "jam": lambda public: JAM(public=public),
}


def load(folder: Path, name: str) -> tuple[Schema, Codes]:
    """A coded table and its schema."""
    told = json.loads((folder / f"{name}.schema.json").read_text())
    schema = Schema.coded({c["name"]: c["domain_size"] for c in told["columns"]})
    table = pyarrow.parquet.read_table(folder / f"{name}.parquet")
    return schema, Codes.of(schema.domain, {a: np.asarray(table[a]) for a in schema.domain})


def run(schema: Schema, private: Codes, public: Public, contender: str, epsilon: float, seed: int) -> dict[str, Any]:
    """One run: its error, its time, and what it measured and read."""
    begin = time.process_time()
    table = MemoryTable(schema, private)
    with protect(table, unit=ReplaceRow(), budget=Budget.approx(epsilon, 1e-9)) as gate:
        release = CONTENDERS[contender](public).run(gate, rng=np.random.default_rng(seed))
    seconds = time.process_time() - begin
    triples = Workload.all_kway(schema.domain, 3).cliques
    synthetic = release.model.sample(len(private), rng=np.random.default_rng(seed))
    real, found = count_cliques(private, triples), count_cliques(synthetic, triples)
    error = np.mean([np.abs(real[c] - found[c]).sum() for c in triples]) / len(private)
    known = release.transcript
    return {
        "contender": contender, "epsilon": epsilon, "seed": seed, "error": float(error), "cpu_s": round(seconds, 1),
        "measured": len(known.measurements), "read": len(known.readings), "choices": len(known.selections),
    }  # fmt: skip


def main() -> None:
    """Every contender at every epsilon, run after run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("private")
    parser.add_argument("public")
    parser.add_argument("--contender", nargs="+", choices=sorted(CONTENDERS), default=sorted(CONTENDERS))
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.1, 1.0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--data", type=Path, default=default_data())
    options = parser.parse_args()
    schema, private = load(options.data / "jam", options.private)
    public = Public(load(options.data / "jam", options.public)[1], "the paper's public part of the table")
    for seed in range(options.runs):
        for epsilon in options.epsilon:
            for contender in options.contender:
                line = run(schema, private, public, contender, epsilon, seed)
                print(json.dumps({"private": options.private, "public": options.public, **line}), flush=True)


if __name__ == "__main__":
    main()
