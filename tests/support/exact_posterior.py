"""Posteriors that are known exactly, to test inference with: a normal mean, and a small table of codes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from margrave.domain import Codes
from margrave.schema import Categorical, Ordinal, Real, Schema

SCHEMA = Schema(
    [
        Categorical("group", ["c", "a", "b"], missing=True),
        Ordinal("grade", ["low", "mid", "high"]),
        Real("x", 0.0, 4.0, bins=4),
    ]
)


def normal_mean(
    rng: np.random.Generator, *, reps: int, m: int, ratio: float, noise: float
) -> tuple[Any, Any]:
    """Estimates and variances (reps × m) of a mean whose truth is 0, one real table a repetition.

    In units of a real table's sampling variance: the noisy mean has the variance 1 + ``noise``, the posterior is
    normal around it with that variance, and a data set of ``ratio`` times as many records adds 1 / ratio.
    """
    seen = rng.normal(0.0, np.sqrt(1.0 + noise), (reps, 1))
    drawn = seen + rng.normal(0.0, np.sqrt(1.0 + noise), (reps, m))
    q = drawn + rng.normal(0.0, np.sqrt(1.0 / ratio), (reps, m))
    return q, np.full((reps, m), 1.0 / ratio)


@dataclass(frozen=True, eq=False)
class TablesOf:
    """Data sets of a schema, each from its own distribution (m × cells), drawn as they are asked for."""

    schema: Schema
    shares: Any
    rows: int
    total: float
    seed: int
    method: str = "exact"
    notes: tuple[str, ...] = ("made up",)

    def __len__(self) -> int:
        return len(self.shares)

    def __getitem__(self, i: int) -> pa.Table:
        rng = np.random.default_rng([self.seed, i])
        domain = self.schema.domain
        cells = rng.choice(domain.cells(), size=self.rows, p=self.shares[i])
        values = np.array(np.unravel_index(cells, domain.sizes)).reshape(len(domain), self.rows)
        return self.schema.decode(Codes(domain, values), rng=rng)

    def released(self) -> None:
        """The exact posterior is not refitted."""


@dataclass(frozen=True, eq=False)
class ExactRelease:
    """A release of counts with Gaussian noise of the scale given, and of the posterior that they leave.

    The counts are taken as normal: share p_i + N(0, p_i (1 − p_i) / n + (scale / n)²), clipped and scaled to 1.
    """

    schema: Schema
    counts: Any
    scale: float

    def draws(
        self, m: int | None = None, *, rows: int | None = None, method: str = "auto", seed: int | None = None,
        progress: Any = None,
    ) -> TablesOf:  # fmt: skip
        rng, m = np.random.default_rng(seed), 100 if m is None else m
        n = float(self.counts.sum())
        p = np.maximum(self.counts, 0.0) / n
        shares = p + rng.normal(size=(m, len(p))) * np.sqrt(
            p * (1.0 - p) / n + (self.scale / n) ** 2
        )
        shares = np.maximum(shares, 0.0)
        shares /= shares.sum(axis=1, keepdims=True)
        size = round(n) if rows is None else rows
        if progress is not None:
            progress("drawing distributions", 1.0)
        return TablesOf(
            self.schema, shares, size, n, int(rng.integers(1 << 30)), f"exact ({method})"
        )


def release_of(
    shares: Any, n: int, scale: float, rng: np.random.Generator, schema: Schema = SCHEMA
) -> ExactRelease:
    """A real table drawn from ``shares``, counted with noise."""
    counts = rng.multinomial(n, shares) + rng.normal(0.0, scale, len(shares))
    return ExactRelease(schema, counts, scale)
