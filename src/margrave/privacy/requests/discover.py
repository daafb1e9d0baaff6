"""The question which values of an open column are frequent: the only one that spends delta."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from margrave.accounting.accountant import exact_delta
from margrave.accounting.question import Answers, Question, array_to_texts, texts_to_array
from margrave.accounting.thresholds import threshold_for
from margrave.errors import InputError, LedgerError
from margrave.privacy.noise import Gaussian, NoisePrice, Randomness
from margrave.privacy.requests.request import Counts, PublicKnowledge, Request, frozen, with_noise
from margrave.schema.learn import is_nameable
from margrave.transcript import Discovery
from margrave.types import Clique


@dataclass(frozen=True, eq=False)
class Discover(Request[Discovery]):
    """The values of a column whose noisy counts reach a threshold.

    Every value that rows have gets noise. Values that a name may not hold (``is_nameable``) are left
    out by themselves, whatever the rows. The order of values is that of their texts.
    """

    column: str
    listed: tuple[str, ...]
    price: NoisePrice
    delta: Fraction
    threshold: int
    #: Keys of counts and values in what the gate counts. No column has an empty name.
    counts_key: ClassVar[Clique] = ("", "counts")
    values_key: ClassVar[Clique] = ("", "values")

    @classmethod
    def of(
        cls,
        known: PublicKnowledge,
        column: str,
        rho: Fraction,
        delta: Fraction,
        listed: Iterable[str],
    ) -> Discover:
        """Check and price the question."""
        if not known.leaves_open(column, number=False):
            raise InputError(
                f"{str(column)!r} is not a column of categories to learn.",
                remedy='Write kind = "categorical" and learn = true in its [[column]] table.',
            )
        if not exact_delta(delta, "The delta of a threshold"):
            raise InputError(
                "Without delta no threshold hides the values of one unit.",
                remedy="Give a part of the budget's: Budget.approx(epsilon, delta, threshold_delta=delta / 10), say.",
            )
        price = Gaussian(rho=rho).price(known.sensitivity(), 1)
        threshold = threshold_for(known.unit, price.scale, Fraction(delta))
        return cls(str(column), _own_texts(listed), price, Fraction(delta), threshold)

    @property
    def counted(self) -> Sequence[Clique]:
        """No marginal."""
        return ()

    @property
    def raw(self) -> tuple[str, None]:
        """The column, whose values are counted."""
        return self.column, None

    def question(self) -> Question:
        """Return the column, the listed values, the noise scale and the threshold.

        The answer is one array of counts, and one of the texts that are discovered.
        """
        return Question(
            what=f"discover values of {self.column}",
            rho=self.price.rho_each,
            asked={
                "kind": "discover",
                "column": self.column,
                "listed": list(self.listed),
                "scale": self.price.scale,
                "threshold": self.threshold,
            },
            shapes=((-1,), (-1,)),
            delta=self.delta,
        )

    def draw(self, counts: Counts, source: Randomness) -> Answers:
        """Draw the noisy counts, and keep those that are listed or reach the threshold."""
        values: list[str] = counts[self.values_key].tolist()
        *of_values, missing = counts[self.counts_key].tolist()
        rows = dict(zip(values, of_values, strict=True))
        public = [rows.pop(v, 0) for v in self.listed]
        present = sorted(v for v in rows if is_nameable(v))
        truth = np.array([*public, *(rows[v] for v in present), missing], dtype=np.int64)
        noisy = with_noise(truth, source, self.price.scale)
        own = noisy[len(public) : -1]
        kept = np.flatnonzero(own >= self.threshold)
        named = np.concatenate([noisy[: len(public)], own[kept], noisy[-1:]])
        return named, texts_to_array([present[i] for i in kept])

    def entries(self, answers: Answers) -> tuple[Discovery, ...]:
        """Return the one entry."""
        try:
            values = (*self.listed, *array_to_texts(answers[1]))
        except (ValueError, OverflowError):
            values = ()
        if len(answers[0]) != len(values) + 1:
            raise LedgerError(f"The stored answer of {self.column!r} does not fit its question.")
        scale, rho = self.price
        return (
            Discovery(
                self.column,
                values,
                frozen(answers[0]),
                len(self.listed),
                self.threshold,
                scale,
                rho,
                self.delta,
            ),
        )


def _own_texts(listed: Iterable[str]) -> tuple[str, ...]:
    """Return the listed values as texts of rows are read: without blanks around them."""
    if isinstance(listed, str):
        raise InputError("The listed values are one text.", remedy='Give a list: ["a", "b"].')
    texts = tuple(listed)
    if not all(type(t) is str and is_nameable(t.strip()) for t in texts):
        raise InputError(
            "A listed value is not text of 1 to 200 printable characters.",
            remedy='Give texts: ["a", "b"].',
        )
    own = tuple(t.strip() for t in texts)
    if len(set(own)) < len(own):
        raise InputError("A listed value is listed twice.", remedy="List each once.")
    return own
