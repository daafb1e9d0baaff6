"""A suite with its stored rows, in an order that pages can use."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.core import charts
from benchmarks.core.store import Row
from benchmarks.core.suite import Suite

ANY: Any = object()


class View:
    """A suite, and its stored rows by task and contender."""

    def __init__(self, suite: Suite, rows: Iterable[Row]) -> None:
        self.suite, self.tasks, self.contenders = suite, suite.tasks, suite.contenders
        self.all = list(rows)
        self._rows: dict[tuple[str, str], list[Row]] = {}
        for row in self.all:
            self._rows.setdefault((row["task"], row["contender"]), []).append(row)

    def rows(self, task: str, contender: str) -> list[Row]:
        """Return all rows of a contender on a task."""
        return self._rows.get((task, contender), [])

    def finished(
        self, task: str, contender: str, epsilon: Any = ANY, setting: Any = ANY
    ) -> list[Row]:
        """Return the rows that have a result, at one epsilon and of one setting if named."""
        return [
            row for row in self.rows(task, contender)
            if row["outcome"] == "finished" and epsilon in (ANY, row.get("epsilon"))
            and setting in (ANY, row["setting"])
        ]  # fmt: skip

    def groups(self, *names: str) -> dict[tuple[Any, ...], list[Row]]:
        """Return the rows that have a result by the values of some columns, as they come."""
        grouping: dict[tuple[Any, ...], list[Row]] = {}
        for row in self.all:
            if row["outcome"] == "finished":
                grouping.setdefault(tuple(row.get(name) for name in names), []).append(row)
        return grouping

    def present(self, task: str) -> list[str]:
        """Return the contenders of a task that have a row."""
        return [name for name in self.tasks[task].contenders if self.rows(task, name)]

    @property
    def legend(self) -> charts.Legend:
        """Labels and colors of the contenders."""
        return charts.Legend.of(self.contenders)

    def title(self, task: str) -> str:
        """Return the title of a task."""
        return self.tasks[task].title

    def label(self, contender: str) -> str:
        """Return the label of a contender."""
        return self.contenders[contender].label


def standard_error(values: Sequence[float]) -> float:
    """Return the standard error of a mean; not a number for a single value."""
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
