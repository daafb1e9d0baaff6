"""A schema that is not valid TOML: the error names the line, what is wrong there, and what to write."""

from __future__ import annotations

import re

import pytest

from margrave.errors import SchemaError
from margrave.schema import Schema

TOP = '[schema]\nversion = 1\n\n[[column]]\nname = "sex"\nkind = "categorical"\n'
LIST = 'categories = ["F", "M"]\n'
QUOTES = r'"Männer" = "x"'

FAULTS = {
    "a key with an umlaut": (TOP + LIST + 'größe = "x"\n', "Line 8.*letter.*" + QUOTES),
    "a key with a blank": (TOP + LIST + 'full name = "x"\n', "Line 8.*blank.*" + QUOTES),
    "a label with an umlaut": (TOP + 'labels = {F = "x", Männer = "x"}\n', "Line 7.*" + QUOTES),
    "a label of two words": (TOP + 'labels = {"F" = "x", old men = "x"}\n', "Line 7.*" + QUOTES),
    "a text without quotes": (TOP.replace('"sex"', "Station für Männer"), "Line 5.*without quotes"),
    "a kind without quotes": (TOP.replace('"categorical"', "integer"), "Line 6.*in quotes"),
    "a kind that begins as a number": (TOP.replace('"categorical"', "info"), "Line 6.*in quotes"),
    "categories without quotes": (TOP + "categories = [\n  F,\n  M\n]\n", "Line 8.*in quotes"),
    "curly quotes": (TOP + "categories = [“F”, “M”]\n", "Line 7.*straight quotes"),
    "German quotes": (TOP.replace('"sex"', "„sex“"), "Line 5.*straight quotes"),
    "[column] at first": (TOP.replace("[[column]]", "[column]") + LIST, r"\(line 4\).*\[\[column\]\]"),
    "[column] later": (TOP + LIST + "[column]\n" + LIST, r"Line 8: each column.*\[\[column\]\]"),
    "[column] always": (
        (TOP + "[[column]]\n").replace("[[column]]", "[column]"),
        r"Line 4: each column.*\[\[column\]\]",
    ),
    "a bracket too few": (TOP + LIST + "[[column]\n", r"Line 8: each column.*\[\[column\]\]"),
    "separators of thousands": (TOP + "high = 10.000,00\n", "Line 7.*decimal point"),
    "a blank for thousands": (TOP + "high = 10 000\n", "Line 7.*decimal point"),
    "a decimal comma": (TOP + "high = 0,5\n", "Line 7.*decimal point.*0.5"),
    "no digit before the point": (TOP + "high = .5\n", "Line 7.*0.5"),
    "a date of day and month": (TOP + "low = 31.12.2024\n", "Line 7.*2024-12-31"),
    "a dash": (TOP + "low = −9\n", "Line 7.*minus sign"),
    "a colon": (TOP + "low: 0\n", "Line 7.*Write = in place of the colon"),
    "a colon after a label": (TOP + 'labels = {"F": "x"}\n', "Line 7.*in place of the colon"),
    "no sign": (TOP + "low 0\n", "Line 7.*= is missing"),
    "no value": (TOP + "low =\nhigh = 3\n", "Line 7.*no value"),
    "a comma at the end": (TOP + "low = 0,\n", "Line 7.*comma"),
    "two settings in a line": (TOP + "low = 0, high = 3\n", "Line 7.*one key = value"),
    "no closing quote": (TOP.replace('"sex"', '"sex'), "Line 5.*quote on one side"),
    "no opening quote": (TOP.replace('"sex"', 'sex"'), "Line 5.*quote on one side"),
    "no quote in a list": (TOP + 'categories = ["F, "M"]\n', "Line 7.*quote on one side"),
    "a quote in a text": (TOP.replace('"sex"', '"the "sex" x"'), "Line 5.*within a text"),
    "a backslash": (TOP.replace('"sex"', '"C:\\Users"'), "Line 5.*backslash"),
    "a no-break space": (TOP + "low\u00a0= 0\n", "Line 7.*blank"),
    "no closing bracket": (
        TOP + 'categories = ["F", "M"\nmissing = true\n\n[[column]]\n',
        "Line 7: the list is not closed",
    ),
    "no closing bracket after a comma": (
        TOP + 'categories = [\n  "F",\n  "M",\n\n[[column]]\nname = "x"\n',
        "Line 7: the list is not closed",
    ),
    "no closing bracket at the end": (TOP + 'categories = ["F"', "Line 7: the list is not closed"),
    "no comma in a list": (TOP + 'categories = ["F" "M"]\n', "Line 7: a comma is missing"),
    "no comma in a long list": (TOP + 'categories = [\n"F"\n"M"\n]\n', "Line 9: a comma is missing"),
    "no closing brace": (TOP + 'labels = {"F" = "x"\nmissing = true\n', "Line 7: the braces"),
    "a key twice": (TOP + LIST + 'kind = "ordinal"\n', "Lines 6 and 8: one key occurs twice"),
    "a table twice": (TOP + LIST + "[schema]\n", "Lines 1 and 8: one table occurs twice"),
    "a label twice": (TOP + 'labels = {F = "x", F = "y"}\n', "Line 7: a key occurs twice"),
    "True beside a list": (TOP + LIST + "missing = True\n", "Line 8.*TOML writes true"),
    "yes": (TOP + LIST + "missing = yes\n", "Line 8.*TOML writes true"),
    "another fault": (TOP + LIST + "<<<<\n", "Line 8 of the schema is not valid TOML: Invalid st"),
    "a table": ("age,town\n30,Secretville\n", "This is a table, not a schema.*schema draft"),
    "a table with quotes": ('"age";"town"\n3;"Secretville"\n', "This is a table, not a schema"),
    "one column": ("town\nSecretville\n", r"This is not a schema.*\[schema\]"),
    "a letter": ("Dear all,\nSecretville\n", r"This is not a schema.*\[schema\]"),
    "JSON": ('{"town": "Secretville"}\n', "This is JSON.*schema import.*schema draft"),
    "XML": ("<codeBook>Secretville</codeBook>\n", "This is XML or HTML.*schema import"),
}  # fmt: skip


@pytest.mark.parametrize("case", FAULTS)
def test_a_mistake_in_toml_is_named_with_its_line_and_remedy(case: str) -> None:
    text, expected = FAULTS[case]
    for written in (text, "\ufeff" + text.replace("\n", "\r\n")):
        with pytest.raises(SchemaError) as error:
            Schema.from_toml(written)
        assert re.search(expected, str(error.value)), str(error.value)
        assert "Secretville" not in str(error.value)


@pytest.mark.parametrize("broken", ["low = 0,5", "größe = 3", "x: 1", "name = sex", '"'])
def test_no_error_quotes_the_text(broken: str) -> None:
    """A table named as the schema by mistake may look like one in its first line."""
    with pytest.raises(SchemaError) as error:
        Schema.from_toml(f"{TOP}{broken} # Secretville\nSecretville = Secretville,3\n")
    assert "Secretville" not in str(error.value)
