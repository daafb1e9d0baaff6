"""A mechanism's parameters are options of the command line, by no other list than its own fields."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

import margrave.cli.mechanism as cli_mechanism
from margrave.cli.catalog import CatalogName
from margrave.cli.main import run
from margrave.cli.mechanism import build_mechanism, mechanism_options, parameters_of
from margrave.cli.plan import plan_command
from margrave.cli.refit import refit_command
from margrave.cli.synthesize import synthesize_command
from margrave.domain import Domain
from margrave.errors import InputError
from margrave.mechanisms import (
    AIM,
    MECHANISM_CATALOG,
    MECHANISMS,
    MST,
    MWEMPGM,
    NAPSUMQ,
    PEP,
    RAP,
    GaussianMechanism,
    Independent,
)
from margrave.mechanisms.common import option
from margrave.models import FIT_CATALOG, AnswersFit, GraphicalFit, RelaxedFit
from margrave.schema import Schema
from margrave.workload import Workload
from tests.support.conformance import NO_RECORDS, Estimated, plain


def parsed(*arguments: str) -> tuple[Any, str]:
    """What a command with the options of today's mechanisms builds, and what its help says."""
    built: list[Any] = []

    @click.command()
    @mechanism_options
    def command(mechanism: str | None, **parameters: Any) -> None:
        built.append(build_mechanism(mechanism or "aim", None, parameters))

    shown = CliRunner().invoke(command, ["--help"], terminal_width=1000).output
    done = CliRunner().invoke(command, list(arguments))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return (built or [done.output])[0], shown


RULES = ("constraints", "constraint_fraction")
"""What PrivPGD's records should be like besides, and its share of the budget: for Python, as its page says."""


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_parameter_is_an_option(name: str) -> None:
    """All fields but the workload, which has an option of its own, and what is no text: fits, queries, mechanisms."""
    declared = {f.name for f in fields(MECHANISMS[name])}  # type: ignore[arg-type]
    of_python = {"workload", "fit", "queries", "public", "mechanism", *RULES}
    assert set(parameters_of(name)) == declared - of_python


def test_options_of_one_name_are_of_one_kind_and_no_command_has_two() -> None:
    kinds: dict[str, set[type]] = {}
    for name in MECHANISMS:
        for field, found in parameters_of(name).items():
            kinds.setdefault(field, set()).add(found.kind)
    assert all(len(k) == 1 for k in kinds.values()), kinds
    for command in (plan_command, synthesize_command):
        names = [p.name for p in command.params]
        assert len(names) == len(set(names))
        assert set(kinds) <= set(names)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("-m aim", AIM()),
        (
            "-m aim --rounds 7 --alpha 3/4 --max-model-mb 5",
            AIM(rounds=7, alpha=Fraction(3, 4), max_model_mb=5),
        ),
        ("-m aim --alpha 0.8", AIM(alpha=Fraction(4, 5))),
        ("-m mst --rare-threshold 0", MST(rare_threshold=0.0)),
        ("-m mwem-pgm --no-measure-one-way --rounds 2", MWEMPGM(measure_one_way=False, rounds=2)),
        ("-m mwem-pgm --measure-one-way", MWEMPGM(measure_one_way=True)),
        ("-m independent --max-model-mb 2.5", Independent(max_model_mb=2.5)),
        (
            "-m napsu-mq --no-connect-columns --select-fraction 1/4",
            NAPSUMQ(connect_columns=False, select_fraction=Fraction(1, 4), fit=Estimated()),
        ),
    ],
)
def test_what_is_given_is_what_the_mechanism_gets(arguments: str, expected: Any) -> None:
    built, _ = parsed(*arguments.split())
    assert built == expected


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("-m mst --rare-threshold -5", "--rare-threshold is -5.0. Give at least 0"),
        ("-m mst --rounds 3", "--rounds means nothing to mst"),
        ("-m gaussian --no-measure-one-way", "--measure-one-way means nothing to gaussian"),
        ("-m aim --rounds 0", "--rounds is 0"),
        ("-m aim --max-model-mb nan", "--max-model-mb is nan"),
        ("-m mwem-pgm --max-model-mb -1", "--max-model-mb is -1"),
        ("-m aim --alpha 1", "alpha is 1"),
        ("-m napsu-mq --select-fraction 1", "--select-fraction is 1"),
    ],
)
def test_what_a_mechanism_cannot_use_is_refused(arguments: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        parsed(*arguments.split())


@pytest.mark.parametrize("text", ["much", "1/0", "nan", ""])
def test_a_share_that_is_no_fraction(text: str) -> None:
    said, _ = parsed("-m", "aim", "--alpha", text)
    assert "'--alpha'" in said


def test_help_names_who_understands_an_option_and_the_default() -> None:
    _, shown = parsed()
    assert (
        "Size of the model at most, in MB. [aim: 80, mst: 1000, forests: 20, privmrf: 80, privbayes: 80, privsyn: 1000"
        in shown
    )
    assert "[aim: 9/10" in shown  # and of others that take its rounds
    assert "--measure-one-way / --no-measure-one-way" in shown


@dataclass(frozen=True, kw_only=True)
class Toy:
    """A mechanism that the command line has never heard of."""

    target: str | None = option(None, "Column of interest.")
    halves: bool = option(False, "Whether to split in two.")
    share: Fraction = option(Fraction(1, 3), "Share of the first.", above=0)
    rounds: int | None = option(None, "How often.")


def test_a_new_mechanism_needs_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = replace(MECHANISM_CATALOG, built_in={**MECHANISMS, "toy": Toy})
    monkeypatch.setattr(cli_mechanism, "MECHANISM_CATALOG", catalog)
    built, shown = parsed("-m", "toy", "--target", "age", "--halves", "--share", "2/5")
    assert built == Toy(target="age", halves=True, share=Fraction(2, 5))
    assert "Column of interest. [toy]" in shown
    assert "How often. [toy]" in shown
    assert "one per column. [mwem-pgm] " in shown, "shared with others, each in its own words"
    with pytest.raises(InputError, match="--share is 0"):
        parsed("-m", "toy", "--share", "0")
    with pytest.raises(InputError, match="--target means nothing to aim"):
        parsed("--target", "age")


# A workload that is named counts, also where it is the default of others.


class WorkloadFoundError(InputError):
    """Stops a command where the mechanism is known and no row has been read."""


@pytest.mark.parametrize("command", ["synthesize", "plan"])
@pytest.mark.parametrize(
    "name", [n for n, made in MECHANISMS.items() if "workload" in {f.name for f in fields(made)}]
)  # type: ignore[arg-type]
def test_a_workload_that_is_named_is_the_mechanism_s(
    name: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    schema = Schema.coded({"a": 2, "b": 3, "c": 4, "d": 2})
    schema.save("schema.toml")
    found: list[Any] = []

    def stopped(*given: Any, **more: Any) -> None:
        found.extend(g for g in [*given, *more.values()] if isinstance(g, MECHANISMS[name]))
        raise WorkloadFoundError("That is enough.", remedy="None.")

    monkeypatch.setattr(f"margrave.cli.{command}.Run", stopped)
    options = [
        command,
        *["t.csv", "--report", "r.html"] * (command == "synthesize"),
        "-m",
        name,
        "-s",
        "schema.toml",
    ]
    for more in ([], ["--workload", "all-3way"], ["--workload", "a,b"]):
        assert run([*options, "--epsilon", "1", "--delta", "1e-9", *more]) == 2
    unsaid, all_triples, pair = (mechanism.workload for mechanism in found)
    assert unsaid is None
    assert all_triples.weights == Workload.all_kway(schema.domain, 3).weights
    assert pair.cliques == (("a", "b"),)


@pytest.mark.parametrize("name", ["private-gsd", "privpgd"])
def test_a_plan_of_what_is_measured_is_that_of_the_workload_named(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their own default is all pairs: six of four columns, where there are four triples."""
    monkeypatch.chdir(tmp_path)
    Schema.coded({"a": 2, "b": 3, "c": 4, "d": 2}).save("schema.toml")
    options = [
        "plan",
        "-s",
        "schema.toml",
        "--epsilon",
        "1",
        "--delta",
        "1e-9",
        "-m",
        name,
        "--json",
    ]
    counted = []
    for more in ([], ["--workload", "all-3way"]):
        assert run([*options, *more]) == 0
        counted.append(json.loads(capsys.readouterr().out)["counted"])
    assert counted == [6, 4]


@pytest.mark.parametrize("name", MECHANISMS)
def test_who_gives_records(name: str) -> None:
    """Those whose fit keeps more than the answers: whichever mechanism it is of."""
    domain = Domain.of({"a": 2, "b": 3})
    assert plain(name, domain).gives_records == (name not in NO_RECORDS)


def test_records_follow_from_the_fit() -> None:
    assert GaussianMechanism(fit=GraphicalFit()).gives_records
    assert not Independent(fit=AnswersFit()).gives_records


# The form of a paper, and the fit.


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("-m aim --as-published", AIM.as_published()),
        ("--as-published -m aim --penalty full --max-model-mb 5", AIM.as_published(max_model_mb=5)),
        ("-m rap --as-published=Liu --rounds 7", RAP.as_published("Liu", rounds=7)),
        ("-m pep --as-published --rounds 20", PEP.as_published(rounds=20)),
        ("-m mwem-pgm --fit relaxed", MWEMPGM(fit=RelaxedFit())),
        ("-m aim --fit graphical", AIM()),
    ],
)
def test_the_form_of_a_paper_and_a_fit_by_name(arguments: str, expected: Any) -> None:
    built, _ = parsed(*arguments.split())
    assert built == expected


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("-m aim --as-published --penalty projected", "--as-published and --penalty contradict"),
        ("-m aim --as-published --rounds 7", "--as-published and --rounds contradict"),
        ("-m rap --as-published=Liu --fit graphical", "--as-published and --fit contradict"),
        ("-m privpgd --as-published --epochs 5", "--as-published and --epochs contradict"),
        ("-m pep --as-published --gamma 2", "--as-published and --gamma contradict"),
        ("-m privpgd --fit gum --epochs 5", "--fit and --epochs contradict"),
        ("-m dual-query --fit gum", "--fit means nothing to dual-query"),
        ("-m rap --as-published=2021", "several published forms with '2021'"),
        ("-m aim-pub --as-published", "No paper has a form of aim-pub. Leave --as-published out"),
        ("-m napsu-mq --as-published", "has no workload of its own. Give --workload"),
    ],
)
def test_contradictions_of_a_form_are_refused(arguments: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        parsed(*arguments.split())


def test_fits_have_the_same_names_in_all_commands() -> None:
    types = [
        option.type
        for command in (plan_command, synthesize_command, refit_command)
        for option in command.params
        if option.name == "fit"
    ]
    assert [t.catalog for t in types if isinstance(t, CatalogName)] == [FIT_CATALOG] * 3


def test_the_form_in_use_is_stated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Schema.coded({"a": 2, "b": 3}).save("schema.toml")
    budget = ["--epsilon", "1", "--delta", "1e-9"]
    for more in (["--as-published"], ["--as-published", "--max-model-mb", "5"], ["--rounds", "9"]):
        assert run(["plan", "-s", "schema.toml", *budget, *more, "--json"]) == 0
        stated = json.loads(capsys.readouterr().out)["published_form"]
        assert stated == (AIM.published_form().paper if "--as-published" in more else None)
    assert run(["plan", "-s", "schema.toml", *budget, "--as-published"]) == 0
    assert "as published" in capsys.readouterr().out
