"""The size of a refit: that of the codes that the model would have."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from margrave.accounting import AddRemoveRow, Budget
from margrave.cli.main import run
from margrave.errors import ModelTooLargeError
from margrave.mechanisms import MST
from margrave.models import CELLS_PER_MB, GraphicalFit, ParticleFit
from margrave.privacy import SeededRandomness, protect
from margrave.release import Release
from margrave.release.refitting import check_refit
from margrave.testing.tables import memory_table


def _released() -> Release:
    rows = [(i % 3, i % 4) for i in range(400)]
    table = memory_table({"a": 60, "b": 50}, rows)
    budget, unit = Budget.zcdp(Fraction(2)), AddRemoveRow()
    with protect(table, unit=unit, budget=budget, randomness=SeededRandomness(1)) as private:
        return MST().run(private, rng=np.random.default_rng(0))


def test_empty_codes_are_not_counted() -> None:
    release = _released()
    fit, known, domain = GraphicalFit(), release.transcript, release.schema.domain
    left = fit.cells(fit.distinguished(domain, known, last=True), known.counted)
    every = fit.cells(domain, known.counted)
    assert left < every / 2
    check_refit(fit, release.model, known, left / CELLS_PER_MB)
    with pytest.raises(ModelTooLargeError):
        check_refit(fit, release.model, known, 0.9 * left / CELLS_PER_MB)


def test_a_refit_that_is_too_large_is_refused_before_its_forecast(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release, path = _released(), str(tmp_path / "r.margrave")
    release.save(path)
    words = ["refit", path, "--release", str(tmp_path / "s.margrave"), "--max-model-mb", "1e-6"]
    assert run(words) == ModelTooLargeError.exit_code
    said = capsys.readouterr().err
    assert said.startswith("Error: A model by GraphicalFit of all that was counted has")
    assert "Give --fit particles or --fit genetic" in said
    assert said.rstrip().endswith("or raise --max-model-mb.")
    with pytest.raises(ModelTooLargeError, match=r"ParticleFit\(\) or .* or raise max_model_mb\.$"):
        release.refit("graphical", max_model_mb=1e-6)


def test_a_refit_is_forecast_from_its_answers() -> None:
    release = _released()
    graphical = release.refit_cost("graphical")
    assert 0.0 < graphical.seconds < 60.0
    assert 100.0 < graphical.mb < 2000.0
    particles = ParticleFit(particles=2000)
    more = release.refit_cost(replace(particles, particles=200_000))
    assert more.seconds > release.refit_cost(particles).seconds
    assert release.refit_cost("max-entropy").seconds > graphical.seconds


def test_a_refit_reports_its_progress() -> None:
    seen = list[tuple[str, float]]()
    _released().refit("graphical", progress=lambda stage, done: seen.append((stage, done)))
    assert seen[0] == ("fitting", 0.0)
