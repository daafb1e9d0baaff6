"""Rare codes that were merged: no marginal of several columns separates them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from margrave.errors import InputError
from margrave.inference.caveats.context import Context
from margrave.inference.columns import first_few
from margrave.inference.estimate import Caveat
from margrave.inference.fitted import Basis
from margrave.inference.probe import Names
from margrave.release.conditions import Condition, codes_of, cut_of
from margrave.release.draws import MERGED, SHARED, Draws
from margrave.release.merged_codes import loses_relation
from margrave.schema import Categorical, Ordinal, Schema
from margrave.schema.constraint_values import NUMERIC_KINDS
from margrave.types import Attribute, Clique


@dataclass(frozen=True, eq=False)
class MergedColumn:
    """The merged codes of one column that an analysis joins with others.

    Attributes:
        sets: Sets of codes that share one count.
        always: Every estimate separates them, by a condition or a counted value.
        by_value: An estimate that joins the column loses relation by them.
        moved: Estimates of a function that change if merged codes change places.
    """

    schema: Schema
    column: Attribute
    sets: tuple[tuple[int, ...], ...]
    always: bool
    by_value: bool
    moved: Names = frozenset()

    def separates(self, condition: Condition) -> bool:
        """Return whether a condition selects a part of a set of merged codes."""
        try:
            return self._splits(codes_of(self.schema, self.column, condition))
        except InputError:  # a level that a transformation made: assume the worst
            return self._splits(self.sets[0][:1])

    def _splits(self, codes: Sequence[int]) -> bool:
        return any(0 < len(set(codes) & set(s)) < len(s) for s in self.sets)

    def separated_by(self, context: Context, name: str) -> bool:
        """Return whether an estimate depends on one of some merged codes apart from the others."""
        term = context.term(name)
        levels = term.levels.get(self.column, ())
        if self.always or levels is None or name in self.moved:
            return True
        if self.by_value and (not levels or name == "Intercept"):
            return self.column in (*term.joins, *term.pivots)
        reference = context.release.commonest.get(self.column) if context.release else None
        return any(
            self.separates(v or reference) if v or reference else self._splits((0,)) for v in levels
        )

    @property
    def words(self) -> str:
        """The column, with the first of its merged codes."""
        labels = self.schema.column(self.column).labels()
        sets = (f"{{{first_few(labels[c] for c in codes)}}}" for codes in self.sets)
        return f"{self.column} {', '.join(sets)}"


def merged(context: Context) -> tuple[MergedColumn, ...]:
    """Return the merged codes of the analysis's columns; of one column alone all were counted."""
    release, basis = context.release, context.basis
    if release is None or basis is None or len(set(basis.columns)) < 2:
        return ()
    found = []
    for column in (c for c in basis.columns if c in release.merged):
        codes = MergedColumn(release.schema, column, release.merged[column], False, False)
        conditions = dict(basis.conditions)
        always = column in conditions and codes.separates(conditions[column])
        by_value = basis.kind != "function" and column in valued(basis, release.schema)
        lossy = by_value and _loses_relation(release, column)
        moved = _moved(context, column, codes.sets) if basis.kind == "function" else frozenset()
        found.append(MergedColumn(release.schema, column, codes.sets, always, lossy, moved))
    return tuple(found)


def _moved(context: Context, name: Attribute, sets: Sequence[Sequence[int]]) -> Names:
    """Return the estimates that change if the categories of each set change places in the first data set."""
    assert context.release is not None
    column, trial = context.release.schema.column(name), context.trial
    if not isinstance(column, Categorical | Ordinal) or name not in trial.table.column_names:
        return frozenset()
    labels, places = column.labels(), dict[str, str]()
    for codes in sets:
        own = [labels[c] for c in codes if c < column.size - column.missing]
        places |= dict(zip(own, [*own[1:], *own[:1]], strict=True))
    values = trial.table[name]
    moved = pa.array([places.get(v, v) for v in values.to_pylist()], pa.string()).cast(values.type)
    table = trial.table.set_column(trial.table.column_names.index(name), name, moved)
    return trial.changed(partial(trial.of, table))


def valued(basis: Basis, schema: Schema) -> tuple[Attribute, ...]:
    """Return the columns taken by value, and those with a condition finer than their bins."""
    finer = (a for a, wanted in basis.conditions if cut_of(schema, a, wanted) is not None)
    return tuple(dict.fromkeys([*basis.by_value, *finer]))


def by_merged_codes(context: Context) -> dict[str, tuple[Clique, ...]]:
    """Return, for each estimate, the columns of which it separates merged codes, with their joins."""
    return {
        n: tuple(
            tuple(dict.fromkeys([*context.term(n).joins, m.column]))
            for m in context.once(merged)
            if m.separated_by(context, n)
        )
        for n in context.names
    }


def check(context: Context) -> Iterator[Caveat]:
    """Yield which codes were merged, and which estimates separate them."""
    found = {
        m: tuple(n for n in context.names if m.separated_by(context, n))
        for m in context.once(merged)
    }
    apart = {m: names for m, names in found.items() if names}
    if apart:
        every = tuple(n for n in context.names if any(n in names for names in apart.values()))
        each = "; ".join(f"by {m.column}, {context.about(n)}" for m, n in apart.items())
        about = (
            f"The result for {context.about(every)} is an assumption, not evidence."
            if len(set(apart.values())) == 1
            else f"An assumption, not evidence, are the results for these: {each}."
        )
        text = f"{_merged_words(apart)} {about}"
        yield Caveat("merged codes", every, True, text)
    if whole := [m for m in found if m not in apart]:
        yield Caveat("merged codes", (), False, _merged_words(whole))


def _merged_words(columns: Iterable[MergedColumn]) -> str:
    return f"{MERGED}: {', '.join(m.words for m in columns)}. {SHARED}"


def _loses_relation(draws: Draws, name: Attribute) -> bool:
    """Return whether the merged codes of a column matter to a slope on it, by the first distribution."""
    column = draws.schema.column(name)
    return isinstance(column, NUMERIC_KINDS) and loses_relation(
        column, draws.merged[name], next(draws.models()).project((name,)).values
    )
