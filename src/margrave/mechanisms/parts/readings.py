"""Marginals that are read from a public table, beside measured ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from margrave.accounting import Unit
from margrave.domain import Domain
from margrave.marginal import TOTAL
from margrave.mechanisms.common import Mechanism
from margrave.mechanisms.parts.public import still_private
from margrave.models.entries import EntryKind
from margrave.public_table import PublicTable
from margrave.transcript import Entry, Measurement, PublicReading, Transcript
from margrave.types import Clique, FloatArray


class ReadsPublic(Mechanism):
    """A mechanism that reads marginals from its public table beside those that it measures."""

    def reads(self, domain: Domain) -> list[Clique]:
        """Return the downward closure of the workload, and a column to count all records in."""
        closure = self.workload_on(domain).closure()
        return list(dict.fromkeys([*closure, TOTAL.counting_clique(domain)]))

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise `InputError` if the run cannot succeed. Reads no data."""
        closure = self.workload_on(domain).closure()
        alone = [r for r in closure if len(r) == 1]
        self.check_fit(domain, alone, adaptive=True, kinds={EntryKind.READING})
        if self.public is not None:
            still_private(self.public, closure, unit)


def read(clique: Clique, values: FloatArray, scale: float, public: PublicTable) -> Transcript:
    """Return a reading that every cell is trusted alike in, as if it had noise of this scale."""
    return Transcript((PublicReading(clique, values, np.full(values.shape, scale), public.sha256),))


def trust_alike(transcript: Transcript) -> Transcript:
    """Return a transcript whose marginals all have the least scale of any."""
    least = min(e.scale for e in transcript.evidence)
    return Transcript(tuple(_trusted(e, least) for e in transcript))


def _trusted(entry: Entry, scale: float) -> Entry:
    match entry:
        case Measurement():
            return replace(entry, scale=scale)
        case PublicReading():
            return replace(entry, scales=np.full(entry.values.shape, scale))
        case _:
            return entry
