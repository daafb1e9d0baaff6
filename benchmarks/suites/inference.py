"""Do intervals from draws of a release hold the population's truth as often as they say?

A repeat draws a table from a population, releases it, and computes intervals, nominally 95 %:

    real        the ordinary interval from the real table, as if there were no privacy
    naive       the ordinary interval from one synthetic table, taken for real
    draws       Release.draws with the bootstrap, refits of simulated answers; tables combined
    perturbed   the same, but sampling and noise are added to the real answers (--set perturbed=true)
    ..., back   the same widths around 2 q̂ − q̄: the release's own estimate less the refits' bias
    given       of ``analyze``: around 2 q̂ − q̄, with (q̄ − q̂)² added to T (from the two, by 1.96)
    bootstrap, posterior    of ``analyze`` with each method, of one release (stage=posterior)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from scipy.stats import t as student

from benchmarks.core import library as lib
from benchmarks.core.page import Page
from benchmarks.core.process import clock
from benchmarks.core.results import View
from benchmarks.core.store import Row
from benchmarks.core.suite import Case, Cell, Contender, Places, Suite, Task, recipe
from benchmarks.suites import _worlds as worlds
from benchmarks.suites._worlds import Array, Estimate, World

LEVEL, NORMAL, DELTA, DRAWS = 0.95, 1.959964, 1e-6, 40

TASKS: dict[str, Task] = {
    name: Task(name, load, lambda domain: (), DELTA, lib.AddRemoveRow())
    for name, load in {
        "clinic": worlds.clinic,
        "ward": worlds.ward,
        "chain": worlds.chain,
        "adult": worlds.adult,
    }.items()
}


def _pairs(case: Case, setting: Any) -> lib.Mechanism:
    workload = lib.Workload.all_kway(case.table.codes.domain, 2)
    return lib.GaussianMechanism(workload=workload, overlaps=False, fit=lib.GraphicalFit())


CONTENDERS: dict[str, Contender] = {
    "pairs": Contender("all pairs", make=_pairs),
    "mst": Contender("MST", make=recipe(lib.MST)),
    "aim": Contender("AIM", make=recipe(lib.AIM)),
}
PLAN = (("clinic", "pairs", 5000, 1.0, 40), ("clinic", "aim", 5000, 1.0, 20),
        ("chain", "pairs", 5000, 1.0, 20), ("chain", "mst", 5000, 1.0, 20),
        ("chain", "mst", 5000, 0.3, 20), ("adult", "aim", 48_842, 1.0, 8))  # fmt: skip
"""World, mechanism, rows, epsilon, repeats."""
BOTH = (("ward", "pairs", 20), ("ward", "aim", 5))
"""World, mechanism, repeats of the comparison of the bootstrap with a posterior."""


def cells(repeats: int | None = None) -> Iterable[Cell]:
    """Return the planned runs, then every other pair of a world and a mechanism."""
    for world, mechanism, rows, epsilon, n in PLAN:
        for repeat in range(repeats or n):
            yield Cell(world, mechanism, {"rows": rows}, epsilon, repeat)
    planned = {plan[:2] for plan in PLAN}
    for world in TASKS:
        for mechanism in CONTENDERS:
            if (world, mechanism) not in planned:
                for repeat in range(repeats or 20):
                    yield Cell(world, mechanism, {"rows": 5000}, 1.0, repeat, "more")
    for world, mechanism, n in BOTH:
        for rows, epsilon in product((1000, 5000), (0.5, 1.0)):
            setting = {"rows": rows, "posterior": True}
            for repeat in range(repeats or n):
                yield Cell(world, mechanism, setting, epsilon, repeat, "posterior")


class Perturbed(lib.Bootstrap):  # type: ignore[misc]
    """Another bootstrap: sampling and noise are added to the real answers, not the model's."""

    def simulated(self, rng: np.random.Generator) -> Any:
        """Return y_r + (simulated answer − the model's expected answer)."""
        expected = self.model.answer(self.transcript.cliques)
        entries: list[Any] = []
        for real, fresh in zip(self.transcript, super().simulated(rng), strict=True):
            entry = fresh
            if isinstance(real, lib.Measurement):
                gap = fresh.values - real.query.apply(real.clique, expected[real.clique])
                entry = replace(fresh, values=np.rint(real.values + gap).astype(np.int64))
            entries.append(entry)
        return lib.Transcript(tuple(entries))


def measure(cell: Cell, places: Places) -> Row:
    """Return every kind of interval of one release: low and high for each estimand."""
    case = TASKS[cell.task].case(places.data)
    world, n = case.table, int(cell.setting["rows"])
    rng, count = np.random.default_rng([cell.repeat, n]), int(cell.setting.get("draws", DRAWS))
    codes, start = world.drawn(n, rng), clock()[0]
    release, rng = case.release(CONTENDERS[cell.contender].make(case, {}), cell, codes)
    released, total = clock()[0], max(1, round(release.model.total))
    sample = release.model.sample(total, rng=rng, independent=True)
    intervals = {"real": ordinary(world.analyze(codes)), "naive": ordinary(world.analyze(sample))}
    drawing, draws = clock()[0], release.draws(count, method="bootstrap", seed=cell.repeat)
    end, own = clock()[0], released_estimates(world, draws)
    kinds = {"draws": draws}
    if cell.setting.get("perturbed"):
        kinds["perturbed"] = perturb(release, draws, count, cell.repeat)
    for name, data_sets in kinds.items():
        estimates = np.array([world.analyze(data_sets.codes(i)) for i in range(len(data_sets))])
        intervals |= combine(name, estimates, own)
    times: Row = {"release_s": round(released - start, 2), "draws_s": round(end - drawing, 2)}
    if cell.setting.get("posterior"):
        fitting = clock()[1]
        posterior = release.draws(count, method="posterior", seed=cell.repeat)
        times["posterior_cpu_s"] = round(clock()[1] - fitting, 2)
        intervals["bootstrap"] = analyzed(world, draws, own)
        intervals["posterior"] = analyzed(world, posterior, None)
    return {
        "draws": count, "estimands": list(world.estimands), "truth": world.truth(),
        "intervals": intervals, "measurements": len(release.transcript.measurements), **times,
    }  # fmt: skip


def perturb(release: lib.Release, draws: Any, count: int, repeat: int) -> Any:
    """Return data sets from refits of perturbed real answers."""
    fit = lib.fit_of(release.model.state().kind, release.provenance.model_fit)
    other = Perturbed(release.model, release.transcript, fit)
    models = other.draws(count, rng=np.random.default_rng([repeat, 2]))
    return replace(draws, states=tuple(m.state() for m in models))


def ordinary(estimates: Sequence[Estimate]) -> list[list[float]]:
    """Return estimate ± 1.96 standard errors."""
    q, v = np.array(estimates).T
    half = NORMAL * np.sqrt(v)
    return np.stack([q - half, q + half], axis=1).tolist()  # type: ignore[no-any-return]


def released_estimates(world: World, draws: Any) -> Array:
    """Return q̂: the mean of the estimates from tables of the release's own distribution."""
    own = draws.released()
    assert own is not None
    estimates = np.array([world.analyze(own.codes(i)) for i in range(len(own))])
    return np.asarray(estimates[..., 0].mean(axis=0))


def combine(name: str, estimates: Array, own: Array) -> dict[str, list[list[float]]]:
    """Return intervals from (tables, estimands, 2) by Raghunathan, Reiter, Rubin (2003).

    Those named "back" stand around the release's own estimate less the bias of the refits.
    """
    m, q, v = len(estimates), estimates[..., 0], estimates[..., 1].mean(axis=0)
    b = (1 + 1 / m) * q.var(axis=0, ddof=1)
    spread = np.where(b > v, b - v, v)  # a negative variance: Reiter's replacement
    freedom = np.where(b > v, np.maximum(1.0, (m - 1) * (1 - v / b) ** 2), m - 1)
    half = student.ppf((1 + LEVEL) / 2, freedom) * np.sqrt(spread)
    centers = {name: q.mean(axis=0), f"{name}, back": 2 * own - q.mean(axis=0)}
    return {k: np.stack([c - half, c + half], axis=1).tolist() for k, c in centers.items()}


def analyzed(world: World, draws: Any, own: Array | None) -> list[list[float]]:
    """Return the intervals of ``analyze``: around 2 q̂ − q̄ for refits, around q̄ for a posterior."""
    estimates = np.array([world.analyze(draws.codes(i)) for i in range(len(draws))])
    found = []
    for j, (q, v) in enumerate(estimates.transpose(1, 2, 0)):
        center = None if own is None else float(own[j])
        one = lib.combine(q, v, rows=draws.rows, total=draws.total, center=center)
        found.append(list(one.conf_int(LEVEL)))
    return found


def correct_bias(draws: Array, back: Array) -> Array:
    """Return intervals whose variance holds the squared bias of the refits."""
    center, half = back.mean(axis=-1), (back[..., 1] - back[..., 0]) / 2
    wide = np.hypot(half, NORMAL * (center - draws.mean(axis=-1)) / 2)
    return np.stack([center - wide, center + wide], axis=-1)


def page(view: View) -> Page:
    """Return a table for each world, mechanism, number of rows and epsilon."""
    by: dict[str, list[Row]] = {}
    for (task, contender, epsilon), rows in view.groups("task", "contender", "epsilon").items():
        for row in rows:
            name = f"{task}_{contender}_{row['setting']['rows']}_eps{epsilon:g}"
            name += "_posterior" * bool(row["setting"].get("posterior"))
            by.setdefault(name, []).append(row)
    return Page({name: table(name, by[name]) for name in sorted(by)})


@dataclass(frozen=True)
class Column:
    """Intervals of one kind, (repeats, estimands, 2), and the truth."""

    intervals: Array
    truth: Array

    @property
    def inside(self) -> Array:
        """Which intervals hold the truth."""
        return (self.intervals[..., 0] <= self.truth) & (self.truth <= self.intervals[..., 1])

    def text(self, j: int, width: float) -> str:
        """Return coverage, relative width, and bias in standard errors without privacy."""
        wide = np.median(self.intervals[:, j, 1] - self.intervals[:, j, 0]) / width
        bias = (self.intervals[:, j].mean(axis=1) - self.truth[j]).mean() / (width / (2 * NORMAL))
        return f"{100 * self.inside[:, j].mean():6.0f} %{wide:6.2f}{bias:+6.2f}"


def table(name: str, rows: Sequence[Row]) -> str:
    """Return coverage, width and bias for every estimand and kind of interval."""
    truth = np.array(rows[0]["truth"])
    kinds = dict.fromkeys(kind for row in rows for kind in row["intervals"])
    estimates = {
        k: np.array([r["intervals"][k] for r in rows if k in r["intervals"]]) for k in kinds
    }
    estimates["given"] = correct_bias(estimates["draws"], estimates["draws, back"])
    width = np.median(estimates["real"][..., 1] - estimates["real"][..., 0], axis=0)
    columns = {kind: Column(intervals, truth) for kind, intervals in estimates.items()}
    lines = [f"{name}: {len(rows)} repeats; coverage, width, bias"]
    lines.append(" " * 36 + "".join(f"{kind:>20}" for kind in columns))
    for j, what in enumerate(rows[0]["estimands"]):
        lines.append(f"{what:36}" + "".join(c.text(j, width[j]) for c in columns.values()))
    rest = "".join(f"{100 * c.inside.mean():6.1f} %{'':12}" for c in columns.values())
    return "\n".join([*lines, f"{'all':36}{rest}"])


SUITE = Suite(TASKS, CONTENDERS, cells, measure, page, options=("draws", "perturbed"))
