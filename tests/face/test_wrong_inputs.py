"""Wrong inputs of the names at the top: one plain sentence, a remedy, and a short traceback."""

from __future__ import annotations

import copy
import pickle
import traceback
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import margrave
from margrave.contrib import SDVSynthesizer, Synthesizer, dp_event, schema_of_sdv
from margrave.errors import InputError, MargraveError, SchemaError
from margrave.inference import By
from margrave.mechanisms import MST
from margrave.release import croissant
from margrave.schema import Categorical, Integer, Schema, Timestamp

SCHEMA = Schema([Integer("age", 0, 3), Categorical("sex", ["f", "m"])])
ROWS = pa.table({"age": [0, 1, 2, 3] * 30, "sex": ["f", "m", "m", "f"] * 30})
COST: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-9}


@pytest.fixture(scope="module")
def release() -> margrave.Release:
    return margrave.synthesize(ROWS, SCHEMA, mechanism="independent", **COST)


VERBS: dict[str, tuple[Callable[[], Any], str]] = {
    "a misspelt mechanism": (
        lambda: margrave.synthesize(ROWS, SCHEMA, mechanism="msst", **COST),
        "'msst' is not a mechanism. Did you mean 'mst'?",
    ),
    "a mechanism in capitals": (
        lambda: margrave.plan(SCHEMA, mechanism="AIM", **COST),
        "Did you mean 'aim'?",
    ),
    "a class in place of a mechanism": (
        lambda: margrave.plan(SCHEMA, mechanism=MST, **COST),  # type: ignore[arg-type]
        "'MST' is not a mechanism. Give an instance",
    ),
    "a misspelt unit": (
        lambda: margrave.plan(SCHEMA, unit="add-remove-rows", **COST),
        "'add-remove-rows' is not a unit of privacy. Did you mean 'add-remove-row'?",
    ),
    "an unknown policy for columns": (
        lambda: margrave.synthesize(ROWS, SCHEMA, unlearnable="stopp", **COST),  # type: ignore[arg-type]
        "unlearnable is 'stopp'. Did you mean 'stop'?",
    ),
    "an unknown preflight": (
        lambda: margrave.synthesize(ROWS, SCHEMA, preflight="seal", **COST),  # type: ignore[arg-type]
        "preflight is 'seal'. Did you mean 'sealed'?",
    ),
    "a progress that is not one": (
        lambda: margrave.synthesize(ROWS, SCHEMA, progress="yes", **COST),  # type: ignore[arg-type]
        "progress is 'yes'. Give a function",
    ),
    "a number of rows that is text": (
        lambda: margrave.plan(SCHEMA, rows="many", **COST),  # type: ignore[arg-type]
        "rows is not a number of rows.",
    ),
    "a frame in place of the schema": (
        lambda: margrave.synthesize(ROWS, ROWS, **COST),  # type: ignore[arg-type]
        "The schema is of type Table, which is not a schema.",
    ),
    "the schema before the table": (
        lambda: margrave.synthesize(SCHEMA, ROWS, **COST),  # type: ignore[arg-type]
        "The table and the schema are exchanged. Give the table first",
    ),
    "a table alone": (
        lambda: margrave.synthesize(ROWS),  # type: ignore[call-arg]
        "synthesize() needs schema, epsilon, delta. Give synthesize(table, schema, epsilon=...",
    ),
    "arguments without their names": (
        lambda: margrave.synthesize(ROWS, SCHEMA, 1.0, 1e-9),  # type: ignore[call-arg,misc]
        "synthesize() takes only table, schema without a name.",
    ),
    "a table twice": (
        lambda: margrave.synthesize(ROWS, SCHEMA, table=ROWS, **COST),  # type: ignore[misc]
        "An argument of synthesize() is given twice.",
    ),
    "the seed of other libraries": (
        lambda: margrave.synthesize(ROWS, SCHEMA, random_state=1, **COST),  # type: ignore[call-arg]
        "synthesize() has no argument 'random_state'. Did you mean 'seed'?",
    ),
    "the budget of other libraries": (
        lambda: margrave.plan(SCHEMA, eps=1.0, delta=1e-9),  # type: ignore[call-arg]
        "plan() has no argument 'eps'. Did you mean 'epsilon'?",
    ),
    "a workload beside the mechanism": (
        lambda: margrave.synthesize(ROWS, SCHEMA, workload=3, **COST),  # type: ignore[call-arg]
        "Did you mean mechanism=AIM(workload=...)?",
    ),
    "another name of a bound": (
        lambda: Integer("age", minimum=0, high=110),  # type: ignore[call-arg]
        "Integer() has no argument 'minimum'. Did you mean 'low'?",
    ),
    "no bounds": (
        lambda: Integer("age"),  # type: ignore[call-arg]
        "Integer() needs low, high. Give Integer(name, low, high).",
    ),
    "a misspelt option of a schema": (
        lambda: Schema([Integer("age", 0, 3)], persn="id"),  # type: ignore[call-arg]
        "Schema() has no argument 'persn'. Did you mean 'person'?",
    ),
    "columns in a dict": (
        lambda: Schema({"age": Integer("age", 0, 3)}),  # type: ignore[arg-type]
        'not a list of columns. Give Schema([Integer("age", 0, 99), ...])',
    ),
    "a column of another class": (
        lambda: Schema([SimpleNamespace(name="age", kind="integer", encode=None)]),  # type: ignore[list-item]
        "The columns of the schema are not a list of columns.",
    ),
    "a time as text": (
        lambda: Timestamp("t", "2024-01-01", "2025-01-01"),  # type: ignore[arg-type]
        "low=datetime(2020, 12, 31, 23) in Python",
    ),
    "groups without a quantity": (
        lambda: By("fare", "payment"),  # type: ignore[arg-type]
        'Give By(Mean("fare"), "payment"), say.',
    ),
    "no schema file": (
        lambda: margrave.check_table(ROWS, "nowhere.toml"),
        "The schema nowhere.toml cannot be read",
    ),
    "the text of a schema file": (
        lambda: margrave.check_table(ROWS, SCHEMA.to_toml()),
        "The schema is a text of several lines, not the path of a file.",
    ),
    "a number in place of a table": (lambda: margrave.draft_schema(7), "This is not a table"),
    "an epsilon of nothing": (
        lambda: margrave.plan(SCHEMA, epsilon=0.0, delta=1e-9),
        "psilon",
    ),
    "a column of the purpose": (
        lambda: margrave.plan(SCHEMA, purposes=["mean aeg"], **COST),
        "aeg",
    ),
    "two frames without a schema": (
        lambda: margrave.evaluate(ROWS, ROWS),
        "name the schema: schema=",
    ),
    "a number in place of a release": (
        lambda: margrave.write_report(7, "page.html"),  # type: ignore[arg-type]
        "The release is of type int, which is not a release.",
    ),
    "a page that ends in another way": (
        lambda: margrave.write_report("r.margrave", "page.pdf"),
        ".html",
    ),
    "no release file": (lambda: margrave.verify("nowhere.margrave"), "There is no file"),
    "a path in place of a release": (
        lambda: margrave.analyze("x.margrave", "mean age"),  # type: ignore[arg-type]
        "'x.margrave' is a path, and an analysis takes a release. Give margrave.Release.load('x.",
    ),
    "no list of analyses": (lambda: margrave.analyze(7, 7), "is not an analysis"),  # type: ignore[arg-type]
    "neither schema nor draft": (
        lambda: Synthesizer(**COST),
        "A synthesizer needs either a schema or accept_draft=True.",
    ),
    "a schema and a draft": (
        lambda: Synthesizer(SCHEMA, accept_draft=True, **COST),
        "The schema and accept_draft are both given, and a synthesizer has one schema.",
    ),
    "an option of scikit-learn": (
        lambda: Synthesizer(SCHEMA, random_state=0, **COST),
        "A synthesizer has no argument 'random_state'. Did you mean 'seed'?",
    ),
    "an option of SDV": (
        lambda: SDVSynthesizer({"columns": {"age": {"sdtype": "numerical"}}}, epochs=3, **COST),
        "A synthesizer has no argument 'epochs'. Its options are: unit, mechanism,",
    ),
    "a schema beside metadata": (
        lambda: SDVSynthesizer({"columns": {"age": {"sdtype": "id"}}}, schema=SCHEMA, **COST),
        "A synthesizer has no argument 'schema'.",
    ),
    "an argument of a sample": (
        lambda: Synthesizer(SCHEMA, **COST).sample(n=3),  # type: ignore[call-arg]
        "sample() has no argument 'n'. Its arguments are: num_rows, where, as_, seed.",
    ),
    "a path of metadata": (
        lambda: schema_of_sdv("metadata.json"),
        "The metadata is a path, not the metadata of an SDV table. Give Metadata.load_from_json(path)",
    ),
    "an argument of metadata": (
        lambda: schema_of_sdv({"columns": {}}, ranges_public=True),  # type: ignore[call-arg]
        "schema_of_sdv() has no argument 'ranges_public'. Did you mean 'ranges_are_public'?",
    ),
    "the event of a synthesizer": (
        lambda: dp_event(Synthesizer(SCHEMA, **COST)),  # type: ignore[arg-type]
        "The release is of type Synthesizer, which is not a release.",
    ),
    "a sample before the fit": (
        lambda: Synthesizer(SCHEMA, **COST).sample(3),
        "The synthesizer is not fitted. Call fit(table) first.",
    ),
    "metadata that is none": (
        lambda: SDVSynthesizer({"age": "int"}, **COST),
        "This is not the metadata of an SDV table.",
    ),
    "metadata of two tables": (
        lambda: schema_of_sdv({"tables": {"a": {}, "b": {}}}),
        "The metadata is of 2 tables",
    ),
    "a misspelt sdtype": (
        lambda: schema_of_sdv({"columns": {"age": {"sdtype": "numercal"}}}),
        "Column 'age' has the sdtype 'numercal'. Did you mean 'numerical'?",
    ),
    "a column without sdtype": (
        lambda: schema_of_sdv({"columns": {"age": {}}}),
        "Column 'age' of the metadata has no sdtype.",
    ),
    "a sequential table": (
        lambda: schema_of_sdv({"columns": {}, "sequence_key": "id"}),
        "The metadata is of a sequential table",
    ),
}


@pytest.mark.parametrize("name", VERBS)
def test_a_wrong_input_gets_a_plain_sentence(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    call, sentence = VERBS[name]
    with pytest.raises(MargraveError) as raised:
        call()
    assert sentence in str(raised.value)
    assert len(str(raised.value)) < 700


METHODS: dict[str, tuple[Callable[[margrave.Release], Any], str]] = {
    "a kind of frame": (lambda r: r.sample(3, as_="pandsa"), "Did you mean 'pandas'?"),  # type: ignore[arg-type]
    "a condition as text": (
        lambda r: r.sample(3, where="sex=f"),  # type: ignore[arg-type]
        'The condition is of type str, not a mapping of columns to values. Give such as {"sex": "F"',
    ),
    "a misspelt column": (
        lambda r: r.sample(3, where={"sexx": "f"}),
        "There is no column 'sexx'. Did you mean 'sex'?",
    ),
    "a misspelt value": (lambda r: r.sample(3, where={"sex": "ff"}), "has no value 'ff'"),
    "a column of a chart": (
        lambda r: r.plot("aeg"),
        "There is no column 'aeg'. Did you mean 'age'?",
    ),
    "three columns of a chart": (
        lambda r: r.plot("age", "sex", "age"),
        "A chart is of one column or of two.",
    ),
    "no column of a chart": (lambda r: r.plot(), "A chart is of one column or of two."),
    "a number as a column": (lambda r: r.plot(3), "A chart is of one column or of two."),
    "a column twice": (lambda r: r.plot("age", "age"), "Column 'age' is given twice."),
    "the ending of a chart": (lambda r: r.plot("age").save("age.png"), ".svg"),
    "the ending of a page": (lambda r: r.report().save("page.txt"), ".html"),
    "a level": (lambda r: r.numbers(level=95), "The level 95 is not a probability."),
    "a method of draws": (lambda r: r.draws(method="bootstap"), "Did you mean 'bootstrap'?"),
    "a fit": (lambda r: r.refit("grafical"), "Did you mean 'graphical'?"),
    "a value above the bound": (
        lambda r: r.sample(3, where={"age": 5000}),
        "The value 5000 of column 'age' is above the upper bound, 3. Give a value from 0 to 3.",
    ),
    "one marginal as text": (lambda r: r.bounds("age"), 'Give [["age"]].'),
    "one marginal in place of a list": (
        lambda r: r.bounds(["age", "sex"]),
        'Give [["age", "sex"]].',
    ),
    "a list of columns in a list": (
        lambda r: r.marginal([["sex"]]),  # type: ignore[list-item]
        "The columns are not a list of names. Give such as ['age', 'sex'].",
    ),
    "a list of columns in a list of intervals": (
        lambda r: r.intervals([["sex"]]),  # type: ignore[list-item]
        "The columns are not a list of names.",
    ),
    "a number in place of the columns": (
        lambda r: r.numbers(columns=5),  # type: ignore[arg-type]
        "The columns are not a list of names.",
    ),
    "a number in place of a marginal": (
        lambda r: r.bounds([3]),  # type: ignore[list-item]
        "The columns are not a list of names.",
    ),
    "a condition by keyword": (
        lambda r: r.condition(sex="f"),  # type: ignore[call-arg]
        'condition() has no argument \'sex\'. Give condition({"sex": "F", "age": (30, 40)}).',
    ),
    "the condition of a sample": (
        lambda r: r.condition(where={"sex": "f"}),  # type: ignore[call-arg]
        "condition() has no argument 'where'. Give condition({",
    ),
    "a condition in two arguments": (
        lambda r: r.condition("sex", "f"),  # type: ignore[call-arg]
        "condition() takes only values without a name. Give condition({",
    ),
    "no condition": (
        lambda r: r.condition(),  # type: ignore[call-arg]
        "condition() needs values. Give condition({",
    ),
    "columns in several arguments": (
        lambda r: r.marginal("age", "sex"),  # type: ignore[call-arg]
        'marginal() takes only attributes without a name. Give marginal(["age", "sex"]).',
    ),
    "another name of the columns": (
        lambda r: r.intervals(columns=["age"]),  # type: ignore[call-arg]
        'intervals() has no argument \'columns\'. Give intervals(["age", "sex"]).',
    ),
    "a misspelt option of bounds": (
        lambda r: r.bounds(levle=0.9),  # type: ignore[call-arg]
        "bounds() has no argument 'levle'. Did you mean 'level'?",
    ),
    "rows to complete without their source": (
        lambda r: r.complete(ROWS),  # type: ignore[call-arg]
        "complete() needs attestation. Give complete(rows, attestation=...).",
    ),
    "a misspelt option of save": (
        lambda r: r.save("r.margrave", overwite=True),  # type: ignore[call-arg]
        "save() has no argument 'overwite'. Did you mean 'overwrite'?",
    ),
    "the number of rows of a part": (
        lambda r: r.condition({"sex": "f"}).sample(size=3),  # type: ignore[call-arg]
        "sample() has no argument 'size'. Did you mean 'n'?",
    ),
    "a frame in place of a file": (
        lambda r: croissant(r, [ROWS], name="a", license="b", creator="c", url="d"),  # type: ignore[list-item]
        "files lists a Table, which is not a file. Save it first",
    ),
    "no real table": (lambda r: r.compare(), "compare() needs real, the table of the real rows."),  # type: ignore[call-arg]
    "release and real table exchanged": (
        lambda r: margrave.evaluate(r, ROWS),
        "The real table comes first, and the release after it: evaluate(real, release).",
    ),
    "a misspelt option": (
        lambda r: r.compare(ROWS, sed=1),
        "evaluate() has no argument 'sed'. Did you mean 'seed'?",
    ),
    "another table": (
        lambda r: r.compare(pa.table({"x": [1]})),
        "These are not the rows that the release was made from.",
    ),
}


@pytest.mark.parametrize("name", METHODS)
def test_a_wrong_input_of_a_release_gets_a_plain_sentence(
    name: str, release: margrave.Release, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    call, sentence = METHODS[name]
    with pytest.raises(MargraveError) as raised:
        call(release)
    assert sentence in str(raised.value)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("epsilon", "It is release.account.epsilon."),
        ("columns", "It is release.schema.columns."),
        ("analyze", "It is margrave.analyze."),
        ("sampel", "Did you mean 'sample'?"),
        (
            "budget",
            "release.account.rho_budget is the budget, of which release.account.rho_spent was spent.",
        ),
        ("to_pandas", 'release.sample(as_="pandas") draws rows.'),
    ],
)
def test_an_unknown_name_of_a_release_gets_its_place(
    name: str, hint: str, release: margrave.Release
) -> None:
    with pytest.raises(AttributeError) as raised:
        getattr(release, name)
    assert str(raised.value) == f"'Release' object has no attribute {name!r}. {hint}"
    assert not hasattr(release, "frobnicate")
    assert copy.copy(release).account is release.account


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("epsilon", "It is certificate['epsilon']."),
        ("spent", "It is certificate['rho']['spent']."),
        ("epsilom", "Did you mean 'epsilon'?"),
    ],
)
def test_an_unknown_name_of_a_certificate_gets_its_key(
    name: str, sentence: str, release: margrave.Release
) -> None:
    certificate = release.certificate()
    with pytest.raises(AttributeError) as raised:
        getattr(certificate, name)
    assert str(raised.value) == f"'Certificate' object has no attribute {name!r}. {sentence}"
    assert pickle.loads(pickle.dumps(certificate)) == certificate  # noqa: S301


def test_an_unknown_name_of_an_account_gets_its_place(release: margrave.Release) -> None:
    for name, sentence in {
        "rho": "It is account.rho_budget",
        "budget": "mean 'rho_budget'",
    }.items():
        with pytest.raises(AttributeError, match=sentence):
            getattr(release.account, name)
    assert pickle.loads(pickle.dumps(release.account)) == release.account  # noqa: S301


def test_an_error_within_a_property_of_a_release_is_not_hidden(
    release: margrave.Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_parts: Any) -> None:
        raise AttributeError("within")

    monkeypatch.setattr("margrave.release.release.coverage_of", broken)
    with pytest.raises(AttributeError, match=r"^within$"):
        _ = release.coverage


def test_wrong_inputs_are_value_errors() -> None:
    with pytest.raises(ValueError, match="msst"):
        margrave.plan(SCHEMA, mechanism="msst", **COST)
    with pytest.raises(ValueError, match="nowhere"):
        margrave.plan("nowhere.toml", **COST)
    assert issubclass(InputError, ValueError)
    assert issubclass(SchemaError, ValueError)


def test_a_traceback_has_the_line_of_the_caller_and_one_more(monkeypatch: Any) -> None:
    def lines() -> tuple[list[str], str]:
        try:
            margrave.synthesize(ROWS, SCHEMA, mechanism="msst", **COST)
        except InputError as error:
            return [f.name for f in traceback.extract_tb(error.__traceback__)], "".join(
                traceback.format_exception(error)
            )
        raise AssertionError

    names, text = lines()
    assert names == ["lines", "call"]
    assert len(text.splitlines()) <= 12
    monkeypatch.setenv("MARGRAVE_TRACEBACK", "1")
    assert len(lines()[0]) > 4
