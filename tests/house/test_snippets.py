"""Every example in Python on a page runs: here, or in the test of its page."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import margrave
from margrave.errors import InputError
from margrave.schema import Categorical, Date, Integer, Real, Schema
from tests.support.pages import PAGES, ROOT, blocks

#: Pages whose examples run in their own tests, by the file of the test.
OTHERS = {
    "house/test_docs.py": "README quickstart fit mechanism score table comparing workload tables",
    "house/test_reader_pages.py": "epsilon analysts",
    "inference/test_docs.py": "inference",
    "schema/test_schema.py": "schema",
    "face/test_dp_event.py": "promise",
}
#: Pages whose examples run here; those of the slow ones fit with JAX, or search.
HERE = ["aim", "bounds", "large-tables", "ledger", "privacy", "public"]
HERE_SLOW = ["mechanisms", "private-gsd", "privpgd"]
SCHEMA = Schema(
    [
        Integer("age", 0, 99, bins=5),
        Categorical("sex", ["F", "M"]),
        Integer("income", 0, 200_000, bins=4),
        Real("cost", 0.0, 100.0, bins=4),
        *(Date(name, date(2024, 1, 1), date(2024, 12, 31), bins=4) for name in ("admitted", "discharged")),
    ]
)  # fmt: skip


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the names that examples take as given, in a folder with the files that they read."""
    monkeypatch.chdir(tmp_path)
    rng, n = np.random.default_rng(0), 600
    days = np.datetime64("2024-01-01") + np.sort(rng.integers(0, 366, (n, 2)))
    visits = pd.DataFrame(
        {
            "age": rng.integers(100, size=n),
            "sex": rng.choice(["F", "M"], n),
            "income": rng.integers(200_001, size=n),
            "cost": rng.random(n) * 100,
            "admitted": days[:, 0].astype(str),
            "discharged": days[:, 1].astype(str),
        }
    )
    SCHEMA.save("visits.toml")
    visits.to_csv("visits.csv", index=False)
    visits.to_csv("incomes.csv", index=False)
    visits[["age", "sex"]].to_csv("register.csv", index=False)
    sample = visits.sample(300, replace=True, random_state=1).drop(columns="cost")
    coded = sample.assign(gender=sample["sex"].map({"M": "1", "F": "2"}), height=170)
    coded["thousands"] = coded["income"] // 1000
    coded[["gender", "age", "thousands", "height"]].to_csv("open-sample.csv", index=False)
    Path("visits").mkdir()
    visits.to_parquet("visits/1.parquet")
    release = margrave.synthesize(
        "visits.csv", SCHEMA, epsilon=3.0, delta=1e-9, mechanism="mst", seed=0
    )
    return {
        "margrave": margrave,
        "schema": SCHEMA,
        "release": release,
        "sample": sample,
        "register": visits[["age", "sex"]].head(20),
        "table": margrave.read_table(visits, SCHEMA),
        "GeneticFit": margrave.models.GeneticFit,
    }


def run(page: str, names: dict[str, Any]) -> None:
    """Run the examples of a page in their order, with a workload in place of an ellipsis, and little effort."""
    scripts = blocks(ROOT / "docs" / f"{page}.md", "python")
    assert scripts
    names |= {"workload": margrave.Workload.all_kway(SCHEMA.domain, 2)}
    smaller = {
        "workload=...": "workload=workload",
        "prefixes(...)": "prefixes(schema.domain, workload, ordered=['age', 'income'])",
        "draws(100)": "draws(3)",
        "records=20_000": "records=200, generations=50",
        "components=1000": "components=20",
    }
    for script in scripts:
        for text, other in smaller.items():
            script = script.replace(text, other)
        exec(script, names)


@pytest.mark.parametrize("page", HERE)
def test_the_examples_of_a_page_run(page: str, world: dict[str, Any]) -> None:
    run(page, world)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:\\w+Fit estimates marginals:margrave.errors.RefitWarning")
@pytest.mark.parametrize("page", HERE_SLOW)
def test_the_examples_of_a_long_page_run(page: str, world: dict[str, Any]) -> None:
    run(page, world)


def test_no_page_has_examples_that_nothing_runs() -> None:
    elsewhere = [page for pages in OTHERS.values() for page in pages.split()]
    with_examples = [
        page.stem
        for page in PAGES
        if page.suffix == ".md" and re.search(r"^```python", page.read_text("utf-8"), re.M)
    ]
    assert sorted(with_examples) == sorted([*elsewhere, *HERE, *HERE_SLOW])
    for file, pages in OTHERS.items():
        source = (ROOT / "tests" / file).read_text(encoding="utf-8")
        for page in pages.split():
            assert f'"{page}.md"' in source, (file, page)


def test_an_example_that_fails_is_seen(world: dict[str, Any]) -> None:
    run("ledger", world)
    with pytest.raises(InputError):  # the ledger has this data set already
        run("ledger", world)
