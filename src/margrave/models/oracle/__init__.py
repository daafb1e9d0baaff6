"""The record that is worth most: what mechanisms that answer noisy choices with single records ask for."""

from margrave.models.oracle.objective import Objective
from margrave.models.oracle.search import Found, Oracle

__all__ = ["Found", "Objective", "Oracle"]
