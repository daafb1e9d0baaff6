"""REDCap data dictionaries."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence

from margrave.codebooks.json_parts import check_words, with_labels
from margrave.codebooks.variable import Phrase, Variable
from margrave.errors import SchemaError


def read_redcap(content: str) -> list[Variable]:
    """Return the variables of a REDCap data dictionary, with a column for each choice of a checkbox."""
    try:
        lines = list(csv.reader(io.StringIO(content, newline=""), strict=True))
    except csv.Error:
        raise SchemaError(
            "The data dictionary is not a valid CSV file.", remedy="Download it from REDCap anew."
        ) from None
    header = [_redcap_key(key) for key in lines[0]]
    for key, written in (("field_name", "Variable / Field Name"), ("field_type", "Field Type")):
        if key not in header:
            raise SchemaError(
                f"The data dictionary has no column {written!r}.",
                remedy="Separate its columns by commas, and keep the first line that REDCap writes.",
            )
    rows = [dict(zip(header, line, strict=False)) for line in lines[1:] if any(line)]
    found: list[Variable] = []
    for place, row in enumerate(rows):
        found += _redcap(row, is_first=place == 0)
    return [*found, *_system(found, [row.get("form_name", "").strip() for row in rows])]


def _system(found: Sequence[Variable], forms: Iterable[str]) -> list[Variable]:
    """Return the columns that REDCap adds to exported records, which a schema leaves out."""
    names = [
        "redcap_event_name", "redcap_repeat_instrument", "redcap_repeat_instance", "redcap_data_access_group",
        "redcap_survey_identifier",
    ]  # fmt: skip
    for form in dict.fromkeys(f for f in forms if f):
        names += [f"{form}_timestamp", f"{form}_complete"]
    taken = {variable.name for variable in found}
    return [Variable(name, "out") for name in names if found and name not in taken]


def _redcap_key(header: str) -> str:
    plain = re.sub(r"\W+", " ", header.lower()).strip()
    return {
        "variable field name": "field_name", "field type": "field_type", "field label": "field_label",
        "choices calculations or slider labels": "choices", "select_choices_or_calculations": "choices",
        "text validation type or show slider number": "validation",
        "text_validation_type_or_show_slider_number": "validation",
        "branching logic show field only if": "branching_logic",
        "text validation min": "text_validation_min", "text validation max": "text_validation_max",
    }.get(plain, re.sub(r" ", "_", plain))  # fmt: skip


def _redcap(row: Mapping[str, str], *, is_first: bool) -> list[Variable]:
    name, sort = row.get("field_name", "").strip(), row.get("field_type", "").strip().lower()
    label = re.sub(r"<[^>]*>", "", row.get("field_label", ""))
    if sort == "descriptive":
        return []
    if not name:
        raise SchemaError(
            "In the data dictionary, a field has no name.", remedy="Name it, or delete its line."
        )
    check = row.get("validation", "").strip().lower()
    _check_words(name, sort, check)
    check_words(
        name,
        [row.get("identifier", "").strip().lower()],
        ("", "y", "n"),
        "entry of Identifier?",
        "REDCap",
    )
    is_record = is_first and sort == "text"
    identifies = is_record or row.get("identifier", "").strip().lower() == "y"
    choices: dict[str, str] = {}
    if sort in ("radio", "dropdown", "checkbox"):
        choices = with_labels(name, _choices(name, row.get("choices", "")))
        if not choices:
            raise SchemaError(
                f"In the data dictionary, the {sort} {name!r} has no choices.",
                remedy='List them as "1, Male | 2, Female".',
            )
    notes = _notes(row, sort)
    if sort == "checkbox":
        return [
            Variable(
                f"{name}___{code.lower().replace('-', '_')}", "boolean", f"{label}: {said}",
                identifier=identifies, notes=notes,
            )
            for code, said in choices.items()
        ]  # fmt: skip
    if identifies:
        return [Variable(name, "out", label, identifier=True, participant=is_record)]
    if sort in ("radio", "dropdown"):
        return [Variable(name, "text", label, choices, notes=notes)]
    if sort in ("yesno", "truefalse"):
        return [Variable(name, "boolean", label, notes=notes)]
    kinds = {
        "calc": "real",
        "slider": "integer",
        "notes": "out",
        "file": "out",
        "signature": "out",
        "sql": "text",
    }
    kind = kinds.get(sort) or _validated(check)
    low, high = (row.get(f"text_validation_{end}", "").strip() for end in ("min", "max"))
    moving = [b for b in (low, high) if b in ("today", "now") or "[" in b]
    notes += [f"Its bound {bound} is not a value" for bound in moving]
    low, high = ("" if bound in moving else bound for bound in (low, high))
    commas = check.endswith("comma_decimal")
    if commas:
        low, high = low.replace(",", "."), high.replace(",", ".")
    if sort == "slider":
        low, high = low or "0", high or "100"
    return [
        Variable(
            name,
            kind,
            label,
            low=low or None,
            high=high or None,
            notes=notes,
            questions=[Phrase.SEPARATORS] if commas else [],
        )
    ]


def _notes(row: Mapping[str, str], sort: str) -> list[str]:
    """Return notes on what decides the values of a field, and what the dictionary says of them."""
    shown = " ".join(row.get("branching_logic", "").split())
    formula = " ".join(row.get("choices", "").split()) if sort == "calc" else ""
    said = " ".join(re.sub(r"<[^>]*>", "", row.get("field_note", "")).split())
    return [
        *([said] if said else []),
        *([f"Calculated: {formula}"] if formula else []),
        *([f"Has a value only if {shown}"] if shown else []),
    ]


def _check_words(name: str, sort: str, check: str) -> None:
    """Raise ``SchemaError`` for a type of field or a validation that REDCap does not have."""
    sorts = (
        "text", "notes", "calc", "dropdown", "radio", "checkbox", "yesno", "truefalse", "file", "slider", "descriptive",
        "sql", "signature",
    )  # fmt: skip
    checks = (
        "", "alpha_only", "date_dmy", "date_mdy", "date_ymd", "datetime_dmy", "datetime_mdy", "datetime_ymd",
        "datetime_seconds_dmy", "datetime_seconds_mdy", "datetime_seconds_ymd", "email", "integer", "mrn_10d",
        "mrn_generic", "number", "number_comma_decimal", "phone", "postalcode_australia", "postalcode_canada",
        "postalcode_french", "postalcode_germany", "postalcode_uk", "ssn", "time", "time_hh_mm_ss", "time_mm_ss",
        "vmrn", "zipcode", "orcid", "phone_australia", "phone_uk", "autocomplete", "signature", "number_slider",
        *(f"number_{n}dp{comma}" for n in range(1, 5) for comma in ("", "_comma_decimal")),
    )  # fmt: skip
    check_words(name, [sort], sorts, "field type", "REDCap")
    if sort == "text":
        check_words(name, [check], checks, "validation", "REDCap")


def _validated(check: str) -> str:
    if check == "integer":
        return "integer"
    if check.startswith("number"):
        return "real"
    if check.startswith("datetime"):
        return "timestamp"
    if check.startswith("date"):
        return "date"
    return "text" if check in ("zipcode", "postalcode_canada", "alpha_only") else "out"


def _choices(name: str, text: str) -> list[tuple[str, str]]:
    pieces = [p.partition(",") for p in text.split("|") if p.strip()]
    if not all(comma for _, comma, _ in pieces):
        raise SchemaError(
            f"In the data dictionary, a choice of {name!r} is not a code, a comma and a label.",
            remedy='List them as "1, Male | 2, Female".',
        )
    return [(code.strip(), label.strip()) for code, _, label in pieces]
