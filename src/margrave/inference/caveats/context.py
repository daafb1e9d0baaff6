"""The context that the checks of an analysis read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from margrave.inference.columns import first_names
from margrave.inference.datasets import DataSets
from margrave.inference.estimate import Estimate
from margrave.inference.fitted import Basis, EstimateTerm
from margrave.inference.probe import Trial
from margrave.inference.replicates import OnUnstable, Replicates, Runs
from margrave.release.draws import Draws
from margrave.types import Clique

T = TypeVar("T")
Columns = Sequence[str] | Literal["probe"] | None

_NO_TERM = EstimateTerm((), ())


@dataclass(frozen=True)
class AnalysisSettings:
    """Arguments of `analyze` that concern results, not the drawing of data sets."""

    level: float
    max_std_error: float
    on_unstable: OnUnstable
    bias_correct: bool
    bounds: Any
    columns: Columns


@dataclass(frozen=True, eq=False)
class Context:
    """An analysis whose estimates are combined and whose caveats are not yet known.

    Attributes:
        estimates: The estimates, within their bounds.
        uncut: The estimates before they were moved to their bounds.
        basis: The columns that the fit uses; None if unknown.
        draws: The data sets.
        trial: The fit, its first data set and result there.
        runs: The runs on the data sets, and on those of the release's own distribution.
        places: The data sets that are used.
        replicates: The aligned results, one entry for each of ``runs``.
        settings: The arguments of `analyze`.
    """

    estimates: tuple[Estimate, ...]
    uncut: tuple[Estimate, ...]
    basis: Basis | None
    draws: DataSets
    trial: Trial
    runs: Sequence[Runs]
    places: Sequence[int]
    replicates: Sequence[Replicates]
    settings: AnalysisSettings
    _memo: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the estimates."""
        return tuple(e.name for e in self.estimates)

    def about(self, names: Sequence[str]) -> str:
        """Return some of the estimates in words: all of several, or the first three and how many more."""
        if len(names) == len(self.estimates) > 1:
            return "all estimates"
        return first_names(names)

    @property
    def release(self) -> Draws | None:
        """The data sets if a release drew them; other tables do not say what was measured."""
        return self.draws if isinstance(self.draws, Draws) else None

    @property
    def in_whole_bins(self) -> frozenset[str]:
        """The columns whose bins the intervals contain as a whole."""
        return frozenset(
            e.bins.column for e in self.estimates if e.bins is not None and e.bins.are_wide
        )

    @property
    def is_function(self) -> bool:
        """True if the fit is a function of the caller's, with variances of its own."""
        return self.basis is None or self.basis.kind == "function"

    def term(self, name: str) -> EstimateTerm:
        """Return the columns that an estimate is about; none if unknown."""
        return _NO_TERM if self.basis is None else self.basis.terms.get(name, _NO_TERM)

    def summed(self, name: str) -> str:
        """Return the column whose mean or total an estimate is, if its sums were measured; "" otherwise.

        The noise of single cells is not in such an estimate: a fit holds it to the sums.
        """
        if self.basis is None or self.release is None or self.basis.ends not in ("shift", "shares"):
            return ""
        own, used = self.basis.columns[0], set(self.term(name).columns)
        measured = any(
            weighed == (own,) and used <= set(clique) for weighed, clique in self.release.sums
        )
        return own if measured else ""

    def rests_on_sums(self, columns: Clique) -> bool:
        """Return whether a coefficient of a linear regression rests on sums that were measured, and not on cells.

        The sums are those of the numbers among ``columns``, one or two, or of their products.
        """
        if self.basis is None or self.release is None or not self.basis.by_moments:
            return False
        categories = self.release.schema.domain.unordered
        numbers = {c for c in columns if c in self.basis.by_value and c not in categories}
        return bool(numbers) and any(
            set(weighed) == numbers and set(columns) <= set(clique)
            for weighed, clique in self.release.sums
        )

    def once(self, compute: Callable[[Context], T]) -> T:
        """Return ``compute(self)``, computed once."""
        if compute not in self._memo:
            self._memo[compute] = compute(self)
        result: T = self._memo[compute]
        return result
