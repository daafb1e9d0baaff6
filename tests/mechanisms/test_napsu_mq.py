"""NAPSU-MQ with its posterior: what the conformance tests, which do without, cannot see.

Each posterior is compiled anew, a second or more of processor time, so shapes are few and their posteriors those of
Laplace; NUTS, which takes a minute, runs in the slow tests.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from margrave.accounting import AddRemoveRow, Budget, ReplaceRow, Unit
from margrave.accounting.budget import MAX_RHO, MIN_RHO
from margrave.cli.main import run
from margrave.domain import Domain
from margrave.errors import InputError, ModelTooLargeError, ReleaseError
from margrave.mechanisms import NAPSUMQ
from margrave.models import FAMILIES, MaxEntropyFit
from margrave.privacy import SeededRandomness, protect
from margrave.release import Release
from margrave.report import render
from margrave.schema import Schema
from margrave.structural_zeros import StructuralZeros
from margrave.testing.noninterference import differing
from margrave.testing.runs import check_codes, check_file
from margrave.transcript import Selection
from margrave.workload import Workload
from tests.mechanisms.test_conformance import TRUTH, secrets_in
from tests.mechanisms.test_noninterference import USUAL
from tests.support.conformance import (
    Estimated,
    codes_of,
    memory_table,
    run_on,
    shaped,
    some_rows,
    tiny,
)
from tests.support.tiny_table import TinySchema, TinyTable

LAPLACE = MaxEntropyFit(sampler="laplace")
SIZES = {"a": 2, "b": 3, "c": 4}
ODD = Budget.approx(1.0, 1e-9)


def made(
    table: Any, budget: Budget = ODD, unit: Unit = AddRemoveRow(), **parameters: Any
) -> Release:
    mechanism = NAPSUMQ(**{"fit": LAPLACE, **parameters})
    return run_on(mechanism, table, unit, budget, SeededRandomness(0))


@pytest.fixture(scope="module")
def release() -> Release:
    return made(memory_table(SIZES, some_rows(SIZES, 900)), Budget.zcdp(2))


# The posterior, on odd tables and budgets.


@pytest.mark.parametrize(
    "shape",
    ["empty", "one column", "a column of one code", "columns of one code only",
     pytest.param("a wide column", marks=pytest.mark.slow)],
)  # fmt: skip
def test_odd_tables_have_a_posterior(shape: str) -> None:
    """Where its mode is not found, as for nobody at all, the release says so and draws by the bootstrap."""
    release = made(shaped(shape))
    assert release.account.rho_spent == ODD.rho
    assert release.model.state().kind == "max-entropy"
    check_codes(release, shape)
    check_file(release, shape)
    posterior = release.model.posterior()
    assert posterior is not None
    draws = release.draws(2, rows=20, seed=0)
    assert draws.method.split()[0] == ("posterior:" if posterior.facts["good"] else "bootstrap,")
    for table in draws:
        assert table.num_rows == 20


@pytest.mark.parametrize(("epsilon", "seed"), [(5, 660), (5, 904), (0.5, 57)])
def test_the_mode_is_reached_where_the_information_misleads(epsilon: float, seed: int) -> None:
    """At these seeds undamped steps swing around the mode (curved twice as much as expected), or damped ones crawl."""
    table, budget = memory_table(SIZES, some_rows(SIZES, 500)), Budget.approx(epsilon, 1e-6)
    release = run_on(NAPSUMQ(fit=LAPLACE), table, ReplaceRow(), budget, SeededRandomness(seed))
    posterior = release.model.posterior()
    assert posterior is not None
    assert posterior.facts["good"]


@pytest.mark.parametrize("rho", [MIN_RHO, MAX_RHO], ids=["smallest", "largest"])
def test_no_budget_breaks_the_posterior(rho: Fraction) -> None:
    release = made(tiny(SIZES, some_rows(SIZES, 12)), Budget.zcdp(rho))
    assert release.account.rho_spent == rho
    assert np.isfinite(release.marginal(["a", "b", "c"]).values).all()
    assert release.sample(10, seed=1).num_rows == 10


def test_constraints_hold_in_every_draw() -> None:
    possible, other = np.ones((2, 3), dtype=bool), np.array([True, True, False, True])
    possible[1, 2] = possible[0, 0] = False
    domain = Domain.of(
        SIZES, zeros=[StructuralZeros(("a", "b"), possible), StructuralZeros(("c",), other)]
    )
    rows = [*some_rows(SIZES, 60), (1, 2, 2), (0, 0, 1)]
    release = made(TinyTable(TinySchema(domain), rows), Budget.zcdp(2))
    posterior = release.model.posterior()
    assert posterior is not None
    for model in (release.model, *posterior.draws(3, rng=np.random.default_rng(0))):
        assert model.project(("a", "b")).values[~possible].max() == 0
        assert model.project(("c",)).values[~other].max() == 0
        assert model.project(("a", "b")).values[possible].min() > 0


def test_a_large_budget_leaves_the_sampling_of_the_records_alone() -> None:
    """The mode is the table, and draws of a share vary as those of a share of n independent records: p (1 − p) / n."""
    table = memory_table(SIZES, some_rows(SIZES, 900))
    release = made(
        table, Budget.zcdp(10**5), workload=Workload({("a", "b"): 1.0}), connect_columns=False
    )
    counts = table.count([("a", "b"), ("c",)])
    for clique, truth in counts.items():
        assert np.abs(release.marginal(clique).values - truth).sum() < 0.01 * 900
    posterior = release.model.posterior()
    assert posterior is not None
    drawn = [
        m.project(("a",)).values[0] / m.total
        for m in posterior.draws(400, rng=np.random.default_rng(1))
    ]
    p = counts["a", "b"].sum(axis=1)[0] / 900
    assert abs(np.mean(drawn) - p) < 0.01
    assert np.var(drawn) == pytest.approx(p * (1 - p) / 900, rel=0.4)  # 5.5 standard errors


# What it asks, and what leaves.


@pytest.mark.parametrize("unit", [AddRemoveRow(), ReplaceRow()], ids=str)
def test_it_asks_what_its_definition_says(unit: Unit) -> None:
    """A sixth for columns, a sixth for d − 1 choices, the rest for as many pairs and the workload, all by formulas."""
    sizes = {"a": 3, "b": 4, "c": 2, "d": 5}
    table = memory_table(sizes, some_rows(sizes, 700, seed=11))
    moved = 2 if isinstance(unit, ReplaceRow) else 1  # Δ² of one marginal, and Δ of its L1 distance
    rho = 0.05
    whole = made(table, Budget.zcdp(rho), unit, fit=Estimated())
    columns, pairs = whole.transcript.measurements[:4], whole.transcript.measurements[4:]
    assert [m.clique for m in columns] == [(a,) for a in sizes]
    assert [m.scale for m in columns] == pytest.approx([math.sqrt(4 * moved / (2 * rho / 6))] * 4)
    assert [m.scale for m in pairs] == pytest.approx([math.sqrt(3 * moved / (2 * rho * 2 / 3))] * 3)
    choices = [e for e in whole.transcript if isinstance(e, Selection)]
    assert [m.clique for m in pairs] == [s.chosen for s in choices]
    assert [s.epsilon for s in choices] == pytest.approx([math.sqrt(8 * rho / 18)] * 3)
    assert [s.sensitivity for s in choices] == pytest.approx([moved] * 3)

    workload = Workload({("a", "b"): 1.0, ("b",): 1.0, ("b", "c"): 2.0})
    joined = made(
        table, Budget.zcdp(rho), unit, fit=Estimated(), workload=workload, select_fraction=0.5
    )
    (choice,) = [e for e in joined.transcript if isinstance(e, Selection)]
    assert "d" in choice.chosen
    assert [m.clique for m in joined.transcript.measurements[4:]] == [
        ("a", "b"),
        ("b", "c"),
        choice.chosen,
    ]
    assert joined.transcript.measurements[-1].scale == pytest.approx(
        math.sqrt(3 * moved / (2 * rho / 2))
    )

    apart = made(
        table, Budget.zcdp(rho), unit, fit=Estimated(), workload=workload, connect_columns=False
    )
    assert [m.clique for m in apart.transcript.measurements] == [("a", "b"), ("b", "c"), ("d",)]
    assert [m.scale for m in apart.transcript.measurements] == pytest.approx(
        [math.sqrt(3 * moved / (2 * rho))] * 3
    )


def test_every_byte_follows_from_the_answers(tmp_path: Path) -> None:
    assert differing(NAPSUMQ(fit=LAPLACE), AddRemoveRow(), USUAL, tmp_path) == set()


def test_nothing_that_reaches_rows_is_left_on_a_release() -> None:
    assert secrets_in(made(TRUTH)) == []


# Refused at no cost.


@pytest.mark.parametrize(
    "sizes", [{"a": 500, "b": 2}, {f"c{i:02}": 30 for i in range(15)}], ids=["wide", "many"]
)
@pytest.mark.parametrize("connect", [True, False])
def test_columns_too_many_for_a_posterior_cost_nothing(
    sizes: dict[str, int], connect: bool
) -> None:
    table = tiny(sizes, [tuple([0] * len(sizes))])
    with protect(table, unit=AddRemoveRow(), budget=ODD, randomness=SeededRandomness(1)) as private:
        with pytest.raises(ModelTooLargeError, match="too many cells for a posterior"):
            NAPSUMQ(connect_columns=connect).run(private)
        assert private.account().debits == ()


@pytest.mark.parametrize(
    ("workload", "told"),
    [
        (
            [("a", "b")],
            "The marginal has too many cells for a posterior of all its parameters",
        ),
        (
            [("a", "b"), ("a", "c")],
            "The 2 marginals have too many cells for a posterior of all their",
        ),
    ],
)
def test_the_refusal_says_how_many_marginals_there_are(
    workload: list[tuple[str, str]], told: str
) -> None:
    table = tiny(
        {"a": 300, "b": 300} | ({"c": 2} if len(workload) > 1 else {}), [(0,) * (len(workload) + 1)]
    )
    with protect(table, unit=AddRemoveRow(), budget=ODD, randomness=SeededRandomness(1)) as private:
        with pytest.raises(ModelTooLargeError, match=told):
            NAPSUMQ(workload=Workload.of(table.domain, workload), connect_columns=False).run(
                private
            )
        assert private.account().debits == ()


def test_a_missing_library_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "margrave.models.max_entropy.fit.find_spec", lambda name: None if name == "blackjax" else 1
    )
    with protect(
        shaped("two columns"), unit=AddRemoveRow(), budget=ODD, randomness=SeededRandomness(1)
    ) as private:
        with pytest.raises(InputError, match=r"blackjax[\s\S]*margrave\[inference\]"):
            NAPSUMQ(fit=LAPLACE).run(private)
        assert private.account().debits == ()


# What holders of the release have of it.


SCRIPT = """
import sys
from margrave.release import Release
release = Release.load(sys.argv[1])
draws = release.draws(3, rows=40, seed=4)
release.sample(20, seed=1), release.certificate(), list(draws)
print(draws.method, [draws.codes(i).values.tolist() for i in range(3)])
print(sorted({"jax", "blackjax", "statsmodels"} & set(sys.modules)))
"""


def test_a_loaded_release_is_drawn_from_without_jax(release: Release, tmp_path: Path) -> None:
    release.save(tmp_path / "r.margrave")
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "r.margrave")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    drawn, loaded = done.stdout.splitlines()
    here = release.draws(3, rows=40, seed=4)
    assert drawn == f"{here.method} {[here.codes(i).values.tolist() for i in range(3)]}"
    assert here.method == "posterior: maximum-entropy posterior, Laplace approximation"
    assert loaded == "[]"


def test_report_and_certificate_tell_of_the_posterior(release: Release) -> None:
    posterior = release.model.posterior()
    assert posterior is not None
    assert release.certificate()["posterior"] == dict(posterior.facts)
    page = render(release)
    assert "The posterior" in page
    assert "Laplace approximation" in page
    told = {"method": "NUTS", "good": False, "chains": 4, "r_hat": 1.0734, "effective": 88.0, "diverged": 0.03,
            "why": "the chains have not mixed <at all>"}  # fmt: skip
    state = release.model.state()
    walked = FAMILIES[state.kind].load(
        release.model.domain, {**state.facts, "posterior": told}, state.arrays
    )
    page = render(
        Release(release.schema, walked, release.transcript, release.account, release.provenance)
    )
    for words in (
        "NUTS",
        "1.073",
        "88",
        "0.03",
        "the chains have not mixed &lt;at all&gt;",
        'class="alarm"',
    ):
        assert words in page
    assert "posterior" not in made(shaped("two columns"), fit=Estimated()).certificate()


@pytest.mark.parametrize(
    "told",
    [None, {}, {"method": "NUTS"}, {"method": 3, "good": True}, {"method": "NUTS", "good": 1},
     {"method": "NUTS", "good": True, "r_hat": "1"}, {"method": "NUTS", "good": True, "effective": float("nan")},
     {"method": "NUTS", "good": False, "why": "x" * 2000}, {"method": "NUTS", "good": True, "draws": [1]}],
    ids=str,
)  # fmt: skip
def test_what_a_file_says_of_its_posterior_is_checked(release: Release, told: Any) -> None:
    state = release.model.state()
    with pytest.raises(ReleaseError, match="posterior"):
        FAMILIES[state.kind].load(
            release.model.domain, {**state.facts, "posterior": told}, state.arrays
        )


def test_a_diagnosis_that_is_no_number_is_left_out(release: Release) -> None:
    model: Any = release.model
    told = {"method": "NUTS", "good": False, "r_hat": float("nan"), "effective": 3.0}
    parts = (
        model.domain,
        model.canonical,
        model.center,
        model.total,
        model.draws,
        model.totals,
        model.merged,
    )
    assert type(model)(*parts, told).facts == {"method": "NUTS", "good": False, "effective": 3.0}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a table and its schema; NAPSU-MQ's posterior is approximated."""
    monkeypatch.setattr(
        "margrave.mechanisms.napsu_mq.MaxEntropyFit", partial(MaxEntropyFit, sampler="laplace")
    )
    monkeypatch.chdir(tmp_path)
    schema = Schema.coded(SIZES)
    rows = codes_of(schema.domain, some_rows(SIZES, 500)).values.T.tolist()
    (tmp_path / "t.csv").write_text(
        "a,b,c\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)
    )
    schema.save("s.toml")
    return tmp_path


OPTIONS = ["--schema", "s.toml", "--epsilon", "5", "--delta", "1e-6", "--mechanism", "napsu-mq"]


def test_the_command_line_from_a_plan_to_an_interval(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", *OPTIONS]) == 0
    shown = capsys.readouterr().out
    assert "every column" in shown
    assert "the posterior" in " ".join(shown.split())
    outputs = ["--release", "r.margrave", "--report", "r.html", "-o", "rows.csv"]
    assert run(["synthesize", "t.csv", *OPTIONS, "--workload", "a,b", *outputs]) == 0
    capsys.readouterr()
    assert "The posterior" in (here / "r.html").read_text(encoding="utf-8")
    assert run(["certificate", "r.margrave", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["posterior"]["method"] == "Laplace approximation"
    assert run(["analyze", "mean", "r.margrave", "c", "--m", "20", "--seed", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["method"].startswith("posterior: maximum-entropy")
    truth = np.mean([row[2] for row in some_rows(SIZES, 500)])
    (estimate,) = told["estimates"]
    assert estimate["low"] - 0.3 < truth < estimate["high"] + 0.3
    assert estimate["bias"] == 0


def test_the_command_tells_of_a_missing_library_first(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "margrave.models.max_entropy.fit.find_spec", lambda name: None if name == "jax" else 1
    )
    assert run(["synthesize", "t.csv", *OPTIONS, "--release", "r.margrave"]) == 2
    assert "margrave[inference]" in capsys.readouterr().err
    assert sorted(p.name for p in here.iterdir()) == ["s.toml", "t.csv"]


@pytest.mark.slow
def test_nuts_and_laplace_agree_where_counts_are_large(release: Release) -> None:
    walked = release.refit(MaxEntropyFit(), seed=1)
    posterior, approximate = walked.model.posterior(), release.model.posterior()
    assert posterior is not None
    assert approximate is not None
    assert posterior.facts["good"]
    one, two = (
        np.array(
            [
                m.project(("a", "b")).values / m.total
                for m in p.draws(400, rng=np.random.default_rng(0))
            ]
        )
        for p in (posterior, approximate)
    )
    spread = one.std(axis=0)
    assert (np.abs(one.mean(axis=0) - two.mean(axis=0)) < 0.5 * spread).all()
    assert np.abs(spread / two.std(axis=0) - 1).max() < 0.4
