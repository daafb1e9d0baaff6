# /// script
# dependencies = []
# [tool.benchmarks]
# jobs = ["aim", "mst", "estimation", "count", "sample", "import", "histogram", "weights", "particles"]
# module = "margrave"
# ///
"""The peers' jobs by margrave at its defaults, and jobs of margrave alone."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from job import Job, checksum, closure, main

import margrave
from margrave import Budget, ReplaceRow, Schema, Workload, protect, read_table
from margrave.data import MemoryTable
from margrave.domain import Codes, Domain
from margrave.marginal import LinearQuery
from margrave.mechanisms import AIM, MST, MWEM, PEP
from margrave.models import GraphicalFit
from margrave.transcript import Answer, Measurement, PublicTotal, Transcript

RECORDS, CODES, KINDS, ANSWERS = 50_000, 10, 30, 100
Moment = tuple[float, float]


def clock() -> Moment:
    """Return wall and processor seconds."""
    return time.perf_counter(), time.process_time()


# The jobs of others


def aim(job: Job) -> None:
    """Run AIM."""
    schema = Schema.coded(job.domain())
    workload = Workload.all_kway(schema.domain, job["degree"])
    synthesize(job, schema, AIM(workload=workload, max_model_mb=job["max_model_mb"]))


def mst(job: Job) -> None:
    """Run MST."""
    synthesize(job, Schema.coded(job.domain()), MST())


def synthesize(job: Job, schema: Schema, mechanism: Any) -> None:
    """Release under add/remove of one row, draw one record per row, and write them."""
    moment = time.perf_counter()
    release = margrave.synthesize(
        job["data"], schema, epsilon=job["epsilon"], delta=job["delta"], mechanism=mechanism,
        seed=job["seed"],
        progress=lambda what, share: job.progress(what=what, share=round(share, 4)),
    )  # fmt: skip
    moment = job.stage("fit", moment)
    records = release.sample(pq.read_metadata(job["data"]).num_rows, seed=job["seed"])
    job.stage("sample", moment)
    job.write_records(records)
    measurements = [list(m.clique) for m in release.transcript.measurements]
    rounds = len(release.transcript.selections)
    job.finish(version=margrave.__version__, rounds=rounds, measurements=measurements)


def transcript_of(job: Job, domain: Domain) -> Transcript:
    """Return the fixed noisy marginals. Their cost is nothing to an estimator."""
    pairs = zip(*job.measurements(), strict=True)
    sigma = job["sigma"]
    return Transcript(tuple(Measurement(domain.clique(c), y, sigma, Fraction(0)) for c, y in pairs))


def estimation(job: Job) -> None:
    """Fit fixed noisy marginals, once and again with compiled kernels."""
    domain = Domain.of(job.domain())
    transcript = transcript_of(job, domain)
    fit = GraphicalFit(**{k: job[k] for k in ("steps",) if k in job.arguments})
    moment = time.perf_counter()
    for stage in ("fit", "fit_again"):
        model = fit(domain, transcript, rng=np.random.default_rng(job["seed"]))
        moment = job.stage(stage, moment)
    answers = model.answer(transcript.cliques)
    job.stage("answer", moment)
    job.write_marginals(transcript.cliques, [answers[c] for c in transcript.cliques])
    cells = int(fit.cells(domain, transcript.cliques))
    job.finish(version=margrave.__version__, tree_cells=cells, total=model.total)


def count(job: Job) -> None:
    """Count marginals: one question to a table in memory."""
    moment, schema = time.perf_counter(), Schema.coded(job.domain())
    table = read_table(job["data"], schema)
    moment = job.stage("prepare", moment)
    cliques = closure(schema.domain.attributes, job["degree"])
    counts = table.count(cliques)
    job.stage("count", moment)
    digest = checksum(counts[clique] for clique in cliques)
    job.finish(version=margrave.__version__, marginals=len(cliques), checksum=digest)


def sample(job: Job) -> None:
    """Draw records from a model of the noisy marginals: only the sampling matters."""
    schema = Schema.coded(job.domain())
    transcript, rng = transcript_of(job, schema.domain), np.random.default_rng(job["seed"])
    moment = time.perf_counter()
    model = GraphicalFit()(schema.domain, transcript, rng=rng)
    moment = job.stage("fit", moment)
    codes = model.sample(job["rows"], rng=rng)
    moment = job.stage("sample", moment)
    records = schema.decode(codes, rng=rng)
    job.stage("decode", moment)
    answers = model.answer(transcript.cliques)
    job.write_marginals(transcript.cliques, [answers[c] for c in transcript.cliques])
    job.write_records(records)
    job.finish(version=margrave.__version__)


# What only margrave is timed on


def histogram(job: Job) -> None:
    """Take the time of a round of MWEM or PEP on a domain of ``cells`` cells.

    A small run compiles first. With no rounds the job is all that comes before the real one.
    """
    rounds, size = job["rounds"], round(np.log10(job["cells"]))
    weigh(job["contender"], 3, 1)
    columns = noisy_copies(size)
    if rounds:
        start = clock()
        weigh(job["contender"], size, rounds, columns)
        wall, cpu = ((b - a) / rounds for a, b in zip(start, clock(), strict=True))
        job.finish(round_s=wall, round_cpu_s=cpu)


def noisy_copies(columns: int) -> Codes:
    """Return records that are noisy copies of a few kinds: there is something to fit."""
    rng = np.random.default_rng(2021)
    domain = Schema.coded({f"c{i}": CODES for i in range(columns)}).domain
    kinds = rng.integers(0, CODES, (columns, KINDS))[:, rng.integers(0, KINDS, RECORDS)]
    values = np.where(rng.random(kinds.shape) < 0.3, rng.integers(0, CODES, kinds.shape), kinds)
    return Codes(domain, values)


def weigh(name: str, columns: int, rounds: int, codes: Codes | None = None) -> None:
    """Run a mechanism with single queries on such records, all three-way marginals, eps = 1."""
    codes = noisy_copies(columns) if codes is None else codes
    schema = Schema.coded(dict.fromkeys(codes.domain, CODES))
    workload = Workload.all_kway(schema.domain, 3)
    mechanism = {"mwem": MWEM, "pep": PEP}[name](
        workload=workload, rounds=rounds, granularity="query"
    )
    table, budget = MemoryTable(schema, codes), Budget.approx(1.0, 1.0 / RECORDS**2)
    with protect(table, unit=ReplaceRow(), budget=budget) as private:
        mechanism.run(private, rng=np.random.default_rng(0))


def weights(job: Job) -> None:
    """Take seconds and memory of a round of explicit weights, at 10^power cells."""
    one_round(3)  # compiles
    seconds, memory, cells = one_round(job["power"])
    job.finish(seconds=seconds, memory_over_weights=memory, cells=cells)


def one_round(power: int) -> tuple[dict[str, float], dict[str, float], int]:
    """Return CPU seconds and peak memory, over the weights' own, of the parts of a round."""
    from margrave.models import EntropyProjectionFit, MultiplicativeWeightsFit

    sizes = [10] * (power - 2) + [5, 5, 2, 2]
    rng, domain = np.random.default_rng(0), Domain.of({f"c{i}": s for i, s in enumerate(sizes)})
    before, total = peak(), PublicTotal(50_000)
    triples = list(combinations(domain.attributes, 3))
    log = Transcript((total, *single_cells(domain, triples, rng)))
    values = np.full(domain.shape(triples[0]), 50_000 // domain.cells(triples[0]))
    grown = log + Transcript((Measurement(triples[0], values, 20.0, Fraction(1, 100)),))
    project, multiply = EntropyProjectionFit(), MultiplicativeWeightsFit(passes=10)
    model: Any = None
    seconds, memory = {}, {}

    def next_round(fit: Any, transcript: Transcript) -> Any:
        start = fit.update(fit.init(domain, rng=rng), Transcript((total,)), rng=rng)
        return fit.model(fit.update(start, transcript, rng=rng))

    parts: dict[str, Callable[[], Any]] = {
        "the start": lambda: project(domain, Transcript((total,)), rng=rng),
        f"{len(triples)} triples": lambda: model.answer(triples),
        "projection, 25 steps": lambda: next_round(project, log),
        "multiplicative weights, 10 passes": lambda: next_round(multiply, log),
        "projection with a whole triple": lambda: next_round(project, grown),
        "50,000 records": lambda: model.sample(rng=rng),
    }
    for what, work in parts.items():
        start = time.process_time()
        done = work()
        seconds[what] = round(time.process_time() - start, 3)
        memory[what] = round((peak() - before) / (8 * domain.cells()), 2)
        model = done if model is None else model
    return seconds, memory, domain.cells()


def single_cells(domain: Domain, triples: list[Any], rng: np.random.Generator) -> list[Answer]:
    """Return noisy answers to single cells of triples of columns, all different."""
    cells: dict[LinearQuery, Answer] = {}
    while len(cells) < ANSWERS:
        clique = triples[rng.integers(len(triples))]
        query = LinearQuery(clique, tuple((int(rng.integers(s)),) for s in domain.shape(clique)))
        number = round(50_000 / domain.cells(clique) * 2.0 * rng.random())
        cells[query] = Answer(query, number, 20.0, Fraction(1, 100))
    return list(cells.values())


def peak() -> float:
    """Return the largest memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def particles(job: Job) -> None:
    """Take the time of epochs of PrivPGD's descent on all pairs of a table.

    The true marginals are the targets. Their file is left for the plain PyTorch step.
    """
    from margrave.models.particles.descent import Descent, Schedule

    targets, dimensions = true_pairs(job)
    rng = np.random.default_rng(0)
    start = rng.random((dimensions, job["particles"]), dtype=np.float32)
    plain = {"epochs": 1, "batch": 5, "lines": 10, "kept": 0.2, "rate": 0.1, "decay": 0.75}
    steps = {"adam": {"optimizer": "adam"},
             "transport": {"optimizer": "transport", "batch": 1, "lines": None, "kept": 0.5}}  # fmt: skip
    moving = Descent(start, targets, [], Schedule(**{**plain, **steps[job["step"]]}))
    epochs = []
    for _ in range(job["epochs"]):
        begin = clock()
        moving.run(rng)
        wall, cpu = (b - a for a, b in zip(begin, clock(), strict=True))
        epochs.append({"cpu_s": cpu, "wall_s": wall})
    job.finish(version=margrave.__version__, marginals=len(targets), epochs=epochs)


def targets(job: Job) -> None:
    """Write the targets of the descent for the plain PyTorch step."""
    pairs, _ = true_pairs(job)
    arrays: dict[str, Any] = {}
    for i, target in enumerate(pairs):
        arrays |= {f"columns{i}": target.coordinates, f"points{i}": target.points.T,
                   f"shares{i}": target.shares}  # fmt: skip
    np.savez(Path(job["targets"]), **arrays)


def true_pairs(job: Job) -> tuple[list[Any], int]:
    """Return the true pairs of a table as targets, and the number of dimensions."""
    from margrave.marginal.counting import count_cliques
    from margrave.models.particles.embedding import Embedding
    from margrave.models.particles.targets import Target

    domain, table = Schema.coded(job.domain()).domain, job.table()
    rows = Codes.of(domain, {a: np.asarray(table[a]) for a in domain})
    embedding, pairs = Embedding.of(domain), []
    for clique, counts in count_cliques(rows, combinations(domain.attributes, 2)).items():
        cells = np.flatnonzero(counts)
        shares = counts.reshape(-1)[cells] / len(rows)
        place = (embedding.coordinates(clique), embedding.cells(clique, cells))
        pairs.append(Target(clique, *place, shares, 1.0))
    return pairs, embedding.dimensions


if __name__ == "__main__":
    main(
        {
            "aim": aim, "mst": mst, "estimation": estimation, "count": count, "sample": sample,
            "histogram": histogram, "weights": weights, "particles": particles, "targets": targets,
        }
    )  # fmt: skip
