"""The papers' forms: the page of them is of today, what it says can be called, and every form runs."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import margrave
from margrave.accounting import AddRemoveRow, Budget
from margrave.errors import InputError
from margrave.mechanisms import AIM, MECHANISMS, PEP, RAP, GEMPub, PMWPub, PrivPGD
from margrave.mechanisms.published import PUBLISHED_FORMS
from margrave.models import EntropyProjectionFit, GeneratorFit, GeneticFit, MaxEntropyFit
from margrave.privacy import SeededRandomness
from tests.support import fake_model, papers
from tests.support.conformance import hurried, pairs, published, run_on, shaped

TABLE = shaped("five columns")
GIVEN: dict[str, Any] = {"public": published(TABLE.domain), "workload": pairs(TABLE.domain)}
FORMS = [(name, form) for name, forms in PUBLISHED_FORMS.items() for form in forms]


@pytest.mark.parametrize("page", papers.TABLES, ids=lambda page: page.name)
def test_the_page_is_of_today(page: Path) -> None:
    """Else run ``python -m tests.support.papers``."""
    assert page.read_text(encoding="utf-8") == papers.page(page)


def calls() -> list[list[str]]:
    """The cells of every row of the page's tables of forms: that of figures has two columns."""
    lines = papers.PAGE.read_text(encoding="utf-8").splitlines()
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in lines if line[:2] == "| "
    ]
    return [row for row in rows if len(row) > 2 and row[0] not in ("mechanism", "")]


def test_what_the_page_says_can_be_called() -> None:
    """Both calls of a form make the same mechanism, and there is a line for every mechanism."""
    parts = margrave, margrave.mechanisms, margrave.models, margrave.marginal
    known = {name: getattr(part, name) for part in parts for name in part.__all__}
    known |= {**GIVEN, "Fraction": Fraction, "release": fake_model.release()}
    named = set()
    for row in calls():
        written = re.findall(r"`([^`]+)`", " ".join(row[2:-1]))
        made = [eval(call, dict(known)) for call in written]  # noqa: S307
        if (name := row[0].strip("`")) in MECHANISMS:
            assert len(row) == 5, row
            assert [type(m) for m in made] == [MECHANISMS[name]] * (2 if row[3] else 1)
            assert made[0].config() == made[-1].config()
            named.add(name)
        else:
            assert made, row
    assert named == set(MECHANISMS)


def quick(mechanism: Any) -> Any:
    """The form on a search, a network, particles or a posterior that takes seconds and not hours."""
    match getattr(mechanism, "fit", None):
        case GeneticFit() as fit:
            return replace(mechanism, fit=replace(fit, records=50, generations=50))
        case GeneratorFit() as fit:
            mechanism = replace(mechanism, fit=replace(fit, pretraining=5))
        case MaxEntropyFit() as fit:
            return replace(mechanism, fit=replace(fit, sampler="laplace"))
    return hurried(mechanism)


@pytest.mark.parametrize(
    ("name", "form"),
    [
        pytest.param(*both, marks=[pytest.mark.slow] * (both[0] == "rap-plus"))  # twenty seconds
        for both in FORMS
    ],
    ids=lambda v: getattr(v, "paper", v),
)
def test_every_form_runs(name: str, form: Any) -> None:
    given = {need: GIVEN[need] for need in form.needs}
    mechanism = MECHANISMS[name].as_published(form.paper, **given)
    stated = {f: getattr(mechanism, f) for f in (*form.parameters, *form.needs)}
    assert stated == {**form.parameters, **given}
    few = {"rounds": 3} if "rounds" in form.parameters else {}
    release = run_on(
        quick(replace(mechanism, **few)),
        TABLE,
        AddRemoveRow(),
        Budget.zcdp(1),
        SeededRandomness(0),
    )
    assert release.account.rho_spent == 1
    assert release.provenance.mechanism == name


def test_parameters_go_with_a_form_and_papers_are_picked_by_name() -> None:
    assert AIM.as_published(rounds=7, penalty="projected") == replace(
        AIM.as_published(), rounds=7, penalty="projected"
    )
    assert RAP.as_published("Liu").fit != RAP.as_published("Aydore").fit == RAP.as_published().fit
    for rounds in (20, 80):
        gamma = EntropyProjectionFit.gamma_of_paper(rounds)
        assert PEP.as_published(rounds=rounds).gamma == pytest.approx(gamma)
    with pytest.raises(
        InputError, match=r"no published form with 'Nobody'[\s\S]*Liu, Vietri, Wu 2021"
    ):
        PEP.as_published("Nobody")
    with pytest.raises(InputError, match="several published forms with '2021'"):
        RAP.as_published("2021")
    with pytest.raises(InputError, match="AIMPub is of no paper"):
        MECHANISMS["aim-pub"].as_published()


def test_a_form_is_stated_in_full() -> None:
    """The certificate of a form says more than its name: every parameter, and the fit."""
    config = RAP.as_published("Liu").config()
    assert {"rounds": 10, "queries_per_round": 10, "granularity": "query"}.items() <= config.items()
    assert config["fit"].parameters["steps"] == 1000
    assert np.isclose(PEP.as_published().config()["gamma"], EntropyProjectionFit.gamma_of_paper(50))


@pytest.mark.parametrize(("name", "form"), FORMS, ids=lambda v: getattr(v, "paper", v))
def test_the_form_in_use_is_stated(name: str, form: Any) -> None:
    """It is a function of the parameters, of which inputs and tuned numbers are open."""
    given = {n: GIVEN[n] for n in form.needs}
    few = {"rounds": 4} if "rounds" in form.tuned else {}
    for more in (given, {**given, **few}):
        mechanism = MECHANISMS[name].as_published(form.paper, **more)
        assert mechanism.config()["published_form"] == form.paper
    assert set(form.tuned) <= {f.name for f in fields(mechanism)}  # type: ignore[arg-type]


def test_other_parameters_are_of_no_form() -> None:
    for mechanism in (AIM(), RAP(), AIM.as_published(rounds=7), PEP.as_published(gamma=2.0)):
        assert "published_form" not in mechanism.config()
    assert RAP.as_published("Liu").form_in_use() != RAP.as_published().form_in_use()


def test_the_numbers_of_the_papers() -> None:
    assert AIM.as_published().fit.weights == "scale"
    assert [GEMPub.as_published(p).rounds for p in ("", "few", "many")] == [100, 5, 150]
    assert PMWPub.as_published().rounds == 100
    hiding = PrivPGD.as_published("(hiding)").constraint_fraction
    assert hiding == pytest.approx(PrivPGD.constraint_fraction_of_paper(2.5, 1e-5), abs=1e-3)
    assert PrivPGD.as_published().constraint_fraction == Fraction(1, 25)
