"""Chromium for tests of pages: the installed one, or the one of Playwright. Nothing is downloaded."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


@contextmanager
def chromium() -> Iterator[Any]:
    """Yield a browser, or skip the test with the reason."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="needs Playwright: pip install margrave[browser]"
    )
    names = ("chromium", "chromium-browser", "google-chrome")
    path = os.environ.get("MARGRAVE_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    with playwright.sync_playwright() as started:
        if path is None and not Path(started.chromium.executable_path).exists():
            pytest.skip("needs Chromium: install it, or name it in MARGRAVE_CHROMIUM")
        browser = started.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-background-networking"]
        )
        try:
            yield browser
        finally:
            browser.close()


def axe_script() -> str:
    """Return the script of axe-core, or skip the test with the reason."""
    spec = importlib.util.find_spec("axe_playwright_python")
    if spec is None or spec.origin is None:
        pytest.skip("needs axe-core: pip install margrave[browser]")
    return (Path(spec.origin).parent / "axe.min.js").read_text(encoding="utf-8")


def slowdown() -> float:
    """Return by how much other processes slow a test down: those that want to run, for each core; 1 at least."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
