"""The schema: columns with their public values, the TOML file, the domain, and encoding and decoding."""

from margrave.schema.column import Column, Encoded
from margrave.schema.constraints import Allowed, Constraint, Depends, Impossible, Ordered
from margrave.schema.discrete import Boolean, Categorical, Coded, Ordinal
from margrave.schema.domain import Codes, Domain
from margrave.schema.numeric import Date, Integer, Real, Timestamp
from margrave.schema.preflight import ColumnCheck, ConstraintCheck, Preflight
from margrave.schema.schema import Schema, check_schema_given, schema_of
from margrave.schema.zeros import StructuralZeros

__all__ = [
    "Allowed",
    "Boolean",
    "Categorical",
    "Coded",
    "Codes",
    "Column",
    "ColumnCheck",
    "Constraint",
    "ConstraintCheck",
    "Date",
    "Depends",
    "Domain",
    "Encoded",
    "Impossible",
    "Integer",
    "Ordered",
    "Ordinal",
    "Preflight",
    "Real",
    "Schema",
    "StructuralZeros",
    "Timestamp",
    "check_schema_given",
    "schema_of",
]
