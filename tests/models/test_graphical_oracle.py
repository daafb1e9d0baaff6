"""Estimation against mbi 2.0.0, where it is at hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from margrave.models import GraphicalFit
from margrave.transcript import PublicTotal, Transcript
from tests.support.explicit import graphical, loss_of
from tests.support.strategies import domain_of, measurement

MBI = """
import json, sys
import jax, mbi, numpy as np
jax.config.update("jax_enable_x64", True)
task = json.load(sys.stdin)
domain = mbi.Domain.fromdict(task["domain"])
noisy = [(np.array(m["values"]), tuple(m["clique"]), m["scale"]) for m in task["noisy"]]
measurements = [mbi.LinearMeasurement(y, clique, stddev=scale) for y, clique, scale in noisy]
estimator = mbi.estimation.MirrorDescent()
model = estimator.estimate(domain, measurements, known_total=task["total"], iters=task["iterations"])
print(json.dumps([np.asarray(model.project(clique).datavector(), dtype=float).tolist() for _, clique, _ in noisy]))
"""


def mbi_python() -> str:
    """A Python that has mbi 2.0.0: this one, or the one that MARGRAVE_MBI_PYTHON names; else the test is skipped."""
    python = os.environ.get("MARGRAVE_MBI_PYTHON", sys.executable)
    asked = "from importlib.metadata import version; print(version('mbi'))"
    found = subprocess.run(
        [python, "-c", asked], capture_output=True, text=True, check=False
    ).stdout.strip()
    if found != "2.0.0":
        pytest.skip(
            "mbi 2.0.0 is not installed here; name a Python that has it in MARGRAVE_MBI_PYTHON"
        )
    return python


@pytest.mark.slow
def test_the_loss_is_no_higher_than_mbis(tmp_path: Path) -> None:
    """Ten columns, two- and three-way marginals of unequal scales: 1,500 iterations of mirror descent against ours."""
    python = mbi_python()
    rng = np.random.default_rng(31)
    domain = domain_of([12, 9, 7, 10, 4, 6, 15, 3, 8, 5])
    n = 30_000
    columns = [rng.integers(0, domain.sizes[0], n)]
    for size in domain.sizes[1:]:
        shifted = (columns[int(rng.integers(len(columns)))] * 7 + rng.poisson(1.5, n)) % size
        columns.append(np.where(rng.random(n) < 0.8, shifted, rng.integers(0, size, n)))
    pairs = [c for c in combinations(domain.attributes, 2) if rng.random() < 0.3]
    triples = [("c0", "c1", "c4"), ("c2", "c3", "c7"), ("c4", "c5", "c9"), ("c6", "c7", "c8")]
    noisy = []
    for i, clique in enumerate([*pairs, *triples]):
        index = np.ravel_multi_index(
            [columns[domain.index(a)] for a in clique], domain.shape(clique)
        )
        truth = np.bincount(index, minlength=domain.cells(clique)).reshape(domain.shape(clique))
        scale = float(5 + 5 * (i % 5))
        noisy.append(measurement(clique, truth + rng.normal(scale=scale, size=truth.shape), scale))

    task = {
        "domain": dict(zip(domain.attributes, domain.sizes, strict=True)),
        "noisy": [
            {"clique": m.clique, "values": m.values.ravel().tolist(), "scale": m.scale}
            for m in noisy
        ],
        "total": float(n),
        "iterations": 1_500,
    }
    run = subprocess.run(
        [python, "-c", MBI],
        input=json.dumps(task),
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    theirs = loss_of(
        [np.array(values) for values in json.loads(run.stdout.splitlines()[-1])], noisy
    )
    fit = GraphicalFit(shrinkage=0.1, steps=1, tolerance=1e-4, max_calibrations=1_500)
    model = fit(domain, Transcript((PublicTotal(n), *noisy)), rng=np.random.default_rng(0))
    ours = loss_of([np.asarray(model.project(m.clique).values) for m in noisy], noisy)
    cells = sum(m.values.size for m in noisy)
    tree = graphical(model).tree.cells()
    print(f"{cells} cells, {tree} in the tree: loss {ours:.2f}, mbi {theirs:.2f}")  # noqa: T201
    assert ours <= theirs * 1.002
