"""A sealed run: its errors say nothing of the rows, every value has a code, and each attempt is in the ledger."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import margrave
from margrave import Budget, Ledger, Release, Run, UnfinishedError
from margrave.contrib import Synthesizer
from margrave.errors import CustodianWarning, DataError, InputError, LedgerError, SchemaError
from margrave.mechanisms import AIMPub, Independent
from margrave.privacy import SystemRandomness
from margrave.report.wording import conditions
from margrave.run import NOT_BEGUN, NOT_FINISHED
from margrave.schema import Integer, Real, Schema
from tests.support.command_line import ALIKE, SCHEMA, TABLES, CommandLine, Row, Step, csv_of

PERSONS = replace(SCHEMA, ignore=(), person="who")
SEALED = [
    *["synthesize", "table.csv", "-s", "schema.toml", "-e", "2", "--delta", "1e-9", "-m", "independent"],
    *["--seed", "1", "--sealed", "--ledger", "v.ledger", "--dataset", "visits", "--release", "r.margrave"],
]  # fmt: skip
LOG = ["ledger", "show", "v.ledger", "--json"]

UNREADABLE: dict[str, Sequence[Row] | bytes] = {
    "no table": b"",
    "another table": b"a,b\n1,2\n",
    "a record that is too short": csv_of([ALIKE]).encode() + b"p1,clerk\n",
    "a quote without an end": csv_of([ALIKE] * 9).encode() + b'p1,"clerk,3,4,true\n',
    "bytes that are no text": csv_of([ALIKE]).encode() + b"p1,cl\xff\xferk,3,4,true\n",
}
"""Tables that cannot be read, each for another reason and in another place."""

ODD: dict[str, Sequence[Row]] = {
    **TABLES,
    "no row": [],
    "values of no kind": [("", "cook", "many", "1e9999", "perhaps")] * 5,
    "as the schema says": [("p1", "clerk", "3", "4.00", "true")] * 4,
}
"""Tables that a custodian's run refuses, warns of or takes."""


@pytest.fixture
def here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> CommandLine:
    return CommandLine(tmp_path, monkeypatch, capfd)


def opened(unit: str) -> list[Step]:
    """A ledger with room for one run, in which the schema is registered."""
    cap = ["--dataset", "visits", "--unit", unit, "--epsilon", "2", "--delta", "1e-9"]
    return [
        ["ledger", "init", "v.ledger", *cap],
        ["ledger", "register-schema", "v.ledger", "visits", "schema.toml"],
    ]


@pytest.mark.parametrize("schema", [SCHEMA, PERSONS], ids=["rows", "persons"])
def test_every_byte_of_a_sealed_run_follows_from_its_answers(
    here: CommandLine, schema: Schema
) -> None:
    unit = "add-remove-row" if schema is SCHEMA else "add-remove-person:2"
    steps = [*opened(unit), [*SEALED, "--unit", unit], LOG]
    assert here.differing(ODD, steps, schema=schema) == set()
    assert here.first["code of step 2"] == b"0"
    assert "file r.margrave" in here.first


def test_tables_that_cannot_be_read_are_refused_in_the_same_bytes(here: CommandLine) -> None:
    steps = [*opened("add-remove-row"), SEALED, LOG]
    assert here.differing(UNREADABLE, steps) == set()
    assert here.first["code of step 2"] == b"4"
    assert NOT_BEGUN.encode() in here.first["stderr of step 2"]
    assert NOT_BEGUN.encode() in here.first["stdout of step 3"]


@pytest.mark.parametrize("after", [0, 2])
def test_a_run_that_fails_later_says_the_same_whatever_it_failed_of(
    here: CommandLine, after: int
) -> None:
    steps = [*opened("add-remove-row"), lambda at: at.answers.fail_after(after), SEALED, LOG]
    assert here.differing(TABLES, steps) == set()
    assert here.first["code of step 3"] == b"10"
    assert b"it failed at" not in b"".join(here.first.values())
    assert b"RuntimeError" not in b"".join(here.first.values())


# From Python.


def ready(tmp_path: Path, schema: Schema = SCHEMA, **more: Any) -> Run:
    ledger = Ledger(tmp_path / "v.ledger")
    unit = more.get("unit", "add-remove-row")
    ledger.init("visits", unit=unit, cap=Budget.approx(8.0, 1e-9))
    ledger.register_schema("visits", schema.hash())
    given = {"mechanism": Independent(), "ledger": ledger.path, "dataset": "visits", **more}
    return Run(schema=schema, budget=Budget.approx(1.0, 1e-9), preflight="sealed", **given)


def attempts(run: Run) -> list[str]:
    (visits,) = Ledger(str(run.ledger)).datasets()
    return [attempt.outcome for attempt in visits.attempts]


def frame(rows: Sequence[Row]) -> pa.Table:
    return pa.table(
        {n: [r[i] for r in rows] for i, n in enumerate(("who", "job", "age", "income", "ill"))}
    )


def chain(error: BaseException | None) -> list[BaseException]:
    """The error and all that it was raised from or beside."""
    if error is None:
        return []
    return [error, *chain(error.__cause__), *chain(error.__context__)]


def test_each_attempt_is_in_the_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ready(tmp_path)
    run.synthesize(frame(TABLES["itself"]))
    with pytest.raises(DataError):
        run.synthesize(pa.table({"another": [1]}))
    fail_at_draws(monkeypatch)
    with pytest.raises(UnfinishedError):
        run.synthesize(frame(TABLES["itself"]))

    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Independent, "run", stopped)
    with pytest.raises(KeyboardInterrupt):
        run.synthesize(frame(TABLES["itself"]))
    assert attempts(run) == ["released", NOT_BEGUN, NOT_FINISHED, "interrupted"]


def fail_at_draws(patch: pytest.MonkeyPatch) -> None:
    """The sampler fails after it has passed its own test, with the true counts in its words."""

    def failing(self: Any, counts: Any, scale: Any) -> None:
        raise RuntimeError(f"it failed at {counts}")

    patch.setattr(SystemRandomness, "_tested", True)
    patch.setattr(SystemRandomness, "gaussian", failing)


def test_an_error_holds_no_other_error_and_the_custodian_hears_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    run = ready(tmp_path)
    with pytest.raises(DataError) as raised:
        run.synthesize(pa.table({"another": [1]}), on_custodian=heard.append)
    assert [str(e) for e in chain(raised.value)] == [NOT_BEGUN]
    assert len(heard) == 1
    assert "column" in heard[0]
    fail_at_draws(monkeypatch)
    with pytest.raises(UnfinishedError) as unfinished:
        run.synthesize(frame(TABLES["itself"]), on_custodian=heard.append)
    assert [str(e) for e in chain(unfinished.value)] == [NOT_FINISHED]
    assert unfinished.value.release.model.absent == "the run failed: the run was sealed"
    assert "RuntimeError" in heard[1]


def test_a_ledger_that_cannot_be_written_at_the_end_costs_no_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise LedgerError("The disk is full.")

    run, rows = ready(tmp_path), frame(TABLES["itself"])
    cost: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-9, "mechanism": "independent"}
    books = {"ledger": run.ledger, "dataset": "visits", "preflight": "sealed"}
    monkeypatch.setattr(Ledger, "record_attempt", full)
    heard: list[str] = []
    assert run.synthesize(rows, on_custodian=heard.append).account.rho_spent
    assert heard == ["The attempt is not recorded in the ledger: The disk is full."]
    made = Synthesizer(SCHEMA, **cost, **books)
    with pytest.warns(CustodianWarning, match=r"not recorded in the ledger: The disk is full\.$"):
        made.fit(rows)
    assert made.release.account.rho_spent
    with pytest.raises(InputError, match="another fit would spend the budget again"):
        made.fit(rows)
    fail_at_draws(monkeypatch)
    with pytest.raises(UnfinishedError) as unfinished:
        run.synthesize(rows, on_custodian=heard.append)
    assert [str(e) for e in chain(unfinished.value)] == [NOT_FINISHED]
    assert heard[1] == heard[0]
    assert "RuntimeError" in heard[2]
    assert sum(bool(r.debited) for r in Ledger(str(run.ledger)).datasets()[0].runs) == 3


@pytest.mark.parametrize("kind", [OSError, SystemExit])
def test_a_callback_that_fails_neither_unseals_an_error_nor_costs_a_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    def failing(*_: Any) -> None:
        raise kind("the log is full")

    run = ready(tmp_path)
    with pytest.raises((DataError, SystemExit)) as raised:
        run.synthesize(pa.table({"another": [1]}), on_custodian=failing)
    assert not any("column" in str(e) for e in chain(raised.value))
    assert attempts(run) == [NOT_BEGUN]
    if kind is OSError:
        monkeypatch.setattr("margrave.run.name_constraints_left_out", failing)
        assert run.synthesize(frame(TABLES["itself"]), on_custodian=failing).account.rho_spent
        assert attempts(run) == [NOT_BEGUN, "released"]


def test_an_interrupt_of_a_sealed_run_holds_no_error_of_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: Any, **__: Any) -> None:
        try:
            raise ValueError("37 rows")
        except ValueError:
            raise KeyboardInterrupt  # noqa: B904

    run = ready(tmp_path)
    monkeypatch.setattr(Run, "_read", stopped)
    with pytest.raises(KeyboardInterrupt) as raised:
        run.synthesize(frame(TABLES["itself"]))
    assert chain(raised.value) == [raised.value]
    assert attempts(run) == ["interrupted"]


def test_a_table_without_rows_is_released_as_one(tmp_path: Path) -> None:
    release = ready(tmp_path).synthesize(frame([]))
    assert release.sample(5, seed=1).num_rows == 5


def test_the_certificate_states_no_precondition(tmp_path: Path) -> None:
    release = ready(tmp_path, PERSONS, unit="add-remove-person:2").synthesize(
        frame(TABLES["itself"])
    )
    release.save(tmp_path / "r.margrave")
    found = Release.load(tmp_path / "r.margrave").certificate()["preconditions"]
    assert found == {
        "preflight": "sealed",
        "refused_if": {
            "no_rows": False, "no_known_value_in": [], "value_outside_in": [], "value_missing_in": [],
            "row_violates": [], "row_without_person_in": None,
        },
    }  # fmt: skip
    assert "none is refused for its rows" in conditions(found, 4)


def test_a_table_that_was_read_before_keeps_its_preconditions(tmp_path: Path) -> None:
    """Reading it may have refused it, so its release states what could have."""
    table = margrave.read_table(frame(TABLES["itself"]), SCHEMA)
    found = ready(tmp_path).synthesize(table).certificate()["preconditions"]
    assert found["preflight"] == "custodian"


def test_a_schema_of_the_caller_does_not_say_whether_its_file_is_the_table(
    here: CommandLine,
) -> None:
    """Whoever knows every row but one could guess the file, and hear whether it is the table."""
    rows = csv_of([ALIKE]).encode()
    guess = '[[column]]\nname = "job"\nkind = "categorical"\ncategories = "guess.csv"\n'

    def hand_over(here: CommandLine) -> None:
        Path("guess.csv").write_bytes(rows)
        text = Path("schema.toml").read_text(encoding="utf-8").partition("[[column]]")[0]
        Path("schema.toml").write_text(text + guess, encoding="utf-8")

    steps = [*opened("add-remove-row"), hand_over, SEALED, LOG]
    tables = {"as guessed": rows, "otherwise": csv_of([ALIKE] * 2).encode()}
    assert here.differing(tables, steps) == set()
    assert here.first["code of step 3"] != b"0"


@pytest.mark.parametrize("private", [TABLES["itself"], TABLES["two rows alike"], b"not a table"])
def test_a_schema_of_the_caller_cannot_count_the_rows_of_the_table(
    here: CommandLine, private: Sequence[Row] | bytes
) -> None:
    """Not as a public table, as a workload, or as a list of categories in a schema that is not registered."""
    categories = '[[column]]\nname = "job"\nkind = "categorical"\ncategories = "table.csv"\n'

    def hand_over(here: CommandLine) -> None:
        text = Path("schema.toml").read_text(encoding="utf-8")
        Path("other.toml").write_text(text.replace("99", "40"), encoding="utf-8")
        head = text.partition("[[column]]")[0]
        Path("list.toml").write_text(head + categories, encoding="utf-8")

    def sealed(schema: str, *more: str) -> Step:
        return [*(schema if word == "schema.toml" else word for word in SEALED), *more]

    mech = ["-m", "jam-pgm", "--attestation", "x"]
    steps = [
        *opened("add-remove-row"),
        hand_over,
        [*sealed("other.toml", *mech), "--public", "table.csv"],
        sealed("other.toml", "--workload", "table.csv"),
        sealed("list.toml"),
        LOG,
    ]
    assert (
        here.differing({"private": private, "other": csv_of([ALIKE] * 3).encode()}, steps) == set()
    )
    for step in (3, 4, 5):
        assert here.first[f"code of step {step}"] != b"0"


def test_a_row_without_a_person_is_not_counted_in_public(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="rows without a person"):
        ready(tmp_path, PERSONS, unit="replace-row")


def test_the_rows_are_not_compared_with_public_ones(tmp_path: Path) -> None:
    """Whether all records are those of a public table is a fact about the rows."""
    schema = Schema((Integer("age", 0, 3), Integer("rooms", 0, 3)))
    rows = pa.table({"age": [0, 1, 2, 3], "rooms": [0, 1, 2, 3]})
    known = margrave.read_public(rows, schema, attestation="a public sample")
    run = ready(tmp_path, schema, mechanism=AIMPub(public=known))
    assert run.synthesize(rows).certificate()
    same = margrave.read_public(
        rows, schema, attestation="the office's list", columns=["age"], same_records=True
    )
    with pytest.raises(InputError, match="as same_records needs"):
        replace(run, unit="replace-row", mechanism=AIMPub(public=same))


REFUSED: dict[str, tuple[Callable[[Run], Run], str]] = {
    "no ledger": (lambda run: replace(run, ledger=None, dataset=None), "needs a ledger"),
    "values refused": (
        lambda run: replace(run, schema=Schema((Real("age", 0, 9, outside="refuse"),))),
        "'age' has the policy 'refuse'",
    ),
    "another schema": (
        lambda run: replace(run, schema=Schema((Real("age", 0, 9),))), "not registered"
    ),
    "no such preflight": (lambda run: replace(run, preflight="open"), "preflight is 'open'"),  # type: ignore[arg-type]
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_sealed_run_needs_is_checked_before_a_row_is_read(tmp_path: Path, case: str) -> None:
    change, words = REFUSED[case]
    with pytest.raises((InputError, SchemaError), match=words):
        change(ready(tmp_path))
