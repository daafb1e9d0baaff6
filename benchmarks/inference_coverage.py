"""Do intervals from draws of a release hold the population's truth as often as they say? One JSON line a repeat.

    python benchmarks/inference_coverage.py --world clinic --mechanism pairs --rows 5000 --epsilon 1 --repeats 100
    python benchmarks/inference_coverage.py --world adult --mechanism aim --rows 48842 --epsilon 1 --repeats 5
    python benchmarks/inference_coverage.py --table

Lines go to results/inference/WORLD_MECHANISM_ROWS_epsE.jsonl; repeats that are there already are not run again, so a
run that was stopped goes on. --table prints what is stored. Contenders, all with nominal 95 %:

    real        the ordinary interval from the real table, as if there were no privacy
    naive       the ordinary interval from one synthetic table, taken for real
    draws       Release.draws with the bootstrap, refits of simulated answers; tables combined
    perturbed   the same, but sampling and noise are added to the real answers (--others)
    ..., back   the same widths around 2 q̂ − q̄: the release's own estimate less the bias that these refits show
    given       what ``analyse`` gives: around 2 q̂ − q̄, with (q̄ − q̂)² added to T (reckoned from the two, by 1.96)

Truth is not private: nothing here is for a release. The noise is that of a release, from the operating system, so
numbers differ from run to run.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import measure
import numpy as np
from bounds import append
from environments import HERE, REPOSITORY
from inference_worlds import Array, Estimate, World, mechanism_of, world_of
from run import commit_of, default_data
from scipy.stats import t as student

from margrave import AddRemoveRow, Budget, MemoryTable, Release, protect
from margrave.release import Draws
from margrave.release.bootstrap import Bootstrap, fit_of
from margrave.transcript import Measurement, Transcript

LEVEL, DELTA = 0.95, 1e-6
Facts = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Perturbed(Bootstrap):
    """Another bootstrap: sampling and noise are added to the real answers instead of the model's."""

    def simulated(self, rng: np.random.Generator) -> Transcript:
        """y_r + (simulated answer − the model's expected answer)."""
        expected = self.model.answer(self.transcript.cliques)
        entries: list[Any] = []
        for real, fresh in zip(self.transcript, super().simulated(rng), strict=True):
            if isinstance(real, Measurement) and isinstance(fresh, Measurement):
                values = real.values + fresh.values - real.query.apply(real.clique, expected[real.clique])
                fresh = replace(fresh, values=np.rint(values).astype(np.int64))
            entries.append(fresh)
        return Transcript(tuple(entries))


def main() -> int:
    options = parse()
    if options.table:
        for path in sorted(options.results.glob("*.jsonl")):
            print(table(path), "\n")
        return 0
    for epsilon in options.epsilon:
        name = f"{options.world}_{options.mechanism}_{options.rows}_eps{epsilon:g}.jsonl"
        path = options.results / name
        done = {line["repeat"] for line in stored(path)}
        for repeat in (r for r in range(options.repeats) if r not in done):
            append(path, run_once(options, epsilon, repeat))
        print(table(path))
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--world", default="clinic", choices=["clinic", "chain", "adult"])
    parser.add_argument("--mechanism", default="pairs", choices=["pairs", "mst", "aim"])
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--others", action="store_true", help="also perturbed answers")
    parser.add_argument("--table", action="store_true", help="print what is stored")
    parser.add_argument("--data", type=Path, default=default_data(), help="default: $MARGRAVE_DATA, or ../shared/data")
    parser.add_argument("--results", type=Path, default=HERE / "results" / "inference")
    return parser.parse_args()


def run_once(options: argparse.Namespace, epsilon: float, repeat: int) -> Facts:
    """A table, its release, and every contender's intervals: low and high for each estimand."""
    world = world_of(options.world, options.data)
    rng = np.random.default_rng([repeat, options.rows])
    codes = world.table(options.rows, rng)
    start = time.perf_counter()
    with protect(
        MemoryTable(world.schema, codes), unit=AddRemoveRow(), budget=Budget.approx(epsilon, DELTA)
    ) as private:
        release: Release = mechanism_of(options.mechanism, world.schema.domain).run(private, rng=rng)
    released, rows = time.perf_counter() - start, max(1, round(release.model.total))
    intervals = {
        "real": ordinary(world.analyse(codes)),
        "naive": ordinary(world.analyse(release.model.sample(rows, rng=rng, independent=True))),
    }
    draws = release.draws(options.draws, method="bootstrap", seed=repeat)
    draws_s = time.perf_counter() - start - released
    own = released_estimates(world, draws)
    found = np.array([world.analyse(draws.codes(i)) for i in range(len(draws))])
    intervals |= dict(zip(["draws", "draws, back"], combined(found, own), strict=True))
    if options.others:
        other = Perturbed(release.model, release.transcript, fit_of(release.model.state().kind, release.config))
        states = tuple(m.state() for m in other.draws(options.draws, rng=np.random.default_rng([repeat, 2])))
        moved = replace(draws, states=states)
        found = np.array([world.analyse(moved.codes(i)) for i in range(len(moved))])
        intervals |= dict(zip(["perturbed", "perturbed, back"], combined(found, own), strict=True))
    return {
        "world": options.world, "mechanism": options.mechanism, "rows": options.rows, "epsilon": epsilon,
        "repeat": repeat, "draws": options.draws, "asked": list(world.asked), "truth": world.truth(),
        "intervals": intervals, "release_s": round(released, 2),
        "draws_s": round(draws_s, 2), "measured": len(release.transcript.measurements),
        "commit": commit_of(REPOSITORY)[0], "machine": measure.machine(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }  # fmt: skip


def ordinary(estimates: list[Estimate]) -> list[list[float]]:
    """Estimate ± 1.96 standard errors."""
    q, v = np.array(estimates).T
    half = 1.959964 * np.sqrt(v)
    return np.stack([q - half, q + half], axis=1).tolist()


def released_estimates(world: World, draws: Draws) -> Array:
    """q̂: the mean of the estimates from tables of the release's own distribution."""
    own = draws.released()
    assert own is not None
    return np.array([world.analyse(own.codes(i)) for i in range(len(own))])[..., 0].mean(axis=0)


def combined(found: Array, own: Array) -> tuple[list[list[float]], list[list[float]]]:
    """Intervals from (tables, estimands, 2) by the rules of Raghunathan, Reiter, Rubin (2003); the same, "back"."""
    m, q, v = len(found), found[..., 0], found[..., 1].mean(axis=0)
    b = (1 + 1 / m) * q.var(axis=0, ddof=1)
    spread = np.where(b > v, b - v, v)  # a negative variance: Reiter's replacement
    freedom = np.where(b > v, np.maximum(1.0, (m - 1) * (1 - v / b) ** 2), m - 1)
    half = student.ppf((1 + LEVEL) / 2, freedom) * np.sqrt(spread)
    center, back = q.mean(axis=0), 2 * own - q.mean(axis=0)
    around = [np.stack([c - half, c + half], axis=1).tolist() for c in (center, back)]
    return around[0], around[1]


def given(draws: Array, back: Array) -> Array:
    """Intervals whose variance holds the square of the bias that the refits show, around the corrected estimate."""
    center, half = back.mean(axis=-1), (back[..., 1] - back[..., 0]) / 2
    wide = np.hypot(half, 1.959964 * (center - draws.mean(axis=-1)) / 2)
    return np.stack([center - wide, center + wide], axis=-1)


def stored(path: Path) -> list[Facts]:
    """The lines of a file, if there is one."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def table(path: Path) -> str:
    """For every estimand and contender: coverage, width over that without privacy, and bias.

    Widths are medians; the bias is in standard errors of the estimate without privacy.
    """
    lines = stored(path)
    if not lines:
        return f"{path.name}: nothing stored"
    names, truth = lines[0]["intervals"], np.array(lines[0]["truth"])
    found = {c: np.array([line["intervals"][c] for line in lines if c in line["intervals"]]) for c in names}
    found["given"] = given(found["draws"], found["draws, back"])
    width = np.median(found["real"][..., 1] - found["real"][..., 0], axis=0)
    inside = {c: ((x[..., 0] <= truth) & (truth <= x[..., 1])) for c, x in found.items()}
    out = [f"{path.stem}: {len(lines)} repeats; coverage, width, bias", " " * 36 + "".join(f"{c:>20}" for c in found)]
    for j, what in enumerate(lines[0]["asked"]):
        cells = ""
        for c, x in found.items():
            wide = np.median(x[:, j, 1] - x[:, j, 0]) / width[j]
            bias = (x[:, j].mean(axis=1) - truth[j]).mean() / (width[j] / 3.919928)
            cells += f"{100 * inside[c][:, j].mean():6.0f} %{wide:6.2f}{bias:+6.2f}"
        out.append(f"{what:36}{cells}")
    rest = "".join(f"{100 * x.mean():6.1f} %{'':12}" for x in inside.values())
    return "\n".join([*out, f"{'all':36}{rest}"])


if __name__ == "__main__":
    sys.exit(main())
