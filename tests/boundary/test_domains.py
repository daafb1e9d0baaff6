"""A schema that differs in bounds, labels, bins or structural zeros alone is refused by every guard of domains."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import margrave
from margrave.accounting import AddRemoveRow, Budget
from margrave.cli.main import run
from margrave.data import MemoryTable, read_table
from margrave.domain import Codes, Domain
from margrave.errors import DataError, InputError, LedgerError
from margrave.evaluation import best_mixture_error, downstream_error, evaluate, geometry_errors
from margrave.marginal import QueryFamily
from margrave.mechanisms import RAP
from margrave.planning import plan_of
from margrave.privacy import protect
from margrave.privacy.scores import QueryGap
from margrave.public_table import PublicTable
from margrave.release import Release
from margrave.schema import Categorical, Impossible, Integer, Schema
from margrave.structural_zeros import StructuralZeros


def schema_of(**changes: Any) -> Schema:
    """A schema of an age in ten bins and a sex; minors among men cannot occur."""
    age = {"low": 0, "high": 99, "bins": 10, **changes.get("age", {})}
    minors = (0, age["low"] + (age["high"] + 1 - age["low"]) // 10 - 1)
    return Schema(
        [Integer("age", **age), Categorical("sex", changes.get("sex", ["F", "M"]))],
        constraints=[Impossible({"age": minors, "sex": changes.get("impossible", "M")})],
    )


MINE = schema_of()
OTHERS = {
    "bounds": schema_of(age={"high": 199}),
    "labels": schema_of(sex=["f", "M"]),
    "bins": schema_of(age={"bins": None, "edges": [10, 20, 30, 40, 55, 60, 70, 80, 90]}),
    "zeros": schema_of(impossible="F"),
}
WORDS = {
    "bounds": "column 'age' has other bounds in one than in the other",
    "labels": "column 'sex' has other labels in one than in the other",
    "bins": "column 'age' has other bins in one than in the other",
    "zeros": "other combinations of age, sex cannot occur in one than in the other",
}
BUDGET = Budget.approx(5.0, 1e-9)


def codes_of(schema: Schema) -> Codes:
    return Codes.of(schema.domain, {"age": np.arange(40) % 9 + 1, "sex": np.arange(40) % 2})


def table_of(schema: Schema) -> MemoryTable:
    return MemoryTable(schema, codes_of(schema))


def queries_of(schema: Schema) -> QueryFamily:
    return QueryFamily.cells(schema.domain, [("age", "sex")])


@cache
def release_of() -> Release:
    return margrave.synthesize(
        table_of(MINE), MINE, epsilon=5.0, delta=1e-9, mechanism="independent", seed=1
    )


def choose(schema: Schema) -> None:
    with protect(table_of(MINE), unit=AddRemoveRow(), budget=BUDGET) as private:
        try:
            queries = queries_of(schema)
            score = QueryGap({("age", "sex"): np.zeros(queries.domain.shape(("age", "sex")))})
            private.select_query(queries, score, rho=Fraction(1, 100))
        finally:
            assert private.remaining == private.rho


GUARDS: Mapping[str, Callable[[Schema], object]] = {
    "decode": lambda s: MINE.decode(codes_of(s), rng=np.random.default_rng(0)),
    "a table of codes": lambda s: MemoryTable(MINE, codes_of(s)),
    "evaluate of two tables": lambda s: evaluate(table_of(MINE), table_of(s)),
    "evaluate of codes": lambda s: evaluate(table_of(MINE), codes_of(s)),
    "evaluate of a release": lambda s: evaluate(table_of(s), release_of(), seed=1),
    "evaluate by queries": lambda s: evaluate(
        table_of(MINE), table_of(MINE), queries=queries_of(s)
    ),
    "errors of geometry": lambda s: geometry_errors(table_of(MINE), codes_of(s)),
    "a downstream error": lambda s: downstream_error(codes_of(MINE), codes_of(s), "sex"),
    "bounds of a table": lambda s: release_of().bounds(table=codes_of(s)),
    "completion by the model": lambda s: release_of().model.complete(
        codes_of(s), rng=np.random.default_rng(0)
    ),
    "a choice of queries": choose,
    "a plan with queries": lambda s: plan_of(
        MINE.domain, RAP(queries=queries_of(s)), budget=BUDGET, unit=AddRemoveRow()
    ),
    "a run with queries": lambda s: margrave.synthesize(
        table_of(MINE), MINE, epsilon=5.0, delta=1e-9, mechanism=RAP(queries=queries_of(s))
    ),
    "a run with a public table": lambda s: margrave.synthesize(
        table_of(MINE),
        MINE,
        epsilon=5.0,
        delta=1e-9,
        mechanism=margrave.mechanisms.AIMPub(public=PublicTable(codes_of(s), "a survey")),
    ),
    "a plan with a public table": lambda s: plan_of(
        MINE.domain,
        margrave.mechanisms.AIMPub(public=PublicTable(codes_of(s), "a survey")),
        budget=BUDGET,
        unit=AddRemoveRow(),
    ),
    "a mixture of public records": lambda s: best_mixture_error(
        table_of(MINE), PublicTable(codes_of(s), "a survey")
    ),
}
COLUMNS_ALONE = ("completion by the model", "a run with a public table", "a plan with a public table",
                 "a mixture of public records")  # fmt: skip
"""Guards of records that may break constraints, and are about single columns."""


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("differs", OTHERS)
def test_every_guard_refuses_it_and_says_what_differs(guard: str, differs: str) -> None:
    if differs == "zeros" and guard in COLUMNS_ALONE:
        pytest.skip("about single columns")
    with pytest.raises(InputError) as refused:
        GUARDS[guard](OTHERS[differs])
    assert WORDS[differs] in refused.value.message
    assert refused.value.remedy


@pytest.mark.parametrize("differs", OTHERS)
def test_a_table_read_with_another_schema_is_refused(differs: str) -> None:
    with pytest.raises(DataError, match="another schema"):
        read_table(table_of(OTHERS[differs]), MINE)


@pytest.mark.parametrize("differs", OTHERS)
def test_the_command_line_evaluates_a_release_with_its_own_schema_alone(
    differs: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release_of().save(tmp_path / "r.margrave")
    rows = MINE.decode(codes_of(MINE), rng=np.random.default_rng(0))
    (tmp_path / "real.csv").write_text(
        "age,sex\n" + "".join(f"{r['age']},{r['sex']}\n" for r in rows.to_pylist()),
        encoding="utf-8",
    )
    for name, schema in (("mine", MINE), ("other", OTHERS[differs])):
        schema.save(tmp_path / f"{name}.toml")
    command = ["evaluate", str(tmp_path / "real.csv"), str(tmp_path / "r.margrave"), "--seed", "1"]
    assert run([*command, "-s", str(tmp_path / "mine.toml")]) == 0
    code = run([*command, "-s", str(tmp_path / "other.toml")])
    assert code == InputError.exit_code
    assert WORDS[differs] in capsys.readouterr().err


@pytest.mark.parametrize("differs", OTHERS)
def test_a_journal_goes_on_with_its_own_schema_alone(differs: str, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    protect(table_of(MINE), unit=AddRemoveRow(), budget=BUDGET, journal=journal).close()
    with pytest.raises(LedgerError, match="schema"):
        protect(
            table_of(OTHERS[differs]),
            unit=AddRemoveRow(),
            budget=BUDGET,
            journal=journal,
            resume=True,
        )


def test_equality_is_an_equivalence() -> None:
    """Reflexive, symmetric, transitive, and hashes agree: also for domains that state sizes alone."""
    bare = Domain.of({"age": 10, "sex": 2})
    zeros = Domain.of({"age": 10, "sex": 2}, MINE.domain.zeros)
    domains = [MINE.domain, schema_of().domain, bare, zeros, *(s.domain for s in OTHERS.values())]
    for i, one in enumerate(domains):
        for j, two in enumerate(domains):
            assert (one == two) == (two == one) == ({i, j} <= {0, 1} or i == j)
            assert one != two or hash(one) == hash(two)
            assert one != two or one.difference(two) is None


def test_sizes_alone_are_accepted_where_codes_come_by_hand() -> None:
    bare = Domain.of({"age": 10, "sex": 2})
    assert MINE.domain.difference(bare) is None
    assert bare.difference(MINE.domain) is None
    assert MemoryTable(MINE, Codes(bare, codes_of(MINE).values)).rows() == 40
    for wrong, words in (
        (Domain.of({"age": 10}), "'sex'"),
        (Domain.of({"sex": 2, "age": 10}), "another order"),
    ):
        assert words in str(MINE.domain.difference(wrong))


def test_projections_keep_meanings_and_zeros() -> None:
    for differs, other in OTHERS.items():
        assert MINE.domain.project(["age", "sex"]) == MINE.domain
        for column in ("age", "sex"):
            same = differs == "zeros" or (differs == "labels") != (column == "sex")
            assert (MINE.domain.project([column]) == other.domain.project([column])) == same


def test_what_zeros_say_counts_and_not_how_they_are_laid_out() -> None:
    possible = np.array([[True, False, True], [True, True, True]])
    one = Domain.of({"b": 2, "a": 3}, [StructuralZeros(("b", "a"), possible)])
    two = Domain.of({"b": 2, "a": 3}, [StructuralZeros(("a", "b"), possible.T)])
    assert one == two
    assert hash(one) == hash(two)
    assert one != Domain.of({"b": 2, "a": 3}, [StructuralZeros(("b", "a"), possible[::-1])])


def test_the_missing_state_and_the_unit_are_part_of_a_meaning() -> None:
    named = Schema([Categorical("sex", ["F", "(missing)"])])
    state = Schema([Categorical("sex", ["F"], missing=True)])
    assert named.domain != state.domain
    assert Schema.coded({"n": 3}).domain != Schema([Integer("n", 0, 2)]).domain


def test_output_read_back_is_of_the_same_domain() -> None:
    assert MINE.for_reading_output().domain == MINE.domain
    assert Schema.from_toml(MINE.to_toml()).domain == MINE.domain
    assert release_of().bounds(table=release_of().sample(20, seed=1))
