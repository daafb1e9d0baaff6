"""Data sets of a release's posterior, until Release.draws is there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from margrave import Release
from margrave.models import Model
from margrave.schema import Schema


@dataclass(frozen=True, eq=False)
class Posterior:
    """As margrave.inference takes them."""

    method: str
    rows: int
    total: float
    schema: Schema
    models: tuple[Model, ...]
    seed: int
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.models)

    def __getitem__(self, i: int, /) -> pa.Table:
        rng = np.random.default_rng([self.seed, i])
        codes = self.models[i].sample(self.rows, rng=rng, independent=True)
        return self.schema.decode(codes, rng=rng)


def draws(release: Release, m: int, rows: int, seed: int) -> Posterior:
    """As Release.draws."""
    posterior = release.model.posterior()
    assert posterior is not None
    models = tuple(posterior.draws(m, rng=np.random.default_rng(seed)))
    return Posterior(posterior.method, rows, release.model.total, release.schema, models, seed)
