"""Code books of each standard: what they state is in the schema, what they do not state is to be learned."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

from margrave.codebooks import read_code_book
from margrave.data.formats import open_format
from margrave.errors import InputError, MargraveError, SchemaError
from margrave.schema import Boolean, Categorical, Date, Integer, Learn, Ordinal, Schema
from tests.support.sas import write_sas7bcat, write_sas7bdat

SAS_ROWS = {"sex": ["f", "m", None], "grade": [2, 1, None], "pay": [0.5, 1.0, 2.0]}
SAS_FORMATS = {"$SEX": {"f": "Female", "m": "Male"}, "GRADE": {1: "low", 2: "high"}}


@pytest.mark.parametrize("catalog", ["visits.sas7bcat", "formats.sas7bcat"])
def test_labels_of_sas_are_in_the_catalog_beside_the_file(tmp_path: Path, catalog: str) -> None:
    path = write_sas7bdat(tmp_path / "visits.sas7bdat", SAS_ROWS, {"sex": "$SEX", "grade": "GRADE"})
    assert all(isinstance(c, Learn) for c in read_code_book(path).columns)
    write_sas7bcat(tmp_path / catalog, SAS_FORMATS)
    columns = {c.name: c for c in read_code_book(path).columns}
    assert [columns[n].categories for n in ("sex", "grade")] == [("f", "m"), ("1", "2")]  # type: ignore[attr-defined]
    assert isinstance(columns["pay"], Learn)
    (tmp_path / catalog).write_bytes(b"no catalog")
    with pytest.raises(MargraveError, match=f"{catalog} cannot be read"):
        read_code_book(path)


def test_dates_and_times_of_sas_are_of_the_kind_that_the_file_is_read_as(tmp_path: Path) -> None:
    rows = {"day": [21915.0], "at": [1893456000.0], "clock": [3600.0], "plain": [21915.0]}
    forms = {"day": "E8601DA10", "at": "E8601DT19", "clock": "TIME8", "plain": "YYMMDDN8"}
    path = write_sas7bdat(tmp_path / "visits.sas7bdat", rows, forms)
    schema = read_code_book(path)
    assert [c for c in schema.columns if isinstance(c, Learn)] == [
        Learn("day", "date"),
        Learn("at", "timestamp"),
        Learn("plain", "date"),
    ]
    assert schema.ignore == ("clock",)
    file = open_format(path, b"")
    assert file is not None
    (batch,) = file.batches(["day", "at", "plain"])
    assert [str(t) for t in batch.schema.types] == ["date32[day]", "timestamp[us]", "date32[day]"]


DDI = """<?xml version="1.0" encoding="UTF-8"?>
<codeBook xmlns="ddi:codebook:2_5"><dataDscr>
<var name="AGE" intrvl="contin" dcml="0"><labl>Age in years</labl>
  <valrng><range min="0" max="110"/></valrng><invalrng><item VALUE="-9"/></invalrng>
  <sumStat type="max">97</sumStat><varFormat type="numeric"/></var>
<var name="SEX" intrvl="discrete"><labl>Sex</labl>
  <catgry><catValu>1</catValu><labl>Male</labl><catStat type="freq">12</catStat></catgry>
  <catgry><catValu>2</catValu><labl>Female</labl></catgry>
  <catgry missing="Y"><catValu>9</catValu><labl>Not stated</labl></catgry><varFormat type="numeric"/></var>
<var name="WAGE" intrvl="contin" dcml="2"><sumStat type="min">1.5</sumStat><varFormat type="numeric"/></var>
</dataDscr></codeBook>"""

FIELDS = {
    "primaryKey": "id",
    "missingValues": ["", "NA"],
    "fields": [
        {"name": "id", "type": "integer"},
        {"name": "sex", "type": "string", "title": "Sex", "constraints": {"enum": ["F", "M"]}},
        {
            "name": "grade", "type": "integer", "categoriesOrdered": True,
            "categories": [{"value": 1, "label": "low"}, {"value": 2, "label": "high"}],
        },
        {
            "name": "born", "type": "date", "format": "%d/%m/%Y",
            "constraints": {"minimum": "1900-01-01", "maximum": "2020-12-31"},
        },
        {"name": "fee", "type": "number", "constraints": {"minimum": 0}},
        {"name": "alive", "type": "boolean"},
        {"name": "where", "type": "geopoint"},
    ],
}  # fmt: skip

CSVW = {
    "@context": "http://www.w3.org/ns/csvw",
    "tableSchema": {
        "primaryKey": "id",
        "columns": [
            {"name": "id", "titles": "ID", "datatype": "string"},
            {"titles": "age", "datatype": {"base": "integer", "minimum": 0, "maximum": 99}, "null": "-1"},
            {
                "titles": {"en": "day"},
                "datatype": {"base": "date", "format": "dd.MM.yyyy", "minimum": "01.01.2020", "maximum": "31.12.2020"},
            },
            {"titles": "sex", "datatype": {"base": "string", "format": "F|M"}},
            {"titles": "row", "virtual": True},
        ],
    },
}  # fmt: skip

SDV = {
    "METADATA_SPEC_VERSION": "V2",
    "tables": {
        "guests": {
            "primary_key": "guest",
            "columns": {
                "guest": {"sdtype": "id"},
                "mail": {"sdtype": "email", "pii": True},
                "rate": {"sdtype": "numerical", "range_min": 10.5, "range_max": 99.0},
                "nights": {"sdtype": "numerical", "decimal_places": 0},
                "room": {"sdtype": "categorical", "range_values": ["A", "B"]},
                "in": {"sdtype": "datetime", "datetime_format": "%d %b %Y"},
            },
        }
    },
}

REDCAP = """"Variable / Field Name","Form Name","Section Header","Field Type","Field Label","Choices, Calculations, OR Slider Labels","Field Note","Text Validation Type OR Show Slider Number","Text Validation Min","Text Validation Max",Identifier?
record_id,f,,text,Record,,,,,,
birth,f,,text,"Date of birth",,,date_dmy,1900-01-01,2024-12-31,y
sex,f,,radio,"<b>Sex</b>","1, Male | 2, Female",,,,,
race,f,,checkbox,Race,"1, White | -2, Other, mixed",,,,,
weight,f,,text,Weight,,,number_1dp,20,300,
note,f,,notes,Remarks,,,,,,
smoker,f,,yesno,Smokes,,,,,,
info,f,,descriptive,"Read this",,,,,,
pain,f,,slider,Pain,none | some | worst,,,,,
"""  # noqa: E501


def written(folder: Path, content: object, name: str = "book") -> Path:
    file = folder / name
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return file


def columns(schema: Schema) -> dict[str, object]:
    return {c.name: c for c in schema.columns}


def test_ddi_states_codes_and_ranges_and_no_statistic_of_the_rows(tmp_path: Path) -> None:
    schema = read_code_book(written(tmp_path, DDI, "survey.xml"))
    assert columns(schema) == {
        "AGE": Integer("AGE", 0, 110, missing=True, outside="missing"),
        "SEX": Categorical("SEX", ["1", "2"], missing=True),
        "WAGE": Learn("WAGE", "real"),
    }
    assert schema.remarks["SEX"] == "No value: 9 (Not stated)"
    assert schema.source("SEX").title == "Sex"
    assert schema.source("SEX").labels == {"1": "Male", "2": "Female"}
    assert schema.sources["AGE"].cite == "Code book survey.xml"
    assert "WAGE" not in schema.sources
    assert "97" not in schema.to_toml()


@pytest.mark.parametrize("wrapped", [False, True])
def test_table_schema(tmp_path: Path, wrapped: bool) -> None:
    book = {"resources": [{"schema": FIELDS}]} if wrapped else FIELDS
    schema = read_code_book(written(tmp_path, book))
    assert columns(schema) == {
        "sex": Categorical("sex", ["F", "M"], missing=True),
        "grade": Ordinal("grade", ["1", "2"], missing=True),
        "born": Date("born", date(1900, 1, 1), date(2020, 12, 31), missing=True, format="%d/%m/%Y"),
        "fee": Learn("fee", "real", low=0.0),
        "alive": Boolean("alive", missing=True),
    }  # fmt: skip
    assert schema.ignore == ("id", "where")


def test_csvw(tmp_path: Path) -> None:
    schema = read_code_book(written(tmp_path, CSVW))
    assert columns(schema) == {
        "age": Integer("age", 0, 99, missing=True, outside="missing"),
        "day": Date("day", date(2020, 1, 1), date(2020, 12, 31), missing=True, format="%d.%m.%Y"),
        "sex": Categorical("sex", ["F", "M"], missing=True),
    }
    assert schema.ignore == ("ID",)


def test_ranges_of_sdv_are_learned_unless_they_are_public(tmp_path: Path) -> None:
    book = written(tmp_path, SDV)
    schema = read_code_book(book)
    assert not schema.sources
    assert columns(schema) == {
        "rate": Learn("rate", "real"),
        "nights": Learn("nights", "integer"),
        "room": Learn("room", "categorical"),
        "in": Learn("in", "date", format="%d %b %Y"),
    }
    public = read_code_book(book, ranges_public=True)
    assert columns(public) == {
        "rate": Learn("rate", "real", low=10.5, high=99.0),
        "nights": Learn("nights", "integer"),
        "room": Categorical("room", ["A", "B"], missing=True),
        "in": Learn("in", "date", format="%d %b %Y"),
    }
    assert public.ignore == ("guest", "mail")


def test_redcap(tmp_path: Path) -> None:
    schema = read_code_book(written(tmp_path, REDCAP, "dictionary.csv"))
    assert columns(schema) == {
        "sex": Categorical("sex", ["1", "2"], missing=True),
        "race___1": Boolean("race___1", missing=True),
        "race____2": Boolean("race____2", missing=True),
        "weight": Learn("weight", "real", low=20.0, high=300.0),
        "smoker": Boolean("smoker", missing=True),
        "pain": Integer("pain", 0, 100, missing=True),
    }
    added = [n for n in schema.ignore if n.startswith("redcap_")]
    assert len(added) == 5
    assert schema.person == "record_id"
    assert "needs a unit of persons" in schema.remarks[""]
    assert schema.ignore == ("birth", "note", *added, "f_timestamp", "f_complete")
    assert schema.source("race____2").title == "Race: Other, mixed"


@pytest.mark.parametrize("ending", [".sav", ".dta"])
def test_labels_of_statistical_files_are_read_and_their_rows_are_not(
    tmp_path: Path, ending: str
) -> None:
    pyreadstat = pytest.importorskip("pyreadstat", reason="pyreadstat is not installed")
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame({"age": [31, 64], "sex": [1, 2], "pay": [1.5, 999.0]})
    file = tmp_path / f"panel{ending}"
    labels = {"sex": {1: "F", 2: "M"}}
    if ending == ".sav":
        missing = {"pay": [{"lo": 999, "hi": 999}]}
        pyreadstat.write_sav(frame, file, variable_value_labels=labels, missing_ranges=missing)
    else:
        pyreadstat.write_dta(frame, str(file), variable_value_labels=labels)
    schema = read_code_book(file)
    found = columns(schema)
    assert found["sex"] == Categorical("sex", ["1", "2"], missing=True)
    assert found["pay"] == Learn("pay", "real")
    assert schema.source("sex").labels == {"1": "F", "2": "M"}
    assert "64" not in schema.to_toml()
    if ending == ".sav":
        assert schema.remarks["pay"] == "No value: 999"
        assert schema.sources["pay"].missing_codes == ("999",)


def test_every_schema_from_a_code_book_can_be_saved_and_read_again(tmp_path: Path) -> None:
    books = {"a.xml": DDI, "b.json": FIELDS, "c.json": CSVW, "d.json": SDV, "e.csv": REDCAP}
    for name, content in books.items():
        schema = read_code_book(written(tmp_path, content, name))
        assert Schema.from_toml(schema.to_toml()) == schema


def test_missing_codes_are_missing_also_within_the_bounds(tmp_path: Path) -> None:
    field = {
        "name": "pay",
        "type": "integer",
        "constraints": {"minimum": 0, "maximum": 99},
        "missingValues": ["99"],
    }
    schema = read_code_book(written(tmp_path, {"fields": [field]}))
    assert schema.columns == (Integer("pay", 0, 98, missing=True, outside="missing"),)
    assert schema.sources["pay"].missing_codes == ("99",)
    found = schema.preflight(pa.table({"pay": ["5", "99", "99.0", " 99", "98", "999"]}))
    assert (found.columns[0].empty, found.columns[0].outside) == (3, 1)


def test_missing_codes_of_columns_to_learn_are_declared(tmp_path: Path) -> None:
    rules = {"minimum": -9, "maximum": 99999}
    fields = [
        {"name": "pay", "type": "integer", "constraints": rules, "missingValues": ["-9"]},
        {"name": "fee", "type": "number", "constraints": rules, "missingValues": ["-9"]},
        {"name": "town", "type": "string", "missingValues": ["?!"]},
    ]
    schema = read_code_book(written(tmp_path, {"fields": fields}))
    assert schema.columns == (
        Learn("pay", "integer", low=-8, high=99999),
        Learn("fee", "real", high=99999.0),
        Learn("town", "categorical"),
    )
    codes = [schema.sources[c.name].missing_codes for c in schema.columns]
    assert codes == [("-9",), ("-9",), ("?!",)]
    assert schema.sources["town"].cite == ""


def test_a_column_that_names_persons_is_the_person_id_column(tmp_path: Path) -> None:
    fields = [
        {"name": "Patient", "type": "string"},
        {"name": "admitted", "type": "date"},
        {"name": "member_id", "type": "integer"},
        {"name": "client", "type": "string", "constraints": {"enum": ["a", "b"]}},
    ]
    book = {"primaryKey": ["Patient", "admitted"], "fields": fields}
    schema = read_code_book(written(tmp_path, book))
    assert schema.person == "Patient"
    assert schema.ignore == ("member_id",)
    assert [c.name for c in schema.columns] == ["admitted", "client"]
    assert "needs a unit of persons" in schema.remarks[""]


def test_a_required_column_has_no_missing_state_and_text_codes_leave_bounds_alone(
    tmp_path: Path,
) -> None:
    rules = {"minimum": 0, "maximum": 99, "required": True}
    fields = [{"name": "age", "type": "integer", "constraints": rules}]
    schema = read_code_book(written(tmp_path, {"missingValues": ["", "NA"], "fields": fields}))
    assert schema.columns == (Integer("age", 0, 99),)


def test_times_have_hours_and_weekdays_as_in_a_draft(tmp_path: Path) -> None:
    rules = {"minimum": "2024-01-01T00:00:00", "maximum": "2024-12-31T00:00:00"}
    fields = [
        {"name": "pickup", "type": "datetime", "constraints": rules, "missingValues": ["2024-12-30T07:00:00"]},
        {"name": "dropoff", "type": "datetime"},
        {"name": "dropoff.hour", "type": "integer"},
    ]  # fmt: skip
    schema = read_code_book(written(tmp_path, {"fields": fields}))
    names = ["pickup", "pickup.hour", "pickup.weekday", "dropoff", "dropoff.weekday"]
    assert [c.name for c in schema.columns] == [*names, "dropoff.hour"]
    assert Schema.from_toml(schema.to_toml()) == schema
    assert all(c.missing for c in schema.columns[:5])
    moments = pa.array(["2024-12-30T07:00:00", "2024-12-30T08:00:00"])
    pickup = schema.drop("dropoff", "dropoff.weekday", "dropoff.hour")
    codes = pickup.encode(pa.table({"pickup": moments}))
    assert [codes.column(n).tolist() for n in names[1:3]] == [[24, 8], [7, 0]]


def test_bounds_and_values_that_ddi_computed_from_the_rows_are_learned(tmp_path: Path) -> None:
    def book(var: str) -> str:
        return f"<codeBook><dataDscr>{var}</dataDscr></codeBook>"

    stats = '<sumStat type="min">18.0</sumStat><sumStat type="max">97</sumStat>'
    ages = (
        '<var name="AGE" intrvl="discrete"><valrng><range min="18" max="97"/></valrng>'
        f'{stats}<varFormat type="numeric"/></var>'
    )
    counts = "".join(
        f'<catgry><catValu>{v}</catValu><catStat type="freq">1</catStat></catgry>' for v in (37, 41)
    )
    last = "<catgry><catValu>90</catValu><labl>90 or more</labl></catgry>"
    old = f'<var name="OLD" intrvl="discrete">{counts}{last}<varFormat type="numeric"/></var>'
    top = f'<var name="TOP" intrvl="discrete">{last}<varFormat type="numeric"/></var>'
    sizes = f'<var name="N" intrvl="discrete">{counts}<varFormat type="numeric"/></var>'
    file = written(tmp_path, book(ages + sizes + old + top))
    schema = read_code_book(file)
    assert schema.columns == tuple(Learn(n, "integer") for n in ("AGE", "N", "OLD", "TOP"))
    assert schema.remarks["TOP"] == "90 = 90 or more"
    assert not {"18", "97", "37", "41"} & set(schema.to_toml().replace('"', " ").split())
    assert "equals the minimum and maximum" in schema.remarks["AGE"]
    public = read_code_book(file, ranges_public=True)
    assert public.columns == (
        Integer("AGE", 18, 97, missing=True),
        Categorical("N", ["37", "41"], missing=True),
        Categorical("OLD", ["37", "41", "90"], missing=True),
        Learn("TOP", "integer"),
    )


def ddi_book(folder: Path, var: str) -> Path:
    return written(folder, f"<codeBook><dataDscr>{var}</dataDscr></codeBook>")


def categories(pairs: dict[str, str], further: str = "") -> str:
    return "".join(
        f"<catgry><catValu>{code}</catValu><labl>{label}</labl>{further}</catgry>"
        for code, label in pairs.items()
    )


def test_labelled_codes_in_a_range_of_missing_codes_are_not_categories(tmp_path: Path) -> None:
    listed = categories({"1": "yes", "2": "no", "97": "not known", "98": "refused"})
    answer = (
        f'<var name="q" intrvl="discrete"><invalrng><range min="97" max="99"/></invalrng>{listed}'
        '<varFormat type="numeric"/></var>'
    )
    few = categories({"0": "none", "-9": "refused"})
    pay = (
        f'<var name="pay" intrvl="discrete"><invalrng><item VALUE="-9"/></invalrng>{few}'
        '<varFormat type="numeric"/></var>'
    )
    schema = read_code_book(ddi_book(tmp_path, answer + pay))
    assert schema.columns == (
        Categorical("q", ["1", "2"], missing=True),
        Learn("pay", "integer"),
    )
    assert schema.sources["q"].missing_codes == ("97", "98", "99")
    assert schema.remarks["pay"] == "No value: -9 (refused). 0 = none"


@pytest.mark.parametrize(
    ("valid", "left_out"),
    [
        ('<range max="97"/>', "it equals the maximum of the rows"),
        ('<range min="18"/>', "it equals the minimum of the rows"),
        (
            '<range min="18" max="40"/><range min="60" max="97"/>',
            "it equals the minimum and maximum",
        ),
    ],
)
def test_no_end_of_a_valid_range_of_ddi_is_that_of_the_rows(
    tmp_path: Path, valid: str, left_out: str
) -> None:
    stats = '<sumStat type="min">18</sumStat><sumStat type="max">97</sumStat>'
    var = f'<var name="age" intrvl="contin" dcml="0"><valrng>{valid}</valrng>{stats}<varFormat type="numeric"/></var>'
    schema = read_code_book(ddi_book(tmp_path, var))
    assert schema.columns == (Learn("age", "integer"),)
    assert left_out in schema.remarks["age"]
    assert not {"18", "97"} & set(schema.to_toml().replace(".", " ").split())


def test_a_label_of_ddi_that_repeats_its_code_is_not_a_label(tmp_path: Path) -> None:
    counted = categories({"37": "37", "41": "41"}, '<catStat type="freq">1</catStat>')
    var = f'<var name="age" intrvl="discrete">{counted}<varFormat type="numeric"/></var>'
    schema = read_code_book(ddi_book(tmp_path, var))
    assert schema.columns == (Learn("age", "integer"),)
    assert "37" not in schema.to_toml()


@pytest.mark.parametrize("standard", ["SAS", "ISO"])
def test_ddi_states_dates_in_iso_8601_or_asks_for_their_format(
    tmp_path: Path, standard: str
) -> None:
    form = f'<varFormat type="numeric" category="date" schema="{standard}" formatname="DDMMYY10."/>'
    schema = read_code_book(ddi_book(tmp_path, f'<var name="seen" intrvl="contin">{form}</var>'))
    asked = "Column 'seen': The code book does not state how its dates" in schema.remarks[""]
    assert asked == (standard != "ISO")


def test_ddi_as_programs_write_it(tmp_path: Path) -> None:
    book = """<codeBook xmlns="ddi:codebook:2_5"><dataDscr>
    <varGrp ID="G1" var="V1 V2"><labl>Persons</labl></varGrp>
    <var ID="V1" name="sex" files="F1" intrvl="discrete"><labl xml:lang="de">Geschlecht</labl>
      <labl xml:lang="en">Sex</labl><catgry><catValu>1</catValu><labl>M</labl></catgry>
      <catgry><catValu>2</catValu><labl>F</labl></catgry><invalrng><range min="-99" max="-1"/></invalrng>
      <varFormat type="numeric" schema="other" category="other"/></var>
    <var ID="V2" name="pay" files="F1" intrvl="contin"><catgry><catValu>0</catValu><labl>None</labl></catgry>
      <invalrng><range min="-3" max="-1"/></invalrng><varFormat type="numeric" category="currency"/></var>
    <var ID="V3" name="kids" files="F1" intrvl="discrete"><valrng><range min="0" max="9"/>
      <range minExclusive="19" max="29"/><item VALUE="40"/></valrng><varFormat type="numeric"/></var>
    <var ID="V4" name="debt" files="F1" intrvl="contin" dcml="2"><invalrng><range max="-1"/></invalrng>
      <varFormat type="numeric"/></var>
    </dataDscr></codeBook>"""
    schema = read_code_book(written(tmp_path, book))
    assert schema.columns == (
        Categorical("sex", ["1", "2"], missing=True),
        Learn("pay", "real"),
        Integer("kids", 0, 40, missing=True),
        Learn("debt", "real"),
    )
    assert schema.remarks["pay"] == "No value: -3, -2, -1. 0 = None"
    assert schema.remarks["kids"] == "Valid: 0 to 9, 20 to 29"
    assert "Column 'debt': The code book has a range of missing codes" in schema.remarks[""]


def test_a_table_schema_as_programs_write_it(tmp_path: Path) -> None:
    fields = [
        {"name": "age", "type": "integer", "constraints": {"exclusiveMinimum": 0, "maximum": 99}},
        {"name": "smokes", "type": "boolean", "trueValues": ["ja"], "falseValues": ["nein"]},
        {"name": "alive", "type": "boolean", "constraints": {"enum": [True, False]}},
        {"name": "fee", "type": "number", "decimalChar": ",", "groupChar": "."},
        {"name": "seen", "type": "date", "format": "any"},
        {"name": "mail", "type": "string", "format": "email"},
        {
            "name": "edu", "type": "string", "categories": [{"value": "l", "label": "low"}, "m", "h"],
            "categoriesOrdered": True, "constraints": {"enum": ["h", "l"], "pattern": "[a-z]"},
            "missingValues": [{"value": "x", "label": "refused"}],
        },
    ]  # fmt: skip
    missing = [{"value": "", "label": "empty"}, {"value": "-9", "label": "refused"}]
    book = {"fields": fields, "missingValues": missing}
    schema = read_code_book(written(tmp_path, book))
    assert schema.columns[:3] == (
        Integer("age", 1, 99, missing=True, outside="missing"),
        Categorical("smokes", ["nein", "ja"], missing=True),
        Boolean("alive", missing=True),
    )
    assert schema.columns[-1] == Ordinal("edu", ["l", "h"], missing=True)
    assert schema.ignore == ("mail",)
    assert [schema.sources[n].missing_codes for n in ("age", "edu")] == [("-9",), ("x",)]
    assert schema.remarks["edu"] == "No value: x (refused). Not in the schema: pattern"
    assert schema.source("edu").labels == {"l": "low"}
    assert "Column 'fee': The code book writes its numbers with" in schema.remarks[""]
    assert "Column 'seen': The code book does not state how" in schema.remarks[""]


def test_csvw_as_programs_write_it(tmp_path: Path) -> None:
    columns = [
        {"titles": "age", "datatype": {"base": "nonNegativeInteger", "maxExclusive": 100}},
        {"titles": "size", "datatype": "unsignedByte", "null": ["x"]},
        {"titles": "smokes", "datatype": {"base": "boolean", "format": "ja|nein"}},
        {"titles": "fee", "datatype": {"base": "decimal", "format": {"decimalChar": ","}}},
        {"titles": "tags", "separator": ";"},
    ]
    book = {"tables": [{"null": ["NA", "-9"], "tableSchema": {"columns": columns}}]}
    schema = read_code_book(written(tmp_path, book))
    assert schema.columns == (
        Integer("age", 0, 99, missing=True, outside="missing"),
        Learn("size", "integer", low=0),
        Categorical("smokes", ["nein", "ja"], missing=True),
        Learn("fee", "real"),
    )
    assert [schema.sources[n].missing_codes for n in ("age", "size")] == [("NA", "-9"), ("x",)]
    assert schema.ignore == ("tags",)
    assert "Column 'fee': The code book writes its numbers with" in schema.remarks[""]


def test_orders_keys_and_nulls_of_sdv(tmp_path: Path) -> None:
    found = {
        "id": {"sdtype": "id"},
        "code": {"sdtype": "categorical"},
        "point": {"sdtype": "coordinate", "pii": False},
        "age": {"sdtype": "numerical", "computer_representation": "Int64", "range_min": 0, "range_max": 99,
                "range_is_nullable": False},
        "grade": {"sdtype": "categorical", "order": ["low", "high"]},
        "room": {"sdtype": "categorical", "range_values": [1, 2, None]},
        "paid": {"sdtype": "boolean", "range_values": [True, False]},
    }  # fmt: skip
    table = {"primary_key": "id", "alternate_keys": ["code"], "columns": found}
    book = written(tmp_path, {"METADATA_SPEC_VERSION": "V2", "tables": {"t": table}})
    public = read_code_book(book, ranges_public=True)
    assert public.columns == (
        Integer("age", 0, 99),
        Ordinal("grade", ["low", "high"], missing=True),
        Categorical("room", ["1", "2"], missing=True),
        Boolean("paid", missing=True),
    )
    schema = read_code_book(book)
    assert schema.ignore == ("id", "code", "point")
    assert all(column.missing for column in schema.columns)


def test_redcap_as_it_exports_dictionaries(tmp_path: Path) -> None:
    header = REDCAP.splitlines()[0] + ',"Branching Logic (Show field only if...)"'
    rows = [
        "record_id,a,,text,Record,,,,,,,",
        "enrolled,a,,text,Enrolled,,,date_ymd,2010-01-01,today,,",
        "born,a,,text,Born,,,date_ymd,,[enrolled],,",
        'sites,a,,checkbox,Sites,"1, A | 2, B",,,,,y,',
        'weight,a,,text,Weight,,999 = not <b>measured</b>,number_1dp_comma_decimal,"20,5","300,0",,',
        'bmi,b,,calc,BMI,round([weight]/2),,,,,,"[sex] = ""1"""',
    ]
    schema = read_code_book(written(tmp_path, "\ufeff" + "\r\n".join([header, *rows])))
    assert columns(schema) == {
        "enrolled": Learn("enrolled", "date", low=date(2010, 1, 1)),
        "born": Learn("born", "date"),
        "weight": Learn("weight", "real", low=20.5, high=300.0),
        "bmi": Learn("bmi", "real"),
    }
    assert {"sites___1", "sites___2", "a_complete", "b_timestamp"} < set(schema.ignore)
    assert schema.source("enrolled").title == "Enrolled"
    assert schema.remarks["enrolled"] == "Its bound today is not a value"
    assert schema.remarks["weight"].startswith("999 = not measured")
    assert schema.remarks["bmi"] == (
        'Calculated: round([weight]/2). Has a value only if [sex] = "1"'
    )
    assert "Column 'weight': The code book writes its numbers with" in schema.remarks[""]


def test_a_named_person_comes_before_the_record_id_of_redcap(tmp_path: Path) -> None:
    head = '"Variable / Field Name","Field Type","Choices, Calculations, OR Slider Labels"\n'
    rows = 'record_id,text,\nmrn,text,\nsex,radio,"1, M | 2, F"\n'
    schema = read_code_book(written(tmp_path, head + rows))
    assert (schema.person, schema.ignore[0]) == ("mrn", "record_id")
    part = read_code_book(written(tmp_path, head + 'sex,radio,"1, M | 2, F"\n'))
    assert part.columns == (Categorical("sex", ["1", "2"], missing=True),)
    assert part.person is None


def test_labels_of_single_values_and_ranges_of_missing_codes_of_spss(tmp_path: Path) -> None:
    pyreadstat = pytest.importorskip("pyreadstat", reason="pyreadstat is not installed")
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    names = ("age", "pay", "debt", "sex")
    frame = pandas.DataFrame({name: [1.0, 2.0] for name in names})
    pyreadstat.write_sav(
        frame,
        tmp_path / "a.sav",
        variable_value_labels={"age": {90.0: "90 or more"}, "sex": {1.0: "F", 2.0: "M"}},
        missing_ranges={
            "pay": [{"lo": -3, "hi": -1}],
            "debt": [{"lo": -999, "hi": -1}],
            "sex": [{"lo": 7, "hi": 9}],
        },
    )
    schema = read_code_book(tmp_path / "a.sav")
    assert [c.kind for c in schema.columns] == ["real", "real", "real", "categorical"]
    assert schema.remarks["age"] == "90 = 90 or more"
    assert schema.sources["pay"].missing_codes == ("-3", "-2", "-1")
    assert "Column 'debt': The code book has a range of missing codes" in schema.remarks[""]
    assert schema.sources["sex"].missing_codes == ("7", "8", "9")


def test_ordinal_numbers_of_spss_are_in_the_order_of_the_numbers(tmp_path: Path) -> None:
    pyreadstat = pytest.importorskip("pyreadstat", reason="pyreadstat is not installed")
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    pyreadstat.write_sav(
        pandas.DataFrame({"grade": [1.0, 10.0]}),
        tmp_path / "a.sav",
        variable_value_labels={"grade": {float(code): f"step {code}" for code in range(10, 0, -1)}},
        variable_measure={"grade": "ordinal"},
    )
    schema = read_code_book(tmp_path / "a.sav")
    assert schema.columns == (Ordinal("grade", [str(code) for code in range(1, 11)], missing=True),)


def test_a_number_that_names_persons_is_the_person_id_column_also_if_stored_as_real(
    tmp_path: Path,
) -> None:
    fields = [{"name": n, "type": "number"} for n in ("patient_id", "cost_per_patient")]
    schema = read_code_book(written(tmp_path, {"fields": fields}))
    assert schema.person == "patient_id"
    assert schema.columns == (Learn("cost_per_patient", "real"),)


WRONG = {
    "a misspelt type": (
        '{"fields": [{"name": "a", "type": "intteger"}]}',
        "the type 'intteger'.*Did you mean 'integer'",
    ),
    "a misspelt constraint": (
        '{"fields": [{"name": "a", "type": "integer", "constraints": {"maximun": 1}}]}',
        "the constraint 'maximun'.*Did you mean 'maximum'",
    ),
    "nothing": (" \n", "is empty"),
    "a schema": ("# A comment.\n[schema]\nversion = 1\n", "is a schema already.*--schema"),
    "a list": ("[1]", "is not a code book"),
    "broken JSON": ("{", "not valid JSON: line 1. Correct it"),
    "JSON of REDCap": ('[{"field_name": "a", "field_type": "text"}]', "is not a code book"),
    "bounds in the wrong order": (
        '{"fields": [{"name": "a", "type": "integer", "constraints": {"minimum": 9, "maximum": 1}}]}',
        "low is above high",
    ),
    "a category without a value": (
        '{"fields": [{"name": "a", "categories": [{"label": "x"}]}]}',
        "categories of column 'a' is not a list of values",
    ),
    "a code with two labels": (
        '{"fields": [{"name": "a", "categories": [{"value": 1, "label": "x"}, {"value": 1, "label": "y"}]}]}',
        "two labels for the code '1'",
    ),
    "an enum beside other categories": (
        '{"fields": [{"name": "a", "categories": ["x"], "constraints": {"enum": ["y"]}}]}',
        "not among its categories",
    ),
    "missing values that are no list": (
        '{"missingValues": "NA", "fields": [{"name": "a"}]}',
        "missingValues is not a list of values",
    ),
    "a key that is a number": ('{"primaryKey": 5, "fields": [{"name": "a"}]}', "not a list of names"),
    "a flag in words": (
        '{"fields": [{"name": "a", "constraints": {"required": "no"}}]}',
        "required of column 'a' is not true or false",
    ),
    "a misspelt key": (
        '{"fields": [{"name": "a", "missingValue": ["NA"]}]}',
        "the key 'missingValue'.*Did you mean 'missingValues'",
    ),
    "a format of another standard": (
        '{"fields": [{"name": "a", "type": "date", "format": "DD/MM/YYYY"}]}',
        "format of 'a', 'DD/MM/YYYY', is not one",
    ),
    "a schema in another file": ('{"resources": [{"schema": "a.json"}]}', "Import that file"),
    "no title": ('{"tableSchema": {"columns": [{"titles": {}}]}}', "a column has no name. Give it one"),
    "a null that is a number": (
        '{"tableSchema": {"columns": [{"titles": "a", "null": 5}]}}',
        "null of column 'a' is not a list of values",
    ),
    "one word for true and false": (
        '{"tableSchema": {"columns": [{"titles": "a", "datatype": {"base": "boolean", "format": "ja"}}]}}',
        "not two words for true and false",
    ),
    "a format of strptime in CSVW": (
        '{"tableSchema": {"columns": [{"titles": "a", "datatype": {"base": "date", "format": "%d/%m/%Y"}}]}}',
        "Use yyyy, MM, dd",
    ),
    "values that are no list": (
        '{"columns": {"a": {"sdtype": "categorical", "range_values": 5}}}',
        "range_values of column 'a' is not a list",
    ),
    "a misspelt fact": (
        '{"columns": {"a": {"sdtype": "datetime", "datetime_fromat": "%Y"}}}',
        "Did you mean 'datetime_format'",
    ),
    "a column twice": (
        '{"columns": {"a": {"sdtype": "boolean"}, "a": {"sdtype": "id"}}}',
        "the key 'a' twice",
    ),
    "a key without a column": (
        '{"columns": {"a": {"sdtype": "boolean"}}, "primary_key": "b"}',
        "the key 'b', which is not one of its columns",
    ),
    "a pattern without a sign": (
        '{"columns": {"a": {"sdtype": "datetime", "datetime_format": "yyyy"}}}',
        "datetime_format of column 'a' is not a pattern",
    ),
    "XML of another standard": ("<DDIInstance/>", "first element is 'DDIInstance'"),
    "two files": (
        '<codeBook><var name="a" files="F1"/><var name="b" files="F2"/></codeBook>',
        "the variables of 2 files",
    ),
    "a misspelt attribute": (
        '<codeBook><var name="a"><valrng><range minimum="1"/></valrng></var></codeBook>',
        "the attribute of range 'minimum'",
    ),
    "missing codes that are words": (
        '<codeBook><var name="a"><invalrng><range min="x"/></invalrng><varFormat type="numeric"/></var></codeBook>',
        "range of missing codes of 'a' is not of numbers",
    ),
    "no choices": (
        '"Variable / Field Name","Field Type"\nid,text\na,checkbox\n', "the checkbox 'a' has no choices",
    ),
    "choices without commas": (
        '"Variable / Field Name","Field Type","Choices, Calculations, OR Slider Labels"\nid,text,\na,radio,1; Yes\n',
        "a choice of 'a' is not a code, a comma and a label",
    ),
    "a field without a name": ('"Variable / Field Name","Field Type"\nid,text\n,yesno\n', "has no name"),
    "semicolons": ("Variable / Field Name;Field Type\na;text\n", "has no column 'Variable / Field Name'"),
    "an open quote": ('"Variable / Field Name","Field Type"\na,"text\n', "not a valid CSV file"),
    "other JSON": ('{"a": 1}', "is not a code book"),
    "no fields": ('{"fields": []}', "fields is not a list"),
    "an entry without a name": ('{"fields": [{"type": "integer"}]}', "has no name"),
    "a bound that is no number": (
        '{"fields": [{"name": "a", "type": "integer", "constraints": {"minimum": "x", "maximum": 3}}]}',
        "lower bound of 'a' cannot be read",
    ),
    "two resources": ('{"resources": [{"schema": {}}, {"schema": {}}]}', "has 2 resources"),
    "an entity": ('<!DOCTYPE a [<!ENTITY b "c">]><codeBook/>', "document type declaration"),
    "broken XML": ("<codeBook><var>", "not valid XML"),
    "no variable": ("<codeBook/>", "states no column"),
    "only identifiers": ('{"primaryKey": "a", "fields": [{"name": "a"}]}', "states no column"),
    "two tables": (
        '{"METADATA_SPEC_VERSION": "V2", "tables": {"a": {}, "b": {}}}',
        "is of 2 tables",
    ),
    "a table": ("a,b\n1,2\n", "looks like a table, not a code book.*margrave schema draft"),
    "a table with commas in texts": ('a;b\n"1;2";2\n', "looks like a table, not a code book"),
    "a letter": ("Dear all,\nthe file follows.\n", "is not a code book"),
    "a duplicate": ('{"fields": [{"name": "a"}, {"name": "a"}]}', "occurs twice"),
    "an odd format": (
        '{"tableSchema": {"columns": [{"titles": "a", "datatype": {"base": "date", "format": "G yyyy"}}]}}',
        "not one that margrave reads",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_code_books_have_one_plain_sentence(tmp_path: Path, name: str) -> None:
    content, expected = WRONG[name]
    with pytest.raises(MargraveError, match=expected) as caught:
        read_code_book(written(tmp_path, content))
    assert caught.value.remedy


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_code_book(tmp_path / "absent.json")
    with pytest.raises(InputError, match="does not exist"):
        read_code_book(tmp_path / "absent.dta")
    (tmp_path / "latin.csv").write_bytes(b"caf\xe9")
    with pytest.raises(SchemaError, match="UTF-8"):
        read_code_book(tmp_path / "latin.csv")
    for name, content, expected in (
        ("r.margrave", b"PK\xff", "is a release.*margrave schema of"),
        ("t.parquet", b"PAR1\xff", "is a table, not a code book.*margrave schema draft"),
        ("t.xlsx", b"PK\xff", "is a workbook.*save that sheet as CSV UTF-8"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(SchemaError, match=expected):
            read_code_book(tmp_path / name)
    pytest.importorskip("pyreadstat", reason="pyreadstat is not installed")
    (tmp_path / "no.sav").write_bytes(b"secret-1234")
    with pytest.raises(MargraveError, match="damaged") as caught:
        read_code_book(tmp_path / "no.sav")
    assert "secret" not in str(caught.value)
