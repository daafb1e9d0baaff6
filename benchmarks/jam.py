"""Public data on the tables of the JAM-PGM paper. One line of JSON a run; what is stored is not run again.

    python benchmarks/jam.py adult_100 titanic --contender aim jam-pgm jam --epsilon 0.1 1 --runs 2
    python benchmarks/jam.py nltcs br2000 acs     # tables that the paper does not have
    python benchmarks/jam.py all --minutes 60     # every table, contender and epsilon, run after run
    python benchmarks/jam.py times --runs 1       # AIM and JAM in turn on the paper's tables (or those named)
    python benchmarks/jam.py page                 # the tables and figures of docs/jam.md, from what is stored

The error is the mean over all three-way marginals of Σ|p_real − p_synthetic|, of records of the release, replacing a
row, delta = 1e-9, as in the paper. ``adult_100`` has public records of women only, ``adult_025`` the private table's
share of them; of the last four tables a part is drawn off, and is public. Errors are of the private table, without
noise: nothing here is for a release.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import charts
import numpy as np
import pyarrow.parquet
from environments import HERE, REPOSITORY
from run import commit_of, default_data
from stored import Facts, append, filled, read_lines

from margrave.data import MemoryTable
from margrave.marginal.counting import count_cliques
from margrave.mechanisms import AIM, GEM, JAM, JAMPGM, RAP, GEMPub, PMWPub
from margrave.privacy import Budget, ReplaceRow, protect
from margrave.public import Public
from margrave.schema import Codes, Schema
from margrave.workload import Workload


@dataclass(frozen=True)
class Drawn:
    """A table of which so many records are drawn off, and are public: those with code 0 in a column first."""

    table: str
    rows: int
    column: str | None = None


CONTENDERS: dict[str, Any] = {
    "aim": lambda public: AIM(),
    "jam-pgm": lambda public: JAMPGM(public=public),
    "jam": lambda public: JAM(public=public),
    "jam-pgm-equal": lambda public: JAMPGM(public=public, equal_weights=True),
    "gem": lambda public: GEM(),
    "rap": lambda public: RAP(),
    "gem-pub": lambda public: GEMPub(public=public),
    "pmw-pub": lambda public: PMWPub(public=public),
    "gem-columns": lambda public: GEM(rounds=len(public.codes.domain)),
    "rap-columns": lambda public: RAP(rounds=len(public.codes.domain)),
}
ROUNDS = ("gem-columns", "gem", "rap-columns", "rap")
"""One round a column beside the default, in the table of rounds alone."""
SHOWN = tuple(c for c in CONTENDERS if not c.endswith("-columns"))
TABLES: Mapping[str, tuple[str, str] | Drawn] = {
    "adult_025": ("jam/adult_priv", "jam/adult_pub025"),
    "adult_050": ("jam/adult_priv", "jam/adult_pub050"),
    "adult_075": ("jam/adult_priv", "jam/adult_pub075"),
    "adult_100": ("jam/adult_priv", "jam/adult_pub100"),
    "titanic": ("jam/titanic_priv", "jam/titanic_pub"),
    "salary": ("jam/salary_priv", "jam/salary_pub"),
    "fire": ("jam/fire_priv", "jam/fire_pub"),
    "taxi": Drawn("jam/nist_taxi", 2500),
    "nltcs": Drawn("aim/nltcs", 2157),
    "br2000": Drawn("privmrf/br2000", 3800, "0"),
    "acs": Drawn("privmrf/acs", 4746, "0"),
}
"""The private and the public records, by file. The paper's split of the taxi table is lost."""
TITLES = {
    "adult_025": "ADULT, 25 % women", "adult_050": "ADULT, 50 % women", "adult_075": "ADULT, 75 % women",
    "adult_100": "ADULT, women only", "titanic": "TITANIC", "salary": "SALARY", "fire": "FIRE", "taxi": "NIST-TAXI",
    "nltcs": "NLTCS", "br2000": "BR2000", "acs": "ACS",
}  # fmt: skip
FIGURES = {
    "adult": ("adult_100", "adult_075", "adult_050", "adult_025"),
    "others": ("titanic", "salary", "fire", "taxi"),
    "further": ("nltcs", "br2000", "acs"),
}
FURTHER = FIGURES["further"]
"""The paper does not have these."""
PAPERS = tuple(t for t in TABLES if t not in FURTHER)
TIMED = ("aim", "jam")
"""Whose times are compared."""
EPSILONS, RUNS = (0.03, 0.1, 0.31, 1.0, 3.16, 10.0), 5

LEGEND = charts.Legend(
    {"aim": "AIM", "jam-pgm": "JAM-PGM", "jam": "JAM", "jam-pgm-equal": "JAM-PGM, equal weights", "gem": "GEM",
     "rap": "RAP", "gem-pub": "GEM Pub", "pmw-pub": "PMW Pub", "gem-columns": "GEM, one round a column",
     "rap-columns": "RAP, one round a column"},
    {"aim": ("#1f2630", "#e6e8ea"), "jam-pgm": ("#c4622d", "#e8925f"), "jam": ("#17697a", "#5fb8c6"),
     "jam-pgm-equal": ("#a98212", "#cfae4a"), "gem": ("#7a4fa3", "#b892dc"), "rap": ("#8a5a3b", "#c79a78"),
     "gem-pub": ("#3f8f4f", "#7cc98b"),
     "pmw-pub": ("#b5366b", "#e283a9")},
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", nargs="+", choices=[*TABLES, "all", "times", "page"])
    parser.add_argument("--contender", nargs="+", choices=sorted(CONTENDERS), default=["aim", "jam-pgm", "jam"])
    parser.add_argument("--epsilon", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no run after so many")
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument("--results", type=Path, default=HERE / "results" / "jam")
    parser.add_argument("--docs", type=Path, default=REPOSITORY / "docs")
    options = parser.parse_args()
    if options.table == ["page"]:
        write_page(options.results, options.docs)
        return
    if options.table[0] == "times":
        tables = options.table[1:] or PAPERS
        times(options.data, options.results / "times.jsonl", tables, options.epsilon, options.runs)
        return
    start = time.monotonic()
    tables = list(TABLES) if "all" in options.table else options.table
    for number, table, epsilon, contender in product(
        range(options.runs), tables, options.epsilon, options.contender
    ):
        path = options.results / f"{home_of(table, contender)}_{contender}.jsonl"
        done = any(x["epsilon"] == epsilon and x["run"] == number for x in read_lines(path))
        if not done and time.monotonic() - start < 60 * options.minutes:
            line = run(options.data, table, contender, epsilon, number)
            append(path, {**line, "commit": commit_of(REPOSITORY)[0]})
            print(json.dumps(line), flush=True)


def home_of(table: str, contender: str) -> str:
    """Whose results a run's are: without public data the four ADULT tables are one."""
    return "adult_025" if contender in ("aim", "gem", "rap") and table.startswith("adult") else table


def load(folder: Path, name: str) -> tuple[Schema, Codes]:
    """A coded table and its schema."""
    told = json.loads((folder / f"{name}.schema.json").read_text())
    schema = Schema.coded({c["name"]: c["domain_size"] for c in told["columns"]})
    table = pyarrow.parquet.read_table(folder / f"{name}.parquet")
    return schema, Codes.of(schema.domain, {a: np.asarray(table[a]) for a in schema.domain})


def pair(folder: Path, table: str) -> tuple[Schema, Codes, Public]:
    """The private and the public records of a table."""
    told = TABLES[table]
    if isinstance(told, Drawn):
        schema, records = load(folder, told.table)
        order = np.random.default_rng(2024).permutation(len(records))
        if told.column is not None:  # those that may be drawn come first, as shuffled
            order = order[np.argsort(records.column(told.column)[order] != 0, kind="stable")]
        public, private = records.take(order[: told.rows]), records.take(np.sort(order[told.rows :]))
    else:
        schema, private = load(folder, told[0])
        public = load(folder, told[1])[1]
    return schema, private, Public(public, "the benchmark's public part of the table")


def run(folder: Path, table: str, contender: str, epsilon: float, number: int) -> Facts:
    """One run: its error, its time, and what it measured and read. Its noise is from the system, and no seed's."""
    schema, private, public = pair(folder, table)
    begin = time.process_time()
    rng = np.random.default_rng(number)
    with protect(
        MemoryTable(schema, private), unit=ReplaceRow(), budget=Budget.approx(epsilon, 1e-9)
    ) as gate:
        release = CONTENDERS[contender](public).run(gate, rng=rng)
    seconds = time.process_time() - begin
    triples = Workload.all_kway(schema.domain, 3).cliques
    synthetic = release.model.sample(len(private), rng=rng)
    real, found = count_cliques(private, triples), count_cliques(synthetic, triples)
    known = release.transcript
    return {
        "table": table, "contender": contender, "epsilon": epsilon, "run": number,
        "error": float(np.mean([np.abs(real[c] - found[c]).sum() for c in triples]) / len(private)),
        "cpu_s": round(seconds, 2), "measured": len(known.measurements), "read": len(known.readings),
    }  # fmt: skip


def times(folder: Path, path: Path, tables: Sequence[str], epsilons: Sequence[float], runs: int) -> None:
    """AIM and JAM one after the other, so that both have the machine as it is then; what is stored is not run again.

    ``cpu_s`` is of the mechanism in this process, ``process_s`` of a whole one, from its start to written records.
    """
    run(folder, tables[0], "jam", epsilons[0], 0)  # what is compiled, is compiled here
    for number, table, epsilon in product(range(runs), tables, epsilons):
        if not any((x["table"], x["epsilon"], x["run"]) == (table, epsilon, number) for x in read_lines(path)):
            alone = {c: run(folder, table, c, epsilon, number)["cpu_s"] for c in TIMED}
            whole = whole_runs(folder, table, epsilon)
            line = {"table": table, "epsilon": epsilon, "run": number, "cpu_s": alone, "process_s": whole}
            append(path, {**line, "commit": commit_of(REPOSITORY)[0]})
            print(json.dumps(line), flush=True)


def whole_runs(folder: Path, table: str, epsilon: float) -> dict[str, float]:
    """Processor seconds of ``margrave synthesize`` with each mechanism: a table is read, records are written."""
    schema, private, public = pair(folder, table)
    took: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as made:
        schema.save(f"{made}/schema.toml")
        for name, records in (("private", private), ("public", public.codes)):
            columns = {a: records.column(a) for a in schema.domain}
            pyarrow.parquet.write_table(pyarrow.table(columns), f"{made}/{name}.parquet")
        given = ["--schema", f"{made}/schema.toml", "--unit", "replace-row", "--delta", "1e-9", "--overwrite"]
        given += ["--epsilon", str(epsilon), "-o", f"{made}/records.parquet"]
        for name in TIMED:
            beside = ["--public", f"{made}/public.parquet", "--attestation", "a part of the table"]
            command = [sys.executable, "-m", "margrave", "synthesize", f"{made}/private.parquet", *given, "-m", name]
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(command + (beside if name == "jam" else []), check=True, capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            took[name] = round(spent, 2)
    return took


# The page.

Results = Mapping[tuple[str, str], Mapping[float, list[Facts]]]


def results_in(folder: Path) -> Results:
    """All stored lines by table and contender, and by epsilon."""
    found: dict[tuple[str, str], dict[float, list[Facts]]] = {}
    for table, contender in product(TABLES, CONTENDERS):
        for line in read_lines(folder / f"{home_of(table, contender)}_{contender}.jsonl"):
            found.setdefault((table, contender), {}).setdefault(line["epsilon"], []).append(line)
    return found


def mean(lines: list[Facts], what: str = "error") -> float:
    return float(np.mean([x[what] for x in lines]))


def write_page(results: Path, docs: Path) -> None:
    """Tables between their marks, and figures beside the page."""
    found = results_in(results)
    (docs / "jam").mkdir(exist_ok=True)
    shown = []
    for name, tables in FIGURES.items():
        text = figure(found, tables)
        if text:
            (docs / "jam" / f"{name}.svg").write_text(text, encoding="utf-8")
            shown.append(f"![{name}](jam/{name}.svg)")
    page = docs / "jam.md"
    parts = {"errors": "\n".join(errors(found)), "figures": "\n\n".join(shown), "worst": verdict(found)}
    parts["further"] = verdict({of: lines for of, lines in found.items() if of[0] in FURTHER})
    parts["rounds"] = "\n".join(by_rounds(found))
    parts["times"] = longer(list(read_lines(results / "times.jsonl")))
    page.write_text(filled(page.read_text(encoding="utf-8"), parts), encoding="utf-8")


def errors(found: Results) -> Iterator[str]:
    """A row for each table and epsilon: mean error, runs and CPU seconds of every contender."""
    names = [c for c in SHOWN if any((t, c) in found for t in TABLES)]
    yield f"| public records | ε | {' | '.join(LEGEND.labels[c] for c in names)} |"
    yield "|---|---:|" + "---:|" * len(names)
    for table, epsilon in product(TABLES, EPSILONS):
        cells = [found.get((table, c), {}).get(epsilon) for c in names]
        if any(cells):
            best = min(mean(c) for c in cells if c)
            yield f"| {TITLES[table]} | {epsilon:g} | {' | '.join(told(c, best) for c in cells)} |"


def by_rounds(found: Results) -> Iterator[str]:
    """A row for each table and epsilon where RAP has run: the number of rounds and the error, beside AIM's error."""
    yield f"| table | ε | AIM | {' | '.join(LEGEND.labels[c] for c in ROUNDS)} |"
    yield "|---|---:|---:|" + "---:|" * len(ROUNDS)
    for table, epsilon in product(TABLES, EPSILONS):
        aim, *cells = (found.get((table, c), {}).get(epsilon) for c in ("aim", *ROUNDS))
        if cells[-1]:
            of_rounds = (f"{mean(c):.4f} ({mean(c, 'measured'):.0f})" if c else "" for c in cells)
            yield f"| {TITLES[table]} | {epsilon:g} | {f'{mean(aim):.4f}' if aim else ''} | {' | '.join(of_rounds)} |"


def told(lines: list[Facts] | None, best: float) -> str:
    if not lines:
        return ""
    text = f"{mean(lines):.3f}" if mean(lines) >= 0.02 else f"{mean(lines):.4f}"
    text = f"**{text}**" if mean(lines) == best else text
    return f"{text} ({len(lines)}; {mean(lines, 'cpu_s'):.0f} s)"


def ratios(found: Results) -> list[tuple[float, str, float]]:
    """JAM's mean error over the better of AIM's and JAM-PGM's, wherever all three have run."""
    made = []
    for table, epsilon in product(TABLES, EPSILONS):
        one, two, own = (found.get((table, c), {}).get(epsilon) for c in ("aim", "jam-pgm", "jam"))
        if one and two and own:
            made.append((mean(own) / min(mean(one), mean(two)), table, epsilon))
    return made


def verdict(found: Results) -> str:
    """How JAM stands to the better of the two, over all settings."""
    made = sorted(ratios(found))
    if not made:
        return "Not run yet."
    over = [f"{TITLES[t]} at ε = {e:g} ({r:.2f})" for r, t, e in reversed(made) if r > 1.02]
    middle = float(np.exp(np.mean([np.log(r) for r, _, _ in made])))
    return (
        f"Over {len(made)} settings JAM's mean error is {middle:.2f} times the smaller of AIM's and JAM-PGM's"
        f" (geometric mean; from {made[0][0]:.2f} to {made[-1][0]:.2f}). Above 1.02: {'; '.join(over) or 'none'}."
    )


def longer(lines: Sequence[Facts]) -> str:
    """How many times as long as AIM JAM takes, from runs side by side."""
    if not lines:
        return "Not run yet."
    kinds = {"cpu_s": "JAM alone takes", "process_s": "a whole run, from its start to written records, takes"}
    return "\n\n".join(compared(lines, what, words) for what, words in kinds.items())


def compared(lines: Sequence[Facts], what: str, words: str) -> str:
    """JAM's processor time over AIM's in one measure: the median of settings, all together, and those above twice."""
    took: dict[tuple[str, float], list[Facts]] = {}
    for line in lines:
        took.setdefault((line["table"], line["epsilon"]), []).append(line[what])
    made = sorted(
        (mean(both, "jam") / mean(both, "aim"), TITLES[t], e, mean(both, "jam") - mean(both, "aim"))
        for (t, e), both in took.items()
    )
    over = [f"{t} at ε = {e:g} ({r:.1f}, {s:.1f} s more)" for r, t, e, s in reversed(made) if r > 2]
    ratio, total = float(np.median([r for r, *_ in made])), sum(s for *_, s in made)
    aim = sum(mean(both, "aim") for both in took.values())
    often = sorted({len(both) for both in took.values()})
    runs = f"{often[0]} to {often[-1]} runs" if len(often) > 1 else f"{often[0]} run{'s' * (often[0] > 1)}"
    return (
        f"Side by side at {len(made)} settings, {runs} of each: {words} {ratio:.2f} times AIM's processor time in the"
        f" median, {made[-1][0]:.1f} times at most, and {1 + total / aim:.2f} times for all together."
        f" More than twice: {'; '.join(over) or 'none'}."
    )


def figure(found: Results, tables: Sequence[str]) -> str:
    """A panel for each table: error over epsilon, each axis with a logarithmic scale."""
    parts: list[str] = []
    shown: list[str] = []
    ticks = {e: f"{e:g}" for e in EPSILONS}
    for panel, table in zip(charts.panels(len(tables), 1060, 230, (0.025, 12), (0.05, 1.5)), tables, strict=True):
        series = {c: found[table, c] for c in SHOWN if (table, c) in found}
        dots = {c: {e: dot(x) for e, x in lines.items()} for c, lines in series.items()}
        high = max((d[2] for s in dots.values() for d in s.values()), default=1.0)
        low = min((d[1] for s in dots.values() for d in s.values()), default=0.1)
        scale = [t for t in (0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0) if 0.8 * low <= t <= 1.3 * high]
        framed = replace(panel, up=(0.8 * low, 1.3 * high), log=True, log_across=True)
        parts += charts.lines(LEGEND, framed, TITLES[table], dots, scale, ticks)
        shown += [c for c in dots if c not in shown]
    return charts.picture(LEGEND, shown, parts, 1060, 230, "3-way error over epsilon") if shown else ""


def dot(lines: list[Facts]) -> charts.Dot:
    """The mean, and the least and largest run."""
    values = [x["error"] for x in lines]
    return mean(lines), min(values), max(values)


if __name__ == "__main__":
    main()
