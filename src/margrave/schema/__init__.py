"""The schema: columns with their public values, the TOML file, the domain, and encoding and decoding."""

from margrave.schema.column import Column, Encoded
from margrave.schema.discrete import Boolean, Categorical, Coded, Ordinal
from margrave.schema.domain import Codes, Domain, StructuralZeros
from margrave.schema.numeric import Date, Integer, Real, Timestamp
from margrave.schema.preflight import ColumnCheck, Preflight
from margrave.schema.schema import Schema

__all__ = [
    "Boolean",
    "Categorical",
    "Coded",
    "Codes",
    "Column",
    "ColumnCheck",
    "Date",
    "Domain",
    "Encoded",
    "Integer",
    "Ordinal",
    "Preflight",
    "Real",
    "Schema",
    "StructuralZeros",
    "Timestamp",
]
