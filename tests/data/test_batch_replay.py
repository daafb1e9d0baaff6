"""Loss replay of whole runs on a table that is counted in batches: its limit per person loses no more than is charged.

The key of the hashes that choose a person's rows is the same on both neighbors, as the secret of one table would be:
the choice of one person's rows then depends on no other person.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from margrave.accounting import AddRemovePerson, ReplacePerson, Unit
from margrave.data import BatchTable, batch_table
from margrave.data.row_hash import RowKey
from margrave.mechanisms import Independent, Mechanism
from margrave.schema import Schema
from margrave.testing import loss
from margrave.testing.loss import BUDGETS, DOMAIN, drawn_neighbor, drawn_owners, far_apart, ratios
from tests.support.conformance import CASES, remembering
from tests.support.tiny_table import UNITS


@pytest.fixture(autouse=True)
def in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """All tables of the replay are counted in batches of three rows, by one key."""
    key = RowKey()
    monkeypatch.setattr(batch_table, "RowKey", lambda: key)
    monkeypatch.setattr(loss, "of_owners", of_owners)


def of_owners(unit: Unit, owned: loss.Owned) -> BatchTable:
    """A table of the rows of each owner, as ``margrave.testing.loss`` makes one in memory."""
    by_person = isinstance(unit, AddRemovePerson | ReplacePerson)
    schema = Schema.coded(dict(zip(DOMAIN.attributes, DOMAIN.sizes, strict=True)))
    columns = {
        name: pa.array([row[i] for rows in owned for row in rows], pa.int64())
        for i, name in enumerate(DOMAIN.attributes)
    }
    if by_person:
        schema = Schema(schema.columns, person="who")
        # a neighbor holds the same lists of rows: a person has one name on both
        columns["who"] = pa.array([f"p{id(rows)}" for rows in owned for _ in rows])
    table = pa.table(columns)
    return BatchTable.read(
        lambda names: iter(table.select(list(names)).to_batches(max_chunksize=3)), schema
    )


def greatest(mechanism: Mechanism, unit: Unit, seed: int, recordings: int) -> float:
    """The greatest loss over its charge, on random neighbors and on the most distant ones."""
    rng = np.random.default_rng(seed)
    pairs = [far_apart(unit, rng)]
    for _ in range(recordings):
        owned = drawn_owners(unit, rng)
        pairs.append((owned, [drawn_neighbor(unit, owned, rng) for _ in range(3)]))
    found = ratios(remembering(mechanism), unit, pairs, BUDGETS[0], seed)
    return float(max(ratio for _, ratio in found))


@pytest.mark.filterwarnings("ignore::margrave.errors.PersonWarning")
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_no_neighbor_learns_more_than_was_charged(unit: Unit) -> None:
    assert 0.999 < greatest(Independent(), unit, 1, recordings=2) <= 1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::margrave.errors.PersonWarning")
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("case", ["aim pairs", "mst unmerged", "forests", "mwem-pgm pairs"])
def test_no_neighbor_learns_more_by_mechanisms_that_select(case: str, unit: Unit) -> None:
    assert greatest(CASES[case](DOMAIN), unit, 2, recordings=20) <= 1


def test_the_check_sees_a_key_that_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a key of its own, each table keeps other rows of the persons that both have."""
    monkeypatch.setattr(batch_table, "RowKey", RowKey)
    owned = [[(0, 0, 0), (1, 1, 1)] for _ in range(40)]
    pairs = [(owned, [[*owned, [(0, 0, 0)]]] * 8)]
    found = ratios(remembering(Independent()), AddRemovePerson(1), pairs, BUDGETS[0], 0)
    assert max(ratio for _, ratio in found) > 1
