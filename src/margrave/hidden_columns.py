"""Columns of which noise will hide every code: foreseen from the schema, the number of rows and the budget."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from margrave.domain import Domain
from margrave.mechanisms.common import PlannedMeasurement
from margrave.types import Attribute


@dataclass(frozen=True)
class HiddenColumn:
    """A column whose codes have fewer rows on average than noise hides.

    Args:
        column: Its name.
        codes: The number of its codes.
        total: The number of rows.
        hidden: The count up to which noise hides a code: three noise scales.

    Privacy:
        A function of public inputs. The schema does not state how the rows are spread over the codes, so a code that
        most rows have will show.
    """

    column: Attribute
    codes: int
    total: int
    hidden: float

    @property
    def words(self) -> str:
        """The column with the rows of its codes, and how many noise hides."""
        return (
            f"{self.column} ({self.codes:,} codes of {self.total / self.codes:,.3g} rows on average; noise hides up to"
            f" {self.hidden:,.0f})"
        )


def hidden_words(columns: Sequence[HiddenColumn]) -> list[str]:
    """Return a sentence on the columns, with a remedy; none without columns.

    >>> hidden_words([HiddenColumn("town", 60, 3000, 390.0)])[0].partition(". ")[0]
    'Most or all codes will be lost in the noise of town (60 codes of 50 rows on average; noise hides up to 390)'
    """
    max_columns = 12
    if not columns:
        return []
    named = [h.words for h in columns[:max_columns]]
    more = len(columns) - max_columns
    named += [f"{more:,} more columns"] * (more > 0)
    return [
        f"Most or all codes will be lost in the noise of {', '.join(named)}. Merge codes (fewer categories or bins),"
        " learn the column, leave it out, or raise the budget."
    ]


def hidden_columns(
    domain: Domain,
    steps: Sequence[PlannedMeasurement],
    rows: int,
    learned: Collection[Attribute] = (),
) -> tuple[HiddenColumn, ...]:
    """Return the columns of which noise will hide most or all codes.

    Args:
        domain: The columns with their numbers of codes.
        steps: The planned measurements.
        rows: The number of rows, which is public or a guess.
        learned: Columns that the run learns first. It merges their codes, so none of them is hidden.

    Returns:
        Columns of more than two codes whose mean count is below three noise scales of their least noisy marginal.
    """
    deviations = 3.0
    scales = _scales(domain, steps)
    return tuple(
        HiddenColumn(a, domain.size(a), rows, deviations * scales[a])
        for a in domain
        if a not in learned
        and a in scales
        and domain.size(a) > 2
        and rows < deviations * scales[a] * domain.size(a)
    )


def _scales(domain: Domain, steps: Sequence[PlannedMeasurement]) -> Mapping[Attribute, float]:
    """Return the noise scale of each column alone, where marginals of it alone are planned; else of any marginal."""
    alone: dict[Attribute, float] = {}
    for step in steps:
        for clique in (c for c in step.cliques if len(c) == 1):
            scale = step.scale / step.weight
            alone[clique[0]] = min(alone.get(clique[0], scale), scale)
    rest = min((s.scale / s.weight for s in steps), default=None)
    return alone if rest is None else {a: alone.get(a, rest) for a in domain}
