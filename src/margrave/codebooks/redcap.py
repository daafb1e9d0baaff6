"""REDCap data dictionaries."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping

from margrave.codebooks.json_parts import check_words
from margrave.codebooks.variable import Variable


def read_redcap(content: str) -> list[Variable]:
    """Return the variables of a REDCap data dictionary, with a column for each choice of a checkbox."""
    rows = list(csv.DictReader(io.StringIO(content)))
    found: list[Variable] = []
    for place, row in enumerate(rows):
        found += _redcap(
            {_redcap_key(k): v or "" for k, v in row.items() if k}, is_first=place == 0
        )
    return found


def _redcap_key(header: str) -> str:
    plain = re.sub(r"\W+", " ", header.lower()).strip()
    return {
        "variable field name": "field_name", "field type": "field_type", "field label": "field_label",
        "choices calculations or slider labels": "choices", "select_choices_or_calculations": "choices",
        "text validation type or show slider number": "validation",
        "text_validation_type_or_show_slider_number": "validation",
        "text validation min": "text_validation_min", "text validation max": "text_validation_max",
    }.get(plain, re.sub(r" ", "_", plain))  # fmt: skip


def _redcap(row: Mapping[str, str], *, is_first: bool) -> list[Variable]:
    name, sort = row.get("field_name", "").strip(), row.get("field_type", "").strip().lower()
    label = re.sub(r"<[^>]*>", "", row.get("field_label", ""))
    if not name or sort == "descriptive":
        return []
    check = row.get("validation", "").strip().lower()
    _check_words(name, sort, check)
    if is_first or row.get("identifier", "").strip().lower() == "y":
        return [Variable(name, "out", label, identifier=True)]
    choices = (
        dict(_choices(row.get("choices", ""))) if sort in ("radio", "dropdown", "checkbox") else {}
    )
    if sort == "checkbox":
        return [
            Variable(f"{name}___{code.lower().replace('-', '_')}", "boolean", f"{label}: {said}")
            for code, said in choices.items()
        ]
    if sort in ("radio", "dropdown"):
        return [Variable(name, "text", label, choices)]
    if sort in ("yesno", "truefalse"):
        return [Variable(name, "boolean", label)]
    kinds = {
        "calc": "real",
        "slider": "integer",
        "notes": "out",
        "file": "out",
        "signature": "out",
        "sql": "text",
    }
    kind = kinds.get(sort) or _validated(check)
    low, high = row.get("text_validation_min") or None, row.get("text_validation_max") or None
    if sort == "slider":
        low, high = low or "0", high or "100"
    return [Variable(name, kind, label, low=low, high=high)]


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
        "vmrn", "zipcode", "autocomplete", "signature", "number_slider",
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


def _choices(text: str) -> list[tuple[str, str]]:
    pieces = [p.split(",", 1) for p in text.split("|") if p.strip()]
    return [(p[0].strip(), p[1].strip() if len(p) > 1 else "") for p in pieces]
