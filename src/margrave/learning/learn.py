"""Learn all columns that a schema leaves open, before the mechanism runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from margrave.learning.categories import categories_of
from margrave.learning.noisy_column import NoisyColumn
from margrave.learning.number import LearnedNumber, learn_number
from margrave.learning.shares import LearningShares, column_share
from margrave.schema.categorical import Categorical
from margrave.schema.column import Column
from margrave.schema.schema import Schema
from margrave.transcript import Discovery


@dataclass(frozen=True)
class Learning:
    """Learned columns.

    Args:
        numbers: The learned numbers, dates and times by column.
        categories: The learned columns of categories.
        unlearnable: The columns whose values the noise hides.
    """

    numbers: dict[str, LearnedNumber]
    categories: dict[str, Categorical]
    unlearnable: tuple[str, ...]

    def declared(self, schema: Schema, joint_scale: float) -> Schema:
        """Return the schema with learned columns declared and unlearnable ones ignored.

        Args:
            schema: The schema whose columns were learned.
            joint_scale: The noise scale of the mechanism's first measurements, in records.
        """
        learned: dict[str, Column] = {**self.categories}
        learned |= {name: number.declared(joint_scale) for name, number in self.numbers.items()}
        return schema.with_learned(learned.values())


def learn_schema(
    schema: Schema,
    noisy: Callable[[str], NoisyColumn],
    discover: Callable[..., Discovery],
    rho: Fraction,
    delta: Fraction,
) -> Learning:
    """Return what rho buys about the columns to learn of a schema.

    All columns have equal shares. The pot for clipped sums goes to the columns whose mean the tree
    leaves too noisy, at most a third of it to each. The rest of the pot stays unspent.

    Args:
        schema: The schema.
        noisy: The raw column of a name, of a number, date or time.
        discover: ``Private.discover``, for columns of categories.
        rho: The price of all questions at most (zCDP).
        delta: The price of all thresholds.

    Privacy:
        ``rho`` and ``delta`` at most. The answers of earlier questions decide which later ones are asked.
    """
    numbers: dict[str, LearnedNumber] = {}
    categories: dict[str, Categorical] = {}
    share = column_share(rho, len(schema.to_learn))
    open_columns = [c for c in schema.to_learn if not c.is_number]
    for column in schema.to_learn:
        name = column.name
        if column.is_number:
            if (number := learn_number(column, noisy(name), share)) is not None:
                numbers[name] = number
            continue
        part = delta / len(open_columns)
        found = categories_of(
            column, discover(name, rho=share, delta=part, listed=column.categories)
        )
        if found is not None:
            categories[name] = found
    wanting = [name for name, number in numbers.items() if number.mean.wants_sum]
    for name in wanting:
        pot = rho * LearningShares.sums * min(Fraction(1, 3), Fraction(1, len(wanting)))
        numbers[name] = numbers[name].with_sum(noisy(name), pot)
    names = [c.name for c in schema.to_learn]
    hidden = tuple(n for n in names if n not in numbers and n not in categories)
    return Learning(numbers, categories, hidden)
