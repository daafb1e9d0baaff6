"""The correlation of two columns, as a ready model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pandas as pd

from margrave.errors import InputError
from margrave.inference.columns import enough, line_of, scalar
from margrave.inference.fits import Fitted
from margrave.inference.parts import OfPart, Where
from margrave.schema import Schema
from margrave.typing import Clique


@dataclass(frozen=True)
class Correlation(OfPart):
    """Pearson's correlation r of two columns of numbers or dates, of the records that have both.

    With u and v the columns less their means over their standard deviations, the variance is that of the influences
    u v − r (u² + v²) / 2, over n: right whatever the distribution, and about (1 − r²)² / n of a normal one.

    >>> frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "y": [2.0, 1.0, 4.0, 3.0]})
    >>> fitted = Correlation("x", "y")(frame)
    >>> fitted.names, round(float(fitted.estimates[0]), 6)
    (('corr(x, y)',), 0.6)
    """

    x: str
    y: str
    where: Where = field(default=None, kw_only=True, hash=False)
    bounds: ClassVar[tuple[float, float]] = (-1.0, 1.0)

    def __post_init__(self) -> None:
        if self.x == self.y:
            raise InputError(f"{self.x!r} is given twice.", remedy="Name two columns.")

    @property
    def columns(self) -> tuple[str, ...]:
        """Both, and those of the part."""
        return tuple(dict.fromkeys([self.x, self.y, *self.held]))

    def leans(self, name: str, apart: Clique) -> bool:
        """Its one estimate is about both."""
        return True

    def joins(self, name: str) -> Clique:
        """All of them."""
        return self.columns

    def by_value(self, schema: Schema) -> tuple[str, ...]:
        """Both, and those of the part that are taken by value."""
        return tuple(dict.fromkeys([self.x, self.y, *self.finer(schema)]))

    def check(self, frame: pd.DataFrame, schema: Schema | None = None) -> None:
        """The columns are there and hold numbers or dates."""
        self.check_part(frame, schema)
        line_of(frame, self.x)
        line_of(frame, self.y)

    def __call__(self, frame: pd.DataFrame) -> Fitted:
        frame = self.part(frame)
        both = np.stack([line_of(frame, self.x), line_of(frame, self.y)])
        both = both[:, np.isfinite(both).all(axis=0)]
        n = both.shape[1]
        enough(n, f"{self.x} with {self.y}")
        with np.errstate(invalid="ignore"):  # NaN of a column with one value alone, which is told
            u, v = (both - both.mean(axis=1, keepdims=True)) / both.std(axis=1, keepdims=True)
        r = float((u * v).mean())
        return scalar(f"corr({self.x}, {self.y})", r, float(np.mean((u * v - r * (u**2 + v**2) / 2.0) ** 2)) / n)
