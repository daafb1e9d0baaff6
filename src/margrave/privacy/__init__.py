"""The gate between rows and everything else, with exact noise and private selections."""

from margrave.privacy.dependence import Dependence
from margrave.privacy.gate import Private
from margrave.privacy.half_space_gap import HalfSpaceGap
from margrave.privacy.noise import Gaussian, Randomness, SeededRandomness, SystemRandomness
from margrave.privacy.protection import protect
from margrave.privacy.relative_gap import RelativeGap
from margrave.privacy.scores import GridScores, Improvement, MarginalGap, QueryGap, Score

__all__ = [
    "Dependence",
    "Gaussian",
    "GridScores",
    "HalfSpaceGap",
    "Improvement",
    "MarginalGap",
    "Private",
    "QueryGap",
    "Randomness",
    "RelativeGap",
    "Score",
    "SeededRandomness",
    "SystemRandomness",
    "protect",
]
