"""The record that is worth most: what mechanisms that answer noisy choices with single records ask for."""

from margrave.models.best_response.objective import Objective
from margrave.models.best_response.search import BestRecords, BestResponse

__all__ = ["BestRecords", "Objective", "BestResponse"]
