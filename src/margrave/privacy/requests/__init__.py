"""The questions that the gate answers. Each kind is one class, which says all that there is to say about it."""

from margrave.privacy.requests.column import MeasureColumn
from margrave.privacy.requests.discover import Discover
from margrave.privacy.requests.measure import MeasureMarginals, MeasureQueries, MeasureScores
from margrave.privacy.requests.request import PublicKnowledge, Request, TrueCounts
from margrave.privacy.requests.select import SelectHalfSpace, SelectMarginal, SelectQueries

__all__ = [
    "Discover",
    "MeasureColumn",
    "MeasureMarginals",
    "MeasureQueries",
    "MeasureScores",
    "PublicKnowledge",
    "Request",
    "SelectHalfSpace",
    "SelectMarginal",
    "SelectQueries",
    "TrueCounts",
]
