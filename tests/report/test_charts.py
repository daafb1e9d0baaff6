"""Charts: real values on the axes, long lists of categories folded, and every pair of columns on the map."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from margrave.attack_risk import attack_risk
from margrave.errors import InputError
from margrave.provenance import FitSpec, Provenance, PublicFacts
from margrave.release.coverage import pair_evidence
from margrave.release.numbers import numbers_of
from margrave.report import Heading, render
from margrave.report.axes import Axis
from margrave.report.charts import bars, matrix, overlay, pair_map, risk
from margrave.report.verdict import verdict
from margrave.report.views import LEVEL, OverlayView, column_view, column_views
from margrave.schema import (
    Categorical,
    Column,
    Date,
    Hour,
    Integer,
    Ordinal,
    Real,
    Schema,
    Timestamp,
    Weekday,
)
from margrave.transcript import Measurement, Transcript
from tests.support import fake_model

WIDTH = 314.0


def ticks(column: Column, max_bars: int = 120) -> list[str]:
    axis = Axis.of(column)
    return [t.text for t in axis.ticks(axis.groups(max_bars), WIDTH)]


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        (Integer("rooms", 0, 4), ["0", "1", "2", "3", "4"]),
        (Real("share", 0, 1, bins=10), ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        (Integer("year", 1950, 2029, bins=16), ["1960", "1980", "2000", "2020"]),
        (Real("price", 0, 1e6, edges=[10, 1e3, 1e5]), ["0", "10", "1000", "100,000", "1M"]),
        (Integer("visits", 0, 99, atoms=[0], bins=3), ["0", "1", "33", "66", "99"]),
        (Date("day", date(2020, 1, 1), date(2020, 12, 31), bins=2), ["2020-01-01", "2020-07-02", "2020-12-31"]),
    ],
)  # fmt: skip
def test_ticks_are_values(column: Column, texts: list[str]) -> None:
    assert ticks(column) == texts


def test_ticks_of_many_bins_leave_room() -> None:
    line = Timestamp("seen", datetime(2020, 1, 1), datetime(2020, 1, 9), unit="hour", bins=193)
    for column in (line, Integer("income", 0, 10**9, edges=list(range(10**6, 10**8, 10**6)))):
        axis = Axis.of(column)
        groups = axis.groups(120)
        found = axis.ticks(groups, WIDTH, margin=40.0)
        slot = WIDTH / len(groups)
        assert 2 <= len(found) <= 8
        for one, other in pairwise(found):
            assert (other.place - one.place) * slot > 3.1 * (len(one.text) + len(other.text))


def test_long_lists_show_the_largest_and_the_others_as_one() -> None:
    schema = Schema([Categorical("town", [f"town {i}" for i in range(300)]), Integer("n", 0, 1)])
    counts = np.zeros((300, 2))
    counts[:, 0] = np.arange(300)
    release = replace(fake_model.release(schema=Schema.coded({"a": 2, "b": 2, "c": 2})), schema=schema,
                      model=fake_model.TableModel(schema.domain, counts),
                      transcript=Transcript(()))  # fmt: skip
    drawn = bars(column_view(release, "town"))
    assert drawn.count('class="b"') == 30
    assert "town 299" in drawn
    assert "town 269" not in drawn
    assert "270 others" in drawn
    assert "<title>Counts of town</title><desc>300 values. Largest counts: town 299: 299;" in drawn
    page = render(release)
    assert "All 300 values" in page
    assert '<th scope="row">town 0</th>' in page


@pytest.mark.parametrize("part", [Hour("seen.hour", "seen", missing=True), Weekday("d", "seen")])
def test_hours_and_weekdays_stay_in_order(part: Column) -> None:
    axis = Axis.of(part)
    assert [g.label for g in axis.groups(40)] == part.labels()
    assert axis.groups(4)[0].label.startswith(f"{part.labels()[0]} \N{HORIZONTAL ELLIPSIS} ")
    assert not any(g.others for g in axis.groups(4))
    assert (axis.groups(4)[-1].label == "(missing)") == part.missing


def test_ordered_categories_stay_in_order() -> None:
    axis = Axis.of(Ordinal("grade", [f"grade {i}" for i in range(200)]))
    groups = axis.groups(100, np.arange(200.0))
    assert [g.label for g in groups[:2]] == ["grade 0 … grade 1", "grade 2 … grade 3"]
    assert not any(g.others for g in groups)


def test_an_overlay_has_both_tables() -> None:
    axis = Axis.of(Integer("age", 0, 99, bins=4))
    view = OverlayView("age", axis, np.array([0.5, 0.5, 0, 0]), np.array([0.25, 0.5, 0.25, 0]))
    drawn = overlay(view)
    assert drawn.count('class="b"') == 4
    assert drawn.count('class="s"') == 1
    assert "50 %" in drawn
    assert "The largest difference is at 0 to 24: 50 % real, 25 % synthetic." in drawn


def test_the_map_has_every_pair_by_its_evidence() -> None:
    schema = Schema.coded({"a": 2, "b": 2, "c": 2, "d": 2})
    counts = np.ones((2, 2), dtype=np.int64)
    transcript = Transcript((Measurement(("a", "b"), counts, 1.0, Fraction(1, 2)),))
    facts = PublicFacts(5, ("b", "c"), "0" * 64, "a survey")
    provenance = Provenance.of({"name": "pep-pub", "fit": FitSpec("Projection()", public=facts)})
    kinds = pair_evidence(schema.domain, transcript, provenance).kinds()
    assert kinds == {("a", "b"): "measured", ("b", "c"): "public"}
    drawn = pair_map(list(schema.domain), kinds)
    assert drawn.count("<title>") == 1 + 6
    assert "<title>a, b: measured</title>" in drawn
    assert "<title>b, c: public</title>" in drawn
    assert drawn.count(": indirect</title>") == 4
    assert "1 of 6 pairs of columns were measured together." in drawn


def test_a_matrix_shows_signs_without_color() -> None:
    values = np.array([[0, 0.5, -0.25], [0.5, 0, 0], [-0.25, 0, 0]])
    drawn = matrix(["a", "b", "c"], values, title="Difference", signed=True)
    assert drawn.count('class="n"') == 1
    assert "a, c: -0.25" in drawn or "c, a: -0.25" in drawn
    assert "The largest: a with b, 0.50." in drawn


def test_the_picture_of_the_risk_says_what_the_sentence_says() -> None:
    found = attack_risk(Fraction(15, 1000))
    drawn = risk(found)
    assert f"at most {100 * found.power:.3g} accused rightly" in drawn
    assert f"at most {100 * found.advantage:.3g} of 100 points" in drawn
    assert drawn.count('class="c"') == 201


def test_a_hostile_label_is_text_in_every_chart() -> None:
    hostile = '"><script>alert(1)</script>'
    schema = Schema([Categorical(hostile, [hostile, "b"]), Integer("n", 0, 1)])
    axis = Axis.of(schema.columns[0])
    half = np.array([0.5, 0.5])
    names = [hostile, "n"]
    drawn = [
        overlay(OverlayView(hostile, axis, half, half)),
        pair_map(names, {}),
        matrix(names, np.eye(2), title=hostile),
    ]
    assert not [d for d in drawn if "<script" in d or '"><' in d.replace('"><title>', "")[:40]]
    assert all("&lt;script&gt;" in d for d in drawn)


def test_the_verdict_counts_marks_and_pairs() -> None:
    release = fake_model.release()
    found = verdict(
        release,
        numbers_of(release.schema, release.transcript, release.model, LEVEL),
        column_views(release),
    )
    assert found.mark in ("partly", "bad")
    assert found.not_for[-1] == "Facts about a single person. No synthetic row is a real one."
    assert any("Groups of few records" in t for t in found.not_for)
    seeded = fake_model.release(private=False)
    page = render(seeded)
    assert "Do not publish this release: its noise came from a seed" in page


def test_the_heading_is_public_text_in_one_line() -> None:
    heading = Heading(title="A <b>", office="Office", dataset="Visits", date="2026-11-26")
    page = render(fake_model.release(), heading)
    assert "<h1>A &lt;b&gt;</h1>" in page
    assert "<dd>Visits</dd>" in page
    assert "on 2026-11-26 from the release alone" in page
    assert "<h1>Synthetic data: Visits</h1>" in render(
        fake_model.release(), Heading(dataset="Visits")
    )
    for wrong in ({"title": "a\nb"}, {"office": "x" * 201}, {"date": "26.11.2026"}):
        with pytest.raises(InputError, match=f"^{next(iter(wrong))} of the report"):
            Heading(**wrong)
