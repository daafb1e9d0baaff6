"""`check_table`: a table's counts, compared with the plainest ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from margrave.data import Table
from margrave.marginal import closure
from margrave.schema import Schema
from margrave.testing.tables import SHAPES, Row, TinyTable, require, shaped
from margrave.types import Clique, IntArray

MakeTable = Callable[[Schema, list[Row], list[int]], Table]


def check_table(make_table: MakeTable, *, rows_per_person: int = 2) -> None:
    """Check that a table counts right, every time, before and after the rows of a person are limited.

    Args:
        make_table: Returns the table of a schema, of its rows as codes in the order of
            ``schema.domain``, and of the person ID of each row. Every code is a value of the schema
            too, so a table that encodes values itself can be handed them as they are.
        rows_per_person: The limit that is tried, at least 1.

    Raises:
        AssertionError: With one sentence, at the first check that fails.

    Privacy:
        None spent. The rows are made up.

    Example:
        >>> from margrave.testing.tables import TinyTable
        >>> check_table(TinyTable)
    """
    for shape in SHAPES:
        plain = shaped(shape)
        persons, where = [i // 3 for i in range(len(plain.data))], f"on the table {shape!r}"
        table = make_table(plain.schema, plain.data, persons)
        require(table.rows() == len(plain.data), f"It has {table.rows()} rows {where}.")
        _check_counts(table, plain, where)
        _check_limit(table, persons, rows_per_person, where)
        _check_counts(table, plain, f"{where} after bounded()")
    _check_who_is_limited(make_table, rows_per_person)


def _check_counts(table: Table, plain: TinyTable, where: str) -> None:
    cliques = list(closure([plain.domain.attributes[:3]]))
    require(table.domain == plain.domain, f"Its domain is not its schema's {where}.")
    expected = plain.count(cliques)
    first = table.count(cliques)
    for clique in cliques:
        counts = first[clique]
        require(
            counts.dtype == np.int64 and np.array_equal(counts, expected[clique]),
            f"It counts {clique} wrong {where}, or not in 64-bit integers.",
        )
    for counts in first.values():
        counts += 1  # these arrays are the caller's
    alone = {c: table.count([c])[c] for c in cliques}
    require(_equal(alone, expected), f"It counts other rows the second time {where}.")


def _check_limit(table: Table, persons: list[int], rows_per_person: int, where: str) -> None:
    limited = table.bounded(rows_per_person)
    kept, right = limited.rows(), sum(_at_most(persons, rows_per_person).values())
    require(kept == right, f"bounded({rows_per_person}) keeps {kept} rows, not {right}, {where}.")
    cliques = list(closure([table.domain.attributes[:3]]))
    whole, counts = table.count(cliques), limited.count(cliques)
    require(
        all((counts[c] <= whole[c]).all() and counts[c].sum() == right for c in cliques),
        f"bounded({rows_per_person}) counts rows that the table does not have {where}.",
    )
    require(
        _equal(limited.count(cliques), counts),
        f"bounded({rows_per_person}) keeps other rows each time that it is counted {where}.",
    )


def _check_who_is_limited(make_table: MakeTable, rows_per_person: int) -> None:
    persons = [p for p in range(8) for _ in range(p + 1)]
    schema = replace(Schema.coded({"person": 8, "other": 3}), person="who")
    table = make_table(schema, [(p, i % 3) for i, p in enumerate(persons)], persons)
    counts = table.bounded(rows_per_person).count([("person",)])["person",]
    right = list(_at_most(persons, rows_per_person).values())
    require(
        counts.tolist() == right,
        f"bounded({rows_per_person}) keeps {counts.tolist()} rows of persons who should have {right}.",
    )


def _at_most(persons: list[int], rows_per_person: int) -> dict[int, int]:
    return {p: min(persons.count(p), rows_per_person) for p in dict.fromkeys(persons)}


def _equal(one: Mapping[Clique, IntArray], other: Mapping[Clique, IntArray]) -> bool:
    return all(np.array_equal(one[c], other[c]) for c in other)
