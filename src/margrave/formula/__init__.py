"""The language of formulas: text to a tree of a closed grammar. Nothing in a formula is ever run as code."""

from margrave.formula.coefficients import factors_of, spelled
from margrave.formula.expansion import Term, check_outcome, expand, has_columns_alone
from margrave.formula.nodes import (
    Call,
    Category,
    Chain,
    Coding,
    ColumnName,
    Compare,
    Formula,
    Functions,
    Logic,
    Missing,
    Negative,
    Node,
    Not,
    Number,
    Power,
    Text,
    columns_in,
    gives_truth,
    is_column,
    needed_in,
    written,
)
from margrave.formula.parser import parse, parse_factor
from margrave.formula.quoting import quoting_hint
from margrave.formula.time_parts import time_part

__all__ = [
    "Call",
    "Category",
    "Chain",
    "Coding",
    "ColumnName",
    "Compare",
    "Formula",
    "Functions",
    "Logic",
    "Missing",
    "Negative",
    "Node",
    "Not",
    "Number",
    "Power",
    "Term",
    "Text",
    "check_outcome",
    "columns_in",
    "expand",
    "factors_of",
    "gives_truth",
    "has_columns_alone",
    "is_column",
    "needed_in",
    "parse",
    "parse_factor",
    "quoting_hint",
    "spelled",
    "time_part",
    "written",
]
