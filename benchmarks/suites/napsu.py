"""The experiments of the paper on NAPSU-MQ: do intervals hold the truth as often as they say?

Every repeat is one private run of NAPSU-MQ by the gate. Its noisy answers are the row of the
contender "answers", and the others start from them, but for "pgm5", "pgm10", "pgm20" and
"privlcm", which measure on their own. "noiseless" and "chosen" say why those pairs of Adult are
measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.core import library as lib
from benchmarks.core.process import clock, stage_seconds
from benchmarks.core.store import Row
from benchmarks.core.suite import Case, Cell, Contender, Places, Suite, Task
from benchmarks.suites import _napsu_page as page
from benchmarks.suites._napsu_tasks import Experiment, adult, frame_of, logistic, toy

Array = NDArray[np.float64]
Run = Callable[[Case, lib.Release, int], Row]

DATA_SETS = 100
"""Data sets from each posterior."""
EXACT_NOISE = 0.01
"""The noise, in records, that an inference without noise-awareness assumes."""

ADULT_PAIRS = (
    # those the regression needs, and one more, as in the paper's published experiment
    ("age", "income"), ("race", "income"), ("gender", "income"), ("race", "gender"),
    ("hours-per-week", "income"),
    # the maximum spanning tree of what remains
    ("age", "marital-status"), ("education", "income"), ("age", "workclass"),
    ("capital-gain", "income"), ("capital-loss", "income"),
)  # fmt: skip
NEEDED_PAIRS = ADULT_PAIRS[:5]

# Appendix D of the paper
ENTROPY_PROJECTION = lib.EntropyProjectionFit(gamma=0.0, max_iterations=1000)
RELAXED = lib.RelaxedFit(components=1000, rate=0.1, cold_steps=5000, active_threshold=0.0)
ROWS_PER_RECORD = 50
"""Rows that RAP draws from each of its relaxed records; together they count as the real rows."""


# Noisy answers


class Unfitted(lib.MaxEntropyFit):  # type: ignore[misc]
    """A quick model for NAPSU-MQ's run, since every contender refits the answers for itself."""

    def finish(
        self, state: Any, transcript: Any, *, rng: Any, progress: Any = lib.no_progress
    ) -> lib.Model:
        """Return a graphical model."""
        return lib.GraphicalFit().finish(state, transcript, rng=rng)


def answers(case: Case, cell: Cell) -> Row:
    """Return the noisy answers of one private run as plain data."""
    mechanism = lib.NAPSUMQ(workload=case.workload, connect_columns=False, fit=Unfitted())
    result, _ = case.release(mechanism, cell, case.table.real(cell.budget, cell.repeat))
    account = result.account
    return {
        "unit": str(account.unit), "rho": str(account.rho_budget), "delta": account.delta,
        "private": account.private, "sampler": account.sampler,
        "answers": [
            {"clique": list(m.clique), "scale": m.scale, "rho": str(m.rho),
             "values": m.values.ravel().tolist(), "shape": list(m.values.shape)}
            for m in result.transcript.measurements
        ],
    }  # fmt: skip


def release_of(case: Case, row: Row) -> lib.Release:
    """Return the release with stored answers. Its model is the answers, until it is refitted."""
    measured = [
        lib.Measurement(tuple(m["clique"]), np.array(m["values"]).reshape(m["shape"]), m["scale"],
                        Fraction(m["rho"]))
        for m in row["answers"]
    ]  # fmt: skip
    debits = tuple(lib.Debit(", ".join(m.clique), m.rho) for m in measured)
    account = lib.Account(
        case.task.unit, Fraction(row["rho"]), row["epsilon"], row["delta"], debits, row["private"],
        row["sampler"],
    )  # fmt: skip
    transcript = lib.Transcript((lib.PublicTotal(case.table.n), *measured))
    domain = case.table.codes.domain
    model = lib.AnswersFit()(domain, transcript, rng=np.random.default_rng(0))
    return lib.Release(case.table.schema, model, transcript, account, lib.Provenance("napsu-mq"))


# Contenders: from a release's noisy answers to estimates


def posterior(*, exact: bool = False, **options: Any) -> Run:
    """Return an analysis of posterior data sets; ``exact``: as if answers had no noise."""
    fit = lib.MaxEntropyFit(accept=True, **options)

    def run(case: Case, release: lib.Release, repeat: int) -> Row:
        start, transcript = clock(), release.transcript
        assumed = lib.Transcript(tuple(
            replace(e, scale=EXACT_NOISE) if isinstance(e, lib.Measurement) else e
            for e in transcript
        ))  # fmt: skip
        fitted = replace(release, transcript=assumed if exact else transcript).refit(
            fit, seed=repeat
        )
        middle, row = clock(), analyze_release(case, fitted, repeat, method="posterior")
        facts = {k: v for k, v in fitted.model.facts.items() if k != "why"}
        return {
            **row,
            "posterior": facts,
            **stage_seconds(fit=(start, middle), draws=(middle, clock())),
        }

    return run


def bootstrap(*, correct: bool) -> Run:
    """Return an analysis of refits of simulated answers, less the bias they show or not."""

    def run(case: Case, release: lib.Release, repeat: int) -> Row:
        start = clock()
        fitted = release.refit(lib.GraphicalFit(), seed=repeat)
        row = analyze_release(case, fitted, repeat, method="bootstrap", bias_correct=correct)
        return {**row, **stage_seconds(draws=(start, clock()))}

    return run


def naive(case: Case, release: lib.Release, repeat: int) -> Row:
    """Return estimates from one table of the graphical model, as if it were real."""
    start, n = clock(), case.table.n
    sample = release.refit(lib.GraphicalFit(), seed=repeat).sample(n, seed=repeat)
    row = ordinary(case.table, case.table.fit(sample.to_pandas()))
    return {**row, **stage_seconds(fit=(start, clock()))}


def sampled(fit: lib.Fit, rows_per_record: int = 0) -> Run:
    """Return an analysis of one table of independent rows of a fit, as if it were real.

    ``rows_per_record``: the fit is a table of relaxed records, and draws so many rows from each.
    Then every row has a weight, so that all together count as n.
    """

    def run(case: Case, release: lib.Release, repeat: int) -> Row:
        start, table = clock(), case.table
        rows = rows_per_record * fit.components if rows_per_record else table.n
        model = release.refit(fit, seed=repeat).model
        codes = model.sample(rows, rng=np.random.default_rng([repeat, 1]), independent=True)
        row = ordinary(table, table.fit(frame_of(codes)), weight=table.n / rows)
        return {**row, **stage_seconds(fit=(start, clock()))}

    return run


def latent_classes(case: Case, release: lib.Release, repeat: int) -> Row:
    """Return an analysis of the posterior of latent classes, from noisy pairs of its own run."""
    start, epsilon, table = clock(), release.account.epsilon, case.table
    rows = lib.MemoryTable(table.schema, table.real(epsilon, repeat))
    budget = lib.Budget.approx(epsilon, case.delta)
    mechanism = lib.PrivLCM(fit=replace(lib.PrivLCM.as_published().fit, accept=True))
    with lib.protect(rows, unit=case.task.unit, budget=budget) as private:
        fitted = mechanism.run(private, rng=np.random.default_rng([repeat, 2]))
    middle, row = clock(), analyze_release(case, fitted, repeat, method="posterior")
    return {
        **row,
        "posterior": dict(fitted.model.facts),
        **stage_seconds(fit=(start, middle), draws=(middle, clock())),
    }


def repeat_runs(runs: int) -> Run:
    """Return an analysis of several runs, each with its part of the budget and a data set."""

    def run(case: Case, release: lib.Release, repeat: int) -> Row:
        start, epsilon, table = clock(), release.account.epsilon, case.table
        rows = lib.MemoryTable(table.schema, table.real(epsilon, repeat))
        budget = lib.Budget.approx(epsilon, case.delta)
        with lib.protect(rows, unit=case.task.unit, budget=budget) as private:
            public, noise = private.transcript, lib.Gaussian(rho=private.rho / runs)
            parts = [private.measure(case.cliques, noise) for _ in range(runs)]
        rng, domain = np.random.default_rng([repeat, runs]), table.codes.domain
        models = [lib.GraphicalFit()(domain, public + part, rng=rng) for part in parts]
        tables = [frame_of(m.sample(table.n, rng=rng, independent=True)) for m in models]
        result = combine(table, lib.analyze(tables, table.fit, n=table.n, on_unstable="drop"))
        scale = parts[0].measurements[0].scale
        return {**result, "scale": scale, **stage_seconds(fit=(start, clock()))}

    return run


def real(case: Case, release: lib.Release, repeat: int) -> Row:
    """Return estimates from the real table, without privacy."""
    codes = case.table.real(release.account.epsilon, repeat)
    return ordinary(case.table, case.table.fit(frame_of(codes)))


def noiseless(case: Case) -> Row:
    """Return the coefficients of the maximum-entropy distribution with the real pairs."""
    table, domain = case.table, case.table.codes.domain
    counts = lib.count_cliques(table.codes, ADULT_PAIRS)
    exact = [lib.Measurement(c, v, EXACT_NOISE, Fraction(0)) for c, v in counts.items()]
    transcript = lib.Transcript((lib.PublicTotal(table.n), *exact))
    model = lib.GraphicalFit()(domain, transcript, rng=np.random.default_rng(0))
    cells = model.project((*table.regressors, table.outcome)).values.reshape(len(table.design), 2)
    fitted = logistic(table.names, table.design, cells.sum(axis=1), cells[:, 1])
    return ordinary(table, fitted)


def count_same_pairs(case: Case, cell: Cell) -> Row:
    """Return how many of the pairs a private run selects if only the needed ones are set."""
    domain = case.table.schema.domain
    workload = lib.Workload.of(domain, dict.fromkeys(NEEDED_PAIRS, 1.0))
    mechanism = lib.NAPSUMQ(workload=workload, fit=Unfitted())
    result, _ = case.release(mechanism, cell)
    pairs = {frozenset(s.chosen) for s in result.transcript.selections}
    return {"same_pairs": len(pairs & {frozenset(p) for p in ADULT_PAIRS[5:]})}


def analyze_release(case: Case, fitted: lib.Release, repeat: int, **options: Any) -> Row:
    """Return the estimates from data sets of a release."""
    table = case.table
    result = lib.analyze(
        fitted,
        table.fit,
        DATA_SETS,
        columns=(*table.regressors, table.outcome),
        rows=table.n,
        seed=repeat,
        on_unstable="drop",
        **options,
    )
    return combine(table, result)


def combine(table: Experiment, result: lib.Analysis) -> Row:
    """Return the combined estimate of every coefficient, and that of the first data set."""
    at = [result.names.index(n) if n in result.names else None for n in table.names]
    estimates = [None if j is None else result.estimates[j] for j in at]
    assert result.covariances is not None
    first, spread = result.points[0], np.diag(result.covariances[0])
    fields = ("estimate", "variance", "df", "within", "between", "used", "floored")
    rows = [{f: getattr(e, f) for f in fields} if e and e.has_interval else None for e in estimates]
    one = [None if j is None else single(first[j], spread[j]) for j in at]
    return {"estimates": rows, "data_sets": result.data_sets, "one": one}


def ordinary(table: Experiment, result: lib.Fitted, *, weight: float = 1.0) -> Row:
    """Return estimates of one table taken as real, each of its rows with a weight."""
    variances = np.asarray(result.variances) / weight
    values = dict(zip(result.names, zip(result.estimates, variances, strict=True), strict=True))
    return {"estimates": [single(*values[n]) if n in values else None for n in table.names]}


def single(estimate: float, variance: float) -> Row | None:
    """Return one coefficient of one table; None if it blew up."""
    if not (np.isfinite(estimate) and np.isfinite(variance)) or variance > 1e6:
        return None
    return {"estimate": float(estimate), "variance": float(variance)}


def _by(label: str, run: Run | None, light: str = "", dark: str = "") -> Contender:
    return Contender(label, (light, dark) if light else None, facts={"run": run})


CONTENDERS: dict[str, Contender] = {
    # a hundred data sets need some 150 independent draws; the library's limits cost four times
    "nuts": _by("NAPSU-MQ, NUTS", posterior(sampler="nuts", r_hat=1.05, effective=150.0),
                "#17697a", "#5fb8c6"),
    "laplace": _by("NAPSU-MQ, Laplace", posterior(sampler="laplace"), "#3f8f4f", "#7cc98b"),
    "naive": _by("one PGM table, as real", naive, "#c4622d", "#e8925f"),
    "bootstrap": _by("bootstrap of PGM", bootstrap(correct=True), "#7a4fa3", "#b892dc"),
    "plain": _by("the same, bias left in", bootstrap(correct=False), "#b39bc9", "#8f74b0"),
    "pgm5": _by("5 runs of PGM", repeat_runs(5), "#d3b04c", "#e6cf86"),
    "pgm10": _by("10 runs of PGM", repeat_runs(10), "#a98212", "#cfae4a"),
    "pgm20": _by("20 runs of PGM", repeat_runs(20), "#6f5508", "#a98f45"),
    "sampled": _by("one PGM table, sampled", sampled(lib.GraphicalFit()), "#c4622d", "#e8925f"),
    "pep": _by("PEP", sampled(ENTROPY_PROJECTION), "#b5366b", "#e283a9"),
    "rap": _by("RAP, softmax", sampled(RELAXED, ROWS_PER_RECORD), "#5b6ee1", "#98a5f5"),
    "privlcm": _by("PrivLCM", latent_classes, "#1f8a8a", "#6fd0d0"),
    "exact": _by("without noise-awareness", posterior(exact=True, sampler="laplace"),
                 "#b5366b", "#e283a9"),
    "laplace, one": _by("without multiple imputation", None, "#6a7683", "#9fabb7"),
    "exact, one": _by("with neither", None, "#c4622d", "#e8925f"),
    "real": _by("no privacy", real, "#1f2630", "#e6e8ea"),
    "nuts-full": _by("NAPSU-MQ, NUTS, the library's limits", posterior(sampler="nuts")),
    "answers": _by("noisy answers", None),
    "noiseless": _by("the pairs without noise", None),
    "chosen": _by("private choices of pairs", None),
}  # fmt: skip

TASKS: dict[str, Task] = {
    "toy": Task("toy", toy, lambda domain: (("a", "b", "c"),), facts={"repeats": 100}, contenders=(
        "answers", "real", "naive", "laplace", "exact", "bootstrap", "plain", "sampled", "pep",
        "pgm5", "pgm10", "pgm20", "rap", "privlcm")),
    "adult": Task("adult", adult, lambda domain: ADULT_PAIRS, facts={"repeats": 20}, contenders=(
        "answers", "real", "naive", "laplace", "bootstrap", "plain", "pgm5", "pgm10", "pgm20",
        "nuts")),
}  # fmt: skip


def cells(repeats: int | None = None) -> Iterable[Cell]:
    """Return all runs, contender by contender; those that take minutes last."""
    for name, task in TASKS.items():
        n = repeats or task.facts["repeats"]
        for epsilon in page.EPSILONS[name]:
            yield from (Cell(name, c, {}, epsilon, r) for c in task.contenders for r in range(n))
    yield Cell("adult", "noiseless", stage="pairs")
    yield from (Cell("adult", "chosen", {}, 0.5, r, "pairs") for r in range(repeats or 20))
    for epsilon in page.EPSILONS["adult"]:  # a check of "nuts" on a few repeats
        yield from (Cell("adult", "nuts-full", {}, epsilon, r, "full") for r in range(repeats or 3))


def needs(cell: Cell) -> Cell | None:
    """Return the cell of the answers that a contender starts from."""
    starts = CONTENDERS[cell.contender].facts["run"] is not None
    return Cell(cell.task, "answers", {}, cell.epsilon, cell.repeat) if starts else None


def measure(cell: Cell, places: Places) -> Row:
    """Return the estimates of one contender on one repeat, or the noisy answers."""
    case = TASKS[cell.task].case(places.data)
    run, need = CONTENDERS[cell.contender].facts["run"], needs(cell)
    if need is None:
        if cell.contender == "noiseless":
            return noiseless(case)
        return {"answers": answers, "chosen": count_same_pairs}[cell.contender](case, cell)
    columns = need.columns
    stored = [r for r in places.store.rows() if {k: r.get(k) for k in columns} == columns]
    row: Row = run(case, release_of(case, stored[-1]), cell.repeat)
    return row


SUITE = Suite(TASKS, CONTENDERS, cells, measure, page.page, "napsu", needs=needs)
