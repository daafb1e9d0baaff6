"""Both reports in a browser: they load nothing, fit, print, and keyboard and axe-core find no fault."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from margrave.evaluation import evaluate
from margrave.report import write_report
from margrave.schema import Boolean, Categorical, Column, Integer, Schema
from margrave.transcript import Measurement, Transcript
from tests.support import fake_model
from tests.support.browser import axe_script, chromium

pytestmark = [pytest.mark.slow, pytest.mark.browser]

STAMP = "NOT PRIVATE. Computed from the real rows."


def wide_schema() -> Schema:
    """40 columns, one of 300 categories and one of growing bins."""
    regions = Categorical("region of residence", [f"Region number {i}" for i in range(300)])
    income = Integer("income", 0, 1_000_000, edges=[1, 100, 1_000, 10_000, 100_000], missing=True)
    answers: list[Column] = [Boolean(f"answer to question {i}") for i in range(38)]
    return Schema([regions, income, *answers])


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The paths of both reports on a wide table."""
    folder = tmp_path_factory.mktemp("pages")
    schema, rng = wide_schema(), np.random.default_rng(0)
    names = list(schema.domain)

    def measured(clique: tuple[str, ...]) -> Measurement:
        counts = rng.poisson(40, schema.domain.shape(clique))
        return Measurement(clique, counts.astype(np.int64), 5.0, Fraction(1, 50))

    entries = [measured((n,)) for n in names] + [measured(p) for p in pairwise(names)]
    small = fake_model.release()
    release = replace(
        small, schema=schema, transcript=Transcript(tuple(entries)),
    ).without_model("the page is read, and no rows are drawn")  # fmt: skip
    paths = {"public": folder / "public.html", "private": folder / "private.html"}
    write_report(release, paths["public"], title="A survey", office="Office", dataset="Survey")

    def table(rows: int) -> pa.Table:
        values = {"region of residence": [f"Region number {i}" for i in rng.integers(0, 300, rows)]}
        values["income"] = [int(v) for v in rng.lognormal(8, 2, rows).clip(0, 1e6)]
        values |= {n: [bool(v) for v in rng.random(rows) < 0.3] for n in names[2:]}
        return pa.table(values)

    pairs = list(pairwise(names))
    found = evaluate(table(2_000), table(2_000), pairs, schema=schema)
    found.report().save(paths["private"])
    return paths


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started


def opened(browser: Any, path: Path, **context: Any) -> tuple[Any, list[str]]:
    """The page, and what it asked for or complained of, itself left out."""
    page = browser.new_context(**context).new_page()
    said: list[str] = []
    page.on("request", lambda r: said.append(r.url))
    page.on("console", lambda m: said.append(m.text))
    page.on("pageerror", lambda e: said.append(str(e)))
    page.goto(path.as_uri())
    return page, [s for s in said if s != path.as_uri()]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["public", "private"])
def test_axe_finds_no_serious_fault(
    browser: Any, pages: dict[str, Path], name: str, scheme: str
) -> None:
    page, _ = opened(browser, pages[name], color_scheme=scheme, bypass_csp=True)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    page.evaluate(axe_script())
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    assert not [(v["id"], v["help"]) for v in found if v["impact"] in ("serious", "critical")]
    page.context.close()


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("name", ["public", "private"])
def test_the_page_asks_for_nothing_and_fits(
    browser: Any, pages: dict[str, Path], name: str, width: int
) -> None:
    page, said = opened(browser, pages[name], viewport={"width": width, "height": 800})
    assert said == []
    over = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(over) == 0
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.evaluate(over) == 0
    page.context.close()


@pytest.mark.parametrize("name", ["public", "private"])
def test_the_keyboard_reaches_every_part(browser: Any, pages: dict[str, Path], name: str) -> None:
    page, _ = opened(browser, pages[name])
    parts = page.locator("summary").count()
    assert parts >= 40
    page.evaluate("document.addEventListener('focusin', e => e.target.dataset.reached = '1')")
    for _ in range(4 * parts):
        page.keyboard.press("Tab")
        if page.locator("summary[data-reached]").count() == parts:
            break
    assert page.locator("summary[data-reached]").count() == parts
    page.locator("summary").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("details").first.get_attribute("open") is not None
    page.context.close()


@pytest.mark.parametrize("name", ["public", "private"])
def test_texts_of_charts_do_not_overlap(browser: Any, pages: dict[str, Path], name: str) -> None:
    page, _ = opened(browser, pages[name], viewport={"width": 1280, "height": 800})
    assert page.evaluate(OVERLAPS) == []
    page.context.close()


OVERLAPS = """
[...document.querySelectorAll('svg.margrave')].flatMap(svg => {
  const boxes = [...svg.querySelectorAll('text')].map(t => [t.getBoundingClientRect(), t.textContent]);
  return boxes.flatMap(([a, x], i) => boxes.slice(i + 1).filter(([b]) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 3 &&
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 6).map(([b, y]) => x + ' | ' + y));
})
"""


def test_every_chart_has_a_title_and_a_description(browser: Any, pages: dict[str, Path]) -> None:
    for path in pages.values():
        page, _ = opened(browser, path)
        charts = page.locator("svg.margrave").count()
        assert charts >= 40
        assert page.locator("svg.margrave[role=img] > title:first-child").count() == charts
        assert page.locator("svg.margrave > desc").count() == charts
        page.context.close()


def test_paper_has_every_page_and_the_private_stamp_on_each(
    browser: Any, pages: dict[str, Path], tmp_path: Path
) -> None:
    pypdf = pytest.importorskip("pypdf", reason="needs pypdf: pip install margrave[browser]")
    for name, path in pages.items():
        page, _ = opened(browser, path)
        page.pdf(path=tmp_path / f"{name}.pdf")
        texts = [p.extract_text() for p in pypdf.PdfReader(tmp_path / f"{name}.pdf").pages]
        assert len(texts) >= 3
        stamped = [STAMP in " ".join(t.split()) for t in texts]
        assert all(stamped) if name == "private" else not any(stamped)
        page.context.close()
