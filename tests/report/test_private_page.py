"""The private report of a comparison: stamped, escaped, complete, and never beside a release."""

from __future__ import annotations

import stat
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import margrave
from margrave.cli.main import run
from margrave.errors import InputError, ReleaseError
from margrave.evaluation import Evaluation, PrivatePage, evaluate
from margrave.evaluation.pictures import cramers_v
from margrave.report import write_report
from margrave.schema import Categorical, Integer, Schema
from tests.support import fake_model

HOSTILE = "<script>alert('x')</script>"
STAMP = "NOT PRIVATE. Computed from the real rows. This page must not leave the office."
SCHEMA = Schema([Categorical("sex", ["F", HOSTILE]), Integer("age", 0, 99, bins=5)])


def rows(ages: list[int]) -> pa.Table:
    return pa.table({"sex": ["F", HOSTILE] * (len(ages) // 2), "age": ages})


@pytest.fixture(scope="module")
def found() -> Evaluation:
    return evaluate(rows([10, 30, 50, 70] * 10), rows([10, 30, 30, 70] * 10), schema=SCHEMA)


def test_the_page_is_stamped_and_complete(found: Evaluation) -> None:
    page = found.report()
    assert isinstance(page, PrivatePage)
    assert page.html.count(STAMP) == 1
    assert "<title>NOT PRIVATE: " in page.html
    for words in ("Associations", "Worst cells", "Subgroups", "Means and quartiles", "synthetic"):
        assert words in page.html
    assert "NOT PRIVATE" in page._repr_html_()
    assert not evaluate(rows([10] * 4), rows([30] * 4), schema=SCHEMA).purposes


def test_text_of_the_tables_is_text(found: Evaluation) -> None:
    page = found.report().html
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_what_differs_most_comes_first(found: Evaluation) -> None:
    pictures = found.pictures
    assert pictures.cells[0].cell == "sex = F, age = 20 to 39"
    assert (pictures.cells[0].real, pictures.cells[0].synthetic) == (0.0, 0.25)
    worst = pictures.groups[0]
    assert worst.group == "sex = F"
    assert (worst.real_rows, worst.synthetic_rows, worst.furthest) == (20, 20, "age")
    assert worst.total_variation == pytest.approx(0.5)
    assert pictures.shares["age"][0].tolist() == [0.25, 0.25, 0.25, 0.25, 0.0]


def test_cramers_v_is_between_0_and_1() -> None:
    assert cramers_v(np.eye(4) * 9) == pytest.approx(1.0)
    assert cramers_v(np.outer([3, 1, 0], [2, 2])) == pytest.approx(0.0)
    assert cramers_v(np.array([[5, 0], [7, 0]])) == 0.0
    assert cramers_v(np.zeros((2, 2))) == 0.0


def test_it_is_not_written_beside_a_release(found: Evaluation, tmp_path: Path) -> None:
    apart = tmp_path / "not-private"
    apart.mkdir()
    fake_model.release().save(tmp_path / "visits.margrave")
    with pytest.raises(InputError, match=r"beside the release visits\.margrave"):
        found.report().save(tmp_path / "other.html")
    (apart / "link").symlink_to(tmp_path, target_is_directory=True)
    with pytest.raises(InputError, match=r"beside the release visits\.margrave"):
        found.report().save(apart / "link" / "other.html")
    with pytest.raises(InputError, match=r"does not end in \.html"):
        found.report().save(apart / "other.margrave")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["not-private", "visits.margrave"]
    found.report().save(apart / "visits.html")
    mode = (apart / "visits.html").stat().st_mode
    assert stat.S_IMODE(mode) == 0o600
    with pytest.raises(InputError, match="exists already"):
        found.report().save(apart / "visits.html")


def test_a_release_does_not_take_it_in(found: Evaluation, tmp_path: Path) -> None:
    path = tmp_path / "visits.margrave"
    fake_model.release().save(path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("report.html", found.report().html)
    with pytest.raises(ReleaseError, match="neither manifest nor array"):
        margrave.release.Release.load(path)


def test_the_command_writes_it_and_refuses_before_it_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    SCHEMA.save("s.toml")
    for name in ("real.parquet", "synthetic.parquet"):
        pa.parquet.write_table(rows([10, 30, 50, 70] * 3), name)
    Path("apart").mkdir()
    call = ["evaluate", "real.parquet", "synthetic.parquet", "--schema", "s.toml", "--report"]
    assert run([*call, "apart/page.html"]) == 0
    assert "NOT PRIVATE, for the custodian alone: wrote the report" in capsys.readouterr().out
    assert STAMP in Path("apart/page.html").read_text(encoding="utf-8")
    fake_model.release().save("visits.margrave")
    assert run([*call, "page.html"]) == 2
    assert "beside the release visits.margrave" in capsys.readouterr().err
    assert run([*call, "apart/page.html"]) == 2
    assert run([*call, "real.parquet", "--overwrite"]) == 2
    write_report(fake_model.release(), "page.html")
    assert STAMP not in Path("page.html").read_text(encoding="utf-8")


def test_a_comparison_of_one_equal_column_has_neither_pairs_nor_a_difference() -> None:
    schema = Schema([Integer("age", 0, 99, bins=5)])
    table = pa.table({"age": [10, 30, 50, 70] * 5})
    page = evaluate(table, table, schema=schema).report().html
    assert "mean total variation of pairs" not in page
    assert "Total variation 0.0000. All shares are equal." in page
    assert "Furthest" not in page


def test_columns_of_tables_have_names_of_their_own(found: Evaluation) -> None:
    heads = (
        found.report().html.partition("<h2>Means and quartiles</h2>")[2].partition("</thead>")[0]
    )
    for name in ("mean, real", "mean, synthetic", "quartiles, real", "quartiles, synthetic"):
        assert heads.count(f">{name}</th>") == 1
