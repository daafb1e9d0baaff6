"""Extreme numbers wherever a number is read: each loads and can be printed, or is refused in one sentence."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from datetime import date, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from margrave.accounting import Budget, Ledger, Policy, ReplaceRow, Unit, parse_unit
from margrave.cli.main import run
from margrave.cli.options import parse_workload
from margrave.data import read_table
from margrave.errors import MargraveError
from margrave.mechanisms import MST, MWEM, DualQuery, Independent, Mechanism
from margrave.privacy import Gaussian, SeededRandomness, protect
from margrave.release import Release
from margrave.report.page import render
from margrave.schema import Boolean, Categorical, Date, Integer, Real, Schema, Timestamp
from margrave.unit import AddRemoveRow
from margrave.workload import Workload
from tests.support import chained

HUGE = 10**400
#: Each stands in the place of a number in JSON.
EXTREMES: list[Any] = [
    HUGE, -HUGE, 2**63, 2**63 - 1, -(2**63), 10**18, 1e308, -1e308, 1e-308, 5e-324, -1, 0, 0.5, True, None, "NaN",
    "inf", "", "x", str(HUGE), "0", "1/3", [], {},
]  # fmt: skip
NUMBERS_IN_TOML = [
    "1" + "0" * 400, "-1" + "0" * 400, "9223372036854775808", "9223372036854775807", "1e308", "-1e308", "1e-308", "-1",
    "0", "0.5", "nan", "inf", "-inf", "true", '"x"', '""', "[]", "{}", "1979-05-27",
]  # fmt: skip

SCHEMA = Schema(
    (
        Integer("age", 0, 90, bins=4, atoms=[0], missing=True),
        Real("income", -10.0, 1000.0, edges=[-10.0, 0.0, 50.0, 1000.0]),
        Boolean("smokes"),
        Categorical("job", ["a", "b", "c"], other=True),
        Date("born", date(1990, 1, 1), date(1999, 12, 31), bins=3),
        Timestamp("seen", datetime(2020, 1, 1), datetime(2020, 1, 2), bins=2),
    )
)


def table(rows: int = 40) -> pa.Table:
    return pa.table({
        "age": [i % 90 for i in range(rows)],
        "income": [float(i) for i in range(rows)],
        "smokes": [i % 2 == 0 for i in range(rows)],
        "job": ["abcd"[i % 4] for i in range(rows)],
        "born": [f"199{i % 10}-03-04" for i in range(rows)],
        "seen": [f"2020-01-01T{i % 24:02d}:00:00" for i in range(rows)],
    })  # fmt: skip


def made(mechanism: Mechanism, unit: Unit) -> Release:
    with protect(
        read_table(table(), SCHEMA),
        unit=unit,
        budget=Budget.approx(3.0, 1e-6),
        randomness=SeededRandomness(1),
    ) as private:
        return mechanism.run(private, rng=np.random.default_rng(0))


def leaves(plain: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value in plain data that is not a table or a list; texts only where they are numbers."""
    if isinstance(plain, dict):
        for key, value in plain.items():
            yield from leaves(value, (*path, key))
    elif isinstance(plain, list):
        for i, value in enumerate(plain[:3]):
            yield from leaves(value, (*path, i))
    else:
        yield path


def replaced(plain: Any, path: tuple[Any, ...], value: Any) -> Any:
    copy = deepcopy(plain)
    at = copy
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return copy


def rewritten(path: Path, manifest: dict[str, Any], arrays: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", json.dumps(manifest))
        for name, data in arrays.items():
            archive.writestr(name, data)
    return path


def opened(path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    with zipfile.ZipFile(path) as archive:
        arrays = {n: archive.read(n) for n in archive.namelist() if n != "manifest.json"}
        return json.loads(archive.read("manifest.json")), arrays


def printed(release: Release) -> None:
    """Everything that is printed from a release."""
    repr(release)
    json.dumps(release.certificate(), allow_nan=False)
    json.dumps(release.transcript.to_dict(), allow_nan=False)
    json.dumps(release.account.to_dict(), allow_nan=False)
    render(release)
    for what in (
        lambda: release.sample(3, seed=1),
        lambda: release.sample(seed=1),
        lambda: release.misfit,
    ):
        harmless(what)


def harmless(what: Callable[[], Any]) -> None:
    """Run something that works or raises a MargraveError."""
    with suppress(MargraveError):
        what()


def fault(what: Callable[[], Any], where: str) -> list[str]:
    """Return what is wrong, if it ends with anything but success or a MargraveError."""
    try:
        harmless(what)
    except Exception as error:
        return [f"{where}: {type(error).__name__}: {str(error)[:120]}"]
    return []


def extreme_arrays(data: bytes) -> Iterator[tuple[Any, bytes]]:
    """Yield the array of a member with one extreme number in its first, and in all, places."""
    array = np.load(io.BytesIO(data))
    if array.dtype.kind in "iu":
        info = np.iinfo(array.dtype)
        ends: list[Any] = [info.max, info.min, 0]
    else:
        ends = [1e308, -1e308, 5e-324, 0.0, np.nan, np.inf]
    for value in ends if array.size else []:
        first = array.copy()
        first.reshape(-1)[0] = value
        for changed in (first, np.full_like(array, value)):
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, changed, (1, 0), allow_pickle=False)
            yield value, buffer.getvalue()


KINDS = {
    "independent": (Independent(), ReplaceRow()),
    "mst": (MST(), AddRemoveRow()),
    "mwem": (MWEM(rounds=2), ReplaceRow()),
    "dual-query": (DualQuery(rounds=2), AddRemoveRow()),
}


@pytest.mark.parametrize(
    ("kind", "every"),
    [("dual-query", 5), *(pytest.param(k, 1, marks=pytest.mark.slow) for k in KINDS)],
)
def test_a_release_with_an_extreme_number_opens_and_prints_or_is_refused(
    kind: str, every: int, tmp_path: Path
) -> None:
    """Each number is replaced by one in ``every`` of the extremes, each by others than the one before it."""
    sound = tmp_path / "sound.margrave"
    made(*KINDS[kind]).save(sound)
    manifest, arrays = opened(sound)
    printed(Release.load(sound))
    wrong: list[str] = []
    bad = tmp_path / "bad.margrave"
    paths = [p for p in leaves(manifest) if p[0] not in ("versions", "schema")]
    for i, path in enumerate(paths):
        for value in EXTREMES[i % every :: every]:
            rewritten(bad, replaced(manifest, path, value), arrays)
            wrong += fault(lambda: printed(Release.load(bad)), f"{path} = {str(value)[:30]!r}")
    for name, data in arrays.items():
        for extreme in extreme_arrays(data):
            rewritten(bad, manifest, {**arrays, name: extreme[1]})
            wrong += fault(lambda: printed(Release.load(bad)), f"{name} holds {extreme[0]!r}")
    assert not wrong, "\n".join(wrong)


def toml_variants(text: str) -> Iterator[tuple[str, str]]:
    """Yield the file with one value replaced, and what was replaced: a whole value, or one number within a list."""
    lines = text.splitlines()
    for i, line in enumerate(lines):
        key, equals, _ = line.partition(" = ")
        if not equals or line.startswith("#"):
            continue
        spots = [(len(key) + 3, len(line))]
        spots += [
            (m.start(), m.end()) for m in re.finditer(r"(?<=[\[ ,])-?[0-9][^,\]]*(?=[,\]])", line)
        ]
        for start, end in spots:
            for new in NUMBERS_IN_TOML:
                changed = line[:start] + new + line[end:]
                yield (
                    f"{key}: {changed[:60]}",
                    "\n".join([*lines[:i], changed, *lines[i + 1 :]]) + "\n",
                )


def used(schema: Schema) -> None:
    """Everything that is made of a schema before a run, and its text."""
    schema.to_toml()
    schema.hash()
    repr(schema)
    for column in schema.columns:
        if column.size < 10_000:
            column.labels()
    read_table(table(5), schema)


def test_a_schema_with_an_extreme_number_loads_and_reads_or_is_refused() -> None:
    wrong: list[str] = []
    for where, text in toml_variants(SCHEMA.to_toml()):
        wrong += fault(lambda text=text: used(Schema.from_toml(text)), where)  # type: ignore[misc]
    assert not wrong, "\n".join(wrong)


def test_a_policy_with_an_extreme_number_loads_and_checks_or_is_refused(tmp_path: Path) -> None:
    text = (
        '[policy]\nversion = 1\nmax_epsilon = 1.0\nmax_delta = 1e-6\nunits = ["add-remove-person:5"]\n'
        'forbidden_columns = ["job"]\nrequire_ledger = false\nledger = "a"\ndataset = "b"\n'
    )
    path, wrong, budget = tmp_path / "policy.toml", [], Budget.approx(1.0, 1e-7)

    def checked() -> None:
        Policy.load(path).check(SCHEMA, AddRemoveRow(), budget, ledger=None, dataset=None)

    for where, changed in toml_variants(text):
        path.write_text(changed)
        wrong += fault(checked, where)
    assert not wrong, "\n".join(wrong)


TEXTS = [
    "9" * 400, "9" * 5000, "-1", "0", "0.5", "1e308", "1e999", "nan", "inf", "-inf", "", " ", "x", "True", "None", "٣",
    "²", "1_0", "0x10", "1/3", "\x1b[31m", "1e-320", "9223372036854775807", "9223372036854775808", "5e-324",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS, ids=lambda t: repr(t)[:20])
def test_numbers_in_units_and_workloads(text: str, tmp_path: Path) -> None:
    wrong = []
    for form in ("add-remove-person:{}", "replace-person:{}", "{}"):
        wrong += fault(lambda form=form: str(parse_unit(form.format(text))), form)  # type: ignore[misc]
    domain = SCHEMA.domain
    for form in ("age, job = {}", "{}", "age = {} = 1"):
        wrong += fault(lambda form=form: Workload.of_lines(domain, [form.format(text)]), form)  # type: ignore[misc]
    for form in ("around:age:{}", "all-{}way", "{}", "age,job = {}"):
        wrong += fault(lambda form=form: parse_workload(form.format(text), domain), form)  # type: ignore[misc]
    assert not wrong, "\n".join(wrong)


BOOK = ["--dataset", "d", "--epsilon", "9", "--delta", "1e-6", "--unit", "replace-person:3"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table, its schema, a release and a ledger."""
    path = tmp_path_factory.mktemp("numbers")
    pyarrow.csv.write_csv(table(), path / "t.csv")
    SCHEMA.save(path / "s.toml")
    made(*KINDS["independent"]).save(path / "r.margrave")
    assert run(["ledger", "init", str(path / "l.jsonl"), *BOOK]) == 0
    return path


COMMANDS = {
    "plan": ["plan", "--schema", "s.toml", "--epsilon", "1", "--delta", "1e-9", "--rows", "100", "-m", "independent"],
    "plan-aim": ["plan", "--schema", "s.toml", "--epsilon", "1", "--delta", "1e-9", "--max-model-mb", "10"],
    "sample": ["sample", "r.margrave", "-o", "out.csv", "--rows", "3", "--where", "age=1", "--overwrite"],
    "bounds": ["bounds", "r.margrave", "--level", "0.9"],
    "ledger": ["ledger", "init", "new.jsonl", *BOOK],
    "ledger-rho": ["ledger", "init", "new.jsonl", "--dataset", "d", "--rho", "1", "--unit", "replace-person:3"],
    "evaluate": ["evaluate", "t.csv", "r.margrave", "-s", "s.toml", "--rows", "3", "--seed", "1"],
    "mean": ["analyze", "mean", "r.margrave", "age", "--m", "3", "--rows", "9", "--level", "0.9"],
    "quantile": ["analyze", "quantile", "r.margrave", "age", "0.5", "--m", "3", "--rows", "9", "--seed", "1"],
    "count": ["analyze", "count", "r.margrave", "job", "a", "--m", "3", "--rows", "9", "--where", "age=0..3"],
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_numbers_on_the_command_line(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    words, wrong = COMMANDS[name], []
    assert run(words) == 0, capsys.readouterr().err
    for at, word in enumerate(words):
        if not re.search(r"(^|[=:])[0-9]", word):
            continue
        for text in TEXTS:
            new = re.sub(r"(^|(?<=[=:]))[0-9].*", lambda _, text=text: text, word)  # type: ignore[misc]
            (folder / "new.jsonl").unlink(missing_ok=True)
            code = run([*words[:at], new, *words[at + 1 :]])
            if code in (1, 70):
                wrong.append(f"{words[at - 1]} {new[:40]!r}: exit code {code}")
            said = capsys.readouterr()
            if "\x1b" in said.out + said.err:
                wrong.append(f"{words[at - 1]} {new[:40]!r}: an escape reached the terminal")
    assert not wrong, "\n".join(wrong)


def recorded(folder: Path) -> tuple[Path, Path]:
    """A ledger and a journal with a run in them that was cut off after two questions."""
    ledger, journal = folder / "l.jsonl", folder / "j.jsonl"
    Ledger(ledger).init("d", unit=ReplaceRow(), cap=Budget.approx(9.0, 1e-6))
    options: dict[str, Any] = {"ledger": ledger, "dataset": "d", "journal": journal}
    source = read_table(table(), SCHEMA)
    budget = Budget.approx(1.0, 1e-6)
    private = protect(
        source, unit=ReplaceRow(), budget=budget, randomness=SeededRandomness(1), **options
    )
    with suppress(KeyboardInterrupt), private:
        private.measure([("age",), ("job",)], Gaussian(rho=Fraction(1, 100)))
        raise KeyboardInterrupt
    return ledger, journal


@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("which", ["ledger", "journal"])
def test_a_ledger_or_journal_with_an_extreme_number_is_read_or_refused(
    which: str, every: int, tmp_path: Path
) -> None:
    """Each place takes every so-manieth value, from one place to the next another."""
    files = dict(zip(("ledger", "journal"), recorded(tmp_path), strict=True))
    path = files[which]
    events = chained.events(path)
    chained.put_events(path, which, events)
    other = files["journal" if which == "ledger" else "ledger"]
    kept = other.read_bytes()
    source = read_table(table(), SCHEMA)

    def resumed() -> None:
        for state in Ledger(files["ledger"]).datasets():
            json.dumps(state.to_dict())
        with protect(
            source, unit=ReplaceRow(), budget=Budget.approx(1.0, 1e-6), randomness=SeededRandomness(1),
            ledger=files["ledger"], dataset="d", journal=files["journal"], resume=True,
        ) as private:  # fmt: skip
            private.measure([("age",), ("job",)], Gaussian(rho=Fraction(1, 100)))

    resumed()
    wrong: list[str] = []
    values = [*EXTREMES, "1/0", "1" + "0" * 400 + "/3", "0", "-1"]
    places = [(i, place) for i, event in enumerate(events) for place in leaves(event)]
    for turn, (i, place) in enumerate(places):
        for value in values[turn % every :: every]:
            changed = [*events[:i], replaced(events[i], place, value), *events[i + 1 :]]
            chained.put_events(path, which, changed)
            other.write_bytes(kept)
            wrong += fault(resumed, f"line {i + 1}, {place} = {str(value)[:30]!r}")
    assert not wrong, "\n".join(wrong)
