"""What an analysis found: a table of estimates, tests, and a picture of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from margrave.errors import InputError
from margrave.files import written_whole
from margrave.formula import spelled
from margrave.inference.combine import WaldTest, combine, wald
from margrave.inference.estimate import FOOTNOTE, Estimate
from margrave.inference.forest import forest, page
from margrave.parameters import check_level, is_number
from margrave.typing import AnyArray, FloatArray

_LEVEL = re.compile(r"\[[^\[\]]*\](?=:|$)")
"""What follows a factor of a term in a coefficient's name."""

FORMATS = (".html", ".svg")
DOUBTS = ["unmeasured", "binned", "clipped", "doubtful"]
P_VALUES = "p-values test that the value is 0."


@dataclass(frozen=True, eq=False)
class Analysis:
    """Estimates of population quantities from ``data_sets`` data sets of ``rows`` records, with their uncertainty.

    The uncertainty is that of sampling the real records from their population and that of the noise added for
    privacy. ``total`` is the number of real records, estimated, or None; ``method`` says how the data sets were
    drawn; ``notes`` what a reader must know before using the numbers. ``points`` (data sets × estimates, NaN where
    a data set gave none that was used) and ``covariances`` are what the estimates were combined from; ``released`` is
    as many estimates from the release's own distribution, where those show a bias; ``corrected`` says that it was
    taken off.

    **Privacy:** none spent: a function of synthetic records alone.
    """

    estimates: tuple[Estimate, ...]
    level: float
    data_sets: int
    rows: int
    total: float | None
    method: str
    notes: tuple[str, ...]
    points: FloatArray
    covariances: FloatArray | None = None
    released: FloatArray | None = None
    corrected: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the estimates, in their order."""
        return tuple(e.name for e in self.estimates)

    def __len__(self) -> int:
        return len(self.estimates)

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self.estimates)

    def __getitem__(self, name: str) -> Estimate:
        return self.estimates[self._place(name)]

    def table(self, level: float | None = None, *, null: float = 0.0) -> pd.DataFrame:
        """One row an estimate: its numbers, how many data sets it is from, and whether it rests on an assumption.

        ``p_value`` is of the hypothesis that the value is ``null``; ``unmeasured`` says whether the estimate
        rests on columns that were never measured together, ``clipped`` whether on values that may lie beyond the
        schema's bounds, ``binned`` whether on values within bins; ``doubtful``, whether it has a mark.
        """
        level = self._level(level)
        rows = [e.to_dict(level, null) for e in self.estimates]
        columns = ["estimate", "standard_error", "low", "high", "df", "p_value", "privacy_share"]
        found = pd.DataFrame({c: [np.nan if r[c] is None else r[c] for r in rows] for c in columns})
        found["used"] = [e.used for e in self.estimates]
        for doubt in DOUBTS:
            found[doubt] = [bool(getattr(e, doubt)) for e in self.estimates]
        found.index = pd.Index(self.names, name="name")
        return found

    def interval(self, level: float | None = None) -> pd.DataFrame:
        """The intervals, low and high, of every estimate at any level."""
        return self.table(level)[["low", "high"]]

    def test(
        self,
        names: Sequence[str] | None = None,
        null: float | Sequence[float] | Mapping[str, float] = 0.0,
        *,
        method: str = "full",
    ) -> WaldTest:
        """Test that the quantities named (all by default) have the values ``null`` together: see :func:`wald`.

        A term of a formula stands for all of its coefficients: ``test(["C(ward)"])``.
        The data sets that gave all of them are used. The fit must return a covariance matrix, unless one name is
        tested.
        """
        given = self.names if names is None else ((names,) if isinstance(names, str) else tuple(names))
        chosen = tuple(dict.fromkeys(n for name in given for n in self._of_term(name)))
        at = self._known(chosen, "test")
        if len(at) == 1 and (self.covariances is None or method == "full"):
            return self._one(self.estimates[at[0]], null)
        values = self._values(chosen, null)
        points, covariances, centre = self._together(at)
        return wald(
            points,
            covariances,
            values,
            rows=None if self.total is None else self.rows,
            total=self.total,
            method=method,
            names=chosen,
            centre=centre if self.corrected else None,
        )

    def contrast(self, weights: Mapping[str, float], *, name: str = "") -> Estimate:
        """A weighted sum of estimates: ``contrast({"B": 1, "C": -1})`` is by how much B is above C.

        The data sets that gave all of them are used. The fit must return a covariance matrix, unless one name is
        given. ``name`` is what the sum is called; by default it is written out.
        """
        chosen, at = tuple(weights), self._known(tuple(weights), "weigh")
        if not all(is_number(w) and np.isfinite(w) for w in weights.values()) or not any(weights.values()):
            raise InputError("Weights are numbers, not all of them 0.", remedy='Give such as {"B": 1, "C": -1}.')
        w, name = np.array([float(weights[n]) for n in chosen]), name or written_out(weights)
        if len(at) == 1:
            return _times(self.estimates[at[0]], float(w[0]), name)
        points, covariances, centre = self._together(at)
        found = combine(
            points @ w,
            np.einsum("i,mij,j->m", w, covariances, w),
            rows=None if self.total is None else self.rows,
            total=self.total,
            name=name,
            data_sets=self.data_sets,
            centre=None if centre is None else float(centre @ w),
            correct=self.corrected,
        )
        parts = [self.estimates[i] for i in at]
        unmeasured = tuple(dict.fromkeys(u for e in parts for u in e.unmeasured))
        binned = tuple(dict.fromkeys(b for e in parts for b in e.binned))
        clipped = tuple(dict.fromkeys(c for e in parts for c in e.clipped))
        elsewhere = any(e.elsewhere for e in parts)
        return replace(found, unmeasured=unmeasured, binned=binned, clipped=clipped, elsewhere=elsewhere)

    def _of_term(self, name: str) -> tuple[str, ...]:
        """The estimate of that name, or those that are levels of a term of that name."""
        name = self._spelled(name)
        levels = tuple(n for n in self.names if n != name and _LEVEL.sub("", n) == name)
        return (name,) if name in self.names or not levels else levels

    def _spelled(self, name: str) -> str:
        """A name as it is, or as the estimates spell it: C(x, Treatment("a")) and C(x, Treatment('a')) are one."""
        return name if name in self.names or not isinstance(name, str) else spelled(name)

    def _known(self, names: Sequence[str], what: str) -> list[int]:
        """The places of estimates that have intervals."""
        if not names:
            raise InputError(f"No names are given to {what}.", remedy=f"The estimates are: {', '.join(self.names)}.")
        at = [self._place(n) for n in names]
        refused = [n for n in names if not self[n].known]
        if refused:
            raise InputError(
                f"{refused[0]} has no interval, so it cannot be used.", remedy="The notes say why: analysis.notes."
            )
        return at

    def _together(self, at: Sequence[int]) -> tuple[FloatArray, FloatArray, FloatArray | None]:
        """Estimates and covariances of the data sets that gave all of these, and q̂."""
        if self.covariances is None:
            raise InputError(
                "Several values together need their covariance within each data set.",
                remedy="Let the fit return (estimates, covariance matrix).",
            )
        points, covariances = self.points[:, at], self.covariances[:, at][:, :, at]
        whole = np.isfinite(points).all(axis=1)
        centre = None if self.released is None else self.released[whole][:, at].mean(axis=0)
        return points[whole], covariances[whole], centre

    def _one(self, found: Estimate, null: float | Sequence[float] | Mapping[str, float]) -> WaldTest:
        value = float(self._values([found.name], null)[0])
        statistic = (found.estimate - value) ** 2 / found.variance
        return WaldTest((found.name,), statistic, (1.0, found.df), found.p_value(value), "full")

    def _values(self, names: Sequence[str], null: float | Sequence[float] | Mapping[str, float]) -> FloatArray:
        other = [n for n in null if n not in names] if isinstance(null, Mapping) else []
        if other:
            raise InputError(
                f"A null value is given for {other[0]!r}, which is not tested.",
                remedy=f"Tested are: {', '.join(names)}. A null of those left out is 0.",
            )
        given: Any = [null.get(n, 0.0) for n in names] if isinstance(null, Mapping) else null
        values: AnyArray = np.atleast_1d(np.asarray(given, dtype=np.float64))
        if values.shape not in ((1,), (len(names),)):
            raise InputError(f"{len(values)} null values are given for {len(names)} names.")
        return np.asarray(np.broadcast_to(values, (len(names),)))

    def svg(self, level: float | None = None) -> str:
        """A forest plot: each estimate, its interval, and inside it how wide the real records alone would make it."""
        return forest(self.estimates, self._level(level), self.words(level))

    def html(self, level: float | None = None) -> str:
        """The plot, the table and the notes as one page, with nothing outside it."""
        level = self._level(level)
        told = (f"Data sets: {self.method}.", *self.footnotes, *self.notes)
        return page(self.estimates, level, self.words(level), told)

    def plot(self, path: str | Path, *, level: float | None = None, overwrite: bool = False) -> None:
        """Write the plot to an .svg file, or the page to an .html file, whole or not at all."""
        check_plot(path)
        text = self.html(level) if Path(path).suffix.lower() == ".html" else self.svg(level)
        with written_whole(path, overwrite=overwrite) as temporary:
            temporary.write_text(text, encoding="utf-8")

    def _repr_html_(self) -> str:
        return self.svg()

    def to_dict(self, level: float | None = None, *, null: float = 0.0) -> dict[str, Any]:
        """Everything but what the estimates were combined from, as plain data."""
        level = self._level(level)
        return {
            "level": level,
            "data_sets": self.data_sets,
            "rows": self.rows,
            "total": self.total,
            "method": self.method,
            "estimates": [e.to_dict(level, null) for e in self.estimates],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        table = self.table().drop(columns=DOUBTS).set_axis([e.marked for e in self.estimates])
        shown = table.to_string(
            formatters={"p_value": "{:.3g}".format, "privacy_share": "{:.0%}".format, "df": "{:.1f}".format},
            float_format="{:.5g}".format,
            na_rep="-",
        )
        lines = [self.words(), f"Data sets: {self.method}.", shown, *self.footnotes]
        return "\n".join([*lines, *(f"Note: {n}" for n in self.notes)])

    @property
    def footnotes(self) -> tuple[str, ...]:
        """What stands under a printed table: what its marks and its p-values mean."""
        marked = any(e.doubtful for e in self.estimates)
        return (*([FOOTNOTE] if marked else []), P_VALUES)

    def words(self, level: float | None = None) -> str:
        """What the numbers were made from, in a line."""
        of = "" if self.total is None else f" of about {self.total:,.0f} real ones"
        return (
            f"{self.data_sets} data sets of {self.rows:,} records{of}; intervals at {100 * self._level(level):g} %"
        )

    def _level(self, level: float | None) -> float:
        level = self.level if level is None else level
        check_level(level)
        return level

    def _place(self, name: str) -> int:
        name = self._spelled(name)
        if name not in self.names:
            raise InputError(f"There is no estimate {name!r}.", remedy=f"They are: {', '.join(self.names)}.")
        return self.names.index(name)


def written_out(weights: Mapping[str, float]) -> str:
    """A weighted sum in words.

    >>> written_out({"B": 1, "C": -1, "D": 0.5})
    'B - C + 0.5 D'
    """
    terms = [f"{'-' if w < 0 else '+'} {'' if abs(w) == 1 else f'{abs(w):g} '}{n}" for n, w in weights.items()]
    first = terms[0].removeprefix("+ ").replace("- ", "-", 1)
    return " ".join([first, *terms[1:]])


def _times(e: Estimate, weight: float, name: str) -> Estimate:
    """A multiple of an estimate."""
    square, ends = weight**2, [weight * bound for bound in e.bounds]
    return replace(
        e, name=name, estimate=weight * e.estimate, variance=square * e.variance, within=square * e.within,
        between=square * e.between, bias=weight * e.bias, ends=None,
        bounds=(min(ends), max(ends)),
    )  # fmt: skip


def check_plot(path: str | Path) -> None:
    """The file's ending says what to write."""
    if Path(path).suffix.lower() not in FORMATS:
        raise InputError(f"{path} ends in neither {' nor '.join(FORMATS)}.", remedy="The ending says what to write.")
