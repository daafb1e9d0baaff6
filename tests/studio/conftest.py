"""The studio that the tests of its steps begin with."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("starlette")

from tests.support.studio import Studio, write_table


@pytest.fixture
def studio(tmp_path: Path) -> Studio:
    write_table(tmp_path / "visits.csv")
    return Studio(tmp_path)
