"""Sums and counts in functions of one's own: they grow with the data sets, whatever number of real records there is."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from margrave.inference.fits import Fitted, read_fit
from margrave.inference.kinds import some
from margrave.inference.sources import ROWS, Draws, Frames, total_of

_SAME = 1e-9


def notes_on_sums(fit: Callable[[pd.DataFrame], Any], first: Fitted, draws: Draws, frames: Frames) -> list[str]:
    """What is told of estimates that are twice as large on the first data set's records taken twice."""
    rows, total = draws.rows, draws.total
    if total is None:
        return []
    uncertain = len({total_of(draws, i) for i in range(min(len(draws), 3))}) > 1
    if not (uncertain or round(total) != rows):
        return []
    sums = _growing(fit, first, draws, frames)
    if not sums:
        return []
    told = f"{some(sums)}: sums or counts, twice as large on twice the records."
    if round(total) != rows:
        told += f" They are of the {rows:,} records of a data set, and there are about {total:,.0f} real ones."
    if uncertain:
        told += " How uncertain the number of real records is, the interval does not know."
    return [f"{told} Use Total and Count, or return means times frame.attrs['total']."]


def _growing(fit: Callable[[pd.DataFrame], Any], first: Fitted, draws: Draws, frames: Frames) -> list[str]:
    frame = frames.draw(draws, 0)
    twice = pd.concat([frame, frame], ignore_index=True)
    twice.attrs = {**frame.attrs, ROWS: 2 * len(frame)}
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = read_fit(fit(twice))
    except Exception:  # a fit may fail on made-up records, and nothing is known then
        return []
    of = dict(zip(found.names, found.estimates.tolist(), strict=True))
    before = dict(zip(first.names, first.estimates.tolist(), strict=True))
    return [n for n, q in before.items() if q and n in of and abs(of[n] - 2.0 * q) <= _SAME * abs(q)]
