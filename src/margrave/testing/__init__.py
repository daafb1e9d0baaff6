"""Checks for mechanisms, fits, scores and tables of your own.

Each raises an `AssertionError` with one sentence at the first check that fails.
"""

from margrave.testing.fit import check_fit
from margrave.testing.mechanism import check_mechanism, mechanism_checks
from margrave.testing.score import check_score
from margrave.testing.table import check_table

__all__ = ["check_fit", "check_mechanism", "check_score", "check_table", "mechanism_checks"]
