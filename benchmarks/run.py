"""Run one task by one or all of its contenders, score it, and append one line a run to results/TASK.jsonl.

    python benchmarks/run.py TASK [--contender NAME] [--repeats N] [--timeout S] [--data DIR] [--envs DIR] [--cold]
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import measure
import prepare
import report
import score
from common.counts import checksum, closure
from common.job import read_marginals
from environments import HERE, REPOSITORY, python_for
from tasks import TASKS, Task

Facts = dict[str, Any]
KEPT = ("version", "rounds", "measured", "seconds", "marginals", "tree_cells", "total", "curve", "evaluating_s", "rho")
"""Facts of a contender's result.json that go into the line."""


def main() -> int:
    options = parse()
    task = TASKS[options.task]
    contenders = [options.contender] if options.contender else list(task.contenders)
    for contender in contenders:
        python = python_for(contender, options.envs, options.python if contender == "margrave" else None)
        for variant in task.contenders[contender]:
            if options.variant and options.variant not in label(variant):
                continue
            for repeat in range(options.repeats):
                line = run_once(task, contender, variant, repeat, python, options)
                append(options.results / f"{task.name}.jsonl", line)
                print(summary(line), flush=True)
    print()
    print(report.table(report.current(report.read(options.results, [task.name]))))
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=sorted(TASKS))
    parser.add_argument("--contender", help="only this one (default: every contender of the task)")
    parser.add_argument("--variant", help="only variants whose label contains this, such as iterations=50")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--timeout", type=float, help="seconds before a run is stopped (default: the task's)")
    parser.add_argument("--data", type=Path, default=default_data(), help="default: $MARGRAVE_DATA, or ../shared/data")
    parser.add_argument("--envs", type=Path, default=HERE / ".envs", help="where the virtual environments are")
    parser.add_argument("--cache", type=Path, default=HERE / ".cache", help="where generated inputs are kept")
    parser.add_argument("--results", type=Path, default=HERE / "results")
    parser.add_argument("--python", help="an interpreter that has margrave, instead of the one found or made")
    parser.add_argument("--cold", action="store_true", help="margrave: empty its cache of compiled kernels first")
    parser.add_argument("--keep", type=Path, help="keep each run's outputs and log in this folder")
    options = parser.parse_args()
    if options.contender and options.contender not in TASKS[options.task].contenders:
        parser.error(f"{options.task} is run by {', '.join(TASKS[options.task].contenders)}")
    if options.task != "import" and not options.data.is_dir():
        parser.error("the tables are not there: name their folder with --data or MARGRAVE_DATA")
    return options


def default_data() -> Path:
    return Path(os.environ.get("MARGRAVE_DATA", REPOSITORY.parent / "shared" / "data"))


def run_once(
    task: Task, contender: str, variant: Mapping[str, Any], repeat: int, python: str, options: argparse.Namespace
) -> Facts:
    """One fresh process, measured and scored. Whatever happens becomes a line; nothing is raised for its failure."""
    with tempfile.TemporaryDirectory(prefix="margrave-bench-") as scratch:
        out = Path(scratch) / "out"
        if options.keep:
            out = options.keep.absolute() / f"{task.name}-{contender}-{slug(variant)}-{repeat}"
        out.mkdir(parents=True, exist_ok=True)
        for old in out.iterdir():
            old.unlink()
        arguments = inputs(task, options) | dict(variant) | {"seed": repeat, "out": str(out)}
        environment = {**os.environ, "PYTHONPATH": str(HERE / "common"), "PYTHONUNBUFFERED": "1"}
        if options.cold and contender == "margrave":
            environment["NUMBA_CACHE_DIR"] = str(Path(scratch) / "numba")
        command = [python, *script(task, contender, arguments)]
        started = datetime.datetime.now(datetime.UTC)
        usage = measure.run(command, out / "log.txt", environment, options.timeout or task.timeout_s)
        line = header(task, contender, variant, repeat, options, started)
        line |= {
            "wall_s": round(usage.wall_s, 3),
            "cpu_s": round(usage.cpu_s, 3),
            "peak_mb": round(usage.peak_mb, 1),
            "load_start": usage.load_start,
            "load_end": usage.load_end,
        }
        return line | judge(task, arguments, out, usage, options)


def script(task: Task, contender: str, arguments: Facts) -> list[str]:
    """What the interpreter is given."""
    if task.script == "import":
        return ["-c", f"import {arguments['module']}"]
    folder = HERE / "margrave" if contender == "margrave" else HERE / "peers" / contender
    return [str(folder / f"{task.script}.py"), json.dumps(arguments)]


def inputs(task: Task, options: argparse.Namespace) -> Facts:
    """The task's arguments, with the files it reads; those that it makes for itself are made here."""
    if task.script == "import":
        return {}
    table = options.data / f"{task.data}.parquet"
    schema = options.data / f"{task.data}.schema.json"
    arguments: Facts = dict(task.arguments) | {"data": str(table), "schema": str(schema)}
    if task.sampled_rows is not None:
        arguments["data"] = str(prepare.resampled(table, task.sampled_rows, task.noise_seed, options.cache))
    if task.cliques:
        path, digest = prepare.noisy_marginals(
            table, schema, task.cliques, task.sigma, task.noise_seed, options.cache
        )
        arguments |= {"measurements": str(path), "measurements_sha256": digest, "sigma": task.sigma}
    return arguments


def header(
    task: Task,
    contender: str,
    variant: Mapping[str, Any],
    repeat: int,
    options: argparse.Namespace,
    started: datetime.datetime,
) -> Facts:
    """Who ran what, where and when."""
    commit, dirty = commit_of(REPOSITORY)
    return {
        "task": task.name,
        "contender": contender,
        "variant": label(variant),
        "repeat": repeat,
        "cold": bool(options.cold and contender == "margrave"),
        "date": started.isoformat(timespec="seconds"),
        "commit": commit,
        "dirty": dirty,
        "machine": measure.machine(),
        "python": sys.version.split()[0],
        "timeout_s": options.timeout or task.timeout_s,
        "command": command_line(options, contender, variant),
    }


def command_line(options: argparse.Namespace, contender: str, variant: Mapping[str, Any]) -> str:
    """How to do it again, without this machine's folders."""
    words = ["python", "benchmarks/run.py", options.task, "--contender", contender]
    if label(variant):
        words += ["--variant", label(variant)]
    if options.repeats != 1:
        words += ["--repeats", str(options.repeats)]
    if options.timeout:
        words += ["--timeout", f"{options.timeout:g}"]
    if options.cold and contender == "margrave":
        words.append("--cold")
    return shlex.join(words)


def judge(task: Task, arguments: Facts, out: Path, usage: measure.Usage, options: argparse.Namespace) -> Facts:
    """The outcome, what the contender said of itself, and the score."""
    facts: Facts = {"error": None, "outcome": "finished", "reason": None}
    result = out / "result.json"
    said = json.loads(result.read_text()) if result.exists() else {}
    facts |= {key: said[key] for key in KEPT if key in said}
    progress = out / "progress.jsonl"
    if progress.exists() and "rounds" not in said:
        lines = [json.loads(text) for text in progress.read_text().splitlines()]
        facts |= {"rounds_seen": len(lines), "rounds_seen_s": [entry["seconds"] for entry in lines]}
    if usage.timed_out:
        return facts | {"outcome": "timed out"}
    if usage.status != 0:
        return facts | {"outcome": "failed", "reason": scrub(last_words(out / "log.txt"), out, options)}
    try:
        return facts | scores(task, arguments, said, out)
    except (OSError, KeyError, ValueError) as problem:
        return facts | {"outcome": "failed", "reason": scrub(f"unusable output: {problem}", out, options)}


def scores(task: Task, arguments: Facts, said: Facts, out: Path) -> Facts:
    """The task's measure of quality, as `error`, with whatever else was measured on the way."""
    if task.score == "nothing":
        return {}
    sizes = prepare.read_sizes(Path(arguments["schema"]))
    if task.score == "records":
        return record_scores(arguments, sizes, out)
    if task.score == "checksum":
        return checksum_scores(task, arguments, sizes, said)
    return loss_scores(arguments, sizes, out)


def record_scores(arguments: Facts, sizes: Mapping[str, int], out: Path) -> Facts:
    """Workload errors of the records, and of those drawn another way where a contender offers one."""
    real = prepare.read_codes(Path(arguments["data"]), list(sizes))
    facts: Facts = {}
    for path in sorted(out.glob("records*.parquet")):
        codes = prepare.read_codes(path, list(sizes))
        suffix = path.stem.removeprefix("records")
        facts[f"records{suffix}"] = codes.shape[1]
        for degree, name in ((3, "error"), (2, "error_2way"), (1, "error_1way")):
            facts[name + suffix] = round(score.workload_error(real, codes, list(sizes.values()), degree), 5)
    if "error" not in facts:
        raise ValueError("no records were written")
    return facts


def checksum_scores(task: Task, arguments: Facts, sizes: Mapping[str, int], said: Facts) -> Facts:
    """Counts are right or wrong: the error is 0, or the run has failed."""
    codes = prepare.read_codes(Path(arguments["data"]), list(sizes))
    order = {name: i for i, name in enumerate(sizes)}
    cliques = closure(tuple(sizes), task.arguments["degree"])
    shapes = list(sizes.values())
    wanted = checksum(prepare.count(codes, shapes, [order[a] for a in clique]) for clique in cliques)
    if said["checksum"] != wanted:
        raise ValueError("the counts are wrong")
    return {"error": 0.0}


def loss_scores(arguments: Facts, sizes: Mapping[str, int], out: Path) -> Facts:
    """The loss of the fitted marginals; for records, their distance from the model's marginals as well."""
    cliques, fitted = read_marginals(out / "marginals.npz")
    asked, noisy = read_marginals(Path(arguments["measurements"]))
    if cliques != asked:
        raise ValueError("the fitted marginals are not those of the measurements")
    loss = score.measurement_loss(fitted, noisy, arguments["sigma"])
    if not math.isfinite(loss):
        raise ValueError("the fitted marginals are not finite")
    facts: Facts = {
        "error": round(loss, 3),
        "fitted_total": float(fitted[0].sum()),
        "measurements_sha256": arguments["measurements_sha256"],
    }
    records = out / "records.parquet"
    if records.exists():
        order = {name: i for i, name in enumerate(sizes)}
        codes = prepare.read_codes(records, list(sizes))
        score.check(codes, list(sizes.values()))
        pairs = [([order[a] for a in c], mu) for c, mu in zip(cliques, fitted, strict=True)]
        facts["records"] = codes.shape[1]
        facts["loss"] = facts["error"]
        facts["error"] = round(score.model_distance(codes, list(sizes.values()), pairs), 6)
    return facts


def commit_of(repository: Path) -> tuple[str | None, bool]:
    """The commit, and whether the package differs from it."""

    def git(*words: str) -> str | None:
        done = subprocess.run(["git", "-C", str(repository), *words], capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else None

    return git("rev-parse", "--verify", "--quiet", "HEAD"), bool(git("status", "--porcelain", "--", "src"))


def last_words(log: Path) -> str:
    """The last line that says something."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1][:300] if lines else "no output"


def scrub(text: str, out: Path, options: argparse.Namespace) -> str:
    """A message without this machine's folders: results are published."""
    folders = (out, options.data, options.envs, options.cache, HERE, REPOSITORY, Path(sys.prefix), Path.home())
    for folder in folders:
        text = text.replace(str(folder.absolute()), folder.name or "")
    return text.replace(tempfile.gettempdir(), "TMP")


def label(variant: Mapping[str, Any]) -> str:
    """A variant in words; the module of an import says nothing new."""
    flat: dict[str, Any] = {}
    for key, value in variant.items():
        flat |= value if isinstance(value, Mapping) else {key: value}
    return ",".join(f"{key}={value}" for key, value in flat.items() if key != "module")


def slug(variant: Mapping[str, Any]) -> str:
    return label(variant).replace(",", "-").replace("=", "") or "once"


def append(path: Path, line: Facts) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as stream:
        stream.write(json.dumps(line) + "\n")


def summary(line: Facts) -> str:
    error = "-" if line["error"] is None else f"{line['error']:.6g}"
    who = f"{line['task']} {line['contender']} {line['variant']}".rstrip()
    took = f"{line['wall_s']:.1f} s wall, {line['cpu_s']:.1f} s CPU, {line['peak_mb']:.0f} MB"
    reason = f": {line['reason']}" if line["reason"] else ""
    return f"{who}: {line['outcome']}{reason}, {took}, error {error}"


if __name__ == "__main__":
    sys.exit(main())
