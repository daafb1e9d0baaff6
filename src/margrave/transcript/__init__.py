"""The transcript of a run: everything that left the gate."""

from margrave.transcript.entries import (
    Answer,
    Description,
    Entry,
    HalfSpaceSelection,
    Hindsight,
    Measurement,
    PublicReading,
    PublicTotal,
    QuerySelection,
    ScoreMeasurement,
    Selection,
)
from margrave.transcript.transcript import Transcript

__all__ = [
    "Answer",
    "Description",
    "Entry",
    "HalfSpaceSelection",
    "Hindsight",
    "Measurement",
    "PublicReading",
    "PublicTotal",
    "QuerySelection",
    "ScoreMeasurement",
    "Selection",
    "Transcript",
]
