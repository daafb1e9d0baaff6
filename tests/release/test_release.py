"""Releases: rows on demand, a file that keeps its promises and believes nothing, and an honest certificate."""

from __future__ import annotations

import json
import pickle
import zipfile
from dataclasses import replace
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from margrave.data import MemoryTable
from margrave.domain import Codes
from margrave.errors import BinWarning, InputError, MargraveError, ReleaseError
from margrave.evaluation import evaluate
from margrave.marginal import TOTAL, LinearQuery, Marginal, QueryFamily
from margrave.models import FAMILIES, GraphicalFit, MultiplicativeWeightsFit
from margrave.models.specs import fit_config, fit_spec
from margrave.provenance import Provenance, PublicFacts
from margrave.public_table import PublicTable
from margrave.release import Release, sampling
from margrave.schema import Categorical, Coded, Date, Depends, Elapsed, Integer, Schema
from margrave.transcript import (
    Answer,
    Measurement,
    PublicReading,
    PublicTotal,
    QuerySelection,
    Selection,
    Transcript,
)
from tests.support import fake_model


@pytest.fixture(autouse=True)
def _fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FAMILIES, "fake", fake_model.FAMILY)


@pytest.fixture
def made() -> Release:
    return fake_model.release()


@pytest.fixture
def saved(made: Release, tmp_path: Path) -> Path:
    path = tmp_path / "a.margrave"
    made.save(path)
    return path


def test_rows_follow_the_model_and_the_seed(made: Release) -> None:
    rows = made.sample(20_000, seed=1)
    assert rows.num_rows == 20_000
    assert rows.column_names == ["age", "sex", "job"]
    shares = np.bincount(np.asarray(rows["age"]), minlength=5) / 20_000
    expected = made.marginal(["age"]).values / made.model.total
    assert np.abs(shares - expected).max() < 0.02
    assert made.sample(500, seed=1).equals(made.sample(500, seed=1))
    assert not made.sample(500, seed=1).equals(made.sample(500, seed=2))


def test_no_number_of_rows_means_as_many_as_estimated(made: Release) -> None:
    assert made.sample(seed=0).num_rows == round(made.model.total) == 300
    assert made.sample(0, seed=0).num_rows == 0


@pytest.mark.parametrize("n", [-1, 2.5, 3.0, "3", True])
def test_what_is_no_number_of_rows_is_refused(made: Release, n: Any) -> None:
    for draw in (made.sample, made.codes, made.condition({"sex": 1}).sample):
        with pytest.raises(InputError, match="at least 0"):
            draw(n)
    assert made.sample(np.int64(3)).num_rows == 3  # type: ignore[arg-type]


def test_more_rows_than_can_be_held_are_refused(
    made: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the size of the machine, or where its memory runs out before that."""
    part = made.condition({"sex": 1})
    for draw in (made.sample, made.codes, part.sample, lambda n: made.draws(2, rows=n)):
        with pytest.raises(
            InputError, match="1,000,000,000,000 rows are more than this machine can hold"
        ) as caught:
            draw(10**12)
        assert "--rows" in str(caught.value)
    monkeypatch.setattr(sampling, "_memory", lambda: 16 * 3 * 1000)
    assert made.sample(1000).num_rows == 1000
    with pytest.raises(InputError, match="at most 1,000 of 3 columns"):
        made.sample(1001)

    def full(*_: Any, **__: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(type(made.model), "sample", full)
    for number in (5, None):
        with pytest.raises(InputError, match="more than this machine can hold"):
            made.sample(number)


def test_codes_are_those_of_the_sample_of_the_same_seed(made: Release) -> None:
    codes = made.codes(40, seed=5)
    assert codes.domain == made.schema.domain
    assert np.array_equal(codes.values, made.schema.encode(made.sample(40, seed=5)).values)
    assert not np.array_equal(codes.values, made.codes(40, seed=6).values)
    assert len(made.codes()) == round(made.model.total)


@pytest.mark.parametrize("scale", [60.0, 1e7])
def test_a_number_of_records_that_is_lost_in_noise_is_asked_for(
    made: Release, scale: float
) -> None:
    """300 records, with noise of their own number or far more: any number of rows could come out."""
    noisy = Measurement(("age",), np.array([60, 60, 60, 60, 60]), scale * 5**0.5, Fraction(1, 9))
    hidden = replace(made, transcript=Transcript((noisy,)))
    assert hidden.transcript.total_deviation() == pytest.approx(5 * scale)
    assert not hidden.row_count_is_known
    part = hidden.condition({"sex": 0})
    for draw in (hidden.sample, part.sample, lambda: hidden.draws(2)):
        with pytest.raises(InputError, match="hides how many records there are") as caught:
            draw()
        assert "--rows" in str(caught.value)
    assert hidden.sample(7).num_rows == part.sample(7).num_rows == 7
    nine = Codes.of(
        made.schema.domain, {a: np.zeros(9, dtype=np.int64) for a in ("age", "sex", "job")}
    )
    real = MemoryTable(made.schema, nine)
    assert evaluate(real, hidden).synthetic_rows == 9, "as many as there are real ones"


def test_the_deviation_of_the_number_of_records_weighs_all_that_tells_it() -> None:
    once = Measurement(("age",), np.ones(4, dtype=np.int64), 3.0, Fraction(1))
    asked = Answer(TOTAL, 10, 6.0, Fraction(1))
    assert Transcript((once,)).total_deviation() == pytest.approx(6.0)
    assert Transcript((once, asked)).total_deviation() == pytest.approx(6.0 / 2**0.5)
    assert Transcript((once, PublicTotal(4))).total_deviation() == 0.0
    assert Transcript().total_deviation() == np.inf
    assert replace(
        fake_model.release(), transcript=Transcript((PublicTotal(300),))
    ).row_count_is_known


def test_rows_come_in_random_order(made: Release) -> None:
    ages = np.asarray(made.sample(2000, seed=3)["age"])
    assert (np.diff(ages) < 0).mean() > 0.2  # the model's own order is sorted


def test_marginal_takes_columns_in_any_order(made: Release) -> None:
    assert made.marginal(["sex", "age"]).clique == ("age", "sex")
    with pytest.raises(InputError, match="no column 'agee'"):
        made.marginal(["agee"])


def test_a_marginal_says_what_its_codes_stand_for() -> None:
    schema = Schema(
        [Integer("age", 0, 99, bins=2), Categorical("count", ["f", "m"]), Coded("c", 3)]
    )
    release = fake_model.release(schema=schema)
    found = release.marginal(["count", "age"])
    assert found.clique == ("age", "count")
    assert found.labels == (("0 to 49", "50 to 99"), ("f", "m"))
    told = found.to_dict()
    assert told["age"] == ["0 to 49", "0 to 49", "50 to 99", "50 to 99"]
    assert told["count"] == ["f", "m", "f", "m"]
    assert told["count_"] == found.values.ravel().tolist()
    assert found.project(("count",)).labels == (("f", "m"),)
    assert found.project(("count", "age")).labels == (("f", "m"), ("0 to 49", "50 to 99"))
    part = release.condition({"count": "m"}).marginal(["age"])
    assert part.labels == (("0 to 49", "50 to 99"),)
    assert Marginal(("a",), np.ones(2)).to_dict() == {"a": ["0", "1"], "count": [1.0, 1.0]}


def test_conditioning_holds_in_every_row(made: Release) -> None:
    part = made.condition({"sex": 1, "age": [0, 3]})
    rows = part.sample(400, seed=0)
    assert set(np.asarray(rows["sex"])) == {1}
    assert set(np.asarray(rows["age"])) <= {0, 3}
    assert part.evidence == {"sex": (1,), "age": (0, 3)}


def test_a_part_has_as_many_rows_as_the_model_expects_of_it(made: Release) -> None:
    """Neither all records, nor the product of the columns' shares."""
    counts = made.marginal(["age", "sex", "job"]).values
    inside = counts[[0, 3], 1].sum(axis=0)
    apart = counts[[0, 3]].sum() * counts[:, 1].sum() / counts.sum()
    assert abs(inside.sum() - apart) > 2
    part = made.condition({"sex": 1, "age": [0, 3]})
    assert np.abs(part.marginal(["job"]).values - inside).max() < 1e-9
    assert len(part.sample(seed=0)) == round(inside.sum())
    assert part.total == pytest.approx(inside.sum())


@pytest.mark.parametrize("evidence", [{"sex": 7}, {"sex": []}, {"nobody": 1}, {"age": [1, 99]}])
def test_conditioning_on_what_is_not_there_is_refused(made: Release, evidence: Any) -> None:
    with pytest.raises(InputError):
        made.condition(evidence)


def test_a_condition_on_elapsed_time_that_cuts_a_bin_holds_in_every_row(made: Release) -> None:
    """Rows have dates, and the condition is on a number of days."""
    came, left = date(2020, 1, 1), Elapsed("left", 0, 29, since="came", bins=3, missing=True)
    schema = Schema([Date("came", came, date(2020, 12, 31), bins=2), left])
    counts = np.array([[30.0, 20.0, 10.0, 5.0]] * 2)
    model = fake_model.TableModel(schema.domain, counts)
    release = replace(made, schema=schema, model=model)
    with pytest.warns(BinWarning, match="left from 3 to 12 cuts a bin"):
        rows = release.sample(200, where={"left": (3, 12)}, seed=0)
    days = np.subtract(*(rows[a].cast(pa.int32()).to_numpy() for a in ("left", "came")))
    assert set(days) == set(range(3, 13))


def test_refitting_keeps_the_books(made: Release) -> None:
    again = made.refit(fake_model.TableFit(np.ones((5, 2, 3))))
    assert again.model.total == 30
    assert again.account is made.account
    assert again.transcript is made.transcript
    refit = again.provenance.refit
    assert refit is not None
    assert (refit.name, refit.words) == (None, "TableFit")


def test_a_fit_by_its_name_and_what_is_none(made: Release) -> None:
    assert made.refit("graphical").provenance.refit == fit_spec(GraphicalFit())
    for wrong in ("graph", GraphicalFit, 3, None, lambda: None):
        with pytest.raises(
            InputError, match=r"is not a fit\..* Give an instance.*graphical, max-entropy"
        ):
            made.refit(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [-1, 1.5, "1", True, np.float64(2)])
def test_what_is_no_seed_is_refused_everywhere(made: Release, seed: Any) -> None:
    rows = pa.table({"age": [0, 1]})
    for call in (
        lambda: made.sample(3, seed=seed),
        lambda: made.condition({"sex": 1}).sample(3, seed=seed),
        lambda: made.refit(fake_model.TableFit(np.ones((5, 2, 3))), seed=seed),
        lambda: made.complete(rows, attestation="made up", seed=seed),
        lambda: made.draws(2, seed=seed),
    ):
        with pytest.raises(
            InputError, match=r"is not a seed\. A seed is a whole number, 0 or more\."
        ):
            call()
    assert made.sample(3, seed=np.int64(4)).equals(made.sample(3, seed=4))


@pytest.mark.parametrize("public_total", [False, True])
def test_saving_and_loading_keeps_everything(tmp_path: Path, public_total: bool) -> None:
    made = fake_model.release(public_total=public_total)
    made.save(tmp_path / "r.margrave")
    back = Release.load(tmp_path / "r.margrave")
    assert back.certificate() == made.certificate()
    assert back.account == made.account
    assert back.schema.to_toml() == made.schema.to_toml()
    np.testing.assert_array_equal(
        back.model.project(("age", "job")).values, made.model.project(("age", "job")).values
    )
    assert len(back.transcript) == len(made.transcript)
    for a, b in zip(made.transcript, back.transcript, strict=True):
        assert_same_entry(a, b)
    assert back.sample(50, seed=4).equals(made.sample(50, seed=4))


def assert_same_entry(a: Any, b: Any) -> None:
    match a:
        case PublicTotal():
            assert a == b
        case Measurement():
            assert (a.clique, a.scale, a.rho) == (b.clique, b.scale, b.rho)
            np.testing.assert_array_equal(a.values, b.values)
            assert a.query.groups.keys() == b.query.groups.keys()
            for name in a.query.groups:
                np.testing.assert_array_equal(a.query.groups[name], b.query.groups[name])
        case Selection():
            assert (a.candidates, a.chosen, a.epsilon, a.sensitivity, a.rho) == (
                b.candidates, b.chosen, b.epsilon, b.sensitivity, b.rho,
            )  # fmt: skip
            np.testing.assert_array_equal(a.terms["weights"], b.terms["weights"])


def test_the_same_content_gives_the_same_bytes(made: Release, tmp_path: Path) -> None:
    made.save(tmp_path / "a.margrave")
    fake_model.release().save(tmp_path / "b.margrave")
    Release.load(tmp_path / "a.margrave").save(tmp_path / "c.margrave")
    first = (tmp_path / "a.margrave").read_bytes()
    assert first == (tmp_path / "b.margrave").read_bytes() == (tmp_path / "c.margrave").read_bytes()


def test_an_existing_file_stays(made: Release, saved: Path) -> None:
    before = saved.read_bytes()
    with pytest.raises(InputError, match="exists already"):
        fake_model.release(private=False).save(saved)
    assert saved.read_bytes() == before
    fake_model.release(private=False).save(saved, overwrite=True)
    with pytest.raises(
        InputError, match=r"a\.txt does not end in \.margrave\. Name it so: a\.margrave"
    ):
        fake_model.release().save(saved.with_name("a.txt"))
    assert not saved.with_name("a.txt").exists()
    assert not Release.load(saved).account.private


def test_a_failed_write_leaves_nothing(
    made: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def full(self: Any, *args: Any, **kwargs: Any) -> None:
        calls.append(1)
        if len(calls) == 3:
            raise OSError(28, "No space left on device")
        original(self, *args, **kwargs)

    original = zipfile.ZipFile.writestr
    monkeypatch.setattr(zipfile.ZipFile, "writestr", full)
    with pytest.raises(MargraveError, match="No space left"):
        made.save(tmp_path / "r.margrave")
    assert list(tmp_path.iterdir()) == []


def test_there_is_no_pickle_in_it(saved: Path) -> None:
    with zipfile.ZipFile(saved) as archive:
        names = archive.namelist()
        assert names[0] == "manifest.json"
        assert all(n.startswith("arrays/") and n.endswith(".npy") for n in names[1:])
        for name in names[1:]:
            with archive.open(name) as member:
                np.lib.format.read_array(member, allow_pickle=False)


def edited(path: Path, change: Any, members: dict[str, bytes] | None = None) -> Path:
    """A copy of a release with its manifest changed, and members replaced or added."""
    target = path.with_name("edited.margrave")
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w") as out:
        manifest = json.loads(source.read("manifest.json"))
        changed = change(manifest)
        out.writestr("manifest.json", json.dumps(manifest if changed is None else changed))
        for name in source.namelist()[1:]:
            if name not in (members or {}):
                out.writestr(name, source.read(name))
        for name, data in (members or {}).items():
            out.writestr(name, data)
    return target


def setter(*keys: Any, value: Any) -> Any:
    def change(manifest: Any) -> None:
        place = manifest
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = value

    return change


WRONG_WORKLOADS: list[Any] = [
    3, "all 3-way", {}, {"ways": 0}, {"ways": "3"}, {"marginals": []}, {"marginals": [["age", 1.0]]},
    {"marginals": [[["salary"], 1.0]]}, {"marginals": [[["age"], -1.0]]}, {"marginals": [[["age"]]]},
]  # fmt: skip
SPEC = {"words": "GraphicalFit()", "name": "graphical", "parameters": {}, "public": None}
WRONG_FITS: list[Any] = [
    7, "GraphicalFit()", [], {}, {**SPEC, "words": None}, {**SPEC, "name": 3}, {**SPEC, "parameters": [1]},
    {**SPEC, "parameters": None}, {**SPEC, "public": "Public()"}, {**SPEC, "public": {}},
]  # fmt: skip
FACTS: dict[str, Any] = PublicFacts(9, ("age",), "0" * 64, "a survey").to_dict()
WRONG_FACTS: list[dict[str, Any]] = [
    {"rows": -1}, {"rows": "9"}, {"columns": "age"}, {"columns": [["age"]]}, {"sha256": 0}, {"attestation": None},
    {"notes": "none"}, {"same_records": 1},
]  # fmt: skip
WRONG = {
    "format": setter("format", value="other"),
    "version": setter("version", value=99),
    "version as text": setter("version", value="1"),
    "schema": setter("schema", value="nonsense ["),
    "schema is no text": setter("schema", value=3),
    "another schema": setter(
        "schema", value=fake_model.Schema.coded({"age": 5, "sex": 2}).to_toml()
    ),
    "unit": setter("account", "unit", value=None),
    "overspent": setter("account", "rho_budget", value="1/100"),
    "negative rho": setter("account", "rho_budget", value="-1/10"),
    "an endless number": setter("account", "rho_budget", value="1e999999999"),
    "division by zero": setter("account", "rho_budget", value="1/0"),
    "float rho": setter("account", "rho_budget", value=0.5),
    "private is a word": setter("account", "private", value="yes"),
    "negative epsilon": setter("account", "epsilon", value=-1),
    "epsilon is true": setter("account", "epsilon", value=True),
    "not a number": setter("account", "epsilon", value=float("nan")),
    "unknown entry": setter("transcript", 0, "type", value="rows"),
    "unknown column": setter("transcript", 0, "clique", value=["salary"]),
    "wrong order": setter("transcript", 3, "clique", value=["sex", "age"]),
    "wrong shape": setter("transcript", 0, "clique", value=["sex"]),
    "missing array": setter("transcript", 0, "values", value="000999"),
    "no scale": setter("transcript", 0, "scale", value=0),
    "scale is text": setter("transcript", 0, "scale", value="4"),
    "not chosen from": setter("transcript", 2, "chosen", value=["job"]),
    "wrong terms": setter("transcript", 2, "terms", value={"weights": "000000"}),
    "wrong groups": setter("transcript", 1, "query", value={"sex": "000000"}),
    "transcript is no list": setter("transcript", value={}),
    "unhashable model": setter("model", "kind", value=["fake"]),
    "facts": setter("model", "facts", value=[]),
    "other facts": setter("model", "facts", value={"cells": 4}),
    "no arrays": setter("model", "arrays", value={}),
    "provenance": setter("provenance", value=7),
    "a mechanism without a name": setter("provenance", "name", value=7),
    "parameters": setter("provenance", "parameters", value=[3]),
    "endless parameters": setter("provenance", "parameters", value={"x": float("nan")}),
    "stopped early": setter("provenance", "stopped_early", value="no"),
    **{f"workload {w!r}": setter("provenance", "workload", value=w) for w in WRONG_WORKLOADS},
    **{f"fit {s!r}": setter("provenance", "fit", value=s) for s in WRONG_FITS},
    **{f"refit {s!r}": setter("provenance", "refit", value=s) for s in WRONG_FITS},
    **{f"public {w}": setter("provenance", "public", value={**FACTS, **w}) for w in WRONG_FACTS},
    "public facts missing": setter("provenance", "public", value={"sha256": "0"}),
    "no account": lambda m: m.pop("account") and None,
    "a list": lambda m: [m],
    "deep": lambda m: setter("provenance", "parameters", value=json.loads("[" * 900 + "]" * 900))(
        m
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_manifest_is_refused(saved: Path, what: str) -> None:
    with pytest.raises(ReleaseError):
        Release.load(edited(saved, WRONG[what]))


@pytest.mark.parametrize("version", [1, 3, "2", None])
def test_another_version_of_the_format_is_refused(saved: Path, version: object) -> None:
    with pytest.raises(ReleaseError, match=rf"version {version!r} .* reads version 2\."):
        Release.load(edited(saved, setter("version", value=version)))


def test_groups_of_other_columns_are_refused(saved: Path) -> None:
    """An answer names the groups of its own columns alone."""

    def wider(manifest: Any) -> None:
        measured = [e for e in manifest["transcript"] if e["type"] == "measurement"]
        merged = next(e for e in measured if e["query"])
        for entry in measured:
            if not set(merged["query"]) & set(entry["clique"]):
                entry["query"] = merged["query"]

    with pytest.raises(ReleaseError, match="names a column that its marginal lacks"):
        Release.load(edited(saved, wider))


def npy(shape: str, descr: str = "<i8", body: bytes = b"") -> bytes:
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + body


HOSTILE = {
    "a huge shape": npy("(1000000000000,)"),
    "a shape that wraps": npy("(4294967296, 4294967296, 0, 1)", body=b"\0" * 8),
    "a negative shape": npy("(-1,)", body=b"\0" * 8),
    "objects": npy("(1,)", "|O", b"\x80\x04N."),
    "records": npy("(1,)", "|V8", b"\0" * 8),
    "text": npy("(1,)", "<U2", b"\0" * 8),
    "longer than it says": npy("(5,)", body=b"\0" * 48),
    "shorter than it says": npy("(5,)", body=b"\0" * 32),
    "code in the header": npy("__import__('os').abort()", body=b"\0" * 40),
    "another version": b"\x93NUMPY\x03\x00" + b"\0" * 60,
    "nothing": b"",
    "noise": bytes(range(256)),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_array_is_refused(saved: Path, what: str) -> None:
    with pytest.raises(ReleaseError):
        Release.load(edited(saved, lambda m: None, {"arrays/000000.npy": HOSTILE[what]}))


class Trap:
    """What a pickle of it does when it is read: it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (str(self.path), "w")


def test_no_pickle_is_ever_run(saved: Path, tmp_path: Path) -> None:
    trap = pickle.dumps(Trap(tmp_path / "sprung"))
    pickle.loads(trap).close()  # noqa: S301 - it works
    (tmp_path / "sprung").unlink()
    with pytest.raises(ReleaseError):
        Release.load(edited(saved, lambda m: None, {"arrays/000000.npy": npy("(1,)", "|O", trap)}))
    assert not (tmp_path / "sprung").exists()


def test_strangers_in_the_zip_are_refused(saved: Path) -> None:
    with pytest.raises(ReleaseError, match="neither manifest nor array"):
        Release.load(edited(saved, lambda m: None, {"../escape.txt": b"x"}))


def test_missing_and_foreign_files(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="no file"):
        Release.load(tmp_path / "none.margrave")
    with pytest.raises(ReleaseError):
        Release.load(tmp_path)
    (tmp_path / "text.margrave").write_text("age,sex\n1,2\n")
    with pytest.raises(ReleaseError, match="not a release"):
        Release.load(tmp_path / "text.margrave")


@pytest.mark.parametrize("fault", ["cut off", "a flipped byte", "no account"])
def test_a_file_that_was_altered_is_reported_in_plain_words(saved: Path, fault: str) -> None:
    data = bytearray(saved.read_bytes())
    if fault == "no account":
        edited(saved, lambda manifest: manifest.pop("account") and None).replace(saved)
    elif fault == "cut off":
        saved.write_bytes(data[: len(data) // 2])
    else:
        data[len(data) // 3] ^= 255
        saved.write_bytes(data)
    with pytest.raises(ReleaseError) as refused:
        Release.load(saved)
    assert str(refused.value) == (
        f"{saved} is cut off or was altered. Copy it anew from where it was made."
    )


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.binary(max_size=400))
def test_random_bytes_are_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "fuzz.margrave"
    path.write_bytes(data)
    with pytest.raises(ReleaseError):
        Release.load(path)


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(position=st.floats(0, 1, exclude_max=True), flip=st.integers(1, 255), cut=st.booleans())
def test_a_damaged_file_is_refused_or_the_same(
    saved: Path, made: Release, position: float, flip: int, cut: bool
) -> None:
    data = bytearray(saved.read_bytes())
    at = int(position * len(data))
    if cut:
        del data[at:]
    else:
        data[at] ^= flip
    path = saved.with_name("damaged.margrave")
    path.write_bytes(data)
    try:
        back = Release.load(path)
    except ReleaseError:
        return
    assert not cut
    assert back.certificate() == made.certificate()  # a byte that says nothing, such as a date


def test_the_certificate_says_what_was_done(made: Release) -> None:
    facts = made.certificate()
    assert json.loads(json.dumps(facts)) == facts
    assert facts["unit"] == "add or remove one row"
    assert (facts["epsilon"], facts["delta"], facts["private"]) == (3.0, 1e-9, True)
    assert facts["rho"]["budget"] == {"exact": "1/9", "decimal": 1 / 9}
    assert facts["rho"]["spent"]["exact"] == str(made.account.rho_spent)
    assert facts["schema"]["sha256"] == made.schema.hash()
    assert facts["mechanism"] == {
        "name": "fake", "parameters": {"rounds": 3}, "workload": None, "fit": None, "public": None, "refit": None,
        "stopped_early": False,
    }  # fmt: skip
    assert set(facts["versions"]) == {"margrave", "opendp", "numpy", "python"}
    assert facts["sampler"] == made.account.sampler
    assert facts["size"] == pytest.approx(300)
    assert facts["size_is_public"] is False
    assert [e.get("measured") or e.get("selected") for e in facts["transcript"]] == [
        ["age"], ["sex", "job"], ["age", "sex"], ["age", "sex"],
    ]  # fmt: skip
    assert "warning" not in facts


PLACES = Schema(
    [
        Categorical("city", ["x", "y", "z"]),
        Categorical("state", ["s", "t"]),
        Coded("age", 4),
        Coded("sex", 2),
    ],
    constraints=[Depends("city", "state", {"x": "s", "y": "s", "z": "t"})],
)


def knowing(*entries: Any, provenance: Provenance = Provenance("by hand")) -> Release:  # noqa: B008
    of = replace(fake_model.release(schema=Schema.coded({"a": 2, "b": 2, "c": 3})), schema=PLACES)
    shape = PLACES.domain.shape(PLACES.domain.attributes)
    model = fake_model.TableModel(PLACES.domain, np.ones(shape))
    return replace(of, model=model, transcript=Transcript(tuple(entries)), provenance=provenance)


def test_columns_that_nothing_tells_of_are_named() -> None:
    cities = Measurement(("city",), np.ones(3, dtype=np.int64), 1.0, Fraction(1))
    assert knowing(cities).unmeasured_columns == ("age", "sex"), "a state follows from its city"
    assert knowing(cities).certificate()["unmeasured_columns"] == ["age", "sex"]
    count = Answer(LinearQuery(("age",), ((0, 1),)), 10, 1.0, Fraction(1))
    reading = PublicReading(("sex",), np.ones(2), np.ones(2), "0" * 64)
    assert knowing(cities, count).unmeasured_columns == ("sex",)
    assert knowing(cities, count, reading).unmeasured_columns == ()
    assert knowing(cities, Answer(TOTAL, 10, 1.0, Fraction(1))).unmeasured_columns == ("age", "sex")
    passed_over = Selection((("age",), ("sex",)), ("age",), 1.0, 1.0, Fraction(1))
    assert knowing(cities, passed_over).unmeasured_columns == ("age", "sex"), (
        "what was not chosen was not measured"
    )


def test_choices_alone_tell_of_every_column_of_their_queries() -> None:
    queries = QueryFamily.cells(PLACES.domain, [("age", "sex"), ("city", "age")])
    chosen = QuerySelection(queries, 0, 1, 1.0, 1.0, Fraction(1), signed=True)
    total = Answer(TOTAL, 10, 1.0, Fraction(1))
    assert knowing(total, chosen).unmeasured_columns == ()
    assert knowing(
        total, replace(chosen, queries=QueryFamily.cells(PLACES.domain, [("city",)]))
    ).unmeasured_columns == ("age", "sex")
    cities = Measurement(("city",), np.ones(3, dtype=np.int64), 1.0, Fraction(1))
    assert knowing(cities, chosen).unmeasured_columns == ("age", "sex"), (
        "where something is measured, choices tell little"
    )


def test_a_public_table_that_the_model_starts_from_tells_of_its_columns() -> None:
    cities = Measurement(("city",), np.ones(3, dtype=np.int64), 1.0, Fraction(1))
    codes = Codes.of(
        PLACES.domain.project(["city", "age"]), {"city": np.array([0]), "age": np.array([1])}
    )
    public = PublicTable(codes, "made up")
    weights = MultiplicativeWeightsFit(public=public)
    started = Provenance.of({"name": "pmw-pub", **fit_config(weights)})
    assert started.public == public.facts()
    assert knowing(cities, provenance=started).unmeasured_columns == ("sex",)
    jam = Provenance("aim-pub", public=public.facts(), fit=fit_spec(GraphicalFit()))
    assert knowing(cities, provenance=jam).unmeasured_columns == ("age", "sex"), (
        "JAM knows what it read, and no more"
    )
    again = replace(started, refit=fit_spec(GraphicalFit()))
    assert knowing(cities, provenance=again).unmeasured_columns == ("age", "sex")
    other = replace(jam, refit=fit_spec(weights))
    assert knowing(cities, provenance=other).unmeasured_columns == ("sex",)
    elsewhere = replace(fit_spec(weights), public=replace(public.facts(), columns=("nowhere",)))
    for unknown in (replace(started, fit=elsewhere), replace(jam, refit=elsewhere)):
        assert knowing(cities, provenance=unknown).unmeasured_columns == ("age", "sex")


def test_a_public_size_is_a_public_input() -> None:
    facts = fake_model.release(public_total=True).certificate()
    assert facts["size_is_public"] is True
    assert any("300" in line for line in facts["public_inputs"])


def test_seeded_noise_is_loud() -> None:
    made = fake_model.release(private=False)
    assert made.certificate()["warning"].startswith("NOT PRIVATE")
    assert "NOT PRIVATE" in repr(made)


def test_only_plain_data_enters_a_release(made: Release, tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="plain data"):
        replace(made, provenance=Provenance("fake", {"found": object()}))
