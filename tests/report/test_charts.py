"""Charts: real values on the axes, long lists of categories folded, and every pair of columns on the map."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, datetime
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from margrave.attack_risk import attack_risk, hundredths
from margrave.errors import InputError, ReleaseError
from margrave.provenance import FitSpec, Provenance, PublicFacts
from margrave.release.coverage import pair_evidence
from margrave.release.numbers import numbers_of
from margrave.report import Heading, render
from margrave.report.axes import Axis
from margrave.report.charts import bars, heat, matrix, overlay, pair_map, risk
from margrave.report.labels import pixels, shorten
from margrave.report.scale import Scale
from margrave.report.verdict import verdict
from margrave.report.views import (
    LEVEL,
    ColumnView,
    OverlayView,
    PairView,
    column_view,
    column_views,
)
from margrave.schema import (
    Categorical,
    Column,
    Date,
    Elapsed,
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
    return [t.text for t in Scale.of(axis, axis.groups(max_bars), WIDTH).ticks()]


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        (Integer("rooms", 0, 4), ["0", "1", "2", "3", "4"]),
        (Real("share", 0, 1, bins=10), ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        (Integer("year", 1950, 2029, bins=16), ["1960", "1980", "2000", "2020"]),
        (Real("price", 0, 1e6, edges=[10, 1e3, 1e5]), ["0", "10", "1000", "100,000", "1M"]),
        (Integer("visits", 0, 99, atoms=[0], bins=3), ["0", "20", "40", "60", "80"]),
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
        found = Scale.of(axis, groups, WIDTH).ticks(margin=40.0)
        assert 2 <= len(found) <= 8
        for one, other in pairwise(found):
            assert other.place - one.place > 3.1 * (len(one.text) + len(other.text))


@given(
    st.lists(st.text("ab 12,", max_size=40), unique=True, max_size=12),
    st.sampled_from([50.0, 90.0, 140.0]),
)
def test_labels_of_one_chart_fit_and_stay_distinct(labels: list[str], width: float) -> None:
    found = shorten(labels, width)
    assert len(set(found)) == len(labels)
    assert all(pixels(text) <= width for text in found)
    fits = [text == label for text, label in zip(found, labels, strict=True)]
    assert all(fit for fit, label in zip(fits, labels, strict=True) if pixels(label) <= width)


def test_long_labels_show_what_tells_them_apart() -> None:
    districts = [f"District {i:03d}, north-western part" for i in range(300)]
    assert shorten([*districts, "other"], 130.0)[7:301:293] == ["District 007…", "other"]
    assert shorten(districts, 60.0)[:2] == ["…000…", "…001…"]
    axis = Axis.of(Categorical("region", districts))
    half = np.full(300, 1 / 300)
    drawn = overlay(OverlayView("region", axis, half, half))
    labels = re.findall(r'<text class="l"[^>]*>([^<]+)', drawn)
    assert len(labels) == len(set(labels)) == 31
    assert f"<title>{districts[7]}</title></text>" in drawn
    upright = heat(PairView(("a", "b"), (axis, axis), np.ones((300, 300)), 0.0))
    texts = re.findall(r'<text class="t"[^>]*>([^<]+)', upright)
    assert len(texts) == len(set(texts)) == 25


def rectangles(drawn: str, style: str = "b") -> list[tuple[float, float]]:
    """The width and the height of each bar."""
    found = re.findall(rf'class="{style}"[^>]* width="([^"]+)" height="([^"]+)"', drawn)
    return [(float(a), float(b)) for a, b in found]


def test_bars_are_as_wide_as_their_bins_and_as_high_as_their_density() -> None:
    """A uniform column is flat, in bars of any width, in the overlay, and in its interval."""
    column = Integer("age", 0, 99, edges=[10, 12, 15, 55], missing=True)
    axis = Axis.of(column)
    lengths = np.array([10, 2, 3, 40, 45, 0])
    view = ColumnView("age", column.labels(), lengths * 20.0, lengths * 20.0, 30.0, axis=axis)
    drawn = bars(view)
    widths, heights = zip(*rectangles(drawn), strict=True)
    assert widths == pytest.approx((lengths[:5] * 3.14).tolist(), abs=1.01)
    assert np.ptp(heights) < 0.2
    whiskers = re.findall(r'class="w" d="M[\d.]+ ([\d.]+)V([\d.]+)"', drawn)
    errors = [float(a) - float(b) for a, b in whiskers]
    assert errors[1] / errors[2] == pytest.approx(3 / 2, rel=0.02)
    assert errors[1] / errors[0] == pytest.approx(10 / 2, rel=0.05)
    assert ">records per value of age</text>" in drawn
    assert "records per value of age</desc>" in drawn
    assert ">(missing): the model 0, the noisy count 0 ± 30</text>" in drawn
    shares = overlay(OverlayView("age", axis, lengths / 100, lengths / 100))
    assert np.ptp([height for _, height in rectangles(shares)]) < 0.2
    steps = re.findall(r"V([\d.]+)h([\d.]+)", shares)
    assert [float(w) for _, w in steps] == pytest.approx((lengths[:5] * 3.14).tolist(), abs=0.01)
    assert len({y for y, _ in steps}) == 1
    assert ">share per value of age</text>" in shares


@pytest.mark.parametrize(
    ("column", "caption"),
    [
        (Integer("stay", 0, 99, edges=[10, 30]), "records per 10 of stay"),
        (Real("share", 0, 1, edges=[0.25, 0.3, 0.5]), "records per 0.01 of share"),
        (Date("day", date(2020, 1, 1), date(2020, 12, 31), bins=32), "records per 10 days of day"),
        (Date("day", date(2020, 1, 1), date(2020, 3, 1), bins=9), "records per day of day"),
        (Timestamp("seen", datetime(2020, 1, 1), datetime(2020, 1, 3), unit="minute", bins=7), ""),
        (Timestamp("seen", datetime(2020, 1, 1), datetime(2020, 1, 3), unit="minute",
                   edges=[datetime(2020, 1, 1, 1), datetime(2020, 1, 2, 1)]), "records per hour of seen"),
        (Elapsed("left", 0, 99, since="day", edges=[1, 30]), "records per day of left"),
        (Elapsed("left", 0, 99, since="day", edges=[20, 50]), "records per 10 days of left"),
        (Integer("rooms", 0, 4), ""),
        (Integer("year", 1950, 2029, bins=16), ""),
        (Real("price", 0, 1e6, edges=[10, 1e3]), "records. Bars are equally wide, those of wider bins too."),
        (Real("price", 0, 9, edges=[4], atoms=[0]), "records. Bars are equally wide, those of wider bins too."),
        (Integer("n", 0, 9, bins=1, atoms=[5]), "records. Bars are equally wide, those of wider bins too."),
    ],
)  # fmt: skip
def test_the_caption_names_the_unit_or_the_equal_bars(column: Column, caption: str) -> None:
    axis = Axis.of(column)
    scale = Scale.of(axis, axis.groups(120), WIDTH)
    assert scale.caption("records", column.name) == caption
    assert scale.widths.min() >= 2.0
    assert scale.widths.sum() == pytest.approx(WIDTH)
    counts = np.ones(len(axis.labels))
    drawn = bars(ColumnView(column.name, column.labels(), counts, None, 0.0, axis=axis))
    assert bool(caption) == (f"{caption}</desc>" in drawn and f">{caption}</text>" in drawn)


def test_a_pair_has_no_empty_rows_of_other_and_missing_values() -> None:
    sex = Categorical("sex", ["F", "M", "X"], other=True, missing=True)
    age = Integer("age", 0, 3, missing=True)
    counts = np.zeros((5, 5))
    counts[:2, :4] = 10
    axes = (Axis.of(sex), Axis.of(age))
    drawn = heat(PairView(("sex", "age"), axes, counts, 0.0))
    assert re.findall(r'<text class="l"[^>]*>([^<]+)', drawn) == ["F", "M", "X"]
    assert "Left out of sex, without records: other, (missing)." in drawn
    assert "Left out of age, without records: (missing)." in drawn
    counts[3, 4] = 5
    drawn = heat(PairView(("sex", "age"), axes, counts, 0.0))
    assert re.findall(r'<text class="l"[^>]*>([^<]+)', drawn) == ["F", "M", "X", "other"]
    assert "Left out of age" not in drawn


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
    assert "1 of 6 pairs of columns was measured together." in drawn


def test_a_matrix_shows_signs_without_color() -> None:
    values = np.array([[0, 0.5, -0.25], [0.5, 0, 0], [-0.25, 0, 0]])
    drawn = matrix(["a", "b", "c"], values, title="Difference", signed=True)
    assert drawn.count('class="n"') == 1
    assert "a, c: -0.25" in drawn or "c, a: -0.25" in drawn
    assert "The largest: a with b, 0.50." in drawn
    tiny = matrix(["a", "b"], values[:2, :2] * -1e-3, title="Difference", signed=True)
    assert "-0.00" not in tiny
    assert "b, a: +0.00" in tiny


def test_every_chart_with_an_axis_names_its_amount() -> None:
    axis = Axis.of(Integer("rooms", 0, 4))
    shares = np.full(5, 0.2)
    drawn = bars(ColumnView("rooms", list(axis.labels), shares * 50, None, 0.0, axis=axis))
    assert ">records</text>" in drawn
    equal = overlay(OverlayView("rooms", axis, shares, shares))
    assert ">share</text>" in equal
    assert "5 values. All shares are equal." in equal


def test_the_picture_of_the_risk_says_what_the_sentence_says() -> None:
    found = attack_risk(Fraction(15, 1000))
    drawn = risk(found)
    assert f"at most {hundredths(found.power)} accused rightly" in drawn
    assert f"at most {hundredths(found.advantage)} of 100 points" in drawn
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
    assert found.not_for[-1] == (
        "Facts about a single person."
        " Synthetic rows are drawn from a model, and one may equal a real row by chance."
    )
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


def test_a_chart_without_counts_is_refused_with_the_remedy_of_the_release() -> None:
    release = fake_model.release().without_model("the run failed")
    assert release.plot("age").title == "age"
    for columns, what in (
        (("job",), "no counts and no model of job"),
        (("age", "job"), "together"),
    ):
        with pytest.raises(ReleaseError, match=what) as refusal:
            release.plot(*columns)
        assert release.model.remedy in str(refusal.value)
