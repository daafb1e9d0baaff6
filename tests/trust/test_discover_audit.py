"""An audit of discovery: how often a value that only one unit has is named, in many runs.

Delta is large here, so that the chance can be seen. False-alarm rate: one in a million for each bound.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from margrave.accounting import AddRemovePerson, AddRemoveRow, Unit
from margrave.accounting.thresholds import chance_of_release
from margrave.data import read_table
from margrave.data.raw_columns import RawColumns
from margrave.privacy import SystemRandomness
from margrave.privacy.requests import Discover, PublicKnowledge
from margrave.schema import Learn, Schema
from tests.support.audit import ALARM, largest_share

RUNS = 20_000
RHO, DELTA = Fraction(1, 40), Fraction(1, 20)
SCHEMA = Schema([Learn("town", "categorical")], person="who")


def splits(rows: int) -> list[list[int]]:
    return [[rows]] if rows == 1 else [[rows], [1] * rows, [2] * (rows // 2)]


def released(unit: Unit, split: list[int], source: Any = None, less: int = 0) -> int:
    """Return in how many of the runs a value of the last person is named.

    ``less`` lowers the threshold, to plant a fault.
    """
    own = [f"own {i}" for i, rows in enumerate(split) for _ in range(rows)]
    frame = pa.table({"town": ["Bern"] * 9 + own, "who": [*range(1, 10), *[99] * len(own)]})
    table = read_table(frame, SCHEMA).bounded(getattr(unit, "max_rows", 1))
    assert isinstance(table.raw, RawColumns)
    values, counts = table.raw.value_counts("town")
    known = PublicKnowledge(SCHEMA.domain, unit, (), SCHEMA.to_learn)
    request = Discover.of(known, "town", RHO, DELTA, ["Bern"])
    object.__setattr__(request, "threshold", request.threshold - less)
    source = source or SystemRandomness()
    truth = {Discover.counts_key: counts, Discover.values_key: values}
    found = 0
    for _ in range(RUNS):
        (entry,) = request.entries(request.draw(truth, source))
        assert {v[:3] for v in entry.discovered} <= {"own"}
        found += bool(entry.discovered)
    return found


@cache
def audited(unit: Unit, split: tuple[int, ...]) -> int:
    """Return the hits of a sound request, which several tests compare with what they know."""
    return released(unit, list(split))


def smallest_share(hits: int) -> float:
    return 1 - largest_share(RUNS - hits, RUNS, ALARM)


@pytest.mark.parametrize(
    "unit",
    [AddRemoveRow(), pytest.param(AddRemovePerson(4), marks=pytest.mark.slow)],
    ids=str,
)
def test_values_of_one_unit_are_named_as_seldom_as_promised(unit: Unit) -> None:
    """And the worst split comes near the promise: the threshold is not far too high."""
    hits = [audited(unit, tuple(split)) for split in splits(getattr(unit, "max_rows", 1))]
    assert max(smallest_share(h) for h in hits) <= float(DELTA)
    assert largest_share(max(hits), RUNS, ALARM) > 0.8 * float(DELTA)


@pytest.mark.slow
def test_the_audit_sees_a_threshold_that_is_too_low() -> None:
    unit = AddRemovePerson(4)
    less = 4
    assert smallest_share(released(unit, [1, 1, 1, 1], less=less)) > float(DELTA)


def test_the_chance_of_one_split_is_the_exact_one() -> None:
    hits = audited(AddRemoveRow(), (1,))
    known = PublicKnowledge(SCHEMA.domain, AddRemoveRow(), (), SCHEMA.to_learn)
    request = Discover.of(known, "town", RHO, DELTA, ())
    exact = float(chance_of_release(AddRemoveRow(), request.price.scale, request.threshold))
    assert smallest_share(hits) <= exact <= largest_share(hits, RUNS, ALARM)
    assert np.isclose(exact, float(DELTA), rtol=0.25)
