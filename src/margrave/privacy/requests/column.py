"""Questions about one raw column, from which its bounds and bins are learned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from margrave.accounting.question import Answers, Question
from margrave.accounting.sensitivities import sensitivity
from margrave.errors import InputError
from margrave.privacy.copies import own_column_query
from margrave.privacy.noise import Gaussian, NoisePrice, Randomness
from margrave.privacy.requests.request import Counts, PublicKnowledge, Request, frozen, with_noise
from margrave.schema.column_queries import ClippedSum, ColumnQuery
from margrave.transcript import ColumnAnswer
from margrave.types import Clique


@dataclass(frozen=True, eq=False)
class MeasureColumn(Request[ColumnAnswer]):
    """``query(column)`` with noise, for a column to learn."""

    column: str
    query: ColumnQuery
    price: NoisePrice

    @classmethod
    def of(
        cls, known: PublicKnowledge, column: str, query: ColumnQuery, rho: Fraction
    ) -> MeasureColumn:
        """Check and price the question."""
        if not known.leaves_open(column, number=True):
            raise InputError(
                f"{str(column)!r} is not a number, date or time to learn.",
                remedy="Measure marginals of columns whose codes are known.",
            )
        own = own_column_query(query)
        return cls(column, own, Gaussian(rho=rho).price(sensitivity(known.unit, own), 1))

    @property
    def counted(self) -> Sequence[Clique]:
        """No marginal."""
        return ()

    @property
    def raw(self) -> tuple[str, ColumnQuery]:
        """The column, and what is tallied of it."""
        return self.column, self.query

    def question(self) -> Question:
        """Return the column, the query and the noise scale. The answer is one array."""
        what = "a sum" if isinstance(self.query, ClippedSum) else "parts"
        return Question(
            what=f"measure {what} of {self.column}, to learn it",
            rho=self.price.rho_each,
            asked={
                "kind": "measure-column",
                "column": self.column,
                "query": self.query.to_dict(),
                "scale": self.price.scale,
            },
            shapes=((self.query.size,),),
        )

    def draw(self, counts: Counts, source: Randomness) -> Answers:
        """Draw the answers of the query."""
        return (with_noise(counts[(self.column,)], source, self.price.scale),)

    def entries(self, answers: Answers) -> tuple[ColumnAnswer, ...]:
        """Return the one entry."""
        scale, rho = self.price
        return (ColumnAnswer(self.column, self.query, frozen(answers[0]), scale, rho),)
