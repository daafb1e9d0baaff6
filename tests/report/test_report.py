"""The report: one page that stands alone, tells the truth about the noise, and cannot be broken by a column's name."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date
from fractions import Fraction
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from margrave.account import Account, Debit
from margrave.bounds.gls import Unbiased
from margrave.domain import Domain
from margrave.errors import InputError
from margrave.marginal import LinearMap, LinearQuery
from margrave.models.protocol import FittedAnswers
from margrave.provenance import FitSpec, Provenance, PublicFacts
from margrave.ratios import figure
from margrave.release.beyond_bounds import beyond_bounds_words
from margrave.release.coverage import coverage_of
from margrave.release.numbers import numbers_of
from margrave.report import Heading, page, render, write_report
from margrave.report.charts import bars, heat
from margrave.report.templating import unbroken
from margrave.report.verdict import Verdict, verdict
from margrave.report.views import (
    bound_views,
    chance_information,
    column_views,
    mutual_information,
    noisy_counts,
    pair_view,
    pair_views,
)
from margrave.report.wording import guarantee, limits, related
from margrave.schema import Categorical, Impossible, Integer, Real, Schema
from margrave.structural_zeros import StructuralZeros
from margrave.transcript import Answer, Measurement, PublicReading, PublicTotal, Transcript
from margrave.types import FloatArray
from margrave.unit import AddRemovePerson, ReplaceRow
from margrave.workload import Workload
from tests.support import fake_model

PLAIN = Provenance("any")

VOID = {"meta", "br", "wbr"}


class Reader(HTMLParser):
    """Collects tags, attributes and text, and insists that tags close in order."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data.replace("\N{NO-BREAK SPACE}", " "))


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


def numbers_release(counts: list[float], scale: float, model: list[float] | None = None) -> Any:
    """A release of one numeric column, measured once."""
    schema = Schema([Real("price", 0, 100_000, edges=[10, 100, 1_000, 10_000])])
    of = replace(fake_model.release(schema=Schema.coded({"a": 2, "b": 2, "c": 3})), schema=schema)
    values = np.array(counts if model is None else model)
    entry = Measurement(("price",), np.array(counts, dtype=np.int64), scale, Fraction(1))
    table = fake_model.TableModel(schema.domain, np.maximum(values, 1.0))
    return replace(of, model=table, transcript=Transcript((entry,)), provenance=PLAIN)


def test_a_mean_that_is_not_reliable_is_said_in_words() -> None:
    release = numbers_release([5_000, 20_000, 8_000, 900, 40], 100.0)
    words = " ".join(read(render(release)).text)
    (mean,) = (n for n in release.numbers(details=True).to_pylist() if n["statistic"] == "mean")
    low, high = mean["interval"].split(" to ")
    assert f"The mean of price is not reliable: between {low} and {high}." in words
    assert f"Mean {mean['text']} ({mean['interval']})" in words
    assert "The synthetic rows are outside of that." not in words
    far = numbers_release([5_000, 20_000, 8_000, 900, 40], 100.0, [1, 1, 1, 1, 30_000])
    assert "The synthetic rows are outside of that." in " ".join(read(render(far)).text)


def test_a_purpose_that_rests_on_an_unreliable_number_is_no_use() -> None:
    served = replace(PLAIN, workload=Workload({("price",): 1.0}, ("mean price",)))
    wide = replace(numbers_release([5_000, 20_000, 8_000, 900, 40], 100.0), provenance=served)
    words = " ".join(read(render(wide)).text)
    assert "mean price: the mean of price is not reliable." in words
    assert "mean price: its marginal was measured. Take" not in words
    sharp = numbers_release([50, 90_000, 20, 10, 1], 1e-3)
    words = " ".join(read(render(replace(sharp, provenance=served))).text)
    assert ("mean price: its marginal was measured. Take its intervals" in words) == (
        "The main numbers of all columns are reliable." in words
    )


def marked(*purposes: str, delta: float = 1e-9) -> Verdict:
    """Return the verdict of a release of one column whose main number is reliable."""
    schema, counts = Schema([Integer("stay", 0, 9)]), np.array([4000] * 7 + [2] * 3)
    entry = Measurement(("stay",), counts, 1.0, Fraction(1))
    made = fake_model.release()
    release = replace(
        made,
        schema=schema,
        model=fake_model.TableModel(schema.domain, counts.astype(float)),
        transcript=Transcript((entry,)),
        provenance=replace(PLAIN, workload=Workload({("stay",): 1.0}, purposes)),
        account=replace(made.account, delta=delta),
    )
    numbers = numbers_of(schema, release.transcript, release.model, 0.95)
    return verdict(release, numbers, column_views(release))


def test_a_release_that_does_not_serve_all_its_purposes_is_not_good() -> None:
    """A column of the second purpose was left out, and noise hides the last rows of the third."""
    assert marked("mean stay").mark == "good"
    for refused in ("mean cost", "quantile stay 0.9999"):
        found = marked("mean stay", refused)
        assert found.mark == "partly"
        assert any(words.startswith(refused) for words in found.not_for)


def test_values_that_count_as_missing_are_said_to() -> None:
    plain = fake_model.release()
    stay = Integer("stay", 0, 2, missing=True, outside="missing")
    made = replace(
        plain,
        schema=Schema([stay, Integer("rooms", 0, 1, missing=True)]),
        transcript=Transcript((Measurement(("stay",), np.full(4, 50), 1.0, Fraction(1)),)),
        provenance=PLAIN,
    )
    table = fake_model.TableModel(made.schema.domain, np.full((4, 3), 50.0))
    words = "Values outside the schema count as missing: stay. The share of missing values"
    assert words in "".join(read(render(replace(made, model=table))).text)
    assert "count as missing" not in render(plain)


def test_the_noise_of_counts_is_that_of_the_best_and_the_worst_column() -> None:
    schema = Schema([Integer(a, 0, 1) for a in "abc"])
    scales = {"a": 1.0, "b": 1.0, "c": 300.0}
    entries = [Measurement((a,), np.full(2, 4000), s, Fraction(1)) for a, s in scales.items()]
    made = replace(fake_model.release(), schema=schema, transcript=Transcript(tuple(entries)))
    table = fake_model.TableModel(schema.domain, np.full((2, 2, 2), 1000.0))
    release = replace(made, model=table, provenance=PLAIN)
    views = column_views(release)
    found = verdict(release, numbers_of(schema, release.transcript, table, 0.95), views)
    least, largest = views[0].error, views[2].error
    assert largest > 100 * least
    words = f"off by at most about {least:.0f} to {largest:.0f}, by the column."
    assert any(t.endswith(words) for t in found.not_for)


def test_a_release_whose_delta_may_publish_a_record_is_bad() -> None:
    weak = replace(fake_model.release(), account=replace(fake_model.release().account, delta=0.1))
    for card in (weak, weak.certificate()):
        assert any("Do not take this release for a private one" in t for t in card._facts().notes)
    found = marked(delta=1e-3)
    assert found.mark == "bad"
    assert found.sentences[0].endswith("Do not take this release for a private one.")


def test_lines_break_around_to_and_after_underscores_alone() -> None:
    release = fake_model.release(schema=Schema.coded({"left_home": 2, "b": 3, "c": 2}))
    page = render(release)
    assert '<th scope="row">left_<wbr>home</th>' in page
    assert re.search(r"<td>[\d.]+\xa0% to [\d.]+\xa0%</td>", page)
    assert not re.search(r"<td>[^<]*\d %", page)
    assert unbroken("2020-01-01 10:00 to beyond -3") == "2020-01-01\xa010:00 to beyond\xa0-3"


def test_the_verdict_names_doubtful_columns_in_a_sentence() -> None:
    for sizes, sentence in (
        ({"a": 2, "b": 3, "c": 2}, "The main numbers of a, b and c: they are not reliable."),
        ({"a": 2}, "The main number of a: it is not reliable."),
    ):
        schema = Schema.coded(sizes)
        release = replace(
            fake_model.release(schema=Schema.coded({"a": 2, "b": 3, "c": 2})),
            schema=schema,
            transcript=Transcript(()),
        ).without_model("no model is needed")
        assert sentence in of_release(release).not_for


def test_values_beyond_a_bound_are_said_in_words() -> None:
    release = numbers_release([5_000, 20_000, 8_000, 900, 90_000], 1.0)
    words = " ".join(read(render(release)).text)
    assert "Values beyond its bounds may be missing from it: 73 % of the records" in words
    assert "If such values exist, raise high in the schema of the next release." in words


def test_noise_and_values_beyond_learned_bounds_are_said_apart_on_page_and_card() -> None:
    release = numbers_release([5_000, 20_000, 8_000, 900, 40], 1.0)
    price = replace(release.schema.column("price"), mean=(100.0, 90.0, 130.0))
    release = replace(release, schema=Schema([price]))
    (sentence,) = beyond_bounds_words(
        release.schema, numbers_of(release.schema, release.transcript, release.model, 0.95)
    )
    mean = next(n for n in release.numbers(details=True).to_pylist() if n["statistic"] == "mean")
    below = figure(mean["estimate"] - mean["low"], 3)
    assert sentence.startswith(f"price: the 95 % interval of the mean reaches {below} below")
    assert sentence in read(render(release)).text
    assert sentence in str(release)
    assert sentence in unescape(release._repr_html_())
    many = Schema([replace(price, name=f"c{i}") for i in range(5)])
    (one,) = release.transcript.measurements
    entries = Transcript(tuple(replace(one, clique=(c.name,)) for c in many.columns))
    of_many = replace(release, schema=many, transcript=entries)
    assert "And likewise 2 more columns." in str(of_many)


def test_reliable_numbers_are_not_marked() -> None:
    schema = Schema([Integer("rooms", 0, 4)])
    of = numbers_release([1, 1, 1, 1, 1], 1.0)
    counts = np.array([4_000, 9_000, 9_000, 4_000, 1_000])
    entry = Measurement(("rooms",), counts, 5.0, Fraction(1))
    model = fake_model.TableModel(schema.domain, counts.astype(float))
    page = render(replace(of, schema=schema, model=model, transcript=Transcript((entry,))))
    assert "Mean 1.5" in page.replace("<b>", "")
    assert 'class="doubt"' not in page


def test_a_column_without_a_measurement_is_said_not_to_be_reliable() -> None:
    words = " ".join(read(render(fake_model.release())).text)
    assert "Numbers of job are not reliable: no measured marginal has all its codes." in words


def test_the_page_is_whole_and_stands_alone() -> None:
    reader = read(render(fake_model.release()))
    assert not {"script", "link", "img", "iframe", "object"} & set(reader.tags)
    assert not [a for a in reader.attributes if a[0] in ("src", "href") or a[0].startswith("on")]
    assert "url(" not in render(fake_model.release())
    assert ("name", "viewport") in reader.attributes
    text = " ".join(reader.text)
    for words in (
        "add or remove one row",
        "The promise",
        "The ledger",
        "Counted age",
        "Chose age, sex",
        "e^3 = 20.09",
    ):
        assert words in text


def test_a_column_cannot_break_out_of_the_page() -> None:
    schema = Schema.coded({"<script>alert(1)</script>": 3, 'b" onload="x': 2, "c&amp;": 3})
    reader = read(render(fake_model.release(schema=schema)))
    assert "script" not in reader.tags
    assert not [a for a in reader.attributes if a[0].startswith("on")]
    assert "<script>alert(1)</script>" in "".join(reader.text)


def test_seeded_noise_is_loud() -> None:
    page = render(fake_model.release(private=False))
    assert "NOT PRIVATE" in page
    assert 'class="alarm"' in page
    assert "Do not publish this release" in page
    assert 'class="badge"' not in page
    assert "NOT PRIVATE" not in render(fake_model.release())
    unkept = "The promise does not hold for this release, because its noise came from a seed."
    assert page.index("<h2>The promise</h2>") < page.index(unkept) < page.index("no outcome is")
    assert unkept not in render(fake_model.release())


def test_columns_that_nothing_was_asked_of_are_told() -> None:
    assert "Nothing was asked" not in render(
        release_of(measurement(("a", "b", "c"), np.ones((2, 3, 2)), 1.0))
    )
    page = render(release_of(measurement(("b",), [1, 2, 3], 1.0)))
    assert (
        "Nothing was asked of a and c: their synthetic values say nothing of the real ones." in page
    )
    assert page.count("nothing was asked of it") == 2
    assert "not measured by itself" not in page


def measurement(clique: tuple[str, ...], values: Any, scale: float) -> Measurement:
    return Measurement(clique, np.asarray(values, dtype=np.int64), scale, Fraction(1, 10))


def test_noisy_counts_come_with_their_intervals() -> None:
    once = measurement(("a",), [10, 20], 30.0)
    values, error = noisy_counts(release_of(once), "a")
    assert values is not None
    assert values.tolist() == pytest.approx([10.0, 20.0])
    assert 1.96 * 30 < error < 2.1 * 30
    more = measurement(
        ("a", "b"), [[1, 2, 3], [4, 5, 6]], 30.0 / np.sqrt(3)
    )  # three cells to a code: also 30
    values, error = noisy_counts(release_of(once, more), "a")
    assert values is not None
    assert values.tolist() == pytest.approx([8.0, 17.5])
    assert 1.96 * 30 / np.sqrt(2) < error < 2.15 * 30 / np.sqrt(2)
    assert noisy_counts(release_of(once), "c") == (None, 0.0)


def release_of(*entries: Measurement) -> Any:
    schema = Schema.coded({"a": 2, "b": 3, "c": 2})
    return replace(fake_model.release(schema=schema), transcript=Transcript(entries))


def with_model(release: Any, counts: FloatArray) -> Any:
    return replace(release, model=fake_model.TableModel(release.schema.domain, counts))


def test_bounds_are_listed_supported_first_and_tightest_first() -> None:
    views = bound_views(fake_model.release())
    assert [(v.clique, v.supported) for v in views[:2]] == [(("sex",), True), (("age",), True)]
    told = [v.records for v in views if v.supported]
    assert told == sorted(told, key=lambda r: r or 0.0)
    text = " ".join(read(render(fake_model.release())).text)
    assert "Error bounds" in text
    assert "measured, rare codes together" in text
    assert "of all" in text
    listed = sum(v.tells for v in views)
    assert (
        f"Of the {len(views)} marginals of the workload, and of fewer columns, {listed} have a bound below 2"
        in text
    )
    assert views[0].words[0] in text


def test_grouped_columns_are_not_shown_as_counted() -> None:
    views = {v.name: v for v in column_views(fake_model.release())}
    assert views["job"].measured is None  # only groups of its codes were counted
    assert views["sex"].measured is not None
    assert views["sex"].model is not None


def test_codes_that_were_merged_are_named_beside_the_pairs() -> None:
    schema, groups = Schema.coded({"a": 3, "b": 2}), {"a": np.array([0, 1, 1])}
    pair = Measurement(("a", "b"), np.full((2, 2), 50), 1.0, Fraction(1), LinearMap(groups))
    plain = measurement(("a", "b"), np.full((3, 2), 50), 1.0)
    for entry, are_merged in ((pair, True), (plain, False)):
        made = replace(
            fake_model.release(schema=Schema.coded({"a": 3, "b": 2, "c": 2})), schema=schema
        )
        made = replace(made, transcript=Transcript((entry,)), provenance=PLAIN)
        release = with_model(made, np.full((3, 2), 50.0))
        words = "Relations of rare codes of a: they were merged in all pairs."
        assert (words in of_release(release).not_for) is are_merged
        notice = "share one count in every marginal of several columns: a {1, 2}. No synthetic row"
        assert (notice in shown_words(release)) is are_merged
        assert "All pairs of columns were measured together." in shown_words(release)
        assert of_release(release).mark == ("partly" if are_merged else "good")


def test_pairs_are_those_measured() -> None:
    assert {v.names for v in pair_views(fake_model.release())} == {("age", "sex"), ("sex", "job")}


def test_mutual_information() -> None:
    assert mutual_information(np.outer([1.0, 3.0], [2.0, 2.0])) == pytest.approx(0.0, abs=1e-12)
    assert mutual_information(np.eye(4)) == pytest.approx(2.0)
    assert mutual_information(np.zeros((2, 2))) == 0.0


def test_tiny_shares_have_finitely_much_in_common() -> None:
    """The product of two small shares is no number above 0, and a row of it no reason to say "inf"."""
    counts = np.array([[1.0, 0.0], [0.0, 1e-200]])
    assert 0.0 <= mutual_information(counts) < 1e-190
    assert mutual_information(np.array([[5.0], [7.0], [11.0]])) == 0.0  # 3e-16 by rounding
    assert mutual_information(np.full((3, 7), 1e-320)) == pytest.approx(0.0, abs=1e-9)


def test_pairs_that_say_nothing_have_no_chart() -> None:
    pair = measurement(("a", "b"), np.ones((2, 3)), 1.0)
    release = release_of(pair)
    assert len(pair_views(release)) == 1
    flat = replace(release, model=fake_model.TableModel(release.schema.domain, np.ones((2, 3, 2))))
    assert pair_views(flat) == []
    page = render(flat)
    assert "Mutual information" not in page
    assert "Of the 3 pairs of columns 1 was measured together." in page


def test_what_was_never_measured_together_is_said_above_the_pairs() -> None:
    counts = np.array([[70, 50, 30], [30, 50, 70]])
    found = release_of(measurement(("a", "b"), counts, 0.1), measurement(("c",), [100, 200], 1.0))
    page = render(with_model(found, counts[:, :, None] * np.array([1, 2]) / 3))
    pairs = page[page.index("<h2>Pairs</h2>") :]
    assert "c was never measured together with another column: its relations to others" in pairs
    assert (
        "Of the 3 pairs of columns 1 was measured together. The others hold only indirect relations"
        in pairs
    )
    assert pairs.index("never measured together") < pairs.index("Mutual information")
    chained = release_of(
        measurement(("a", "b"), np.ones((2, 3)), 1.0), measurement(("b", "c"), np.ones((3, 2)), 1.0)
    )
    assert "never measured together" not in render(chained)
    assert "Of the 3 pairs of columns 2 were measured together." in render(chained)
    whole = render(release_of(measurement(("a", "b", "c"), np.ones((2, 3, 2)), 1.0)))
    assert "All pairs of columns were measured together." in whole
    assert "indirect relations" not in whole


def test_a_release_without_measured_pairs_is_not_said_to_hold_indirect_relations() -> None:
    domain = fake_model.SCHEMA.domain
    singles = [measurement((a,), np.ones(domain.size(a)), 1.0) for a in domain]
    (sentence,) = related(coverage_of(domain, Transcript(tuple(singles)), PLAIN))
    assert "were never measured together with another column" in sentence
    assert "carry no information" in sentence


def test_pairs_that_the_noise_hides_are_no_use_anywhere() -> None:
    """The page's lists, its map and `related` of the summary name the same pairs; a certificate has them as data."""
    hidden = measurement(("a", "b"), np.ones((2, 3)), 100.0)
    related_pair = np.array([[70, 30], [50, 50], [30, 70]])
    clear = measurement(("b", "c"), related_pair, 1.0)
    alone = measurement(("a",), np.full(2, 150), 1.0)
    release = with_model(
        release_of(clear, hidden, alone), np.stack([related_pair, related_pair]) / 2
    )
    assert release.coverage.hidden == (("a", "b"),)
    assert release.certificate()["coverage"]["hidden"] == [["a", "b"]]
    said = "The noise exceeds the average cell of 1 of the 2 measured pairs, which hides its relation: a and b."
    assert related(release.coverage)[-1] == said
    found = of_release(release)
    assert found.sentences[-1].endswith("together, and relations can be used for 1 of these.")
    assert "Relations of 1 of the 2 measured pairs: b and c." in found.use_for
    assert "Relations of a and b: the noise exceeds the average cell of each." in found.not_for
    words = " ".join(read(render(release)).text)
    assert said in words
    assert "a by b" not in words  # a chart would show noise
    assert [v.names for v in pair_views(release)] == [("b", "c")]
    nothing = of_release(release_of(hidden))
    assert nothing.sentences[-1] == (
        "1 of 3 pairs of columns was measured together, and its relation cannot be used."
    )
    assert not any("Relations" in use for use in nothing.use_for)
    whole = release_of(measurement(("a", "b", "c"), np.ones((2, 3, 2)), 40.0))
    assert related(whole.coverage)[0] == "All pairs of columns were measured together."
    assert len(whole.coverage.hidden) == 3
    assert of_release(whole).mark == "partly"
    again = measurement(("a", "b"), np.ones((2, 3)), 0.1)
    assert release_of(hidden, again).coverage.hidden == ()


def test_a_pair_whose_purpose_is_refused_is_no_use() -> None:
    clear = [measurement(pair, np.full((2, 2), 50), 1.6) for pair in (("a", "b"), ("b", "c"))]
    schema = Schema.coded({"a": 2, "b": 2, "c": 2})
    release = replace(fake_model.release(schema=schema), transcript=Transcript(tuple(clear)))
    release = with_model(release, np.full((2, 2, 2), 25.0))
    assert "Relations of the 2 measured pairs, which the map shows." in of_release(release).use_for
    served = replace(PLAIN, workload=Workload({("a", "b"): 1.0}, ("share a by b",)))
    found = of_release(replace(release, provenance=served))
    words = "the main number of a in all 2 groups of b is not reliable. A larger budget"
    assert any(t.startswith(f"share a by b: {words}") for t in found.not_for)
    assert "Relations of 1 of the 2 measured pairs: b and c." in found.use_for


def test_a_purpose_whose_marginal_the_noise_hides_is_no_use() -> None:
    hidden = measurement(("a", "b"), np.ones((2, 3)), 40.0)
    served = replace(PLAIN, workload=Workload({("a", "b"): 1.0}, ("count by a, b",)))
    found = of_release(replace(release_of(hidden), provenance=served))
    assert "count by a, b: the marginal of a, b is not reliable." in found.not_for
    assert not any("count by" in use for use in found.use_for)


def stays_by_ward(rows: int, scale: float) -> Any:
    """A release of a number and a column of two groups, whose counts were measured together."""
    schema = Schema([Categorical("ward", ["a", "b"]), Integer("stay", 0, 9)])
    counts = np.full((2, 10), rows // 20)
    whole = fake_model.release(schema=Schema.coded({"a": 2, "b": 2, "c": 3}))
    table = fake_model.TableModel(schema.domain, counts.astype(np.float64))
    entry = measurement(("ward", "stay"), counts, scale)
    wards = measurement(("ward",), np.full(2, rows // 2), 1.0)
    return replace(
        whole, schema=schema, model=table, transcript=Transcript((entry, wards)), provenance=PLAIN
    )


def test_a_pair_whose_means_by_group_are_not_reliable_is_for_counts_alone() -> None:
    """The uses of a report are never those that `margrave numbers --by` marks."""
    for scale, reliable in ((1.0, True), (60.0, False)):
        release = stays_by_ward(2_000, scale)
        means = [
            n.reliable
            for n in numbers_of(
                release.schema, release.transcript, release.model, 0.95, ["stay"], "ward"
            )
            if n.statistic == "mean"
        ]
        assert all(means) == reliable
        assert release.coverage.hidden == ()
        found = of_release(release)
        relations = [use for use in found.use_for if use.startswith("Relations")]
        counts = [use for use in found.use_for if use.startswith("Counts by both")]
        assert len(relations) == reliable
        assert len(counts) == (not reliable)
        if counts:
            assert "some are not reliable: ward and stay." in counts[0]
            assert found.mark == "partly"
            assert found.sentences[-1] == (
                "The only pair of columns was measured together, and counts by both columns can be used, but not"
                " means by group."
            )
            assert counts[0].startswith(
                "Counts by both columns of the measured pair, but not means"
            )


def test_a_pair_with_a_constant_or_doubtful_column_is_no_use() -> None:
    """Every synthetic row has the same value of it, or its own shares are not reliable."""
    schema = Schema.coded({"a": 2, "b": 2, "c": 2})
    counts = np.zeros((2, 2, 2))
    counts[:, :, 0] = 50_000.0
    whole = with_model(replace(fake_model.release(schema=schema), provenance=PLAIN), counts)
    measured = counts * 0.998
    measured[:, :, 1] = 100.0
    pairs = [
        measurement(("a", "b"), measured.sum(2), 1.0),
        measurement(("b", "c"), measured.sum(0), 1.0),
    ]
    found = of_release(replace(whole, transcript=Transcript(tuple(pairs))))
    assert found.sentences[0] == "The main numbers of all columns are reliable."
    assert found.sentences[1].endswith("relations can be used for 1 of these.")
    assert "Relations of 1 of the 2 measured pairs: a and b." in found.use_for
    assert "Relations of columns with one value in all synthetic rows: c." in found.not_for
    doubtful = measurement(("a", "c"), np.full((2, 2), 50_000), 4_000.0)
    even = replace(whole, transcript=Transcript((pairs[0], doubtful)))
    found = of_release(with_model(even, np.full((2, 2, 2), 25_000.0)))
    assert "Relations of 1 of the 2 measured pairs: a and b." in found.use_for
    assert "The main number of c: it is not reliable." in found.not_for
    assert "Relations of columns whose main number is not reliable: c." in found.not_for


def test_a_pair_with_a_doubtful_column_has_no_chart() -> None:
    schema = Schema.coded({"a": 2, "b": 2, "c": 2})
    related_pair = np.array([[700.0, 300.0], [300.0, 700.0]])
    pairs = [measurement(pair, related_pair, 1.0) for pair in (("a", "b"), ("b", "c"))]
    release = replace(fake_model.release(schema=schema), provenance=PLAIN)
    release = with_model(release, related_pair[:, :, None] * related_pair[None] / 1_000)
    charts = re.compile("<h4>. by .</h4>")
    clear = render(replace(release, transcript=Transcript(tuple(pairs))))
    assert charts.findall(clear) == ["<h4>a by b</h4>", "<h4>b by c</h4>"]
    pairs[1] = measurement(("b", "c"), related_pair, 60.0)
    doubtful = render(replace(release, transcript=Transcript(tuple(pairs))))
    assert "The main number of c: it is not reliable." in doubtful
    assert charts.findall(doubtful) == ["<h4>a by b</h4>"]


def test_a_purpose_on_a_doubtful_column_is_excepted_from_its_relations() -> None:
    """Its groups that may have no rows are without a verdict, and the others can be used."""
    schema = Schema([Categorical("site", ["a", "b"]), Integer("stay", 0, 9)])
    counts = np.array([np.full(10, 1_000.0), np.zeros(10)])
    whole = fake_model.release(schema=Schema.coded({"a": 2, "b": 2, "c": 3}))
    release = replace(
        whole,
        schema=schema,
        model=fake_model.TableModel(schema.domain, counts),
        transcript=Transcript((measurement(("site", "stay"), counts, 3.0),)),
        provenance=replace(
            PLAIN, workload=Workload({("site", "stay"): 1.0}, ("mean stay by site",))
        ),
    )
    found = of_release(release)
    assert any(use.startswith("mean stay by site") for use in found.use_for)
    apart = ", apart from the purposes that it can be used for: site."
    assert f"Relations of columns with one value in all synthetic rows{apart}" in found.not_for


def test_pairs_are_ranked_without_what_chance_gives() -> None:
    """Unrelated columns in many noisy cells have more mutual information than related ones, and no chart."""
    rng, noise = np.random.default_rng(1), 1.0
    schema = Schema.coded({"a": 2, "b": 2, "c": 50})
    related_pair = np.array([[400.0, 350.0], [350.0, 400.0]])
    unrelated = rng.multinomial(1_500, np.full(100, 0.01)).reshape(2, 50) / 15.0
    model = np.maximum(related_pair[:, :, None] / 1_500 * 15 + rng.normal(0, noise, (2, 2, 50)), 0)
    entries = (
        measurement(("a", "b"), related_pair, 1.0),
        measurement(("b", "c"), 15 * unrelated, np.sqrt(2.0) * noise),
    )
    release = replace(
        fake_model.release(schema=schema),
        transcript=Transcript(entries),
        model=fake_model.TableModel(schema.domain, model),
        provenance=PLAIN,
    )
    by_model = {pair: pair_view(release, pair) for pair in (("a", "b"), ("b", "c"))}
    one, other = (v.information for v in by_model.values() if v is not None)
    assert other > one
    assert release.coverage.hidden == ()
    assert [v.names for v in pair_views(release)] == [("a", "b")]


def test_chance_gives_what_noise_and_sampling_of_unrelated_columns_do() -> None:
    rng, flat = np.random.default_rng(1), np.full((20, 15), 10.0)
    schema = Schema.coded({"a": 20, "b": 15, "c": 2})
    whole = replace(
        fake_model.release(schema=schema),
        model=fake_model.TableModel(schema.domain, np.stack([flat / 2, flat / 2], axis=2)),
    )
    view = pair_view(whole, ("a", "b"))
    assert view is not None
    for scale in (1e-9, 2.0):
        tables = (rng.multinomial(3_000, np.full(300, 1 / 300)) for _ in range(50))
        noisy = [t.reshape(20, 15) + rng.normal(0.0, scale, flat.shape) for t in tables]
        unbiased = Unbiased(schema.domain, Transcript((measurement(("a", "b"), flat, scale),)))
        simulated = np.mean([mutual_information(t) for t in noisy])
        assert chance_information(unbiased, view) == pytest.approx(simulated, rel=0.15)


def of_release(release: Any) -> Verdict:
    numbers = numbers_of(release.schema, release.transcript, release.model, 0.95)
    return verdict(release, numbers, column_views(release))


def test_single_counts_and_public_tables_tell_of_pairs_too() -> None:
    domain = fake_model.SCHEMA.domain
    asked = Answer(LinearQuery(("age", "sex"), ((0,), (1,))), 5, 1.0, Fraction(1, 8))
    found = coverage_of(domain, Transcript((asked, measurement(("job",), [1, 2, 3], 1.0))), PLAIN)
    assert (found.pairs, found.measured, found.in_part, found.alone) == (3, 0, 1, ("job",))
    assert (
        "Of 1 more, single counts, sums or selections are partly informative." in related(found)[-1]
    )
    facts = PublicFacts(5, ("sex", "job"), "0" * 64, "a survey")
    public = Provenance.of({"name": "pep-pub", "fit": FitSpec("Projection()", public=facts)})
    found = coverage_of(domain, Transcript((asked, measurement(("job",), [1, 2, 3], 1.0))), public)
    assert found.alone == ()
    assert "or what the public table says" in related(found)[-1]
    shown = PublicReading(("sex", "job"), np.ones((2, 3)), np.full((2, 3), 3.0), "0" * 64)
    found = coverage_of(domain, Transcript((asked, shown)), PLAIN)
    assert (found.measured, found.in_part, found.alone, found.public) == (0, 1, (), True)
    same = coverage_of(
        domain, Transcript((asked, shown)), replace(PLAIN, public=replace(facts, same_records=True))
    )
    assert (same.measured, same.public) == (1, False)


def test_what_a_constraint_joins_is_told_of() -> None:
    domain = Domain.of({"a": 3, "b": 3, "c": 2})
    ruled = Domain(
        domain.attributes,
        domain.sizes,
        (StructuralZeros(("a", "b"), np.arange(9).reshape(3, 3) > 0),),
    )
    counts = Transcript((measurement(("a",), [1, 2, 3], 1.0), measurement(("b",), [1, 2, 3], 1.0)))
    assert "but for what" not in related(coverage_of(domain, counts, PLAIN))[0]
    assert related(coverage_of(ruled, counts, PLAIN))[0].endswith(
        ", but for what the schema's constraints rule out."
    )


def test_persons_under_a_unit_of_rows_are_told_that_they_are_protected_less() -> None:
    plain = fake_model.release()
    assert "several rows" not in render(plain)
    of_persons = replace(plain, schema=replace(plain.schema, person="patient"))
    told = of_persons.certificate()["several_rows"]
    assert told.startswith("A person with several rows is protected less")
    assert "patient" in told
    for card in (of_persons, of_persons.certificate()):
        assert told in card._facts().notes
    page = render(of_persons)
    assert page.index(f'<p class="notice">{told}</p>') < page.index("The verdict")
    assert "".join(read(page).text).count(told) == 2  # the other is in the certificate
    assert "thresholds" not in page
    spent = Debit("discover job", Fraction(1, 9), Fraction(1, 10**10))
    learned = replace(of_persons, account=replace(of_persons.account, debits=(spent,)))
    words = "A value that only these k have reaches them more often than delta says"
    assert words in learned.certificate()["several_rows"]
    assert any(words in limit for limit in limits(learned.account))
    unit = replace(of_persons.account, unit=AddRemovePerson(3))
    assert "several_rows" not in replace(of_persons, account=unit).certificate()


@pytest.mark.parametrize("size", [1, 2, 16, 17, 120, 121, 1000])
def test_bars_show_every_code_or_sum_neighbors(size: int) -> None:
    release = fake_model.release(schema=Schema.coded({"a": size, "b": 2, "c": 3}))
    drawn = bars(column_views(release)[0])
    read(drawn)
    count = drawn.count('class="b"')
    assert count == size if size <= 120 else 60 < count <= 120
    assert drawn.count('class="d"') == count
    assert not re.search(r"nan|inf", drawn)


def test_heat_maps_stay_small() -> None:
    release = fake_model.release(schema=Schema.coded({"a": 300, "b": 90, "c": 3}))
    view = pair_view(release, ("a", "b"))
    assert view is not None
    drawn = heat(view)
    read(drawn)
    assert drawn.count('class="h"') <= 1600


def test_the_promise_is_in_plain_words_and_exact() -> None:
    account = Account(ReplaceRow(), Fraction(1, 10), 1.0, 1e-9, (), True)
    words = " ".join(guarantee(account))
    assert "replace one row" in words
    assert "e^1 = 2.718" in words
    assert "right in at most 3.6 of 100" in words
    assert "was computed from those answers. Take" in words
    public = guarantee(account, has_public_records=True)[0]
    assert "was computed from those answers and from public records. Take" in public
    loose = Account(ReplaceRow(), Fraction(9), 20.0, 1e-9, (), True)
    assert "does not stop an attacker" in " ".join(guarantee(loose))


def test_writing_it(tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    write_report(fake_model.release(), path)
    first = path.read_text(encoding="utf-8")
    assert first.startswith("<!doctype html>")
    today = date.today().isoformat()
    assert first == render(fake_model.release(), Heading(date=today))
    with pytest.raises(InputError, match="exists already"):
        write_report(fake_model.release(private=False), path)
    assert path.read_text(encoding="utf-8") == first
    with pytest.raises(InputError, match=r"does not end in \.html"):
        write_report(fake_model.release(), tmp_path / "r.txt")


class _Answers(fake_model.TableModel):
    """Counts without a distribution."""

    distribution = FittedAnswers.distribution


def shown_words(release: Any) -> str:
    return " ".join(" ".join(read(render(release)).text).split())


def test_answers_without_a_distribution_are_not_said_to_have_synthetic_rows() -> None:
    counts = np.array([[900.0, 20.0], [-30.0, 0.0]])
    schema = Schema.coded({"a": 2, "b": 2})
    release = replace(
        fake_model.release(schema=Schema.coded({"a": 2, "b": 2, "c": 3})),
        schema=schema,
        provenance=PLAIN,
        model=_Answers(schema.domain, counts),
        transcript=Transcript((measurement(("a", "b"), counts, 400.0),)),
    )
    found = of_release(release)
    assert "no synthetic rows can be drawn from it" in found.sentences[0]
    assert found.sentences[1] == "No column has a reliable main number."
    assert found.mark == "partly"
    assert found.use_for == ("Nothing.",)
    assert found.not_for[-1] == "Facts about a single person."
    assert not any("one value in all synthetic rows" in text for text in found.not_for)
    assert "the model, from which no rows can be drawn" in shown_words(release)
    rows = replace(release, model=fake_model.TableModel(schema.domain, np.maximum(counts, 0.0)))
    assert found.sentences[1:] == of_release(rows).sentences
    assert "the model, which the synthetic rows follow" in shown_words(rows)


def test_the_number_of_records_has_an_interval_of_its_noise() -> None:
    """Its half-width is 1.96 standard deviations of the sum of two counts with noise of 10 each: 27.7, rounded up."""
    sex, age = measurement(("a",), [500.0, 500.0], 10.0), measurement(("b",), [1.0] * 3, 1e6)
    words = shown_words(release_of(sex, age))
    assert "records, estimated, with a 95 % interval 300 ± 28 columns 3" in words
    public: Any = replace(release_of(sex), transcript=Transcript((PublicTotal(300), sex)))
    assert "records 300 columns 3" in shown_words(public)


def test_a_release_of_a_run_that_learned_nothing_claims_no_measurement() -> None:
    text = "[schema]\nversion = 1\n"
    for name in ("wage", "code"):
        text += f'[[column]]\nname = "{name}"\nkind = "real"\nlearn = true\n'
    whole = replace(fake_model.release(), schema=Schema.from_toml(text), transcript=Transcript(()))
    release = whole.without_model("the run failed: the noise hides the values")
    words = shown_words(release)
    assert "No pair of columns was measured together." in words
    assert "All pairs of columns" not in words
    assert "no synthetic rows, because the run failed: the noise hides the values." in words
    assert words.count("the noise hides the values") == 2  # the other is in the certificate
    assert "No values were learned of wage and code." in words
    assert "Main numbers" not in words
    assert "Nothing was asked" not in words
    assert "records, estimated unknown" in words
    assert of_release(release).use_for == ("Nothing.",)


def test_a_release_without_a_model_has_no_synthetic_values_to_warn_of() -> None:
    release = release_of(measurement(("b",), [1, 2, 3], 1.0)).without_model("the run failed")
    assert "Nothing was asked of" not in render(release)


def test_one_pair_and_one_column_are_singular() -> None:
    schema = Schema.coded({"a": 2, "b": 3, "c": 2})
    counts = np.stack([np.full((2, 3), 1_000.0), np.full((2, 3), 3_000.0)], axis=2)
    counts[0] *= 2
    whole = replace(fake_model.release(schema=schema), provenance=PLAIN)
    pairs = [
        measurement(("a", "b"), counts.sum(2), 1.0),
        measurement(("b", "c"), counts.sum(0), 1.0),
    ]
    found = of_release(with_model(replace(whole, transcript=Transcript(tuple(pairs))), counts))
    assert any("rest on the pair that was not measured together." in t for t in found.not_for)
    alone = [
        measurement((a,), counts.sum(axes), 1.0)
        for a, axes in zip("abc", ((1, 2), (0, 2), (0, 1)), strict=True)
    ]
    found = of_release(with_model(replace(whole, transcript=Transcript(tuple(alone))), counts))
    assert found.sentences[-1] == "No pair of columns was measured together."
    noisy = replace(alone[0], scale=9_000.0), replace(alone[1], scale=9_000.0), alone[2]
    found = of_release(with_model(replace(whole, transcript=Transcript(noisy)), counts))
    assert found.sentences[0] == "The main number of 1 of 3 columns is reliable."


def test_a_price_of_one_record_is_singular(monkeypatch: pytest.MonkeyPatch) -> None:
    price = SimpleNamespace(rows=1, share=0.0025, unbounded=0, level=0.95, marginals=6, error=1.41)
    monkeypatch.setattr(page, "price_view", lambda release: price)
    words = shown_words(fake_model.release())
    assert "That is what 1 real record drawn at random, 0.25 % of all," in words
    assert "Equivalent sample size" in words


def test_bounds_that_are_all_useless_name_a_reason_only_if_there_is_none() -> None:
    release = release_of(measurement(("a", "b", "c"), np.ones((2, 3, 2)), 4_000.0))
    words = shown_words(with_model(release, np.ones((2, 3, 2))))
    assert "none has a bound below 2." in words
    assert "The first of them: measured" not in words


def test_public_lines_are_not_counted_as_questions() -> None:
    single = measurement(("a",), [100, 200], 1.0)
    release = replace(release_of(single), transcript=Transcript((PublicTotal(300), single)))
    assert "Measurements: 1 question<" in render(release)
    assert "Lines at 0 % of the budget are public" in render(release)
    assert "Lines at 0 % of the budget" not in render(release_of(single))


def test_a_long_table_names_the_values_that_it_leaves_out() -> None:
    schema = Schema.coded({"a": 2_001, "b": 2})
    counts = np.full((2_001, 2), -0.2)
    entry = measurement(("a",), np.zeros(2_001), 1.0)
    release = replace(
        fake_model.release(schema=Schema.coded({"a": 2, "b": 2, "c": 3})),
        schema=schema,
        model=_Answers(schema.domain, counts),
        transcript=Transcript((entry,)),
        provenance=PLAIN,
    )
    drawn = render(release)
    assert "The first 2,000 of 2,001 values" in drawn
    assert ">-0<" not in drawn
    assert "All 2 values" in drawn


def test_a_constraint_is_named_beside_the_columns() -> None:
    columns = [Categorical("a", ["x", "y"]), Categorical("b", ["x", "y"])]
    counts = np.array([[5.0, 5.0], [5.0, 0.0]])
    plain, ruled = (
        replace(
            fake_model.release(schema=Schema.coded({"a": 2, "b": 2, "c": 3})),
            schema=schema,
            model=fake_model.TableModel(schema.domain, counts),
            transcript=Transcript((measurement(("a", "b"), counts, 1.0),)),
            provenance=PLAIN,
        )
        for schema in (
            Schema(columns),
            Schema(columns, constraints=[Impossible({"a": "y", "b": "y"})]),
        )
    )
    assert "The schema rules out" not in shown_words(plain)
    assert "no synthetic row has one: impossible (a, b)." in shown_words(ruled)
