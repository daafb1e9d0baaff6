"""Codes that were merged because they are rare: no marginal of several columns tells them apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from margrave.errors import InputError
from margrave.inference.formulas import outcome_column
from margrave.inference.kinds import some
from margrave.inference.models import Logistic, Proportion
from margrave.inference.terms import Levels, levels_in
from margrave.inference.totals import Count
from margrave.release.draws import MERGED, SHARED, Draws, merged_words
from margrave.release.evidence import Condition, codes_of
from margrave.schema import Schema
from margrave.schema.elements import LINES
from margrave.typing import Attribute, Clique

Sets = tuple[tuple[int, ...], ...]

LOST = 0.05
"""A column taken by value is marked where this share of its variance lies within sets of merged codes: what a slope on
it is too small by, if they tell something."""


@dataclass(frozen=True, eq=False)
class Merged:
    """The merged codes of the columns that an analysis joins with others.

    ``formula`` is the analysis's, where it has one, and ``singles`` the group that an estimate is of; ``everywhere``
    are the columns of which every estimate takes merged codes apart, ``by_value`` those of which an estimate does that
    joins them.
    """

    schema: Schema | None = None
    sets: Mapping[Attribute, Sets] = field(default_factory=dict)
    formula: str = ""
    everywhere: frozenset[Attribute] = frozenset()
    by_value: frozenset[Attribute] = frozenset()
    joins: Any = None
    singles: Any = None

    @staticmethod
    def of(fit: Any, draws: Draws) -> Merged:
        """Of a fit that knows its columns."""
        sets = {a: draws.merged[a] for a in dict.fromkeys(fit.columns) if a in draws.merged}
        if not sets or len(set(fit.columns)) < 2:  # of one column alone every code was counted
            return NONE_MERGED
        valued = getattr(fit, "by_value", lambda _schema: ())(draws.schema)
        singled = _singled(fit)
        return Merged(
            draws.schema,
            sets,
            getattr(fit, "formula", ""),
            frozenset(a for a in sets if a in singled and _torn(sets[a], codes_of(draws.schema, a, singled[a]))),
            frozenset(a for a in sets if a in valued and _lost(draws, a) > LOST),
            getattr(fit, "joins", lambda _name: ()),
            getattr(fit, "singles", lambda _name: {}),
        )

    def under(self, names: Sequence[str]) -> dict[str, tuple[Clique, ...]]:
        """By estimate, the columns whose merged codes it takes apart, each with what it joins them with."""
        return {n: tuple(self._joined(n, a) for a in self.sets if self._apart(n, a, names)) for n in names}

    def _joined(self, name: str, column: Attribute) -> Clique:
        return tuple(dict.fromkeys([*self.joins(name), column]))

    def _apart(self, name: str, column: Attribute, names: Sequence[str]) -> bool:
        """Whether an estimate is about one of some codes that were merged."""
        if column in self.everywhere:
            return True
        if column in (single := self.singles(name)):
            return _torn(self.sets[column], self._codes(column, single[column]))
        if column in self.by_value and (name == "Intercept" or column in self.joins(name)):
            return True
        if name == "Intercept":  # the estimate at the reference of every category
            return any(self._is_torn(column, level.reference) for level in self._levels(column, names))
        return any(
            level.every or self._is_torn(column, level.own) or self._is_torn(column, level.reference)
            for level in self._levels(column, [name])
        )

    def _levels(self, column: Attribute, names: Sequence[str]) -> list[Levels]:
        found = [levels_in(self.formula, n).get(column) for n in names if self.formula and n != "Intercept"]
        return [level for level in found if level is not None]

    def _is_torn(self, column: Attribute, level: str | None) -> bool:
        """Whether a level of a category is one of several merged codes; "" is the first."""
        return level is not None and _torn(self.sets[column], self._codes(column, level) if level else (0,))

    def _codes(self, column: Attribute, value: Condition) -> tuple[int, ...]:
        """The codes of a value; of one that is none of the column's, as a transformation has, one that was merged."""
        assert self.schema is not None
        try:
            return codes_of(self.schema, column, value)
        except InputError:
            return self.sets[column][0][:1]

    def decisive(self, names: Sequence[str]) -> list[str]:
        """Which estimates rest on codes that nothing tells apart."""
        told = []
        for a in self.sets:
            about = [n for n in names if self._apart(n, a, names)]
            if about:
                told.append(f"{self._words(a)} What this says of {some(about)} is an assumption, not evidence.")
        return told

    def notes(self, names: Sequence[str]) -> list[str]:
        """Merged codes that no estimate is known to take apart."""
        return [self._words(a) for a in self.sets if not any(self._apart(n, a, names) for n in names)]

    def _words(self, column: Attribute) -> str:
        assert self.schema is not None
        return f"{MERGED}: {merged_words(self.schema, {column: self.sets[column]})}. {SHARED}"


NONE_MERGED = Merged()


def _torn(sets: Sets, codes: Sequence[int]) -> bool:
    """Whether some codes are a part of a set of merged ones, and not the whole."""
    return any(0 < len(set(s) & set(codes)) < len(s) for s in sets)


def _singled(fit: Any) -> dict[Attribute, Condition]:
    """What an analysis holds columns to: in ``where``, and as the value whose share it is of."""
    held, model = dict(getattr(fit, "held", {})), getattr(fit, "model", fit)
    if isinstance(model, Proportion | Count):
        held[model.column] = model.value
    if isinstance(fit, Logistic) and fit.success is not None:
        held[outcome_column(fit.formula) or ""] = fit.success
    return held


def _lost(draws: Draws, column: Attribute) -> float:
    """The share of a column's variance that lies within sets of merged codes, by the first of the distributions."""
    line = draws.schema.column(column)
    if not isinstance(line, LINES):
        return 0.0
    counts = next(draws.models()).project((column,)).values[: line.cells.count]
    middle = np.mean(line.cells.extremes, axis=0)
    kinds = np.arange(len(counts))
    for codes in draws.merged[column]:
        kinds[[c for c in codes if c < len(counts)]] = codes[0]
    within = sum(_scatter(counts[kinds == k], middle[kinds == k]) for k in np.unique(kinds))
    whole = _scatter(counts, middle)
    return float(within / whole) if whole > 0 else 0.0


def _scatter(counts: Any, values: Any) -> float:
    n = counts.sum()
    return float(counts @ (values - counts @ values / n) ** 2) if n > 0 else 0.0
