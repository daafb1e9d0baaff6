"""What public inputs say against a run is said before anything is read: by a plan, by a run and by the gate's user."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import margrave
from margrave.accounting import AddRemoveRow, Budget, ReplaceRow, Unit
from margrave.cli.main import run
from margrave.errors import InputError, MargraveError, ModelTooLargeError
from margrave.evaluation import evaluate
from margrave.marginal import QueryFamily
from margrave.mechanisms import (
    FEM,
    GEM,
    JAMPGM,
    MECHANISMS,
    MWEM,
    NAPSUMQ,
    PEP,
    RAP,
    AIMPub,
    DualQuery,
    Mechanism,
    PEPPub,
    PMWPub,
    PrivateGSD,
)
from margrave.models import AnswersFit, MaxEntropyFit, ParticleFit, RelaxedFit
from margrave.planning import plan_of
from margrave.privacy import SeededRandomness, protect
from margrave.profiling import check_table
from margrave.public_table import PublicTable
from margrave.schema import Boolean, Impossible, Integer, Schema
from margrave.workload import Workload

BUDGET = Budget.approx(1.0, 1e-9)
FREE = Schema.coded({"a": 3, "b": 4, "c": 2})
TIED = Schema(
    (Boolean("smoker"), Integer("packs", 0, 3), Boolean("inpatient")),
    constraints=(Impossible({"smoker": [False], "packs": [1, 2, 3]}),),
)
WIDE = Schema.coded({f"c{i}": 30 for i in range(8)})
WORD = "last year's published sample"


def public_of(schema: Schema, *columns: str, same_records: bool = False) -> PublicTable:
    frame = pa.table({a: [schema.column(a).labels()[0]] * 4 for a in columns or schema.domain})
    return margrave.read_public(frame, schema, attestation=WORD, same_records=same_records)


REFUSED: dict[str, tuple[Schema, Mechanism, Unit, type[MargraveError], str]] = {
    **{
        name: (TIED, MECHANISMS[name](), AddRemoveRow(), InputError, "mixture of products")
        for name in ("gem", "rap", "rap-plus", "aim-mixture")
    },
    **{
        name: (WIDE, MECHANISMS[name](), AddRemoveRow(), ModelTooLargeError, "smallest model of this domain")
        for name in ("mwem", "pep")
    },
    "gem-pub on constraints": (
        TIED, MECHANISMS["gem-pub"](public=public_of(TIED)), AddRemoveRow(), InputError, "such as AIMPub",
    ),
    "napsu-mq": (
        WIDE, NAPSUMQ(workload=Workload.all_kway(WIDE.domain, 3)), AddRemoveRow(), ModelTooLargeError,
        "too many cells for a posterior",
    ),
    "privlcm": (WIDE, MECHANISMS["privlcm"](), AddRemoveRow(), ModelTooLargeError, "for a posterior of latent classes"),
    "privlcm on constraints": (
        TIED, MECHANISMS["privlcm"](), AddRemoveRow(), InputError, "impossible combinations",
    ),
    "pmw-pub": (FREE, PMWPub(public=public_of(FREE, "a")), AddRemoveRow(), InputError, "Use GEM.Pub or AIMPub"),
    "pep-pub": (FREE, PEPPub(public=public_of(FREE, "a")), AddRemoveRow(), InputError, "no column 'b'"),
    "pmw-pub on constraints": (TIED, PMWPub(public=public_of(TIED, "packs")), AddRemoveRow(), InputError, "Use AIMPub"),
    "jam, own columns": (
        FREE, AIMPub(public=public_of(FREE, "a", same_records=True)), AddRemoveRow(), InputError, "so is their number",
    ),
    "jam, nothing left": (
        FREE, AIMPub(public=public_of(FREE, "a", same_records=True), workload=Workload.of(FREE.domain, [("a",)])),
        ReplaceRow(), InputError, "nothing to measure",
    ),
    "a fit that cannot choose": (FREE, MWEM(fit=AnswersFit()), AddRemoveRow(), InputError, "estimates nothing"),
    "a fit of whole marginals": (
        FREE, PrivateGSD(adaptive=True, granularity="query", fit=ParticleFit()), AddRemoveRow(), InputError,
        "cannot be fitted to single cells",
    ),
    "a fit without constraints": (
        TIED, PrivateGSD(fit=RelaxedFit()), AddRemoveRow(), InputError, "mixture of products",
    ),
    **{
        f"queries of another domain, {kind.__name__} {more.get('granularity', '')}": (
            FREE, kind(queries=QueryFamily.cells(Schema.coded({"a": 3, "b": 9}).domain, [("a", "b")]), **more),
            AddRemoveRow(), InputError, "another domain",
        )
        for kind, more in (
            *((kind, {"granularity": g}) for kind in (MWEM, PEP, GEM, RAP) for g in ("query", "marginal")),
            (DualQuery, {}), (FEM, {}),
        )
    },
    **{
        f"a posterior of {name}": (FREE, mechanism, AddRemoveRow(), InputError, "MaxEntropyFit cannot be fitted to")
        for name, mechanism in (
            ("readings, jam", AIMPub(public=public_of(FREE), fit=MaxEntropyFit())),
            ("readings, jam-pgm", JAMPGM(public=public_of(FREE), fit=MaxEntropyFit())),
            ("single counts", PEP(granularity="query", fit=MaxEntropyFit())),
        )
    },
    "too many counts": (
        WIDE, MECHANISMS["gaussian"](workload=Workload.of(WIDE.domain, [tuple(WIDE.domain)])), AddRemoveRow(),
        ModelTooLargeError, "more than can be counted",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_plan_refuses_what_a_run_refuses_before_it_reads_a_row(case: str) -> None:
    schema, mechanism, unit, kind, words = REFUSED[case]
    with pytest.raises(kind, match=words) as planned:
        plan_of(schema.domain, mechanism, budget=BUDGET, unit=unit)
    with pytest.raises(kind) as refused:
        margrave.synthesize(
            "nowhere.csv", schema, epsilon=1.0, delta=1e-9, unit=unit, mechanism=mechanism
        )
    assert type(planned.value) is type(refused.value)
    assert str(planned.value) == str(refused.value)


@pytest.mark.parametrize("case", [c for c in REFUSED if c != "too many counts"])
def test_and_so_does_a_mechanism_that_is_run_by_hand(case: str) -> None:
    """Nothing is spent then, nor counted."""
    schema, mechanism, unit, kind, words = REFUSED[case]
    table = margrave.read_table(
        pa.table({a: [schema.column(a).labels()[0]] * 4 for a in schema.domain}), schema
    )
    with protect(table, unit=unit, budget=BUDGET, randomness=SeededRandomness(0)) as private:
        with pytest.raises(kind, match=words):
            mechanism.run(private, rng=np.random.default_rng(0))
        assert private.remaining == private.rho


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_can_be_asked(name: str) -> None:
    """Without a public table too, of which a plan needs none."""
    made: Any = MECHANISMS[name]()
    made.check(FREE.domain, AddRemoveRow())


def test_the_two_commands_end_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for schema, name, code in ((TIED, "gem", 2), (WIDE, "mwem", 6)):
        schema.save("schema.toml", overwrite=True)
        options = ["-s", "schema.toml", "--epsilon", "1", "--delta", "1e-9", "-m", name]
        assert run(["plan", *options]) == code
        planned = capsys.readouterr()
        assert planned.out == ""
        assert run(["synthesize", "nowhere.csv", *options, "-o", "rows.csv"]) == code
        assert capsys.readouterr().err == planned.err != ""


def test_a_plan_says_that_a_public_table_is_still_to_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    FREE.save("schema.toml")
    for name, told in (("pmw-pub", True), ("mst", False)):
        assert (
            run(["plan", "-s", "schema.toml", "--epsilon", "1", "--delta", "1e-9", "-m", name]) == 0
        )
        told_first = (
            "The run would be refused: pmw-pub needs a public table. Give it to the run by --pub"
        )
        assert " ".join(capsys.readouterr().out.split()).startswith(told_first) == told


# What is no schema.

NO_SCHEMAS = [{}, [], None, 3, FREE.domain]


@pytest.mark.parametrize("given", NO_SCHEMAS, ids=repr)
def test_what_is_no_schema_is_an_input_error(given: Any) -> None:
    frame = pa.table({"a": [0, 1]})
    for call in (
        lambda: margrave.synthesize(frame, given, epsilon=1.0, delta=1e-9),
        lambda: margrave.read_public(frame, given, attestation=WORD),
        lambda: margrave.read_table(frame, given),
        lambda: check_table(frame, given),
        lambda: Schema.load(given),
    ):
        with pytest.raises(InputError, match=f"The schema is of type {type(given).__name__}"):
            call()


@pytest.mark.parametrize("given", [*NO_SCHEMAS[:4], FREE], ids=repr)
def test_what_is_no_domain_is_an_input_error(given: Any) -> None:
    with pytest.raises(InputError, match=r"Give schema\.domain"):
        plan_of(given, MECHANISMS["mst"](), budget=BUDGET, unit=AddRemoveRow())


@pytest.mark.parametrize("given", NO_SCHEMAS[:4], ids=repr)
def test_what_is_no_side_of_a_comparison_is_an_input_error(given: Any) -> None:
    real = margrave.read_table(pa.table({a: [0, 1] for a in FREE.domain}), FREE)
    for sides in ((given, real), (real, given)):
        with pytest.raises(MargraveError):
            evaluate(*sides)
