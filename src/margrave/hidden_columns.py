"""Columns of which noise will hide every code: foreseen from the schema, the number of rows and the budget."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from margrave._card import listed
from margrave.column_noise import column_noises
from margrave.domain import Domain
from margrave.mechanisms.common import PlannedMeasurement
from margrave.schema.remedies import learn_remedy
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


def hidden_words(columns: Sequence[HiddenColumn], wide: Collection[Attribute] = ()) -> list[str]:
    """Return sentences on the columns, with a remedy for each; none without columns.

    Args:
        columns: The columns.
        wide: The columns whose bins are also too wide for a reliable mean, so that fewer bins do not help.

    >>> hidden_words([HiddenColumn("town", 60, 3000, 390.0)])[0].partition(". ")[0]
    'Most or all codes will be lost in the noise of town (60 codes of 50 rows on average; noise hides up to 390)'
    """
    merged = [h.words for h in columns if h.column not in wide]
    learned = [h.words for h in columns if h.column in wide]
    found, lost = [], "Most or all codes will be lost in the noise of"
    if merged:
        found.append(
            f"{lost} {listed(merged, 12)}. Merge codes (fewer categories or bins), learn the column, leave it out, or"
            " raise the budget."
        )
    if learned:
        found.append(
            f"{lost} {listed(learned, 12)}. Fewer bins would be too wide for a reliable mean. In the schema,"
            f" {learn_remedy()}. Or leave the column out, or raise the budget."
        )
    return found


def hidden_columns(
    domain: Domain,
    steps: Sequence[PlannedMeasurement],
    rows: int,
    learned: Collection[Attribute] = (),
) -> tuple[HiddenColumn, ...]:
    """Return the columns of which noise will hide most or all codes.

    Args:
        domain: The columns, with as many codes as columns to learn are likely to have.
        steps: The planned measurements.
        rows: The number of rows, which is public or a guess.
        learned: Columns that the run learns first. It merges their codes, so none of them is hidden.

    Returns:
        Columns of more than two codes whose mean count is below three noise scales by all measurements together.
    """
    deviations = 3.0
    noises = column_noises(domain, steps)
    return tuple(
        HiddenColumn(a, domain.size(a), rows, deviations * noise.scale)
        for a, noise in noises.items()
        if a not in learned
        and domain.size(a) > 2
        and rows < deviations * noise.scale * domain.size(a)
    )
