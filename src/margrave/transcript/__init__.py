"""The transcript of a run: everything that left the gate."""

from margrave.transcript.column_answer import ColumnAnswer
from margrave.transcript.description import Description
from margrave.transcript.discovery import Discovery
from margrave.transcript.entries import (
    Answer,
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
    "ColumnAnswer",
    "Description",
    "Discovery",
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
