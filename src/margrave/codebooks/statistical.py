"""The labels in files of Stata, SPSS and SAS, without their rows, and the library that reads such files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from margrave.codebooks.value_labels import list_all_values, split_labels
from margrave.codebooks.variable import Phrase, Variable, codes_within
from margrave.errors import DataError, InputError
from margrave.schema.parsing import number


def reader_of(path: Path) -> str | None:
    """Return the name of the library's function that reads a file, by its ending; None for other files."""
    return {
        ".dta": "read_dta", ".sav": "read_sav", ".zsav": "read_sav", ".por": "read_por",
        ".sas7bdat": "read_sas7bdat", ".xpt": "read_xport",
    }.get(path.suffix.lower())  # fmt: skip


def has_labels(path: str | Path) -> bool:
    """Return True if a file may hold labels of its columns and values, by its ending."""
    return reader_of(Path(path)) is not None


def library() -> Any:
    """Return pyreadstat.

    Raises:
        InputError: It is not installed.
    """
    try:
        import pyreadstat
    except ImportError:
        raise InputError(
            "Files of Stata, SPSS and SAS need a library that is not installed.",
            remedy="Install it: pip install 'margrave[formats]'.",
        ) from None
    return pyreadstat


def read_function(path: Path) -> Callable[..., Any]:
    """Return the function that reads a file into columns and metadata; it takes the options of pyreadstat.

    Raises:
        InputError: The library that reads it is not installed.
    """
    # Otherwise, SPSS's user-missing codes become null, and are not among the metadata.
    asked = {"user_missing": True} if path.suffix.lower() in (".sav", ".zsav") else {}
    read = getattr(library(), reader_of(path) or "")
    return partial(read, str(path), output_format="dict", **asked)


def stata_unit(form: str) -> str:
    """Return the letter of the unit that a display format of Stata shows dates and times in; "" for other formats.

    The unit of a time of day is "time".

    >>> [stata_unit(f) for f in ("%td", "%-tdDD/NN/CCYY", "%d", "%tcCCYY", "%tm", "%tcHH:MM", "%9.0g", "DATE9")]
    ['d', 'd', 'd', 'c', 'm', 'time', '', '']
    """
    if form in ("%tcHH:MM:SS", "%tcHH:MM"):  # those that pyreadstat reads as times of day
        return "time"
    found = re.match("%-?(?:t([a-zA-Z])|(d))", form)
    return "" if found is None else found[1] or found[2]


def moment_formats(forms: Iterable[str]) -> dict[str, list[str]]:
    """Return the options with which pyreadstat reads Stata's days and times in these display formats as such.

    >>> moment_formats(["%tdDD/NN/CCYY", "%tm"])
    {'extra_date_formats': ['%tdDD/NN/CCYY'], 'extra_datetime_formats': []}
    """
    units = {form: stata_unit(form) for form in forms}
    return {
        "extra_date_formats": [form for form, unit in units.items() if unit == "d"],
        "extra_datetime_formats": [form for form, unit in units.items() if unit in ("c", "C")],
    }


def period_note(form: str) -> str:
    """Return the note on a column of Stata's whose display format shows its numbers as periods; "" for other columns.

    >>> period_note("%tm").partition(".")[0]
    'It is read as Stata stores it (%tm): the number of months since January 1960'
    """
    counted = {
        "w": "weeks since 1960, 52 a year",
        "m": "months since January 1960",
        "q": "quarters since the first of 1960",
        "h": "half-years since the first of 1960",
        "b": "days of a business calendar",
    }.get(stata_unit(form))
    if counted is None:
        return ""
    stored = f"It is read as Stata stores it ({form}): the number of {counted}."
    return f"{stored} For dates, store days in Stata (%td)."


def catalog_of(path: Path) -> Path | None:
    """Return the catalog of formats beside a file of SAS, ``visits.sas7bcat`` or ``formats.sas7bcat``."""
    if path.suffix.lower() != ".sas7bdat":
        return None
    beside = (path.with_suffix(".sas7bcat"), path.with_name("formats.sas7bcat"))
    return next((p for p in beside if p.is_file()), None)


def read_labels(path: Path) -> list[Variable]:
    """Return the variables of a file of Stata, SPSS or SAS, from its labels alone.

    SAS keeps the labels of values in a catalog: see ``catalog_of``.

    Raises:
        DataError: The file cannot be read.
        InputError: The library that reads it is not installed.
    """
    meta, catalog = _metadata(path, read_function(path), metadataonly=True), catalog_of(path)
    labels = meta.variable_value_labels
    if catalog is not None:
        read = partial(library().read_sas7bcat, str(catalog), output_format="dict")
        formats = _metadata(catalog, read).value_labels
        labels = {name: formats.get(form, {}) for name, form in meta.variable_to_label.items()}
    return [
        _variable(
            name,
            meta.column_names_to_labels.get(name) or "",
            str(meta.original_variable_types.get(name, "")),
            labels.get(name, {}),
            meta.variable_measure.get(name, "unknown"),
            meta.missing_ranges.get(name, []),
            meta.readstat_variable_types.get(name, "double"),
        )
        for name in meta.column_names
    ]


def _metadata(path: Path, read: Callable[..., Any], **options: Any) -> Any:
    try:
        return read(**options)[1]
    except Exception:  # the library's own, which may quote the file
        failure = DataError(
            f"{path} cannot be read: it is damaged, or not what its name says.",
            remedy="Save it anew.",
        )
    raise failure


def _variable(
    name: str,
    label: str,
    form: str,
    labels: Mapping[Any, str],
    measure: str,
    missing: list[Mapping[str, Any]],
    stored: str,
) -> Variable:
    codes = {_code(value): text for value, text in labels.items()}
    no_value = [c for c in codes if any(_within(c, r) for r in missing)]
    no_value += [_code(r["lo"]) for r in missing if r["lo"] == r["hi"]]
    # Extended missing values of Stata and SAS (.a to .z) come as letters.
    extended = {f".{c}": t for c, t in codes.items() if _is_extended(c, stored)}
    listed = {c: t for c, t in codes.items() if c not in no_value and not _is_extended(c, stored)}
    kind = _kind(form, stored)
    if stored != "string":  # the order of an ordinal variable is that of its numbers
        listed = dict(sorted(listed.items(), key=lambda pair: number(pair[0])))
    notes: list[str] = []
    questions: list[str] = []
    if measure != "scale" and all(c.startswith("-") for c in listed):
        no_value += listed
        listed = {}
    if stored != "string" and (measure == "scale" or not list_all_values(listed)):
        no_answer, answers = split_labels(listed)
        no_value += no_answer
        notes += answers
        if measure != "scale" and len(answers) > 1:
            questions.append(Phrase.SOME_LABELS)
            kind = "text" if measure == "nominal" and kind in ("integer", "real") else kind
        listed = {}
    for low, high in [(r["lo"], r["hi"]) for r in missing if r["lo"] != r["hi"]]:
        within = codes_within(low, high)
        no_value += within
        notes += [] if within else [f"{Phrase.NO_VALUE}: {_code(low)} to {_code(high)}"]
        questions += (
            [] if listed or within or Phrase.MISSING_RANGE in questions else [Phrase.MISSING_RANGE]
        )
    notes += filter(None, [period_note(form)])
    return Variable(
        name,
        kind,
        label,
        listed,
        measure == "ordinal",
        missing_codes=tuple(dict.fromkeys(no_value)),
        missing_labels={code: codes[code] for code in no_value if code in codes} | extended,
        notes=notes,
        questions=questions,
    )


def _kind(form: str, stored: str) -> str:
    """Return the kind of a column by its display format: F8.2, %td, DATETIME20. Times of day are "out".

    >>> [_kind(f, "double") for f in ("F3.0", "F8.2", "%10.0g", "%tdDD/NN/CCYY", "%tc", "%tm", "DATE9", "DOLLAR8.2")]
    ['integer', 'real', 'real', 'date', 'timestamp', 'integer', 'date', 'real']
    >>> [_kind(f, "double") for f in ("E8601DA10", "YYMMDDN8", "E8601DT19", "TIME8", "%tcHH:MM")]
    ['date', 'date', 'timestamp', 'out', 'out']
    """
    if stored == "string":
        return "text"
    unit = stata_unit(form)
    plain = form.upper().rstrip("0123456789.")
    # The formats whose numbers pyreadstat reads as days, as moments and as times of day.
    days = r"[AEJS]?DATE|DTDATE|WEEKDAT[EX]|(YYMMDD|MMDDYY|DDMMYY)[BCDNPS]?|(IS8601|E8601|B8601)DA"
    moments = r"DATETIME|YMDHMS|DATEAMPM|MDYAMPM|(IS8601|E8601|B8601)DT|B8601DN"
    times = r"D?TIME|HHMM|TOD|TIMEAMPM|(IS8601|E8601|B8601)TM"
    if unit == "time" or re.fullmatch(times, plain):
        return "out"
    if unit in ("c", "C") or re.fullmatch(moments, plain):
        return "timestamp"
    if unit == "d" or re.fullmatch(days, plain):
        return "date"
    no_decimals = period_note(form) or (form.startswith("F") and form.endswith(".0"))
    return "integer" if stored.startswith("int") or no_decimals else "real"


def _code(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _within(code: str, limits: Mapping[str, Any]) -> bool:
    try:
        return bool(float(limits["lo"]) <= float(code) <= float(limits["hi"]))
    except (TypeError, ValueError):
        return bool(code == limits["lo"])


def _is_extended(code: str, stored: str) -> bool:
    return stored != "string" and len(code) == 1 and code.isalpha()
