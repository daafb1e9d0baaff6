"""The errors of a schema that is not valid TOML: the line, what is wrong there, and what to write.

No error quotes the text: a table that is named as the schema holds private rows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from margrave.errors import SchemaError


def toml_error(error: ValueError, text: str) -> SchemaError:
    """Return the error for a text that ``tomllib`` rejects with ``error``."""
    lines = [_bare(line) for line in text.split("\n")]
    found = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)", str(error))
    reported = str(error)[: found.start() if found else 200].replace("\n", " ")
    last = max((i for i, line in enumerate(lines, 1) if line.strip()), default=1)
    at = int(found[1]) if found and found[1] else last
    fault = _other_file(lines) or _header(lines, at) or _twice(reported, lines, at)
    if fault is None and (what := _quotes(lines[at - 1])) is not None:
        fault = f"Line {at}: {what[0]}.", what[1]
    fault = fault or _not_closed(reported, lines, at if found and found[1] else len(lines) + 1)
    if fault is None and (what := _within_line(reported, lines[at - 1])) is not None:
        fault = f"Line {at}: {what[0]}.", what[1]
    if fault is not None:
        return SchemaError(fault[0], remedy=fault[1])
    return SchemaError(
        f"Line {at} of the schema is not valid TOML: {reported.rstrip('.')}.",
        remedy="Correct it there; margrave schema draft writes a schema.",
    )


def _bare(line: str) -> str:
    """Return a line with ``""`` for every text that is closed, and without its comment."""
    pattern = r"(\"(?:[^\"\\]|\\.)*\"|'[^']*')|#.*"
    return re.sub(pattern, lambda found: '""' if found[1] else "", line).rstrip()


def _other_file(lines: Sequence[str]) -> tuple[str, str] | None:
    """Return the fault of a text that is a file of another kind, as its first line shows."""
    first, second, *_ = (*(line.strip() for line in lines if line.strip()), "", "")
    header = re.compile(r"\s*\[+\s*(schema|column|constraint)\b")
    if any(map(header.match, lines)) or re.match(r'([\w.-]+|"")\s*=', first):
        return None
    if first.startswith(("<", "{")):
        return (
            f"This is {'JSON' if first[0] == '{' else 'XML or HTML'}, and a schema is TOML.",
            "margrave schema import makes a schema from a code book, margrave schema draft one from a table.",
        )
    separators = (s for s in ",;\t|" if s in first)
    if any(second.count(s) == first.count(s) or not second for s in separators):
        return (
            "This is a table, not a schema.",
            "Name a .toml file as the schema; margrave schema draft writes one.",
        )
    return (
        "This is not a schema.",
        "Name a .toml file that begins with the line [schema]; margrave schema draft writes one.",
    )


def _header(lines: Sequence[str], at: int) -> tuple[str, str] | None:
    """Return what is wrong with the header of a table, such as ``[column]`` or ``[[column]``."""
    here = re.match(r"\s*\[+\s*(column|constraint)\s*\]*$", lines[at - 1])
    if here is None:
        return None
    wrong = [
        i
        for i, line in enumerate(lines[:at], 1)
        if (found := re.match(rf"\s*(\[*)\s*{here[1]}\s*(\]*)$", line))
        and (found[1], found[2]) != ("[[", "]]")
    ]
    if not wrong:
        return None
    return (
        f"Line {wrong[0]}: each {here[1]} begins with a line in double brackets.",
        f"Write [[{here[1]}]] there.",
    )


def _twice(reported: str, lines: Sequence[str], at: int) -> tuple[str, str] | None:
    """Return the fault of a key or table that occurs twice."""
    if not reported.startswith(("Cannot ", "Duplicate ")):
        return None
    key = lines[at - 1].partition("=")[0].strip()
    before = []
    for i in range(at - 1, 0, -1):
        if lines[i - 1].lstrip().startswith("[") and not key.startswith("["):
            break
        if '""' not in key and lines[i - 1].partition("=")[0].strip() == key:
            before.append(i)
    what = "table" if key.startswith("[") else "key"
    where = f"Lines {before[0]} and {at}: one" if before else f"Line {at}: a"
    return f"{where} {what} occurs twice.", "Keep one of the two."


def _quotes(line: str) -> tuple[str, str] | None:
    """Return what is wrong with the quotes or blanks of a line, whose closed texts are ``""``."""
    if re.search(r"(^|[=\[,{(])\s*[“”„‟‘’‚«»]", line):
        return "a text stands in curly quotes", 'Write straight quotes, as in kind = "integer".'
    if re.search(r"[^\S \t]", line):
        return "a blank is not an ordinary one", "Delete the blanks of the line and type them anew."
    if '"' in line.replace('""', "") or re.search(r"[=\[,{]\s*'", line):
        return (
            "a text has a quote on one side only",
            "Begin and end each text with a straight quote, in one line.",
        )
    if re.search(r'""[^\W\d]', line):
        return "a quote stands within a text", 'Write \\" for it.'
    return None


def _not_closed(reported: str, lines: Sequence[str], at: int) -> tuple[str, str] | None:
    """Return the fault of a list or of braces that are not closed, or lack a comma.

    ``at`` is one more than the number of lines if the text ends before they are closed.
    """
    here = lines[at - 1] if at <= len(lines) else ""
    statement = re.match(r'\s*(\[\[?\s*[a-z]+[.\]]|([\w-]+|"")\s*=)', here) or at > len(lines)
    unclosed = reported.startswith(("Unclosed ", "Invalid initial"))
    if not unclosed and not (reported.startswith("Invalid value") and statement):
        return None
    found = (
        (i, re.match(r"[^\[{]*=\s*([\[{])", lines[i - 1]))
        for i in range(min(at, len(lines)), 0, -1)
    )
    opened, opening = next(((i, m[1]) for i, m in found if m), (0, ""))
    if opening == "{" and unclosed:
        return (
            f"Line {opened}: the braces are not closed in their line, or a comma is wrong.",
            'Write them in one line, with commas between entries: {"1" = "yes", "2" = "no"}.',
        )
    brackets = sum(line.count("[") - line.count("]") for line in lines[opened - 1 : at - 1])
    if opening == "[" and statement and brackets > 0:
        return f"Line {opened}: the list is not closed.", "Write ] at its end."
    if opening == "[" and unclosed:
        return f"Line {at}: a comma is missing between two entries of a list.", 'Write ["a", "b"].'
    return None


def _within_line(reported: str, line: str) -> tuple[str, str] | None:
    """Return the first fault that shows in a line, whose closed texts are ``""``."""
    word = re.search(r"[=\[,]\s*(true|false|yes|no)\b", line, re.IGNORECASE)
    if word is not None and word[1] not in ("true", "false"):
        meant = {"yes": "true", "no": "false"}.get(word[1].lower(), word[1].lower())
        return f"it has {word[1]}, and TOML writes {meant}, in lower case", f"Write {meant}."
    key, value = "Expected '='", ("Expected newline", "Invalid value", "Invalid date")
    faults: tuple[tuple[str | tuple[str, ...], str, str, str], ...] = (
        (
            key,
            r"(^|[{,])\s*([\w-]+|\"\")\s*:",
            "a colon stands between a key and its value",
            "Write = in place of the colon.",
        ),
        (
            key,
            r"(^|[{,])(?!\s*([A-Za-z0-9_.-]+|\"\")\s*=)[^\"={},]+=",
            "the name before = has a blank or a letter other than A to Z",
            'Write the name in quotes, as in "Männer" = "x".',
        ),
        (key, "", "the sign = is missing", "Write key = value."),
        (value, r"=$", "no value stands after =", "Write one, or delete the line."),
        (value, r"=\s*\(", "a list stands in parentheses", 'Write ["a", "b"].'),
        (value[0], r"[,;]$", "a comma or semicolon ends the line", "Delete it."),
        (
            value,
            r"^[^=]*=\s*\d{1,4}[./-]\d{1,2}[./-]\d{1,4}$",
            "a date is not written as in TOML, or does not exist",
            "Write 2024-12-31, without quotes.",
        ),
        (
            value,
            r"^[^=]*=\s*[-+]?\d[\d.]*([,'’ ][\d.,'’ ]*|\.\d+\.[\d.]*)$",
            "a number has a decimal comma or a separator of thousands",
            "Write a decimal point and no separator, as in 10000.0 or 0.5.",
        ),
        (value, r"[=\[,]\s*[−–—]", "a dash stands for a minus sign", "Write it as in -9."),
        (
            value,
            r"^[^=]*=\s*[-+]?[\d.]+$",
            "a number is not written as in TOML",
            "Write it as in 5, 0.5 or 5.0.",
        ),
        (
            value,
            r"(^|[=\[,])\s*(?!true|false)[^\W\d][^=]*$",
            "a text stands without quotes",
            'Write it in quotes, as in kind = "integer".',
        ),
        (value[0], "=", "more follows the value", "Write one key = value a line."),
        (("Invalid hex", "Unescaped '\\'"), "", "a text has a backslash", r"Write \\ for it."),
    )
    for beginning, pattern, what, remedy in faults:
        if reported.startswith(beginning) and re.search(pattern, line):
            return what, remedy
    return None
