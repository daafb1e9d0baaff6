"""A share of the gate's budget, for one of several runs."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from margrave.privacy import Private
from margrave.transcript import PublicTotal, Transcript


class GateShare:
    """The gate as one of several runs sees it: its share of the budget, and its own answers.

    Everything else is the gate's own, and the gate alone charges and answers. Runs follow each other: all that
    is asked while a share is in use belongs to its run.

    Args:
        private: The gate.
        rho: The share (zCDP).

    Privacy:
        None spent. The shares bind the runs; the gate's budget binds their sum.
    """

    def __init__(self, private: Private, rho: Fraction) -> None:
        self._private, self.rho = private, rho
        self._left_after = private.remaining - rho
        self._first = len(private.transcript)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._private, name)

    @property
    def remaining(self) -> Fraction:
        """The part of the share that is left, exactly."""
        return self._private.remaining - self._left_after

    @property
    def transcript(self) -> Transcript:
        """The public row count, if there is one, and the answers of this run."""
        entries = self._private.transcript.entries
        public = tuple(e for e in entries[: self._first] if isinstance(e, PublicTotal))
        return Transcript(public + entries[self._first :])
