"""The columns that a run takes from a schema: what is public before it, and nothing that describes rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from margrave.schema.column import Column
from margrave.schema.constraint_values import NUMERIC_KINDS


def columns_for_run(columns: Iterable[Column]) -> tuple[Column, ...]:
    """Return columns without the distributions that another run learned.

    Bounds, bins, categories and their sources stay. A learned mean and the weights within bins describe the rows of
    the release that measured them. A run that learns a column states its own.

    Args:
        columns: The columns of a schema, perhaps of a release.

    Example:
        >>> from margrave.schema.numeric import Real
        >>> learned = Real("price", 0, 9, bins=1, leaf_edges=[0, 3, 9], leaf_weights=[0.8, 0.2], mean=[2, 1, 4])
        >>> columns_for_run([learned]) == (Real("price", 0, 9, bins=1),)
        True
    """
    return tuple(
        replace(c, leaf_edges=(), leaf_weights=(), mean=()) if isinstance(c, NUMERIC_KINDS) else c
        for c in columns
    )
