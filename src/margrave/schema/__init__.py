"""The schema: columns with their public values, the TOML file, the domain, and encoding and decoding."""

from margrave.error_sanitizer import short_errors
from margrave.schema.categorical import Boolean, Categorical, Coded, Ordinal
from margrave.schema.column import Column, Encoded
from margrave.schema.column_check import ColumnCheck
from margrave.schema.constraints import Allowed, Constraint, Depends, Impossible, Ordered
from margrave.schema.elapsed import Elapsed
from margrave.schema.given import check_schema_given, schema_of
from margrave.schema.learn import Learn
from margrave.schema.numeric import Date, Integer, Real, Timestamp
from margrave.schema.parts import Hour, Weekday
from margrave.schema.schema import Schema
from margrave.schema.sources import ColumnSource
from margrave.schema.validation import ConstraintCheck, Preflight

for public in (
    *(Boolean, Categorical, Coded, Date, Elapsed, Hour, Integer, Ordinal, Real, Timestamp, Weekday),
    *(Allowed, Depends, Impossible, Ordered, Learn, Schema),
):
    public.__init__.__name__ = public.__name__  # the name in the error of a wrong call
    public.__init__ = short_errors(public.__init__)  # type: ignore[method-assign]
del public

__all__ = [
    "Allowed",
    "Boolean",
    "Categorical",
    "Coded",
    "Column",
    "ColumnCheck",
    "ColumnSource",
    "Constraint",
    "ConstraintCheck",
    "Date",
    "Depends",
    "Elapsed",
    "Encoded",
    "Hour",
    "Impossible",
    "Integer",
    "Learn",
    "Ordered",
    "Ordinal",
    "Preflight",
    "Real",
    "Schema",
    "Timestamp",
    "Weekday",
    "check_schema_given",
    "schema_of",
]
