"""CSV on the Web: the metadata of a table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from margrave.codebooks.json_parts import (
    check_words,
    kind_of,
    label_of,
    object_of,
    objects_of,
    text_of,
)
from margrave.codebooks.variable import Variable, pattern_of
from margrave.errors import SchemaError


def read_csvw(found: Mapping[str, Any]) -> list[Variable]:
    """Return the variables of a table's CSV on the Web metadata."""
    tables = objects_of(found["tables"], "tables") if "tables" in found else [found]
    if len(tables) != 1:
        raise SchemaError(
            f"The CSVW metadata describe {len(tables)} tables.", remedy="Give those of one table."
        )
    schema = object_of(tables[0].get("tableSchema"), "tableSchema")
    keys = schema.get("primaryKey", [])
    keys = [keys] if isinstance(keys, str) else list(keys)
    columns = objects_of(schema.get("columns"), "columns")
    return [_csvw(c, keys) for c in columns if not c.get("virtual", False)]


def _csvw(entry: Mapping[str, Any], keys: Sequence[str]) -> Variable:
    title = entry.get("titles")
    title = next(iter(title.values())) if isinstance(title, dict) else title
    title = title[0] if isinstance(title, list) else title
    name = str(title or text_of(entry, "name"))
    of = entry.get("datatype", "string")
    of = {"base": of} if isinstance(of, str) else object_of(of, "datatype")
    _check_words(name, entry, of)
    kind = kind_of(str(of.get("base", "string")))
    form = of.get("format")
    pattern = (
        pattern_of(str(form), name) if form is not None and kind in ("date", "timestamp") else None
    )
    codes = str(form).split("|") if kind == "text" and form and _is_list(str(form)) else []
    null = entry.get("null", [])
    return Variable(
        name, kind, label_of(entry), dict.fromkeys(codes, ""), False,
        of.get("minimum", of.get("minInclusive")), of.get("maximum", of.get("maxInclusive")),
        tuple(str(n) for n in ([null] if isinstance(null, str) else null) if str(n).strip()),
        pattern, identifier=[entry.get("name")] == list(keys), required=bool(entry.get("required", False)),
    )  # fmt: skip


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
