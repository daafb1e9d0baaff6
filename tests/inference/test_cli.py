"""``margrave analyze``: from a release on disk to intervals, and what it says when something is wrong."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from margrave.cli.analyze_commands import AnalysisAnswer, AnalysisRequest, show_several
from margrave.cli.main import run
from margrave.errors import InputError
from margrave.inference import (
    OLS,
    Analysis,
    By,
    Caveat,
    Correlation,
    Count,
    Estimate,
    Mean,
    Proportion,
    Quantile,
    Total,
    analyze,
    analyze_several,
)
from margrave.inference.names import check_names
from margrave.inference.printed import lines_of
from margrave.models import FAMILIES, MaxEntropyFit
from margrave.release import Release
from margrave.schema import Boolean, Categorical, Integer, Real, Schema
from tests.support import fake_model
from tests.support.by_hand import release_of
from tests.support.exact_posterior import TablesOf

SCHEMA = Schema([Categorical("sex", ["m", "f"]), Boolean("smokes"), Real("x", 0.0, 4.0, bins=4)])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a release, whose posterior is made up: Dirichlet around the model's shares."""

    def draws(
        self: Release, m: int | None = None, *, rows: int | None = None, method: str = "auto", seed: int | None = None,
        progress: Any = None,
    ) -> TablesOf:  # fmt: skip
        counts = self.marginal(["sex", "smokes", "x"]).values.ravel()
        shares = np.random.default_rng(seed).dirichlet(counts + 0.5, size=m or 100)
        return TablesOf(
            self.schema, shares, rows or 300, self.model.total, seed or 0, f"exact ({method})"
        )

    monkeypatch.setattr(Release, "draws", draws, raising=False)
    monkeypatch.setitem(FAMILIES, "fake", fake_model.FAMILY)
    monkeypatch.chdir(tmp_path)
    fake_model.release(schema=SCHEMA).save("r.margrave")
    return tmp_path


def ok(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    code = run(["analyze", *arguments])
    said = capsys.readouterr()
    assert code == 0, said.err
    return said.out


BRIEF = ["--m", "12", "--seed", "1"]


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["mean", "r.margrave", "x"], ["mean(x)"]),
        (["proportion", "r.margrave", "sex", "f"], ["sex = f"]),
        (["proportion", "r.margrave", "smokes", "true"], ["smokes = true"]),
        (["proportion", "r.margrave", "smokes", "yes"], ["smokes = true"]),
        (["ols", "r.margrave", "smokes ~ C(sex)"], ["Intercept", "C(sex)[T.f]"]),
        (["quantile", "r.margrave", "x", "0.5"], ["quantile(x, 0.5)"]),
        (["total", "r.margrave", "x"], ["total(x)"]),
        (["count", "r.margrave", "sex", "f"], ["count(sex = f)"]),
        (["correlation", "r.margrave", "smokes", "x"], ["corr(smokes, x)"]),
        (["mean", "r.margrave", "x", "--by", "sex"], ["mean(x) | sex = m", "mean(x) | sex = f"]),
        (["ols", "r.margrave", "x ~ C(sex)", "--robust"], ["Intercept", "C(sex)[T.f]"]),
        (["logistic", "r.margrave", "smokes ~ x"], ["Intercept", "x"]),
        (["logistic", "r.margrave", "sex ~ x", "--success", "m"], ["Intercept", "x"]),
        (["logistic", "r.margrave", "x > 2 ~ sex"], ["Intercept", "sex[T.f]"]),
    ],
    ids=lambda v: " ".join(v),
)
def test_every_analysis(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], names: list[str]
) -> None:
    found = json.loads(ok(capsys, *arguments, *BRIEF, "--json"))
    assert [e["name"] for e in found["estimates"]] == names
    for e in found["estimates"]:
        assert e["low"] < e["estimate"] < e["high"]
        assert (e["used"], e["data_sets"]) == (12, 12)
    assert (found["level"], found["rows"], found["plot"]) == (0.95, 300, None)
    shown = ok(capsys, *arguments, *BRIEF)
    assert "12 data sets" in shown
    assert names[0] in shown
    assert [p.name for p in here.iterdir()] == ["r.margrave"]


def test_the_command_says_what_the_library_says(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--m", "9", "--seed", "4", "--level", "0.8", "--rows", "120", "--json"]
    told = json.loads(ok(capsys, "mean", "r.margrave", "x", *options))
    found: Any = analyze(Release.load("r.margrave"), Mean("x"), 9, seed=4, level=0.8, rows=120)  # type: ignore[arg-type]
    assert told == {**found.to_dict(), "plot": None}
    assert found["mean(x)"].conf_int(0.8)[0] == told["estimates"][0]["low"]


def test_method_and_correction_reach_the_library(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[bool] = []

    def analyze_as_told(*given: Any, **options: Any) -> Any:
        told.append(options["bias_correct"])
        return analyze_several(*given, **options)

    monkeypatch.setattr("margrave.cli.analyze_commands.analyze_several", analyze_as_told)
    words = ["mean", "r.margrave", "x", *BRIEF, "--json"]
    assert json.loads(ok(capsys, *words))["method"] == "exact (auto)"
    assert (
        json.loads(ok(capsys, *words, "--method", "bootstrap", "--no-bias-correct"))["method"]
        == "exact (bootstrap)"
    )
    assert told == [True, False]
    assert run(["analyze", *words, "--method", "bayes"]) == 2


def test_the_first_analysis_fits_no_posterior_and_offers_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A release of few parameters is analyzed by the bootstrap at once; one line states the other method."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(MaxEntropyFit, "finish", lambda *_, **__: pytest.fail("it was fitted"))
    frame = pd.DataFrame(
        {"sex": ["m", "f"] * 200, "smokes": [True] * 100 + [False] * 300, "x": 1.5}
    )
    release_of(frame, SCHEMA, [("sex", "smokes")]).save("r.margrave")
    words = ["several", "r.margrave", "proportion sex m", "proportion smokes yes", *BRIEF]
    offer = 'takes a minute or more: method="posterior" (--method posterior).'
    shown = " ".join(ok(capsys, *words).split())
    assert "Data sets: bootstrap: the model is fitted again" in shown
    assert shown.count(offer) == 1
    shown = " ".join(ok(capsys, *words, "--method", "bootstrap").split())
    assert "Data sets: bootstrap: the model is fitted again" in shown
    assert offer not in shown


def test_tests_and_contrasts(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ols = ["ols", "r.margrave", "x ~ C(sex) * smokes", *BRIEF]
    inter = "C(sex)[T.f]:smokes[T.True]"
    asked = [
        "--test",
        "C(sex)",
        "--test",
        "C(sex):smokes",
        "--contrast",
        "C(sex)[T.f]",
        "smokes[T.True]",
    ]
    told = json.loads(ok(capsys, *ols, *asked, "--json"))
    found: Any = analyze(Release.load("r.margrave"), OLS("x ~ C(sex) * smokes"), 12, seed=1)  # type: ignore[arg-type]
    assert told["test"] == found.test(["C(sex)[T.f]", inter]).to_dict()
    assert told["test"]["names"] == ["C(sex)[T.f]", inter]
    assert told["contrasts"] == [found.contrast({"C(sex)[T.f]": 1, "smokes[T.True]": -1}).to_dict()]
    shown = ok(capsys, *ols, *asked)
    assert f"Test of C(sex)[T.f], {inter}: F(2, " in " ".join(shown.split())
    assert "C(sex)[T.f] - smokes[T.True]" in " ".join(shown.split()) or "C(sex)[T.f] -" in shown


def test_beside_a_contrast_of_means_only_the_contrast_has_a_p_value(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    by = ["mean", "r.margrave", "x", "--by", "sex", *BRIEF]
    lines = ok(capsys, *by, "--contrast", "mean(x) | sex = f", "mean(x) | sex = m").splitlines()
    numbers = {line.split("  ")[0]: len(line.split()) for line in lines if "mean(x) | sex" in line}
    plain = {line.split("  ")[0]: len(line.split()) for line in ok(capsys, *by).splitlines()}
    for name in ("mean(x) | sex = f", "mean(x) | sex = m"):
        own = next(k for k in numbers if k.startswith(name) and " - " not in k)
        assert numbers[own] == plain[own], "it has no p-value"
    assert any("p-value: of the hypothesis" in line for line in lines)


def test_a_wrong_name_is_refused_before_data_sets_are_drawn(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def drawn(*arguments: Any, **options: Any) -> Any:
        pytest.fail("data sets were drawn")

    monkeypatch.setattr(Release, "draws", drawn)
    ols = ["ols", "r.margrave", "x ~ C(sex) * smokes"]
    by = ["mean", "r.margrave", "x", "--by", "sex"]
    for wrong, words in [
        (
            [*ols, "--test", "C(sex)[T.x]"],
            "There is no estimate 'C(sex)[T.x]'. Did you mean 'C(sex)[T.",
        ),
        ([*ols, "--test", "C(sexx)"], "Did you mean 'C(sex)'?"),
        ([*ols, "--contrast", "x", "Intercept"], "There is no estimate 'x'. They are: Intercept, "),
        ([*by, "--test", "mean(x) | sex = n"], "Did you mean 'mean(x) | sex = "),
        (["several", "r.margrave", "mean x --test mean(y)"], "Did you mean 'mean(x)'?"),
        (
            [*by, "--contrast", "mean(x) | sex = m", "mean(x) | sex = m"],
            "--contrast subtracts 'mean(x) | sex = m' from itself, which is 0. Name two different",
        ),
        (
            [*ols, "--contrast", "C(sex,Treatment('m'))[T.f]", 'C(sex, Treatment("m"))[T.f]'],
            "from itself",
        ),
    ]:
        assert run(["analyze", *wrong]) == 2
        printed = capsys.readouterr()
        assert words in printed.err
        assert printed.out == ""


@pytest.mark.parametrize("several", [False, True])
def test_an_impossible_contrast_is_in_the_one_document_of_json(
    here: Path, capsys: pytest.CaptureFixture[str], several: bool
) -> None:
    ols = ["ols", "smokes ~ C(np.floor(x))", "--contrast", "C(np.floor(x))[T.77]", "Intercept"]
    words = (
        ["several", "r.margrave", shlex.join(ols)] if several else [ols[0], "r.margrave", *ols[1:]]
    )
    assert run(["analyze", *words, *BRIEF, "--json"]) == 2
    told = json.loads(capsys.readouterr().out)
    assert told["error"] == "There is no estimate 'C(np.floor(x))[T.77]'."
    assert (told["remedy"][:12], told["exit_code"]) == ("Did you mean", 2)
    assert (told["analyses"][0] if several else told)["estimates"]
    assert run(["analyze", *words, *BRIEF]) == 2
    said = capsys.readouterr()
    assert "Intercept" in said.out
    assert "There is no estimate 'C(np.floor(x))[T.77]'. Did you mean" in said.err


def test_notes_of_several_analyses_are_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    """A sentence of two analyses is below all tables, that of one below its own, and a decisive one below each."""
    shared, own = (
        Caveat("a", ("x",), False, "Of x.", "Of two."),
        Caveat("a", ("y",), False, "Of y."),
    )
    marked = Caveat("b", (), True, "Decisive.", "Of two.")
    every = Caveat("c", (), False, "Of all.")
    caveats = [(marked, shared, every), (replace(marked, names=("y",)), own, every), (every,)]
    tables = [pd.DataFrame({"x": [0.0, 1.0, 2.0, i]}) for i in range(8)]
    found = analyze(tables, Mean("x"), n=4)
    show_several(
        [
            AnalysisAnswer.of(AnalysisRequest(Mean("x"), title=title), replace(found, caveats=c))
            for title, c in zip(("first", "second", "third"), caveats, strict=True)
        ]
    )
    first, rest = capsys.readouterr().out.split("\nsecond\n")
    second, rest = rest.split("\nthird\n")
    _, below = rest.split("\nNotes on all analyses\n")
    assert "Note: [!] Decisive.\nNote: Of x.\n" in first
    assert "Note: [!] Decisive.\nNote: Of y.\n" in second
    assert "Note: Of all.\nNote on first; second: Of two.\n" in below
    assert all(t not in first + second for t in ("low, high:", "Of two.", "Of all."))
    assert below.count("low, high:") == 1


def test_names_of_numbers_and_of_references_pass() -> None:
    numbers = [Integer("visits", 0, 9), Integer("k", 1, 9, bins=2), Integer("stay", 0, 9)]
    schema = Schema([Categorical("ward", ["a", "b"]), *numbers])
    ols = OLS("stay ~ C(ward) * k + C(visits) + pd.cut(k, [0, 4, 9])")
    check_names(schema, ols, ["C(ward)[T.a]", "C(ward)", "C(ward)[T.b]:k", "C(visits)[T.77]"])
    check_names(schema, By(Mean("visits"), "k"), ["mean(visits) | k = 9"])
    check_names(schema, OLS("visits ~ nothing"), ["any name"])  # the analysis itself is refused
    with pytest.raises(InputError, match="no estimate 'kk'"):
        check_names(schema, ols, ["kk"])
    with pytest.raises(InputError, match=r"no estimate 'C\(ward\)'"):
        check_names(schema, ols, [], ["C(ward)", "C(ward)[T.a]"])


def test_a_wrong_name_has_the_terms_as_hints_and_says_that_a_level_is_the_reference() -> None:
    schema = Schema([Categorical("ward", ["a", "b"]), Integer("stay", 0, 9)])
    every = (
        "They are: Intercept, C(ward)[T.b], C(ward)[T.a], without the commonest level of C(ward)."
    )
    for tests, contrasts, remedy in (
        (
            ["C(wards)"],
            [],
            f"Did you mean 'C(ward)'? {every} A term stands for all of its coefficients: C(ward).",
        ),
        ([], ["C(ward)", "Intercept"], every),
    ):
        with pytest.raises(InputError) as caught:
            check_names(schema, OLS("stay ~ C(ward)"), tests, contrasts)
        assert str(caught.value.remedy).endswith(remedy)


def test_several_analyses_at_once(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = [
        "mean x --by sex",
        "ols 'x ~ C(sex)' --robust --test 'C(sex)'",
        "proportion smokes yes",
    ]
    told = json.loads(ok(capsys, "several", "r.margrave", *texts, *BRIEF, "--json"))["analyses"]
    assert [a["analysis"] for a in told] == texts
    alone = json.loads(ok(capsys, "mean", "r.margrave", "x", "--by", "sex", *BRIEF, "--json"))
    assert told[0]["estimates"] == alone["estimates"]
    assert told[1]["test"]["names"] == ["C(sex)[T.f]"]
    held = ["count smokes yes", "total x --where sex=f", "mean x --by smokes"]
    told = json.loads(
        ok(capsys, "several", "r.margrave", *held, "--where", "sex=m", *BRIEF, "--json")
    )["analyses"]
    for text, sex, words in zip(held, "mfm", ([], ["x"], ["x", "--by", "smokes"]), strict=True):
        asked = (
            ["count", "r.margrave", "smokes", "yes"]
            if not words
            else [text.split()[0], "r.margrave", *words]
        )
        alone = json.loads(ok(capsys, *asked, "--where", f"sex={sex}", *BRIEF, "--json"))
        assert told[held.index(text)]["estimates"] == alone["estimates"]
    shown = ok(capsys, "several", "r.margrave", *texts, *BRIEF)
    assert [line for line in shown.splitlines() if line in texts] == texts
    one = " ".join(shown.split())
    for sentence in (
        "data sets of",
        "Data sets:",
        "Notes on all analyses",
        "Note: made up",
        "low, high:",
    ):
        assert one.count(sentence) == 1, sentence  # what belongs to several is printed once
    assert one.count("made up") == 1
    for wrong, words in [
        (
            "median x",
            "'median x' is not an analysis. Write 'quantile COLUMN 0.5'. It begins with one of mean,",
        ),
        ("mean x --m 5", "has --m, which is for all analyses"),
        ("mean x --plot p.svg", "has --plot"),
        ("mean x --json", "has --json, which is for all analyses"),
        ("mean", "Write: mean [OPTIONS] COLUMN. Put each analysis in quotes."),
        ("ols 'x ~ sex", "Close its quotes"),
        ("mean wage", "no column 'wage'"),
        ("proportion sex", "Give either a VALUE or --missing"),
    ]:
        assert run(["analyze", "several", "r.margrave", "mean x", wrong]) == 2
        said = capsys.readouterr()
        assert words in said.err
        assert said.out == ""


@pytest.mark.parametrize("width", [120, 80, 60, 30, 10])
def test_no_number_and_no_name_is_cut_in_any_terminal(width: int) -> None:
    """A cut number looks like another one. A name that is too long has a line of its own."""
    long = "mean(length of stay) | ward at admission = Intensive care, second floor"
    estimates = [
        Estimate(long, -1.2345e-5, 3.4567e-7, 39.123, 1e-7, 2e-7, 40, 40, 1.0),
        Estimate("b", 0.5, 0.01, 3.5, 0.004, 0.02, 38, 40, 1.0),
    ]
    lines = lines_of(estimates, 0.95, width)
    last = lines.pop() if lines[-1].startswith("No room for: ") else ""
    lacking = [c for c in Estimate.headings if c in last]
    assert len(lacking) == {120: 0, 80: 0, 60: 2, 30: 4, 10: 4}[width]
    shown = [c for c in Estimate.headings if c not in lacking]
    assert lines[0].split() == " ".join(shown).split()
    assert lines[1] == long
    for e, line in zip(estimates, lines[2:], strict=True):
        cells = dict(zip(Estimate.headings, e.cells(0.95), strict=True))
        assert line.removeprefix("b").split() == " ".join(cells[c] for c in shown).split()
        assert len(line) == len(lines[0])
    assert lines[3].startswith("b ")
    assert all(len(line) <= width for line in lines if line != long) or width < 60
    whole = lines_of(estimates[:1], 0.95, width)
    assert "data sets" not in whole[0], "all data sets gave it"


def test_the_table_explains_its_headings(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same lines on the command line and in Python; attributes have the names of statsmodels."""
    shown = ok(capsys, "mean", "r.margrave", "x", *BRIEF)
    found: Any = analyze(Release.load("r.margrave"), Mean("x"), 12, seed=1)  # type: ignore[arg-type]
    head, line = (next(t for t in shown.splitlines() if w in t) for w in ("estimate", "mean(x)"))
    assert head.split() == ["estimate", "std", "error", "low", "high", "privacy"]
    assert (head in str(found).splitlines(), line in str(found).splitlines()) == (True, True)
    words = " ".join(shown.split())
    assert "low, high: the 95 % interval; privacy: the share" in words
    assert not {"params", "bse", "fmi", "used", "pvalues", "df"} & set(words.split())
    assert found.summary().loc["mean(x)", "bse"] == found.bse["mean(x)"]


def test_only_values_whose_zero_is_a_hypothesis_have_a_p_value(here: Path) -> None:
    """Not means, totals, counts, shares and quantiles; their contrasts do, and so do correlations and slopes."""
    release: Any = Release.load("r.margrave")
    quantities = Mean("x"), Total("x"), Quantile("x"), Count("sex", "m"), Proportion("sex", "m")
    for quantity in (*quantities, By(Mean("x"), "sex")):
        found = analyze(release, quantity, 12, seed=1)
        texts = (str(found), found.html(), found._repr_html_(), repr(found.estimates[0]))
        assert not any("p-value" in text or "p = " in text for text in texts)
    assert "p = " in repr(found.contrast({found.names[0]: 1, found.names[1]: -1}))
    fits = (OLS("x ~ sex"), None), (lambda frame: (frame["x"].mean(), 0.01), ("x",))
    for fit, columns in fits:
        found = analyze(release, fit, 12, seed=1, columns=columns)
        assert "of the hypothesis that the value is 0" in str(found)
        assert "<th>p-value</th>" in found.html()
        assert "p = " in repr(found.estimates[0])
    fitted = Correlation("x", "y")(pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [2.0, 1.0, 3.0]}))
    assert fitted.basis is not None
    assert fitted.basis.tests_zero


def test_unstable_estimates_can_be_dropped(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Thirty records a data set: in some of them nobody of one sex has an x above 3.5, or all have."""
    few = [
        "logistic",
        "r.margrave",
        "x > 3.8 ~ sex",
        "--m",
        "20",
        "--seed",
        "2",
        "--rows",
        "30",
        "--json",
    ]
    told = json.loads(ok(capsys, *few))
    assert told["estimates"][1]["low"] is None
    assert any("no stable estimate" in n for n in told["notes"])
    dropped = json.loads(ok(capsys, *few, "--drop-unstable"))
    assert dropped["estimates"][1]["low"] is not None
    assert 2 <= dropped["estimates"][1]["used"] < 20


class Reader(HTMLParser):
    """Insists that tags close, and keeps their names and what they refer to."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not {"src", "href", "onload"} & {name for name, _ in attrs}
        self.tags.append(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    assert not {"script", "link", "img"} & set(reader.tags)
    assert "url(" not in text
    return reader


def test_a_plot_is_one_page(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ols = ["ols", "r.margrave", "x ~ C(sex)", *BRIEF]
    assert "Plot: p.html" in ok(capsys, *ols, "--plot", "p.html")
    page = read((here / "p.html").read_text())
    assert "C(sex)[T.f]" in page.text
    assert page.tags.count("circle") == 2
    assert page.tags.count("tr") == 3
    ok(capsys, *ols, "--plot", "p.svg")
    assert (here / "p.svg").read_text().startswith("<svg")
    assert run(["analyze", *ols, "--plot", "p.svg"]) == 2
    ok(capsys, *ols, "--plot", "p.svg", "--overwrite")


def test_dots_and_lines_are_where_the_numbers_are() -> None:
    estimates = tuple(
        Estimate(f"<{name}>", q, v, 50.0, 1.0, 2.0, 9, 9, 1.0)
        for name, q, v in [("a", 1.0, 1.0), ("b", -3.0, 4.0), ("c", 2.0, 1.5)]
    )
    refused = Estimate("d", np.nan, np.nan, np.nan, np.nan, np.nan, 3, 9)
    found = Analysis(
        (*estimates, refused),
        0.95,
        9,
        10,
        10.0,
        "made & up",
        (Caveat("analysis", (), False, "x < y"),),
        np.zeros((9, 4)),
    )
    svg = found.svg()
    read(svg)
    read(found.html())
    assert "<a>" not in found.html()
    assert "made &amp; up" in found.html()
    assert "x &lt; y" in found.html()
    dots = [float(x) for x in re.findall(r'<circle class="d" cx="([-\d.]+)"', svg)]
    lines = [
        (float(a), float(b))
        for a, b in re.findall(r'class="w" d="M([-\d.]+) [\d.]+H([-\d.]+)"', svg)
    ]
    bars = [float(w) for w in re.findall(r'<rect class="r"[^>]* width="([-\d.]+)"', svg)]
    assert len(dots) == len(lines) == len(bars) == 3
    scale = (dots[0] - dots[1]) / 4.0
    assert dots[2] - dots[0] == pytest.approx(scale, abs=0.2)
    for e, (start, end), bar in zip(estimates, lines, bars, strict=True):
        low, high = e.conf_int()
        assert end - start == pytest.approx(scale * (high - low), abs=0.2)
        assert bar == pytest.approx((end - start) / np.sqrt(e.variance), abs=0.2)  # v̄ is 1
    assert "no interval" in svg


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (
            ["ols", "r.margrave", "x ~ agee"],
            2,
            "names 'agee', which is not a column. The columns are: sex, smokes, x.",
        ),
        (
            ["ols", "r.margrave", "sex ~ x"],
            2,
            'Use a logistic regression: margrave analyze logistic RELEASE "sex ~ x" (in Python Logistic("sex ~ x")).',
        ),
        (
            ["correlation", "r.margrave", "x", "sex"],
            2,
            "Compare the means of 'x' by group: margrave analyze mean RELEASE x --by sex (in Python By(Mean(\"x\"),"
            ' "sex")). Or write the regression ols "x ~ C(sex)".',
        ),
        (["mean", "r.margrave", "wage"], 2, "no column 'wage'"),
        (["mean", "r.margrave", "sex"], 2, "proportion"),
        (["proportion", "r.margrave", "sex", "z"], 2, "Its values: m, f."),
        (
            ["quantile", "r.margrave", "x", "100"],
            2,
            "There is no 100-quantile. p lies between 0 and 1.\n",
        ),
        (
            ["quantile", "r.margrave", "x", "50"],
            2,
            "There is no 50-quantile. p lies between 0 and 1. Write 0.5 for 50 %.",
        ),
        (
            ["logistic", "r.margrave", "x ~ sex"],
            2,
            "'x' holds other values than 0 and 1. Write a comparison, such as \"x > 2 ~ sex\". Or name the value that"
            " counts as 1: --success (in Python success=).",
        ),
        (["mean", "r.margrave", "x", "--level", "95"], 2, "level"),
        (["mean", "r.margrave", "x", "--m", "1"], 2, "at least 2"),
        (["mean", "r.margrave", "x", "--plot", "x.png"], 2, ".html nor .svg"),
        (["mean", "r.margrave", "x", "--plot", "r.margrave.svg/x.svg"], 2, "folder"),
        (["mean", "none.margrave", "x"], 7, "none.margrave"),
        (["mean", "r.margrave"], 2, "COLUMN"),
        (["median", "r.margrave", "x"], 2, "median"),
        (
            ["mean", "r.margrave", "x", "--by", "sex,smokes"],
            2,
            "--by names 2 columns, and takes one. Give one column. For groups of two columns, analyze one value of"
            " 'smokes' at a time: --by sex --where smokes=false.",
        ),
        (
            ["mean", "r.margrave", "x", "--by", "sex", "--by=smokes"],
            2,
            "--by is given 2 times, and takes one value. Give it once. For groups of two columns, write --by sex"
            " --where smokes=VALUE.",
        ),
        (
            ["several", "r.margrave", "mean x --by sex --by smokes"],
            2,
            "--by is given 2 times, and takes one value.",
        ),
        (
            ["logistic", "r.margrave", "smokes ~ x", "--success", "true", "--success", "false"],
            2,
            "--success is given 2 times, and takes one value. Give it once.",
        ),
        (
            ["mean", "r.margrave", "f"],
            2,
            "There is no column 'f': it is a value of 'sex'. For its share write: margrave analyze proportion RELEASE"
            " sex f. For an analysis of these records alone, name a column and add --where sex=f.",
        ),
        (
            ["count", "r.margrave", "smokes"],
            2,
            "Give either a VALUE or --missing. Write: margrave analyze count RELEASE smokes VALUE, or"
            " --missing in place of VALUE.",
        ),
        (["quantile", "r.margrave", "x", "-0.5"], 2, "P is negative. P lies between 0 and 1"),
        (
            ["several", "r.margrave", "mean x by sex"],
            2,
            "Got unexpected extra arguments (by sex). For groups write --by sex.",
        ),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "",
)
def test_bad_input(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, words: str
) -> None:
    assert run(["analyze", *arguments]) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert words in said.err
    assert "Traceback" not in said.err
    assert run(["analyze", *arguments, "--json"]) == code
    assert json.loads(capsys.readouterr().out)["exit_code"] == code
    assert [p.name for p in here.iterdir()] == ["r.margrave"]


def outcome_of(code: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr + done.stdout


@pytest.mark.parametrize("library", ["pandas", "scipy"])
def test_without_the_extra_the_remedy_is_told(library: str) -> None:
    code, said = outcome_of(
        f"import sys; sys.modules['{library}'] = None\nfrom margrave.cli.main import main\n"
        "main(['analyze', 'mean', 'r.margrave', 'x'])"
    )
    assert (code, said.strip()) == (
        2,
        f"Error: Inference needs {library}, which is not installed. pip install 'margrave[inference]'",
    )


def test_without_statsmodels_regressions_say_so() -> None:
    code, said = outcome_of(
        "import sys; sys.modules['statsmodels'] = None\nimport pandas as pd\nfrom margrave.inference import OLS\n"
        "OLS('x ~ sex').check(pd.DataFrame({'x': [1.0], 'sex': ['f']}))"
    )
    assert code == 1
    assert "InputError: Regressions need statsmodels, which is not installed. pip install" in said


def test_other_commands_do_without_the_extra() -> None:
    code, said = outcome_of(
        "import sys\nfor name in ('pandas', 'scipy', 'statsmodels'): sys.modules[name] = None\n"
        "import margrave, margrave.cli.main as m\n"
        "print([m.run([c, '--help']) for c in m.COMMANDS if c != 'analyze'], margrave.synthesize)"
    )
    assert code == 0, said


def test_statsmodels_is_loaded_for_regressions_alone() -> None:
    code, said = outcome_of(
        "import sys, margrave.inference, pandas as pd\n"
        "margrave.inference.Mean('x')(pd.DataFrame({'x': [1.0, 2.0]}))\n"
        "print('loaded' if 'statsmodels' in sys.modules else 'light')"
    )
    assert (code, said.strip()) == (0, "light")
