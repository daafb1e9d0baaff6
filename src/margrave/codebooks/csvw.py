"""CSV on the Web: the metadata of a table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from margrave.codebooks.json_parts import (
    bound_of,
    check_words,
    flag_of,
    kind_of,
    label_of,
    names_of,
    not_in_schema,
    object_of,
    objects_of,
    text_of,
    truths_of,
    words_of,
)
from margrave.codebooks.variable import Phrase, Variable, pattern_of
from margrave.errors import SchemaError


def read_csvw(found: Mapping[str, Any]) -> list[Variable]:
    """Return the variables of a table's CSV on the Web metadata."""
    tables = objects_of(found["tables"], "tables") if "tables" in found else [found]
    if len(tables) != 1:
        raise SchemaError(
            f"The CSVW metadata describe {len(tables)} tables.", remedy="Give those of one table."
        )
    schema = tables[0].get("tableSchema")
    if isinstance(schema, str):
        raise SchemaError(
            "The CSVW metadata name another file as the tableSchema.",
            remedy="Write the content of that file in place of its name.",
        )
    schema = object_of(schema, "tableSchema")
    keys = names_of(schema.get("primaryKey", []), "primaryKey")
    others = schema.get("foreignKeys", [])
    others = objects_of(others, "foreignKeys") if others else []
    foreign = [
        n
        for k in others
        for n in names_of(k.get("columnReference"), "columnReference of a foreign key")
    ]
    # Properties that columns inherit from their table: section 5.7 of the standard.
    inherited = ("datatype", "default", "null", "required", "separator")
    above = {k: part[k] for part in (found, tables[0], schema) for k in inherited if k in part}
    columns = objects_of(schema.get("columns"), "columns")
    return [
        _csvw(above | c, keys, foreign)
        for c in columns
        if not flag_of(str(c.get("name") or c.get("titles")), c, "virtual")
    ]


def _name(entry: Mapping[str, Any]) -> str:
    """Return a column's name in the table: its first title, or else its name."""
    title = entry.get("titles")
    if isinstance(title, dict):
        title = next(iter(title.values()), None)
    title = title[0] if isinstance(title, list) and title else title
    return title if isinstance(title, str) and title.strip() else text_of(entry, "name")


def _csvw(entry: Mapping[str, Any], keys: Sequence[str], foreign: Sequence[str]) -> Variable:
    name, of = _name(entry), entry.get("datatype", "string")
    of = {"base": of} if isinstance(of, str) else object_of(of, f"datatype of column {name!r}")
    _check_words(name, entry, of)
    base = str(of.get("base", "string"))
    kind = "out" if entry.get("separator") else kind_of(base)
    form, questions = of.get("format"), []
    pattern = (
        pattern_of(str(form), name) if form is not None and kind in ("date", "timestamp") else None
    )
    codes: dict[str, str] = {}
    if kind == "text" and form and _is_list(str(form)):
        codes = dict.fromkeys(str(form).split("|"), "")
    if kind == "boolean" and form is not None:
        true, bar, false = str(form).partition("|")
        if not (true and bar and false):
            raise SchemaError(
                f"In the code book, the format of column {name!r} is not two words for true and false.",
                remedy='Write such as "Y|N".',
            )
        codes = truths_of([false], [true])
    step = int(kind == "integer")
    if kind in ("integer", "real") and _separates(form):
        questions.append(Phrase.SEPARATORS)
    lost = [k for k in ("length", "minLength", "maxLength") if k in of]
    lost += ["format"] if kind == "text" and form and not codes else []
    lost += ["default"] if entry.get("default") else []
    lost += ["foreignKeys"] if entry.get("name") in foreign else []
    null = entry.get("null", [])
    null = words_of([null] if isinstance(null, str) else null, f"null of column {name!r}")
    least, most = _bounds_of_type(base)
    low = bound_of(of, ["minimum", "minInclusive"], "minExclusive", step)
    high = bound_of(of, ["maximum", "maxInclusive"], "maxExclusive", -step)
    return Variable(
        name, kind, label_of(entry), codes, False, least if low is None else low, most if high is None else high,
        tuple(dict.fromkeys(n for n in null if n.strip())), pattern, identifier=[entry.get("name")] == keys,
        required=flag_of(name, entry, "required"), notes=not_in_schema(lost), questions=questions,
    )  # fmt: skip


def _bounds_of_type(base: str) -> tuple[int | None, int | None]:
    """Return the bounds that a datatype states by its name.

    >>> _bounds_of_type("nonNegativeInteger"), _bounds_of_type("integer")
    ((0, None), (None, None))
    """
    least = {"positiveInteger": 1, "nonNegativeInteger": 0}.get(base)
    return 0 if base.startswith("unsigned") else least, {
        "negativeInteger": -1, "nonPositiveInteger": 0,
    }.get(base)  # fmt: skip


def _separates(form: Any) -> bool:
    """Return True if a format of numbers has a decimal comma or separators of thousands."""
    if isinstance(form, Mapping):
        pattern = str(form.get("pattern", ""))
        return form.get("decimalChar", ".") != "." or "," in pattern or bool(form.get("groupChar"))
    return "," in str(form or "")


def _check_words(name: str, entry: Mapping[str, Any], of: Mapping[str, Any]) -> None:
    """Raise ``SchemaError`` for a property or a datatype that the standard does not have."""
    # Properties of columns, of their datatypes, and the datatypes: sections 5.6, 5.11 and 6 of the standards on
    # metadata and tabular data. Common properties have a prefix, such as dc:title.
    of_columns = (
        "name", "titles", "suppressOutput", "virtual", "aboutUrl", "propertyUrl", "valueUrl", "datatype", "default",
        "lang", "null", "ordered", "required", "separator", "textDirection", "@id", "@type", "title", "description",
    )  # fmt: skip
    of_datatypes = (
        "base", "format", "length", "minLength", "maxLength", "minimum", "maximum", "minInclusive", "maxInclusive",
        "minExclusive", "maxExclusive", "@id", "@type", "name", "title", "description",
    )  # fmt: skip
    datatypes = (
        "any", "anyAtomicType", "anyURI", "base64Binary", "binary", "boolean", "byte", "date", "dateTime",
        "dateTimeStamp", "datetime", "dayTimeDuration", "decimal", "double", "duration", "float", "gDay", "gMonth",
        "gMonthDay", "gYear", "gYearMonth", "hexBinary", "html", "int", "integer", "json", "language", "long", "Name",
        "negativeInteger", "NMTOKEN", "nonNegativeInteger", "nonPositiveInteger", "normalizedString", "number",
        "positiveInteger", "QName", "short", "string", "time", "token", "unsignedByte", "unsignedInt", "unsignedLong",
        "unsignedShort", "xml", "yearMonthDuration",
    )  # fmt: skip
    check_words(
        name, (k for k in entry if k[:1] == "@" or ":" not in k), of_columns, "property", "CSVW"
    )
    own = (k for k in of if k[:1] == "@" or ":" not in k)
    check_words(name, own, of_datatypes, "property of a datatype", "CSVW")
    check_words(name, [of.get("base", "string")], datatypes, "datatype", "CSVW")


def _is_list(pattern: str) -> bool:
    """Return True for a pattern that lists words, such as M|F."""
    return re.fullmatch(r"[\w &,'/-]+(\|[\w &,'/-]+)+", pattern) is not None
