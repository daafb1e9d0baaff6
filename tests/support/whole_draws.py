"""Draws whose tables of some columns are these columns of the whole tables, as a file of them would hold."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields

import pyarrow as pa

from margrave.release.draws import Draws


class WholeDraws(Draws):
    """Draws of all columns each time. Analyses of these use the same values whichever columns they name."""

    @staticmethod
    def of(drawn: Draws) -> WholeDraws:
        """Return draws of the same distributions."""
        return WholeDraws(**{f.name: getattr(drawn, f.name) for f in fields(drawn)})

    def table(self, i: int, columns: Collection[str] | None = None) -> pa.Table:
        """Return the i-th table, or its columns of these names."""
        whole = super().table(i)
        names = [c for c in whole.column_names if columns is None or c in columns]
        return whole.select(names)
