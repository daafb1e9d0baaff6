"""Public tables: read by the private table's schema, named on the command line, and told of in certificate and page."""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import margrave
from margrave import api
from margrave.cli.main import run
from margrave.errors import DataError, InputError
from margrave.mechanisms import MECHANISMS, Independent
from margrave.mechanisms.parts.checks import check_public
from margrave.models import MultiplicativeWeightsFit
from margrave.public_table import PublicTable
from margrave.release import Release
from margrave.report import render
from margrave.schema import Categorical, Impossible, Integer, Schema

SCHEMA = Schema(
    [
        Categorical("sex", ["F", "M"]),
        Integer("age", low=0, high=99, bins=10),
        Categorical("job", ["a", "b"], other=True, outside="other"),
    ],
    person="who",
    ignore=["note"],
)
WORD = "the census bureau's published sample, 2020"


def rows(**columns: list[Any]) -> pa.Table:
    return pa.table(columns)


def read(frame: Any, **more: Any) -> PublicTable:
    return margrave.read_public(frame, SCHEMA, attestation=WORD, **more)


# Reading.


def test_codes_are_those_of_the_private_table_s_schema(tmp_path: Path) -> None:
    frame = rows(job=["b", "zzz"], sex=["M", "F"], age=[5, 250])
    public = read(frame)
    assert public.domain == SCHEMA.domain
    assert public.codes.values.tolist() == SCHEMA.encode(frame).values.tolist()
    assert public.attestation == WORD
    pa.parquet.write_table(frame, tmp_path / "it.parquet")
    (tmp_path / "it.csv").write_text("job,sex,age\nb,M,5\nzzz,F,250\n")
    for path in (tmp_path / "it.parquet", str(tmp_path / "it.csv"), frame.to_pandas()):
        assert read(path).sha256 == public.sha256


def test_columns_may_be_lacking_and_may_be_chosen(tmp_path: Path) -> None:
    frame = rows(age=[5, 15, 25], sex=["M", "F", "F"], who=["x", "y", "z"], note=["", "", ""])
    assert read(frame).domain.attributes == ("sex", "age")
    assert read(frame, columns=["age"]).codes.values.tolist() == [[0, 1, 2]]
    path = tmp_path / "it.csv"
    path.write_text("age;who\n5;x\n99;y\n")
    assert read(path).codes.values.tolist() == [[0, 9]]
    SCHEMA.save(tmp_path / "s.toml")
    assert (
        margrave.read_public(path, tmp_path / "s.toml", attestation=WORD).sha256
        == read(path).sha256
    )


@pytest.mark.parametrize(
    ("frame", "more", "told"),
    [
        (
            rows(age=[1], sex=["F"], height=[3]),
            {},
            'no column "height", which the public table holds.*--public-columns sex,age ',
        ),
        (rows(age=[1]), {"columns": ["sex"]}, 'The public table has no column "sex"'),
        (rows(x=[1], y=[2]), {}, "No column of the table"),
        (rows(age=[1]), {"columns": []}, "no column|to be read"),
        (
            rows(sex=["X"]),
            {},
            "public table, column 'sex': 1 value outside the schema, .*Recode the public table",
        ),
        (
            rows(sex=[None]),
            {},
            "public table, column 'sex': 1 value missing. Leave these rows, or the column, out",
        ),
        (
            rows(age=["old"]),
            {},
            "public table, column 'age': not one of its values .* Recode the public table",
        ),
    ],
)
def test_what_does_not_fit_is_told_by_column(frame: Any, more: Any, told: str) -> None:
    with pytest.raises(DataError, match=told):
        read(frame, **more)


def test_named_columns_are_read_beside_any_others_and_what_is_moved_is_told(tmp_path: Path) -> None:
    """An extra column of the public table changes nothing of the private table's schema."""
    frame = rows(age=[5, 120, -3], height=[1, 2, 3], sex=["X", "Y", "Z"], job=["a", "b", "zzz"])
    public = read(frame, columns=["age", "job"])
    assert public.codes.values.tolist() == [[0, 9, 0], [0, 1, 2]]
    assert public.notes == (
        "The public table, column 'age': 2 of 3 values outside the schema, moved to the nearest cell.",
        "The public table, column 'job': 1 of 3 values outside the schema, counted as the open category.",
    )
    assert public.select(["age"]).sha256 == read(frame, columns=["age"]).sha256
    assert not read(rows(age=[5], note=["x"])).notes


def test_errors_that_are_not_about_the_rows() -> None:
    with pytest.raises(InputError, match="nope"):
        read(rows(age=[1]), columns=["nope"])
    with pytest.raises(InputError, match="no records"):
        read(rows(age=pa.array([], pa.int64())))
    with pytest.raises(InputError, match="without a word"):
        margrave.read_public(rows(age=[1]), SCHEMA, attestation="  ")
    with pytest.raises(DataError, match="cannot be read"):
        read("nowhere.csv")


def test_constraints_of_the_columns_that_are_there_hold() -> None:
    """A row that cannot be is refused as the private table's is; constraints on absent columns say nothing."""
    constrained = replace(SCHEMA, constraints=[Impossible({"sex": ["M"], "job": ["a"]})])
    frame = rows(sex=["M"], job=["a"])
    with pytest.raises(DataError, match="constraint"):
        margrave.read_public(
            frame,
            replace(
                constrained,
                constraints=[Impossible({"sex": ["M"], "job": ["a"]}, violating="refuse")],
            ),
            attestation=WORD,
        )
    alone = margrave.read_public(frame.select(["sex"]), constrained, attestation=WORD)
    assert alone.domain.zeros == ()


def test_a_schema_of_some_columns() -> None:
    both = Impossible({"sex": ["M"], "age": (90, 99)})
    one = replace(SCHEMA, constraints=[both, Impossible({"age": (0, 9), "job": ["a"]})])
    part = one.select(["age", "sex"])
    assert [c.name for c in part.columns] == ["sex", "age"]
    assert part.constraints == (both,)
    assert part.person is None
    with pytest.raises(InputError, match="nope"):
        one.select(["nope"])


# The command line.


@dataclass(frozen=True, kw_only=True)
class Fake(Independent):
    """Independent columns, and a public table that it only tells of."""

    public: PublicTable | None = None

    def config(self) -> dict[str, Any]:
        return {**super().config(), "public": None if self.public is None else self.public.facts()}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a private table, a public one, and a mechanism that takes it."""
    monkeypatch.chdir(tmp_path)
    Schema.coded({"age": 4, "sex": 2}).save("schema.toml")
    rng = np.random.default_rng(0)
    for name, columns in (("private.csv", ("age", "sex")), ("public.csv", ("sex",))):
        sizes = {"age": 4, "sex": 2}
        lines = [",".join(str(rng.integers(sizes[c])) for c in columns) for _ in range(200)]
        Path(name).write_text("\n".join([",".join(columns), *lines, ""]))
    monkeypatch.setitem(cast(Any, MECHANISMS), "fake", Fake)
    return tmp_path


def command(name: str, *more: str) -> list[str]:
    file = ["private.csv"] if name == "synthesize" else []
    return [name, *file, "-s", "schema.toml", "--epsilon", "1", "--delta", "1e-6", *more]


def test_a_public_table_goes_from_its_file_to_certificate_and_page(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    word = "a <published> sample"
    chosen = ["-m", "fake", "--public", "public.csv", "--attestation", word]
    outputs = ["--release", "r.margrave", "--report", "r.html"]
    assert run(command("synthesize", *chosen, *outputs)) == 0, capsys.readouterr().err
    facts = Release.load("r.margrave").certificate()
    public = margrave.read_public("public.csv", "schema.toml", attestation=word)
    assert facts["mechanism"]["public"] == public.facts().to_dict()
    assert (
        f"a public table of 200 records, sha256 {public.sha256}: {word}" in facts["public_inputs"]
    )
    page = Path("r.html").read_text()
    assert "a &lt;published&gt; sample" in page
    assert public.sha256 in page
    assert "200 records of sex" in page
    assert run(command("plan", *chosen)) == 0


def test_its_columns_are_named_on_the_command_line_and_what_it_lost_is_told(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Schema([Integer("sex", 0, 1), Integer("age", 0, 3)]).save("schema.toml", overwrite=True)
    Path("wide.csv").write_text("age,height,sex\n3,170,0\n250,180,1\n")
    words = ["-m", "fake", "--public", "wide.csv", "--attestation", WORD]
    assert run(command("synthesize", *words, "--release", "r.margrave")) == 4
    assert "take it out of the public table; or name the columns" in " ".join(
        capsys.readouterr().err.split()
    )
    more = ["--public-columns", "age", "--release", "r.margrave"]
    assert run(command("synthesize", *words, *more)) == 0, capsys.readouterr().err
    assert (
        "Note: The public table, column 'age': 1 of 2 values outside the schema, moved"
        in capsys.readouterr().err
    )
    assert Release.load("r.margrave").certificate()["mechanism"]["public"]["columns"] == ["age"]
    assert run(command("plan", *words, "--public-columns", "nope")) == 2


@pytest.mark.parametrize("name", ["synthesize", "plan"])
@pytest.mark.parametrize(
    ("more", "told"),
    [
        (
            ["-m", "mst", "--public", "public.csv", "--attestation", "x"],
            "--public means nothing to mst",
        ),
        (["-m", "fake", "--public", "public.csv"], "--public comes without a word"),
        (["-m", "fake", "--public", "public.csv", "--attestation", " "], "without a word"),
        (
            ["-m", "fake", "--attestation", "x"],
            "--attestation is about a public table, and --public names none",
        ),
        (["-m", "fake", "--public-columns", "age"], "--public-columns is about a public table"),
        (
            ["-m", "fake", "--public", "nowhere.csv", "--attestation", "x"],
            "nowhere.csv cannot be read",
        ),
    ],
)
def test_what_is_wrong_is_told_and_nothing_is_written(
    here: Path, name: str, more: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    output = ["--release", "r.margrave"] if name == "synthesize" else []
    assert run(command(name, *more, *output)) != 0
    assert told in " ".join(capsys.readouterr().err.split())
    assert not Path("r.margrave").exists()


def test_one_that_is_needed_and_not_given(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Told before the table is read, from the command line and from Python; a plan needs none."""
    Path("private.csv").unlink()
    assert run(command("synthesize", "-m", "fake", "--release", "r.margrave")) != 0
    assert "--public FILE --attestation TEXT" in " ".join(capsys.readouterr().err.split())
    with pytest.raises(InputError, match="needs a public table"):
        api.synthesize(
            "nowhere.csv", Schema.coded({"age": 4}), epsilon=1.0, delta=1e-6, mechanism=Fake()
        )
    assert run(command("plan", "-m", "fake")) == 0


def test_one_of_other_codes_is_refused(here: Path) -> None:
    other = margrave.read_public(
        pa.table({"sex": [0, 2]}), Schema.coded({"sex": 3}), attestation=WORD
    )
    with pytest.raises(InputError, match="'sex'"):
        api.synthesize(
            "private.csv", "schema.toml", epsilon=1.0, delta=1e-6, mechanism=Fake(public=other)
        )


def test_a_page_without_a_public_table_does_not_speak_of_one() -> None:
    frame = pa.table({"age": np.arange(40) % 4})
    release = api.synthesize(
        frame, Schema.coded({"age": 4}), epsilon=1.0, delta=1e-6, mechanism=Independent()
    )
    assert "Public records" not in render(release)


# The private table is no public one.


def test_the_private_file_is_refused_as_a_public_one(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("link.csv").symlink_to("private.csv")
    os.link("private.csv", "hard.csv")
    for name in ("private.csv", "./private.csv", "link.csv", "hard.csv"):
        chosen = ["-m", "fake", "--public", name, "--attestation", "x", "--release", "r.margrave"]
        assert run(command("synthesize", *chosen)) == 2, name
        assert "--public names the private table" in " ".join(capsys.readouterr().err.split())
    assert not Path("r.margrave").exists()
    chosen = ["-m", "fake", "--public", "copy.csv", "--attestation", "x", "--release", "r.margrave"]
    head, *rows = Path("private.csv").read_bytes().splitlines(keepends=True)
    Path("copy.csv").write_bytes(b"".join([head, *rows[::-1]]))
    assert run(command("synthesize", *chosen)) == 4
    assert "records are the private ones" in " ".join(capsys.readouterr().err.split())
    Path("copy.csv").write_bytes(b"".join([head, *rows[1:]]))
    assert run(command("synthesize", *chosen)) == 0


def test_and_in_python_in_a_fit_and_in_part_too(here: Path) -> None:
    schema = Schema.load("schema.toml")
    own = margrave.read_public(Path("private.csv"), schema, attestation=WORD)
    for mechanism in (Fake(public=own), Fake(public=own.select(["sex"]))):
        with pytest.raises(InputError, match="the same file"):
            api.synthesize("private.csv", schema, epsilon=1.0, delta=1e-6, mechanism=mechanism)
    with pytest.raises(InputError, match="the same file"):
        check_public(
            schema.domain, Independent(fit=MultiplicativeWeightsFit(public=own)), "private.csv"
        )
    frame = pyarrow.csv.read_csv("private.csv")
    check_public(
        schema.domain, Fake(public=own), frame
    )  # a frame says not where it is from, but what it holds
    shuffled = frame.take(list(range(len(frame)))[::-1])
    for table, part in itertools.product((frame, shuffled), (own, own.select(["sex"]))):
        with pytest.raises(DataError, match="records are the private ones"):
            api.synthesize(table, schema, epsilon=1.0, delta=1e-6, mechanism=Fake(public=part))
    assert api.synthesize(
        frame.slice(1), schema, epsilon=1.0, delta=1e-6, mechanism=Fake(public=own)
    )


def test_columns_of_the_private_records_do_not_get_in_by_a_fit(here: Path) -> None:
    schema = Schema.load("schema.toml")
    some = margrave.read_public(
        "private.csv", schema, attestation=WORD, columns=["sex"], same_records=True
    )
    whole = margrave.read_public("private.csv", schema, attestation=WORD, same_records=True)
    with pytest.raises(InputError, match="makes no use of"):
        check_public(schema.domain, Independent(fit=MultiplicativeWeightsFit(public=some)))
    with pytest.raises(InputError, match="All columns"):
        check_public(schema.domain, margrave.mechanisms.AIMPub(public=whole))


def test_public_columns_of_the_private_records_may_be_in_its_file(here: Path) -> None:
    schema = Schema.load("schema.toml")
    some = margrave.read_public(
        "private.csv", schema, attestation=WORD, columns=["sex"], same_records=True
    )
    assert some.select(["sex"]).source == "private.csv"
    unit, jam = margrave.ReplaceRow(), margrave.mechanisms.AIMPub(public=some)
    release = margrave.synthesize(
        "private.csv", schema, epsilon=1.0, delta=1e-6, unit=unit, mechanism=jam
    )
    assert release.certificate()["mechanism"]["public"]["same_records"] is True
    whole = margrave.read_public("private.csv", schema, attestation=WORD, same_records=True)
    jam = margrave.mechanisms.AIMPub(public=whole)
    with pytest.raises(InputError, match="All columns of the private table"):
        api.synthesize("private.csv", schema, epsilon=1.0, delta=1e-6, unit=unit, mechanism=jam)


def test_public_columns_of_the_private_records_on_the_command_line(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They were refused by every mechanism, the one that knows them too."""
    columns = [line.partition(",")[2] for line in Path("private.csv").read_text().splitlines()]
    Path("register.csv").write_text("\n".join([*columns, ""]))
    words = [
        "--public",
        "register.csv",
        "--attestation",
        WORD,
        "--same-records",
        "--unit",
        "replace-row",
    ]
    assert run(command("synthesize", "-m", "aim-pub", *words, "--release", "r.margrave")) == 0, (
        capsys.readouterr().err
    )
    assert run(command("synthesize", "-m", "gem-pub", *words, "--release", "s.margrave")) == 2
    assert "makes no use of" in " ".join(capsys.readouterr().err.split())


def test_codes_that_mean_something_else_are_refused() -> None:
    """As many codes, in another order or of other bins: read by another schema."""
    other = Schema([Categorical("sex", ["M", "F"]), Integer("age", low=0, high=99, bins=10)])
    shifted = Schema([Categorical("sex", ["F", "M"]), Integer("age", low=20, high=119, bins=10)])
    mine = Schema([Categorical("sex", ["F", "M"]), Integer("age", low=0, high=99, bins=10)])
    frame = rows(sex=["F", "M"] * 20, age=list(range(25, 65)))
    table = rows(sex=["F", "M", "M"] * 20, age=list(range(22, 82)))
    for schema, column in ((other, "sex"), (shifted, "age")):
        public = margrave.read_public(frame, schema, attestation=WORD)
        for name in ("aim-pub", "jam-pgm", "pmw-pub", "pep-pub", "gem-pub"):
            chosen: Any = MECHANISMS[name]
            with pytest.raises(
                InputError,
                match=f"another schema than the private one: column '{column}' has other",
            ):
                margrave.synthesize(
                    table, mine, epsilon=1.0, delta=1e-9, mechanism=chosen(public=public)
                )
            source = margrave.read_table(table, mine)
            budget = margrave.Budget.approx(1.0, 1e-9)
            with margrave.protect(source, unit=margrave.AddRemoveRow(), budget=budget) as gate:
                with pytest.raises(
                    InputError, match=f"another schema than the private one: column '{column}'"
                ):
                    chosen(public=public).run(gate, rng=np.random.default_rng(0))
                assert gate.remaining == gate.rho
    same = margrave.read_public(frame, replace(mine, ignore=("note",)), attestation=WORD)
    assert same.domain.meanings == mine.domain.meanings
    by_hand = PublicTable(mine.encode(frame), WORD)  # of which nobody knows by what it was read
    for public in (same, by_hand):
        margrave.synthesize(
            table, mine, epsilon=1.0, delta=1e-9, mechanism=MECHANISMS["jam-pgm"](public=public)
        )  # type: ignore[call-arg]


def test_a_register_of_others_is_not_taken_for_exact() -> None:
    schema = Schema([Categorical("sex", ["F", "M"]), Integer("age", low=0, high=99, bins=10)])
    table = rows(sex=["F", "M", "M"] * 20, age=list(range(22, 82)))
    options: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-9, "unit": margrave.ReplaceRow()}
    for ages, fine in (
        (list(range(81, 21, -1)), True),
        (list(range(32, 92)), False),
        (list(range(22, 81)), False),
    ):
        public = margrave.read_public(rows(age=ages), schema, attestation=WORD, same_records=True)
        mechanism: Any = MECHANISMS["aim-pub"]
        if fine:  # the same records, in another order
            assert (
                margrave.synthesize(
                    table, schema, mechanism=mechanism(public=public), **options
                ).misfit
                == ()
            )
            continue
        with pytest.raises(
            DataError, match=r"not those of the private table's records.*Nothing was spent"
        ):
            margrave.synthesize(table, schema, mechanism=mechanism(public=public), **options)


@pytest.mark.parametrize("times", [1, 2, 30])
def test_a_table_expanded_by_weights_is_noticed(times: int) -> None:
    ages = [*range(5, 100, 10), *range(5, 100, 10), 5, 5, 15]
    sexes = ["F"] * 10 + ["M"] * 10 + ["F", "F", "M"]
    public = read(
        rows(age=ages * 2 * times, sex=sexes * 2 * times, job=(["a"] * 23 + ["b"] * 23) * times)
    )
    assert public.repeats == times
    told = [n for n in public.notes if "expanded by weights" in n]
    assert len(told) == (times > 1)
    assert public.facts().notes == public.notes
    if told:
        assert f"stands in it {times} times" in told[0]
    few = read(rows(age=[5, 15] * 30, sex=["F", "M"] * 30))  # as of a table of few combinations
    assert (few.repeats, few.notes) == (1, ())


def test_of_a_year_that_the_schema_lacks_no_column_is_read() -> None:
    """A few values outside are moved; where all are, the public table is of another year, or in another unit."""
    frame = rows(age=[200] * 12, sex=["F"] * 12)
    with pytest.raises(
        DataError,
        match=r"not one of the values that can be read lies in its bounds, 0 to 99",
    ):
        read(frame)
    with pytest.raises(DataError, match=r"The schema has: F, M\..*Recode"):
        read(rows(sex=["female"] * 12))
    much = read(rows(age=[200] * 11 + [50], sex=["F"] * 12)).notes
    assert much[0].startswith(
        "LOOK AT THIS FIRST. The public table, column 'age': 11 of 12 values outside"
    )


def test_a_frame_is_read_by_a_schema() -> None:
    with pytest.raises(InputError, match=r"read_public\(table, schema"):
        PublicTable(rows(age=[1]), WORD)  # type: ignore[arg-type]


def test_columns_of_which_only_the_public_table_tells_are_named() -> None:
    rng = np.random.default_rng(3)
    schema = Schema.coded({"a": 2, "b": 3, "c": 4})
    frame = rows(**{a: rng.integers(0, schema.domain.size(a), 400).tolist() for a in schema.domain})
    public = margrave.read_public(frame.slice(0, 90), schema, attestation=WORD)
    mechanism: Any = MECHANISMS["pmw-pub"]
    chosen = mechanism(public=public, workload=margrave.Workload.of(schema.domain, [("a", "b")]))
    release = margrave.synthesize(frame, schema, epsilon=1.0, delta=1e-6, mechanism=chosen)
    assert release.coverage.public_only == ("c",)
    assert release.certificate()["coverage"]["public_only"] == ["c"]
    assert "The synthetic values of c come from the public table alone." in render(release)
    measured = margrave.synthesize(
        frame, schema, epsilon=1.0, delta=1e-6, mechanism=MECHANISMS["aim-pub"](public=public)
    )  # type: ignore[call-arg]
    assert measured.coverage.public_only == ()
