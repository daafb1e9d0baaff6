"""Releases of marginals of a table that a test made, with a little noise that is not the gate's."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from margrave.marginal import LinearMap
from margrave.marginal.counting import count_cliques
from margrave.models import GraphicalFit
from margrave.models.specs import fit_spec
from margrave.provenance import Provenance
from margrave.release import Release
from margrave.schema import Schema
from margrave.transcript import Measurement, Transcript
from tests.support import fake_model

NOISE = 2.0


def release_of(
    frame: pd.DataFrame, schema: Schema, cliques: Sequence[tuple[str, ...]], groups: Any = None
) -> Release:
    """``groups``: codes that marginals of several columns merge."""
    rng, codes = np.random.default_rng(1), schema.encode(frame)
    counts, entries = count_cliques(codes, cliques), []
    for clique in cliques:
        query = LinearMap((groups or {}) if len(clique) > 1 else {}).within(clique)
        exact = query.apply(clique, counts[clique])
        noisy = np.rint(exact + rng.normal(0.0, NOISE, exact.shape)).astype(np.int64)
        entries.append(Measurement(clique, noisy, NOISE, Fraction(1, 8), query))
    transcript = Transcript(tuple(entries))
    model = GraphicalFit()(schema.domain, transcript, rng=np.random.default_rng(0))
    provenance = Provenance("by hand", fit=fit_spec(GraphicalFit()))
    return Release(schema, model, transcript, fake_model.account_of(transcript), provenance)
