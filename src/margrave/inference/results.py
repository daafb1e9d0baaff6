"""The result of an analysis, in the vocabulary of statsmodels, with tests, contrasts and a plot."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from margrave._card import html_card, listed
from margrave._fields import check_level, is_number
from margrave._io import written_whole
from margrave.errors import InputError
from margrave.formula import spelled
from margrave.inference.columns import first_names
from margrave.inference.combine import WaldTest, combine, total_covariance, wald
from margrave.inference.estimate import Caveat, Estimate
from margrave.inference.forest import forest, page
from margrave.inference.names import no_estimate, term_of
from margrave.inference.printed import footnotes, lines_of, table_of
from margrave.types import AnyArray, FloatArray

#: Attributes of an estimate that name the columns of a caveat.
COLUMN_FLAGS = (
    "unmeasured", "below_noise", "mostly_noise", "unreliable", "coarse", "binned", "clipped",
)  # fmt: skip
FLAGS = (*COLUMN_FLAGS, "flagged")

Null = float | Sequence[float] | Mapping[str, float]


@dataclass(frozen=True, eq=False, repr=False)
class Analysis:
    """Estimates of population quantities, with the uncertainty of sampling and of privacy's noise.

    Attributes:
        estimates: One `Estimate` for each of k quantities.
        level: Level of the intervals, between 0 and 1.
        data_sets: Number m of data sets.
        rows: Records in each.
        total: Estimated number of real records; None if unknown.
        method: How the data sets were drawn, in words.
        caveats: What a reader must know before using the numbers, the decisive ones first.
        points: Estimates of the data sets, shape (m, k); NaN where one was not used.
        covariances: Their covariances, shape (m, k, k); None if the fit gave none.
        released: Estimates from the release's own distribution, shape (m, k), which show bias.
        corrected: That bias was taken off.
        runs: The data sets are of independent runs (see `combine`).

    Privacy:
        None spent: a function of synthetic records alone.
    """

    estimates: tuple[Estimate, ...]
    level: float
    data_sets: int
    rows: int
    total: float | None
    method: str
    caveats: tuple[Caveat, ...]
    points: FloatArray
    covariances: FloatArray | None = None
    released: FloatArray | None = None
    corrected: bool = True
    runs: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the estimates, in their order."""
        return tuple(e.name for e in self.estimates)

    @property
    def notes(self) -> tuple[str, ...]:
        """The caveats as texts; those of decisive ones begin with a mark."""
        return tuple(map(str, self.caveats))

    def __len__(self) -> int:
        return len(self.estimates)

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self.estimates)

    def __getitem__(self, name: str) -> Estimate:
        return self.estimates[self._place(name)]

    @property
    def params(self) -> pd.Series:
        """The estimates by name."""
        return self._series("params", [e.estimate for e in self])

    @property
    def bse(self) -> pd.Series:
        """The standard errors by name."""
        return self._series("bse", [e.bse for e in self])

    @property
    def pvalues(self) -> pd.Series:
        """The p-values of the hypotheses that the values are 0, by name."""
        return self._series("pvalues", [e.pvalue() for e in self])

    @property
    def fmi(self) -> pd.Series:
        """The fraction of information that is missing because of privacy, by name."""
        return self._series("fmi", [e.fmi_privacy for e in self])

    def conf_int(self, level: float | None = None) -> pd.DataFrame:
        """Return the intervals, ``low`` and ``high``, by name; by default at the analysis's level."""
        level = self._level(level)
        found = [e.conf_int(level) for e in self]
        return pd.DataFrame(found, index=self._index, columns=["low", "high"])

    def cov_params(self) -> pd.DataFrame:
        """Return the total covariance of the estimates (k × k), with ``bse**2`` on its diagonal.

        The correlations are those of the matrix that `wald` tests with. NaN for estimates without
        an interval.

        Raises:
            InputError: The fit returned no covariance matrix, and there are several estimates.
        """
        at = [i for i, e in enumerate(self) if e.has_interval]
        matrix = np.full((len(self), len(self)), np.nan)
        if len(at) == 1:
            matrix[at, at] = self.estimates[at[0]].variance
        elif at:
            points, covariances, center = self._together(at)
            center = center if self.corrected else None
            found = total_covariance(
                points, covariances, rows=self._known_rows, total=self.total, center=center,
                runs=self.runs,
            )  # fmt: skip
            scale = np.array([self.estimates[i].bse for i in at]) / np.sqrt(np.diag(found))
            matrix[np.ix_(at, at)] = found * np.outer(scale, scale)
        return pd.DataFrame(matrix, index=self._index, columns=self._index)

    def summary(self, level: float | None = None, *, null: float = 0.0) -> pd.DataFrame:
        """Return one row for each estimate: its numbers, the data sets it is from, and its flags.

        Args:
            level: Level of the intervals; by default the analysis's.
            null: The value that p-values test.

        Returns:
            As statsmodels names them, ``params`` (the estimate), ``bse`` (its standard error), the interval's
            ``low`` and ``high``, ``df`` (degrees of freedom), ``pvalues``, ``fmi`` (the share of the variance
            that privacy adds; NaN if ``unmeasured``) and ``used`` (data sets that gave it). Then the flags
            ``unmeasured`` (its columns were never measured together), ``below_noise`` (their cells are smaller than
            the noise), ``mostly_noise`` (the noise hides the spread of a column), ``unreliable`` (the noisy
            counts alone call the same number not reliable), ``coarse`` (bins are too wide for its interval),
            ``binned`` (it uses values within bins), ``clipped`` (values may lie beyond the schema's bounds)
            and ``flagged`` (it is marked).
        """
        found = pd.concat([self.params, self.bse, self.conf_int(level)], axis=1)
        found["df"] = [e.df for e in self]
        found["pvalues"] = [e.pvalue(null) for e in self]
        found["fmi"], found["used"] = self.fmi, [e.used for e in self]
        for flag in FLAGS:
            found[flag] = [bool(getattr(e, flag)) for e in self]
        return found

    def test(
        self, names: Sequence[str] | None = None, null: Null = 0.0, *, method: str = "full"
    ) -> WaldTest:
        """Test that several quantities together have the values ``null``: see `wald`.

        Args:
            names: Estimates, or terms of a formula, which stand for all of their coefficients:
                ``["C(ward)"]``. By default all estimates.
            null: A number for all, a sequence, or numbers by name (0 for the others).
            method: ``"full"`` or ``"proportional"``.

        Returns:
            The test, ``flagged`` if one of its estimates is marked, with the ``reasons``.

        Raises:
            InputError: An estimate has no interval, or the fit returned no covariance matrix and
                several names are tested.
        """
        given = self.names if names is None else (names,) if isinstance(names, str) else names
        chosen = tuple(dict.fromkeys(n for name in given for n in self._of_term(name)))
        at = self._usable(chosen, "test")
        values = self._null_values(chosen, null)
        if len(at) == 1 and (self.covariances is None or method == "full"):
            one, value = self.estimates[at[0]], float(values[0])
            statistic = one.distance(value) ** 2 / one.variance
            found = WaldTest((one.name,), statistic, (1.0, one.df), one.pvalue(value), "full")
            return self._with_marks(found)
        points, covariances, center = self._together(at)
        center = center if self.corrected else None
        found = wald(
            points, covariances, values, rows=self._known_rows, total=self.total, method=method,
            names=chosen, center=center, runs=self.runs,
        )  # fmt: skip
        return self._with_marks(found)

    def _with_marks(self, found: WaldTest) -> WaldTest:
        """Return a test with the marks of its estimates. A test of several has no whole bins, so these mark it too."""
        tested = [self[n] for n in found.names]
        cut = [e.name for e in tested if e.bins is not None and e.bins.are_wide and tested[1:]]
        marked = tuple(e.name for e in tested if e.flagged or e.name in cut)
        reasons = [str(c) for c in self.caveats if c.decisive and {*c.names} & {*marked}]
        if cut:
            reasons.append(
                f"{first_names(cut)}: a test of several quantiles does not take their whole bins into account."
            )
        return replace(found, marked=marked, reasons=tuple(reasons))

    def contrast(self, weights: Mapping[str, float], *, name: str = "") -> Estimate:
        """Return a weighted sum of estimates: ``contrast({"B": 1, "C": -1})`` is B less C.

        The data sets that gave all of them are used.

        Args:
            weights: Weights by name, not all 0.
            name: Name of the sum; by default it is written out.

        Raises:
            InputError: An estimate has no interval, or the fit returned no covariance matrix and
                several names are given.
        """
        given: Any = weights
        if not isinstance(given, Mapping):
            pair = dict(zip(reversed(self.names), (1, -1), strict=False))
            raise InputError(
                f"A contrast takes a weight for each estimate, and {given!r} has none.",
                remedy=f"Give {{name: weight}}, such as contrast({pair!r}).",
            )
        at = self._usable(tuple(weights), "weigh")
        numbers = all(is_number(w) and np.isfinite(w) for w in weights.values())
        if not numbers or not any(weights.values()):
            raise InputError(
                "Weights are numbers, not all of them 0.", remedy='Give such as {"B": 1, "C": -1}.'
            )
        w, name = np.array([float(v) for v in weights.values()]), name or written_out(weights)
        if len(at) == 1:
            return _times(self.estimates[at[0]], float(w[0]), name)
        points, covariances, center = self._together(at)
        found = combine(
            points @ w, np.einsum("i,mij,j->m", w, covariances, w), rows=self._known_rows,
            total=self.total, name=name, data_sets=self.data_sets,
            center=None if center is None else float(center @ w), bias_correct=self.corrected,
            runs=self.runs,
        )  # fmt: skip
        parts = [self.estimates[i] for i in at]
        flags: dict[str, Any] = {
            flag: tuple(dict.fromkeys(column for e in parts for column in getattr(e, flag)))
            for flag in COLUMN_FLAGS
        }
        within = [e.bins.column for e in parts if e.bins is not None]  # in no interval of a sum
        flags["coarse"] = tuple(dict.fromkeys([*flags["coarse"], *within]))
        return replace(found, external=any(e.external for e in parts), **flags)

    @property
    def _known_rows(self) -> int | None:
        return None if self.total is None else self.rows

    @property
    def _index(self) -> pd.Index:
        return pd.Index(self.names, name="name")

    def _series(self, name: str, values: Sequence[float]) -> pd.Series:
        return pd.Series(values, index=self._index, name=name, dtype=float)

    def _of_term(self, name: str) -> tuple[str, ...]:
        name = self._spelled(name)
        levels = tuple(n for n in self.names if term_of(n) == name)
        return (name,) if name in self.names or not levels else levels

    def _spelled(self, name: str) -> str:
        """Return a name as the estimates spell it: with single quotes and options by name."""
        return name if name in self.names or not isinstance(name, str) else spelled(name)

    def _place(self, name: str) -> int:
        name = self._spelled(name)
        if name not in self.names:
            raise no_estimate(name, self.names)
        return self.names.index(name)

    def _usable(self, names: Sequence[str], purpose: str) -> list[int]:
        if not names:
            raise InputError(
                f"No names are given to {purpose}.",
                remedy=f"The estimates are: {', '.join(self.names)}.",
            )
        at = [self._place(n) for n in names]
        for n in (n for n in names if not self[n].has_interval):
            raise InputError(
                f"{n} has no interval, so it cannot be used.",
                remedy="Leave it out of the test; the notes of the analysis say why it has none.",
            )
        return at

    def _together(self, at: Sequence[int]) -> tuple[FloatArray, FloatArray, FloatArray | None]:
        """Return estimates and covariances of the data sets that gave all of these, and q̂."""
        if self.covariances is None:
            raise InputError(
                "Several values together need their covariance within each data set.",
                remedy="Let the fit return (estimates, covariance matrix).",
            )
        points, covariances = self.points[:, at], self.covariances[:, at][:, :, at]
        whole = np.isfinite(points).all(axis=1)
        center = None if self.released is None else self.released[whole][:, at].mean(axis=0)
        return points[whole], covariances[whole], center

    def _null_values(self, names: Sequence[str], null: Null) -> FloatArray:
        for other in (n for n in null if n not in names) if isinstance(null, Mapping) else ():
            raise InputError(
                f"A null value is given for {other!r}, which is not tested.",
                remedy=f"Tested are: {', '.join(names)}. A null of those left out is 0.",
            )
        given: Any = [null.get(n, 0.0) for n in names] if isinstance(null, Mapping) else null
        values: AnyArray = np.atleast_1d(np.asarray(given, dtype=np.float64))
        if values.shape not in ((1,), (len(names),)):
            raise InputError(f"{len(values)} null values are given for {len(names)} names.")
        return np.asarray(np.broadcast_to(values, (len(names),)))

    def svg(self, level: float | None = None) -> str:
        """Return a forest plot: estimates, intervals, and how wide real records would make them."""
        return forest(self.estimates, self._level(level), self.words(level))

    def html(self, level: float | None = None) -> str:
        """Return the plot, the table and the notes as one page without outside resources."""
        notes = (f"Data sets: {self.method}.", *self.footnotes, *self.notes)
        return page(self.estimates, self._level(level), self.words(level), notes)

    def plot(
        self, path: str | Path, *, level: float | None = None, overwrite: bool = False
    ) -> None:
        """Write the plot to an .svg file, or the page to an .html file, whole or not at all."""
        check_plot(path)
        text = self.html(level) if Path(path).suffix.lower() == ".html" else self.svg(level)
        with written_whole(path, overwrite=overwrite) as temporary:
            temporary.write_text(text, encoding="utf-8")

    def __repr__(self) -> str:
        return f"Analysis({listed(self.names)}; {self.data_sets} data sets; print it for the table)"

    def _repr_html_(self) -> str:
        headings, found = table_of(self.estimates, self.level)
        own = ((e.label, *(row[h] for h in headings)) for e, row in zip(self, found, strict=True))
        rows = [("", *headings), *own]
        notes = (f"Data sets: {self.method}.", *self.footnotes, *self.notes)
        return f"{self.svg()}{html_card('', rows, notes, head=True)}"

    def to_dict(self, level: float | None = None, *, null: float = 0.0) -> dict[str, Any]:
        """Return plain data: everything but what the estimates were combined from."""
        level = self._level(level)
        return {
            "level": level, "data_sets": self.data_sets, "rows": self.rows, "total": self.total,
            "method": self.method, "estimates": [e.to_dict(level, null) for e in self.estimates],
            "notes": list(self.notes),
        }  # fmt: skip

    def __str__(self) -> str:
        table = lines_of(self.estimates, self.level, shutil.get_terminal_size().columns)
        lines = [self.words(), f"Data sets: {self.method}.", *table, *self.footnotes]
        return "\n".join([*lines, *(f"Note: {n}" for n in self.notes)])

    @property
    def footnotes(self) -> tuple[str, ...]:
        """The lines under a printed table that explain its headings and marks."""
        return footnotes(self.estimates, self.level)

    def words(self, level: float | None = None) -> str:
        """Return in one line what the numbers were made from."""
        of = "" if self.total is None else f" of about {self.total:,.0f} real ones"
        return f"{self.data_sets} data sets of {self.rows:,} records{of}; intervals at {100 * self._level(level):g} %"

    def _level(self, level: float | None) -> float:
        level = self.level if level is None else level
        check_level(level)
        return level


def written_out(weights: Mapping[str, float]) -> str:
    """Return a weighted sum as text.

    >>> written_out({"B": 1, "C": -1, "D": 0.5})
    'B - C + 0.5 D'
    """
    terms = [
        f"{'-' if w < 0 else '+'} {'' if abs(w) == 1 else f'{abs(w):g} '}{n}"
        for n, w in weights.items()
    ]
    first = terms[0].removeprefix("+ ").replace("- ", "-", 1)
    return " ".join([first, *terms[1:]])


def _times(e: Estimate, weight: float, name: str) -> Estimate:
    square, ends = weight**2, [weight * bound for bound in e.bounds]
    return replace(
        e, name=name, estimate=weight * e.estimate, variance=square * e.variance, within=square * e.within,
        between=square * e.between, bias=weight * e.bias, ends=None, days=e.days and weight == 1.0,
        bounds=(min(ends), max(ends)), bins=None if e.bins is None else e.bins.times(weight),
    )  # fmt: skip


def check_plot(path: str | Path) -> None:
    """Raise `InputError` unless the file's ending names a format."""
    formats = (".html", ".svg")
    if Path(path).suffix.lower() not in formats:
        raise InputError(
            f"{path} ends in neither {' nor '.join(formats)}.",
            remedy="The ending says what to write.",
        )
