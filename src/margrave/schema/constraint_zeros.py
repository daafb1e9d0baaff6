"""Structural zeros of all constraints of a schema, and of those that name columns to learn."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from margrave.errors import SchemaError, did_you_mean
from margrave.schema import validators
from margrave.schema.column import Column
from margrave.schema.constraints import Columns, Constraint, full_table, name_of
from margrave.schema.learn import Learn
from margrave.structural_zeros import Size, StructuralZeros, any_possible

#: Cells of the tables of all constraints of a schema together: 256 MiB.
#: Combinations of codes of the largest constraint.
MAX_CONSTRAINT_CELLS = 1 << 28

Declared = Sequence[tuple[Constraint, Sequence[StructuralZeros]]]


def declared_of(
    constraints: Sequence[Constraint],
    columns: Columns,
    learned: Collection[str] = (),
    *,
    from_files: bool = False,
) -> tuple[tuple[Constraint, tuple[StructuralZeros, ...]], ...]:
    """Return each constraint with the combinations that it rules out. SchemaError if their tables are too large.

    ``from_files``: categories may come from a file, so no error proposes one.
    """
    found: list[tuple[Constraint, tuple[StructuralZeros, ...]]] = []
    cells = 0
    for constraint in constraints:
        try:
            zeros = zeros_of(constraint, columns, learned)
        except SchemaError as error:
            meant = "" if from_files else _meant(constraint, columns, error.message)
            raise SchemaError(error.message, remedy=f"{meant}{error.remedy}") from None
        cells += sum(int(z.possible.size) for z in zeros)
        if cells > MAX_CONSTRAINT_CELLS:
            raise SchemaError(
                f"The tables of the first {len(found) + 1:,} constraints have more than"
                f" {MAX_CONSTRAINT_CELLS:,} cells.",
                remedy="Join constraints on the same columns into one, or give their columns fewer codes.",
            )
        found.append((constraint, zeros))
    return tuple(found)


def _meant(constraint: Constraint, columns: Columns, message: str) -> str:
    """Return a question that proposes the category most like a value that a message quotes."""
    where: Mapping[str, Sequence[Any]] = getattr(constraint, "where", {})
    for name, values in where.items():
        categories = getattr(columns.get(name), "categories", ())
        for value in values:
            if value not in categories and f"names {value!r}, which" in message:
                return did_you_mean(value, categories)
    return ""


def zeros_of(
    constraint: Constraint, columns: Columns, learned: Collection[str] = ()
) -> tuple[StructuralZeros, ...]:
    """Return the structural zeros of a constraint. Raise ``SchemaError`` for unknown columns or
    values.

    If a column is to be learned, they join the columns and rule out nothing yet.
    """
    for name in constraint.columns:
        if name not in columns:
            raise SchemaError(
                f"A constraint names column {name!r}, which the schema does not have.",
                remedy=f"The columns are: {', '.join(columns)}.",
            )
    own = {name: columns[name] for name in constraint.columns}
    to_learn = [name for name, column in own.items() if isinstance(column, Learn)]
    if to_learn and constraint.violating == "refuse":
        raise validators.column_error(
            to_learn[0],
            f"it is to be learned, and the constraint {name_of(constraint)} refuses rows: they cannot be judged yet.",
            'Write violating = "keep", or declare the column.',
        )
    stand_ins = {n: c.stand_in if isinstance(c, Learn) else c for n, c in own.items()}
    zeros = tuple(constraint.zeros(stand_ins, {*learned, *to_learn}))
    if not to_learn:
        return zeros
    return tuple(StructuralZeros(z.clique, full_table(z.clique, own)) for z in zeros)


def constraints_on_learned(
    constraints: Sequence[Constraint], columns: Columns, learned: Collection[str]
) -> tuple[Constraint, ...]:
    """Return the constraints that hold on learned columns.

    Those on a column that was left out are dropped. So are those on learned columns with which, and
    with the constraints before them, no row without missing values in their columns is possible.
    """
    left = [c for c in constraints if all(name in columns for name in c.columns)]
    zeros: list[StructuralZeros] = []
    dropped = []
    for constraint in sorted(left, key=lambda c: any(name in learned for name in c.columns)):
        own = zeros_of(constraint, columns, learned)
        if any(name in learned for name in constraint.columns):
            present = [_present(columns[name]) for name in constraint.columns]
            if not any_possible([*zeros, *own, *present], lambda a: columns[a].size):
                dropped.append(constraint)
                continue
        zeros += own
    return tuple(c for c in left if not any(c is d for d in dropped))


def _present(column: Column) -> StructuralZeros:
    possible = np.ones(column.size, dtype=np.bool_)
    if column.missing:
        possible[-1] = False
    return StructuralZeros((column.name,), possible)


def check_possible(declared: Declared, size: Size) -> None:
    """Refuse constraints that no row can satisfy, and name the one that is too many."""
    zeros: list[StructuralZeros] = []
    for constraint, own in declared:
        if not all(z.possible.any() for z in own):
            raise SchemaError(
                f"The constraint {name_of(constraint)} leaves nothing possible.",
                remedy="Loosen it.",
            )
        zeros += own
    found = any_possible(zeros, size)
    if found is None:
        raise SchemaError(
            "The constraints hang together in tables too large to hold.",
            remedy="Give their columns fewer bins or categories, or leave constraints out.",
        )
    if found:
        return
    for i, (constraint, _) in enumerate(declared):
        if not any_possible([z for _, own in declared[: i + 1] for z in own], size):
            raise SchemaError(
                f"The constraint {name_of(constraint)} and those before it leave no row possible.",
                remedy="Loosen one of them.",
            )
