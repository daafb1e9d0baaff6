"""Provenance: what a release says of its origin is typed, plain where it is written, and read by nobody as text."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

import margrave
from margrave.domain import Codes, Domain
from margrave.errors import InputError, MargraveError, ReleaseError
from margrave.mechanisms import MECHANISMS, MWEM, Independent
from margrave.models import AnswersFit, GraphicalFit, MultiplicativeWeightsFit
from margrave.models.specs import fit_config, fit_spec
from margrave.provenance import FitSpec, Provenance, PublicFacts
from margrave.public_table import PublicTable
from margrave.release.serialization import provenance_from_plain
from margrave.workload import AllKWay, Workload
from tests.support.conformance import memory_table, some_rows

SIZES = {"a": 2, "b": 3, "c": 4}
DOMAIN = Domain.of(SIZES)
FACTS = PublicFacts(9, ("a", "b"), "0" * 64, "a survey", ("1 value left out",))
OTHER = PublicFacts(7, ("c",), "1" * 64, "another survey")
FULL = Provenance(
    "aim",
    {"rounds": None, "alpha": 0.9, "sizes": (1, (2, 3)), "table": {"x": (True,)}},
    Workload({("a", "b"): 2.0, ("c",): 1.0}),
    FitSpec("Mine()", public=FACTS),
    FACTS,
    FitSpec("Other(steps=3)", "graphical", {"steps": 3}, OTHER),
    stopped_early=True,
)


@pytest.mark.parametrize(
    "provenance", [FULL, Provenance("x"), Provenance("x", workload=AllKWay(2))], ids=["full", "bare", "ways"]
)  # fmt: skip
def test_it_survives_json(provenance: Provenance) -> None:
    plain = provenance.to_dict()
    text = json.dumps(plain, allow_nan=False)
    assert json.loads(text) == plain
    back = provenance_from_plain(json.loads(text), DOMAIN)
    assert back.to_dict() == plain
    assert (back.fit, back.public, back.refit, back.parameters) == (
        provenance.fit, provenance.public, provenance.refit, provenance.parameters,
    )  # fmt: skip


def test_what_it_says_of_public_tables() -> None:
    assert (FULL.public_tables, FULL.started_from) == ((FACTS, OTHER), ("c",))
    before = Provenance.of({"name": "x", "fit": FitSpec("Mine()", public=FACTS)})
    assert (before.public, before.public_tables, before.started_from) == (
        FACTS,
        (FACTS,),
        ("a", "b"),
    )
    read = Provenance.of({"name": "x", "fit": fit_spec(GraphicalFit()), "public": FACTS})
    assert (read.public_tables, read.started_from) == ((FACTS,), ())
    assert not read.same_records
    assert Provenance("x").public_tables == Provenance("x").started_from == ()


def test_the_workload_of_a_domain() -> None:
    assert Provenance("x").workload_on(DOMAIN) is None
    ways = Provenance("x", workload=AllKWay(2)).workload_on(DOMAIN)
    assert ways is not None
    assert ways.cliques == (("a", "b"), ("a", "c"), ("b", "c"))
    named = Provenance("x", workload=Workload({("c", "a"): 2.0})).workload_on(DOMAIN)
    assert named is not None
    assert named.weights == {("a", "c"): 2.0}
    with pytest.raises(InputError, match="no column 'z'"):
        Provenance("x", workload=Workload({("z",): 1.0})).workload_on(DOMAIN)
    for wrong in (0, 1.5, "3", True, None):
        with pytest.raises(InputError, match="k of at least 1"):
            AllKWay(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "parameters", [{"x": object()}, {"x": np.array([1])}, {1: 2}, {"x": float("inf")}, [], None]
)
def test_parameters_are_plain(parameters: Any) -> None:
    with pytest.raises(ReleaseError, match="not plain data"):
        Provenance("x", parameters)
    with pytest.raises(ReleaseError, match="not plain data"):
        FitSpec("Mine()", "graphical", parameters)


def test_a_fit_says_what_it_starts_from() -> None:
    codes = Codes.of(DOMAIN, {a: np.array([0, 1]) for a in DOMAIN})
    public = PublicTable(codes, "made up")
    spec = fit_spec(MultiplicativeWeightsFit(public=public))
    assert (spec.name, spec.parameters, spec.public) == (None, {}, public.facts())
    assert fit_spec(AnswersFit()).name == "answers"


@pytest.mark.parametrize(
    "changes",
    [
        {"fit": "GraphicalFit()"}, {"fit": GraphicalFit()}, {"workload": "all 3-way"}, {"workload": [[["a"], 1.0]]},
        {"public": {"sha256": "0"}}, {"name": None}, {"name": 3}, {"rows": object()},
    ],
)  # fmt: skip
def test_a_mechanism_of_another_config_is_refused_before_the_gate_opens(
    changes: dict[str, Any],
) -> None:
    class Wrong(Independent):
        def config(self) -> dict[str, Any]:
            return {**super().config(), **changes}

        def run(self, private: Any, **_: Any) -> Any:
            raise AssertionError("the gate was opened")

    mechanism = Wrong()
    with pytest.raises(MargraveError):
        Provenance.of(mechanism.config())
    table = memory_table(SIZES, some_rows(SIZES, 40))
    with pytest.raises(MargraveError):
        margrave.synthesize(table, table.schema, epsilon=1.0, delta=1e-9, mechanism=mechanism)


def test_a_mechanism_says_its_workload_and_fit_as_data() -> None:
    workload = Workload.of(DOMAIN, [("a", "b")])
    config = MWEM(workload=workload).config()
    assert config["workload"] is workload
    assert Provenance.of(MWEM().config()).workload == AllKWay(3)
    assert isinstance(config["fit"], FitSpec)
    assert fit_config(GraphicalFit(steps=4)) == {"fit": fit_spec(GraphicalFit(steps=4))}


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_parameter_is_stated_or_plays_no_part(name: str) -> None:
    """The fields are stated under their names; those of a default fit only while it is in use."""
    made: Any = MECHANISMS[name]()
    stated, parameters = set(made.config()) - {"published_form"}, {f.name for f in fields(made)}
    repeated = {"workload", "fit"} if name == "repeated" else set()  # those of each of its runs
    assert stated == {"name", *parameters - set(made.idle()), *repeated}
    of_fit = {f.name for f in fields(made) if f.metadata.get("of_fit")}
    if of_fit:
        other = replace(made, fit=MultiplicativeWeightsFit(public=made.public))
        assert not of_fit & set(other.config())
        assert of_fit <= stated
