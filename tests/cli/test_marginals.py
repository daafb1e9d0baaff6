"""``margrave marginals``: every noisy count of a release once, with its cell in words, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from margrave.cli.main import run
from margrave.cli.marginals import _write_folder
from margrave.data import read_frame
from margrave.domain import Domain
from margrave.errors import ReleaseError
from margrave.marginal import LinearMap
from margrave.release import Release, measurement_table, measurement_tables
from margrave.schema import Categorical, Integer, Schema
from margrave.transcript import Measurement, Transcript
from tests.support import golden

SCHEMA = Schema([Categorical("sex", ["F", "M"]), Integer("noisy_count", 0, 5, bins=3)])


def entry(clique: Sequence[str], values: object, query: LinearMap | None = None) -> Measurement:
    return Measurement(
        tuple(clique), np.array(values), 2.0, Fraction(1, 8), *([] if query is None else [query])
    )


@pytest.fixture
def release() -> Release:
    return Release.load(golden.FOLDER / golden.RELEASE)


def test_every_count_is_there_with_its_cell(release: Release) -> None:
    """Cell by cell: the labels lead back to the place in the answer."""
    measured = release.transcript.measurements
    table = measurement_table(release.schema, release.transcript)
    assert table.num_rows == sum(m.values.size for m in measured)
    labels = {c.name: c.labels() for c in release.schema.columns}
    seen: set[tuple[int, ...]] = set()
    for row in table.to_pylist():
        m = measured[row["measurement"] - 1]
        assert row["marginal"] == ", ".join(m.clique)
        assert {a for a in labels if row.get(a) is not None} == set(m.clique)
        place = tuple(labels[a].index(row[a]) for a in m.clique)
        assert row["noisy_count"] == m.values[place]
        assert row["noise_scale"] == m.scale
        seen.add((row["measurement"], *place))
    assert len(seen) == table.num_rows
    for one, m in zip(
        measurement_tables(release.schema, release.transcript), measured, strict=True
    ):
        assert one.column_names == [*m.clique, "noisy_count", "noise_scale"]
        assert one["noisy_count"].to_pylist() == m.values.reshape(-1).tolist()


def test_merged_codes_and_sums_are_written_out() -> None:
    merged = LinearMap(groups={"noisy_count": np.array([0, 1, 1])})
    domain = Domain.of({"noisy_count": 3})
    sums = LinearMap.prefixes(domain, ["noisy_count"])
    residual = LinearMap.residual(Domain.of({"sex": 2}), ("sex",))
    transcript = Transcript(
        (
            entry(["noisy_count"], [5, 7], merged),
            entry(["noisy_count"], [5, 7, 8], sums),
            entry(["sex"], [3, -3], residual),
        )
    )
    one, two, three = measurement_tables(SCHEMA, transcript)
    a, b, c = SCHEMA.column("noisy_count").labels()
    assert one["noisy_count"].to_pylist() == [a, f"{b} | {c}"]
    assert two["noisy_count"].to_pylist() == [a, f"{a} | {b}", f"{a} | {b} | {c}"]
    assert three["sex"].to_pylist() == ["+1 × (F) -1 × (M)", "-1 × (F) +1 × (M)"]
    assert three["noisy_count_"].to_pylist() == [3, -3]  # a column of the table has the name
    whole = measurement_table(SCHEMA, transcript)
    assert whole.column_names == [
        "measurement", "marginal", "sex", "noisy_count", "noisy_count_", "noise_scale",
    ]  # fmt: skip
    assert whole["sex"].to_pylist()[:5] == [None] * 5


def test_a_release_without_noisy_marginals_is_one_sentence() -> None:
    with pytest.raises(ReleaseError, match="no noisy marginal"):
        measurement_table(SCHEMA, Transcript(()))


def test_the_command_writes_a_file_or_a_folder(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    release: Release,
) -> None:
    monkeypatch.chdir(tmp_path)
    source = str(golden.FOLDER / golden.RELEASE)
    expected = measurement_table(release.schema, release.transcript)
    assert run(["marginals", source, "-o", "m.parquet"]) == 0
    assert pq.read_table("m.parquet").equals(expected)
    assert f"of {len(release.transcript.measurements)} marginals" in capsys.readouterr().out
    assert run(["marginals", source, "-o", "m.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"] == expected.num_rows
    assert read_frame("m.csv")["noisy_count"].to_pylist() == [
        str(v) for v in expected["noisy_count"].to_pylist()
    ]
    assert run(["marginals", source, "-o", "folder"]) == 0
    files = sorted(Path("folder").iterdir())
    assert pa.concat_tables([pq.read_table(f).select(["noisy_count"]) for f in files]).equals(
        expected.select(["noisy_count"])
    )
    capsys.readouterr()
    for wrong in (
        ["m.csv"],
        ["folder"],
        ["m.txt"],
        [source, "--overwrite"],
        ["other", "--excel-safe"],
    ):
        assert run(["marginals", source, "-o", *wrong]) == 2
        assert capsys.readouterr().err.startswith("Error: ")


def test_names_of_columns_do_not_leave_the_folder(tmp_path: Path) -> None:
    transcript = Transcript((entry(["../up/ä"], [3]), entry(["x" * 300], [3])))
    schema = Schema([Categorical("../up/ä", ["a"]), Categorical("x" * 300, ["a"])])
    tables = measurement_tables(schema, transcript)
    _write_folder(tables, tmp_path / "made", [m.clique for m in transcript.measurements])
    assert sorted(p.name for p in tmp_path.rglob("*.parquet")) == [
        "0001-up.parquet",
        f"0002-{'x' * 80}.parquet",
    ]
    assert [p.name for p in tmp_path.iterdir()] == ["made"]
