"""The experiments of "Iterative Methods for Private Synthetic Data" (Liu, Vietri, Wu 2021)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.core import library as lib
from benchmarks.core.process import Script, clock, run_job, stage_seconds
from benchmarks.core.store import Row
from benchmarks.core.suite import (
    DEFAULT,
    Case,
    Cell,
    Contender,
    Places,
    Setting,
    Suite,
    Table,
    Task,
    kway,
    recipe,
    shares,
)
from benchmarks.core.tables import load_codes
from benchmarks.suites import _adaptive_page as page
from benchmarks.suites import _adaptive_tables as tables
from benchmarks.suites._adaptive_claims import EPSILONS, RUNS

# Settings: the grids of the paper's Tables 1 to 3

PEP_T = (20, 30, 40, 50, 75, 100, 125, 150, 175, 200)
MWEM_T = (50, 75, 100, 150, 200, 250, 300)
FORGETFUL_T = (100, 150, 200, 250, 300, 400, 500, 750, 1000)
MARGINALS_T = (5, 10, 15, 20, 30, 40, 60, 80, 100)
"""Not the paper's, which selects single queries only."""
_ACS_REDUCED_T = (50, 75, 100, 125, 150, 200, 250, 300)
GEM_T = {"acs": FORGETFUL_T, "acs_reduced": _ACS_REDUCED_T, "acs_reduced_us": _ACS_REDUCED_T}
OTHER_GEM_T = (30, 40, 50, 60, 70, 80, 90, 100, 125, 150, 175, 200)
RAP_GRID: list[Setting] = [
    {"rounds": t, "queries_per_round": k}
    for k in (5, 10, 25, 50, 100) for t in (2, 5, 10, 25, 50, 75, 100)
]  # fmt: skip
DUAL_GRID: list[Setting] = [
    {"eta": e, "samples": s} for e in (2.0, 3.0, 4.0, 5.0) for s in (25, 50, 100, 250, 500)
]


def rounds(*numbers: int) -> list[Setting]:
    """Return a setting for each number of rounds."""
    return [{"rounds": t} for t in numbers]


def gem_grid(task: str) -> list[Setting]:
    """Return the paper's numbers of rounds of GEM, which depend on the table."""
    return rounds(*GEM_T.get(task, OTHER_GEM_T))


# Contenders

_TEAL, _GREEN, _BLUE = ("#17697a", "#5fb8c6"), ("#3f8f4f", "#7cc98b"), ("#3b5fa8", "#85a3e0")
_RUST, _GOLD, _PINK = ("#c4622d", "#e8925f"), ("#a98212", "#cfae4a"), ("#b5366b", "#e283a9")
_VIOLET, _LILAC = ("#7a4fa3", "#b892dc"), ("#b39bc9", "#8f74b0")
_GREY, _INK = ("#6a7683", "#9fabb7"), ("#1f2630", "#e6e8ea")

QUERY, MARGINAL = {"granularity": "query"}, {"granularity": "marginal"}
"""The papers' form selects single queries, the library's default whole marginals."""
COSTS = (lib.Independent, lib.MST, lib.AIM, lib.MWEMPGM, lib.MWEM, lib.PEP, lib.RAP, lib.GEM,
         lib.AIMMixture, lib.DualQuery, lib.FEM, lib.GEMPub,
         lib.PMWPub, lib.PEPPub)  # fmt: skip
"""Cheap ones first: this is the order in which they run."""


def ours(
    label: str, colors: tuple[str, str], mechanism: Any, grid: Any = (), *, workload: bool = True,
    cost: int | None = None, relaxed: bool = False, **options: Any,
) -> Contender:  # fmt: skip
    """Return a contender: a mechanism with its options, and its grid.

    ``relaxed``: its answers are those of the last round's model, as the paper takes RAP's.
    """
    facts = {"cost": COSTS.index(mechanism) if cost is None else cost, "relaxed": relaxed}
    settings = grid if callable(grid) else lambda task: grid
    make = recipe(mechanism, workload=workload, **options)
    return Contender(label, colors, make, grid=settings, facts=facts)


def weighing(label: str, name: str, colors: Any, mechanism: Any, grid: Any, **paper: Any) -> Any:
    """Return a contender that weighs public records on each public table, in a given form."""
    tables = {"tenth": "", "us": ", states", "ca": ", CA", "oh": ", OH"}
    forms = {"": ("", QUERY), "-paper": (", as published", {**QUERY, **paper}),
             "-marginals": (", whole marginals", MARGINAL)}  # fmt: skip
    return {
        (table, f"{name}-{table}{form}"):
        ours(f"{label}{where}{words}", colors, mechanism, grid, public=table, **options)
        for table, where in tables.items() for form, (words, options) in forms.items()
    }  # fmt: skip


_PMW = weighing("PMW Pub", "pmw-pub", _RUST, lib.PMWPub, rounds(*MWEM_T), shrink=False, anneal=False,
                at_once=True)  # fmt: skip
_PEP = weighing(
    "PEP Pub", "pep-pub", _VIOLET, lib.PEPPub, rounds(*PEP_T), shrink=False, anneal=False
)
_PUBLIC = {
    "gem-pub-tenth": ours("GEM Pub", _GREEN, lib.GEMPub, gem_grid, public="tenth", **QUERY),
    "gem-pub-us": ours("GEM Pub, states", _GREEN, lib.GEMPub, gem_grid, public="us", **QUERY),
    "gem-pub-ca": ours("GEM Pub, CA", _GREEN, lib.GEMPub, gem_grid, public="ca", **QUERY),
    "gem-pub-oh": ours("GEM Pub, OH", _GREEN, lib.GEMPub, gem_grid, public="oh", **QUERY),
}
_REDUCED = ours("GEM Pub (reduced)", _BLUE, lib.GEMPub, gem_grid, public="reduced", **QUERY)
_NETWORK = lib.GeneratorFit(hidden=(512, 1024, 1024), rate=1e-4, active_threshold=0.5, resample=True,
                        kl_weight=0.0)  # fmt: skip
"""The paper's network and its training, where the library's defaults differ."""
_CLIPPED = lib.RelaxedFit(clip=True)


def on(table: str) -> dict[str, Contender]:
    """Return the contenders on a public table in the form of the figures."""
    weights = {name: c for (t, name), c in (_PMW | _PEP).items() if name.endswith(f"-{table}")}
    between = {"gem-pub-reduced": _REDUCED} if table == "tenth" else {}
    return {f"gem-pub-{table}": _PUBLIC[f"gem-pub-{table}"], **between, **weights}


CONTENDERS: dict[str, Contender] = {
    "mwem": ours("MWEM", _RUST, lib.MWEM, rounds(*MWEM_T), **QUERY),
    "mwem-forgetful": ours("MWEM without past queries", _GOLD, lib.MWEM, rounds(*FORGETFUL_T), passes=0,
                           **QUERY),
    "mwem-marginals": ours("MWEM, whole marginals", _PINK, lib.MWEM, rounds(*MARGINALS_T), **MARGINAL),
    "mwem-paper": ours("MWEM, as published", _LILAC, lib.MWEM, rounds(*MWEM_T), at_once=True, **QUERY),
    "pep": ours("PEP", _VIOLET, lib.PEP, rounds(*PEP_T), **QUERY),
    "pep-marginals": ours("PEP, whole marginals", _VIOLET, lib.PEP, rounds(*MARGINALS_T), **MARGINAL),
    "gem": ours("GEM", _TEAL, lib.GEM, gem_grid, **QUERY),
    "gem-marginals": ours("GEM, whole marginals", _BLUE, lib.GEM, rounds(*MARGINALS_T), **MARGINAL),
    "aim-mixture": ours("AIM's choice, mixture", _GREEN, lib.AIMMixture),
    "rap-softmax-paper": ours("RAP softmax, as published", _GREEN, lib.RAP, RAP_GRID,
                              fit=lib.RelaxedFit(active_threshold=0.0, steps=1000), **QUERY),
    "rap": ours("RAP", _GOLD, lib.RAP, RAP_GRID, fit=_CLIPPED, relaxed=True, **QUERY),
    "rap-released": ours("RAP, as released", _LILAC, lib.RAP, fit=_CLIPPED, **QUERY),
    "rap-softmax": ours("RAP softmax", _GREEN, lib.RAP, RAP_GRID, **QUERY),
    "dual-query": ours("DualQuery", _GREY, lib.DualQuery, DUAL_GRID),
    "fem": ours("FEM", _PINK, lib.FEM),
    **on("tenth"), **on("us"), **on("ca"), **on("oh"),
    "aim": ours("AIM", _INK, lib.AIM),
    "mst": ours("MST", _LILAC, lib.MST, workload=False),
    "mwem-pgm": ours("MWEM+PGM", _LILAC, lib.MWEMPGM),
    "independent": ours("independent", _GOLD, lib.Independent, workload=False),
    "gem-paper": ours("GEM, the paper's network", _LILAC, lib.GEM, rounds(100), fit=_NETWORK,
                      cost=len(COSTS), **QUERY),
    "gem-plain": Contender("GEM in plain PyTorch", _INK, environment="torch",
                           grid=lambda task: rounds(100), facts={"cost": len(COSTS) + 1}),
    **{name: contender for table in ("tenth", "us", "ca", "oh")
       for (t, name), contender in (_PMW | _PEP).items()
       if t == table and not name.endswith(f"-{table}")},
}  # fmt: skip
"""``gem-plain`` is GEM as one would write it down in PyTorch: for its speed at equal T."""

_REFERENCES, _RAPS = (
    ("independent", "mst", "aim", "mwem-pgm"),
    ("rap-softmax", "rap", "rap-released"),
)
_SMALL = (*_REFERENCES, "mwem", "mwem-forgetful", "mwem-paper", "mwem-marginals", "pep",
          "pep-marginals", *_RAPS, "gem", "gem-marginals", "dual-query", "fem")  # fmt: skip
_LARGE = (*_REFERENCES[:3], *_RAPS, "gem", "gem-marginals", "dual-query", "fem")
"""MWEM and PEP hold every cell of the domain: they run on small ones only."""


def _pub(table: str) -> tuple[str, ...]:
    return tuple(f"{kind}-pub-{table}" for kind in ("gem", "pmw", "pep"))


def _forms(table: str) -> tuple[str, ...]:
    return tuple(
        f"{k}-pub-{table}-{form}" for k in ("pmw", "pep") for form in ("paper", "marginals")
    )


TASKS: dict[str, Task] = {
    "adult_reduced": Task("ADULT (reduced)", tables.adult_reduced, kway(3), contenders=(
        *_SMALL, "rap-softmax-paper", *_pub("tenth")[1:], *_forms("tenth"))),
    "acs_reduced": Task("ACS (reduced) PA", tables.acs_reduced, kway(3),
                        contenders=(*_SMALL, "rap-softmax-paper")),
    "acs_reduced_us": Task("ACS (reduced) of all states", tables.acs_reduced_us, kway(3), contenders=(
        "mwem-paper", "pep", "rap-softmax", "rap-softmax-paper", "gem")),
    "adult": Task("ADULT", tables.adult, kway(3), contenders=(
        *_LARGE, *_pub("tenth"), *_forms("tenth"), "gem-pub-reduced", "gem-paper", "gem-plain")),
    "acs": Task("ACS PA", tables.acs, kway(3), contenders=(
        *_LARGE, *_pub("us"), *_pub("ca"), *_forms("ca"), *_pub("oh"))),
    "adult_star": Task("ADULT*", lambda data: Table(load_codes(data, "gem/adult_star_fem")),
                       tables.small_subset, contenders=_LARGE),
    "wide": Task("100 columns", tables.wide, kway(2),
                 contenders=("independent", "mst", "gem", "aim-mixture", "aim")),
}  # fmt: skip


# Work

ORDER = (1.0, 0.1, 0.25, 0.5, 0.15, 0.2)
"""Epsilons: both ends first, then the middle."""
STAGES = ("default", "coarse", "grid")
"""The library's defaults, every third setting of the paper's grids, and the others."""


def settings(contender: str, task: str) -> list[Setting]:
    """Return the default and the grid. The plain implementation has no default."""
    grid = list(CONTENDERS[contender].grid(task))
    return grid if CONTENDERS[contender].environment else [DEFAULT, *grid]


def stage_of(setting: Setting, grid: Sequence[Setting]) -> str:
    """Return the stage at which a setting of a grid runs."""
    if setting == DEFAULT:
        return "default"
    return "coarse" if len(grid) < 3 or grid.index(setting) % 3 == 1 else "grid"


def cells(repeats: int | None = None) -> Iterable[Cell]:
    """Return all runs, task by task: defaults, a third of each grid, the rest; then scaling."""
    for name, task in TASKS.items():
        runs = [
            Cell(name, who, setting, epsilon, repeat, stage_of(setting, CONTENDERS[who].grid(name)))
            for who in task.contenders for setting in settings(who, name)
            for epsilon in EPSILONS for repeat in range(repeats or RUNS)
        ]  # fmt: skip
        yield from sorted(runs, key=_place)
    for size in (1e5, 1e6, 1e7, 1e8):
        for who in ("mwem", "pep"):
            yield Cell("scaling", who, {"cells": size, "rounds": 10}, 1.0, 0, "scaling")


def _place(cell: Cell) -> tuple[int, int, int, int, int]:
    questions = int(cell.setting.get("rounds", 0)) * int(cell.setting.get("queries_per_round", 1))
    cost = CONTENDERS[cell.contender].facts["cost"]
    return STAGES.index(cell.stage), ORDER.index(cell.epsilon), cell.repeat, cost, questions  # type: ignore[arg-type]


def measure(cell: Cell, places: Places) -> Row:
    """Return errors and seconds of one run."""
    if cell.task == "scaling":
        return scaling(cell, places)
    case = TASKS[cell.task].case(places.data)
    if CONTENDERS[cell.contender].environment:
        return plain(case, cell, places)
    start = clock()
    released, answerer = run_mechanism(case, cell)
    fitted, log = clock(), released.transcript
    return {
        **errors_of(case, answerer, released.model, cell.repeat),
        "rounds": len(log.selections) + len(log.query_selections), "total": released.model.total,
        **stage_seconds(fit=(start, fitted), scoring=(fitted, clock())),
    }  # fmt: skip


class LastAnswers(lib.RelaxedFit):  # type: ignore[misc]
    """RAP's fit, which keeps the answers of its last round: those of the relaxed records."""

    def finish(
        self, state: Any, transcript: Any, *, rng: Any, progress: Any = lib.no_progress
    ) -> Any:
        """Keep the answers, and return what is released."""
        object.__setattr__(self, "last", self.model(state))
        return super().finish(state, transcript, rng=rng, progress=progress)


def run_mechanism(case: Case, cell: Cell) -> tuple[lib.Release, lib.Answerer]:
    """Return the release of one private run, and what its errors are those of."""
    contender = CONTENDERS[cell.contender]
    mechanism = contender.make(case, cell.setting)
    if not contender.facts["relaxed"]:
        released = case.release(mechanism, cell)[0]
        return released, released.model
    fit = LastAnswers(**{f.name: getattr(mechanism.fit, f.name) for f in fields(mechanism.fit)})
    released = case.release(replace(mechanism, fit=fit), cell)[0]
    return released, fit.last  # type: ignore[attr-defined]


def errors_of(case: Case, answerer: lib.Answerer, model: lib.Model, seed: int) -> Row:
    """Return the errors of the answers, as in the paper, and of n records. Not private."""
    rng = np.random.default_rng([seed, 1])
    marginals = answerer.answer(case.cliques, rng=rng)
    answers = np.concatenate([np.asarray(marginals[c], dtype=float).ravel() for c in case.cliques])
    records = shares(model.sample(case.table.n, rng=rng), case.cliques)
    return {
        "errors": between(answers / model.total, case.truth),
        "records": between(records, case.truth),
    }


def between(answers: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Return the largest, mean and root mean square error over all cells, as shares of n."""
    gaps = np.abs(answers - truth)
    if not np.isfinite(gaps).all():
        raise ValueError("answers are not finite")
    root = float(np.sqrt(np.mean(gaps**2)))
    return {"max": float(gaps.max()), "mean": float(gaps.mean()), "rmse": root}


def plain(case: Case, cell: Cell, places: Places) -> Row:
    """Run the plain implementation of GEM in its environment, and score its answers.

    It gets the same codes, queries, T and budget as the library. ``seconds`` in the setting ends
    its rounds after so long.
    """
    domain = case.table.codes.domain
    cliques = np.array([[domain.index(a) for a in c] for c in case.cliques])
    with tempfile.TemporaryDirectory(prefix="margrave-bench-") as scratch:
        codes = Path(scratch) / "codes.npz"
        np.savez(codes, codes=case.table.codes.values, sizes=domain.sizes, cliques=cliques)
        arguments = {"job": "gem", "codes": str(codes), "epsilon": cell.epsilon,
                     "delta": case.delta, "seed": cell.repeat, **cell.setting}  # fmt: skip
        job = run_job(Script.of("torch"), arguments, Path(scratch) / "out", places)
        usage = {"process_wall_s": job.usage.wall_s, "process_cpu_s": job.usage.cpu_s,
                 "peak_mb": job.usage.peak_mb}  # fmt: skip
        if job.outcome["outcome"] != "finished":
            return {**job.outcome, **usage}
        answers = np.load(job.out / "answers.npy").astype(np.float64)
    whole = job.facts["rounds"] == cell.setting["rounds"]
    outcome = "finished" if whole else "stopped"
    return {**job.facts, **usage, "outcome": outcome, "errors": between(answers, case.truth)}


def scaling(cell: Cell, places: Places) -> Row:
    """Return the time of a round and the peak memory on a domain of ``cells`` cells.

    The process that runs has a twin that stops before the first question, for its memory.
    """
    arguments = {"job": "histogram", "contender": cell.contender, **cell.setting}
    with tempfile.TemporaryDirectory(prefix="margrave-bench-") as scratch:
        script, out = Script.of("margrave"), Path(scratch)
        base = run_job(script, {**arguments, "rounds": 0}, out / "base", places)
        job = run_job(script, arguments, out / "run", places)
    usage = {"wall_s": job.usage.wall_s, "cpu_s": job.usage.cpu_s, "peak_mb": job.usage.peak_mb}
    size = {"histogram_mb": 8 * cell.setting["cells"] / 1e6, "base_mb": base.usage.peak_mb}
    return {**job.facts, **size, **usage, **job.outcome}


SUITE = Suite(TASKS, CONTENDERS, cells, measure, page.page, "adaptive", options=("seconds",))
