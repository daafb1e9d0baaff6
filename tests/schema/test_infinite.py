"""Infinite values are no numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from margrave.schema import Real


def test_infinite_floats_are_empty_and_infinite_texts_unreadable() -> None:
    column = Real("x", 0.0, 10.0, bins=2, missing=True)
    floats = column.encode(pa.array([1.0, np.inf, -np.inf, np.nan, 9.0]))
    assert floats.codes.tolist() == [0, 2, 2, 2, 1]
    assert floats.empty.tolist() == [False, True, True, True, False]
    texts = column.encode(pa.array(["1", "inf", "-Infinity", "1e999", "9" * 400, "9"]))
    assert texts.codes.tolist() == [0, 2, 2, 2, 2, 1]
    assert not texts.empty.any()
    assert texts.unreadable.sum() == 4
