"""The tasks, as data: what is asked, of whom, and how it is scored. run.py does the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Score = Literal["records", "loss", "checksum", "nothing"]

DELTA = 1e-9
MODEL_MB = 80

ONE_WAY = tuple((a,) for a in range(15))

# Column positions of aim/adult; chosen by choose.py.
TREE = (
    (0, 5), (0, 12), (1, 6), (2, 13), (3, 4), (3, 13), (4, 6),
    (5, 7), (6, 12), (7, 9), (7, 14), (8, 13), (10, 14), (11, 14),
)  # fmt: skip
"""The spanning tree of largest mutual information: a junction tree of 4,779 cells."""

TRIPLES = (
    (0, 1, 3), (0, 1, 5), (0, 1, 14), (0, 3, 5), (0, 3, 14), (0, 5, 12),
    (0, 6, 14), (0, 9, 10), (0, 10, 14), (0, 12, 14), (1, 5, 6), (1, 6, 14),
    (1, 7, 14), (2, 3, 11), (2, 3, 13), (2, 7, 9), (2, 7, 11), (2, 7, 14),
    (2, 9, 14), (2, 11, 14), (3, 5, 7), (4, 9, 12), (5, 6, 14), (5, 9, 14),
    (5, 10, 12), (7, 9, 10), (7, 9, 14), (7, 10, 12), (8, 12, 13), (10, 12, 14),
)  # fmt: skip
"""Thirty triples taken at random within a junction tree of 10 million cells, 80 MB; they come to 9,941,632."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """One job on one table.

    ``contenders`` maps a contender to its variants: argument sets that are run and recorded one after the other.
    ``script`` is the file in benchmarks/margrave/ and benchmarks/peers/NAME/. ``sampled_rows`` swaps the table for one
    of that many rows drawn from it; ``cliques`` asks for noisy marginals with ``sigma`` and ``noise_seed``.
    """

    name: str
    script: str
    what: str
    data: str = "aim/adult"
    arguments: Mapping[str, Any] = field(default_factory=dict)
    contenders: Mapping[str, tuple[Mapping[str, Any], ...]]
    score: Score = "records"
    timeout_s: float = 3600.0
    sampled_rows: int | None = None
    cliques: tuple[tuple[int, ...], ...] = ()
    sigma: float = 50.0
    noise_seed: int = 20240601


ONCE: tuple[Mapping[str, Any], ...] = ({},)


def aim(name: str, data: str, epsilon: float, *contenders: str) -> Task:
    return Task(
        name=name,
        script="aim",
        what=f"AIM on {data}, all three-way marginals, epsilon {epsilon:g}, {MODEL_MB} MB",
        data=data,
        arguments={"epsilon": epsilon, "delta": DELTA, "degree": 3, "max_model_mb": MODEL_MB},
        contenders=dict.fromkeys(contenders, ONCE),
    )


def mst(name: str, data: str, epsilon: float, *contenders: str) -> Task:
    return Task(
        name=name,
        script="mst",
        what=f"MST on {data}, epsilon {epsilon:g}",
        data=data,
        arguments={"epsilon": epsilon, "delta": DELTA},
        contenders=dict.fromkeys(contenders, ONCE),
    )


def mbi_curve(*iterations: int) -> tuple[Mapping[str, Any], ...]:
    """mbi's recommended estimator by number of iterations; the longest runs also record their loss against time.

    mbi computes in single precision unless told otherwise, and advises double for large tables: the longest has both.
    """
    last = iterations[-1]
    runs = [*((n, False) for n in iterations), (last, True)]
    return tuple(
        {"estimator": "MirrorDescent", "iterations": n, "x64": x64, "curve": n == last} for n, x64 in runs
    )


def our_curve() -> tuple[Mapping[str, Any], ...]:
    """margrave at its defaults, which pull a little towards independence, then closer to the least squares of mbi."""
    return ({}, {"fit": {"steps": 16}})


def capacity(name: str, data: str, epsilon: float) -> Task:
    """The same run with models of ever larger size."""
    task = aim(name, data, epsilon)
    sizes = tuple({"max_model_mb": mb} for mb in (5, 20, 80, 320))
    return replace(task, what=f"{task.what[:-7]}, 5 to 320 MB", contenders={"margrave": sizes}, timeout_s=1800.0)


def estimation(name: str, what: str, cliques: tuple[tuple[int, ...], ...], *iterations: int) -> Task:
    return Task(
        name=name,
        script="estimation",
        what=what,
        contenders={"margrave": our_curve(), "mbi": mbi_curve(*iterations)},
        score="loss",
        cliques=cliques,
    )


IMPORTS = {"margrave": "margrave", "mbi": "mbi", "dpmm": "dpmm.models.aim", "opendp": "opendp.prelude"}

_ALL = (
    aim("aim_adult_eps1", "aim/adult", 1.0, "margrave", "dpmm", "opendp"),
    aim("aim_adult_eps10", "aim/adult", 10.0, "margrave", "dpmm", "opendp"),
    mst("mst_adult_eps1", "aim/adult", 1.0, "margrave", "dpmm", "opendp"),
    aim("aim_fire_eps0.1", "aim/fire", 0.1, "margrave"),
    aim("aim_fire_eps1", "aim/fire", 1.0, "margrave"),
    aim("aim_fire_eps10", "aim/fire", 10.0, "margrave"),
    capacity("capacity_fire_eps1", "aim/fire", 1.0),
    capacity("capacity_adult_eps10", "aim/adult", 10.0),
    estimation(
        "estimation_tree",
        "fit all one-way marginals and a spanning tree of 14 pairs of aim/adult, noise 50",
        ONE_WAY + TREE,
        *(50, 250, 1000),
    ),
    estimation(
        "estimation_triples",
        "fit 30 three-way marginals of aim/adult whose junction tree is 9.9 million cells, noise 50",
        TRIPLES,
        *(50, 250, 1000),
    ),
    Task(
        name="count_1m",
        script="count",
        what="all 575 marginals of up to three columns of 1,000,000 rows drawn from aim/adult",
        arguments={"degree": 3},
        contenders={"margrave": ONCE, "mbi": ONCE},
        score="checksum",
        sampled_rows=1_000_000,
    ),
    Task(
        name="sample_1m",
        script="sample",
        what="1,000,000 records from a model fitted to the marginals of estimation_tree",
        arguments={"rows": 1_000_000},
        contenders={"margrave": ONCE, "mbi": ONCE},
        score="loss",
        cliques=ONE_WAY + TREE,
    ),
    Task(
        name="import",
        script="import",
        what="start Python and import the package",
        contenders={contender: ({"module": module},) for contender, module in IMPORTS.items()},
        score="nothing",
        timeout_s=120.0,
    ),
)

TASKS = {task.name: task for task in _ALL}
