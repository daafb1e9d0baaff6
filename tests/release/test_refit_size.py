"""The size of a refit: that of the codes that the model would have."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from margrave.accounting import AddRemoveRow, Budget
from margrave.errors import ModelTooLargeError
from margrave.mechanisms import MST
from margrave.models import CELLS_PER_MB, GraphicalFit
from margrave.privacy import SeededRandomness, protect
from margrave.release.refitting import check_refit
from margrave.testing.tables import memory_table


def test_empty_codes_are_not_counted() -> None:
    rows = [(i % 3, i % 4) for i in range(400)]
    table = memory_table({"a": 60, "b": 50}, rows)
    budget, unit = Budget.zcdp(Fraction(2)), AddRemoveRow()
    with protect(table, unit=unit, budget=budget, randomness=SeededRandomness(1)) as private:
        release = MST().run(private, rng=np.random.default_rng(0))
    fit, known, domain = GraphicalFit(), release.transcript, release.schema.domain
    left = fit.cells(fit.distinguished(domain, known, last=True), known.counted)
    every = fit.cells(domain, known.counted)
    assert left < every / 2
    check_refit(fit, domain, known, left / CELLS_PER_MB)
    with pytest.raises(ModelTooLargeError):
        check_refit(fit, domain, known, 0.9 * left / CELLS_PER_MB)
