"""Many fits into one analysis: align by name, set aside what cannot be trusted, combine, and say so in notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from margrave.errors import InputError
from margrave.inference.analysis import Analysis
from margrave.inference.bins import Bins
from margrave.inference.combine import combine
from margrave.inference.estimate import FAR, MARK, Estimate
from margrave.inference.fits import Fitted, numbered
from margrave.inference.kinds import day_in_words
from margrave.inference.limits import held
from margrave.inference.relations import Relations, without_general
from margrave.inference.runs import Runs
from margrave.inference.sources import Draws, Tables
from margrave.inference.spread import notes_on_spread
from margrave.typing import AnyArray, Clique, FloatArray

Remedy = Literal["report", "drop"]

_FEW_DF = 4.0
_MAX_TEXTS = 3
CORRECTED = "The bias that refits of the release show was taken off each estimate, and widens its interval."
UNCORRECTED = (
    "The bias that refits of the release show was left in each estimate, and no interval contains it (correct=False,"
    " --no-correct)."
)


@dataclass(frozen=True, eq=False)
class Lot:
    """What the fit gave on one lot of data sets (data sets × names), NaN where nothing can be trusted.

    ``astray`` is the part of ``absent`` that no design explains; ``nan`` and ``negative`` the parts of
    ``unstable`` in which a fit that converged returned NaN, or a negative variance.
    """

    points: FloatArray
    variances: FloatArray
    covariances: FloatArray | None
    absent: AnyArray
    unstable: AnyArray
    astray: AnyArray
    nan: AnyArray
    negative: AnyArray

    @staticmethod
    def of(runs: Runs, places: Sequence[int], names: tuple[str, ...], large: float) -> Lot:
        """The results at some places, aligned by name and looked at."""
        fitted: list[Fitted] = [runs.results[i] for i in places]
        points, variances, covariances = _aligned(fitted, names)
        absent = np.isnan(points) & np.array([[n not in f.names for n in names] for f in fitted])
        stuck = np.array([i in runs.troubled or not f.converged for i, f in zip(places, fitted, strict=True)])
        unstable = _unstable(points, variances, stuck, large) & ~absent
        astray = absent & ~np.array([f.chosen for f in fitted])[:, None]
        nan = unstable & ~stuck[:, None] & (np.isnan(points) | np.isnan(variances))
        points[unstable] = np.nan
        return Lot(points, variances, covariances, absent, unstable, astray, nan, unstable & (variances < 0))


def gather(
    every: Sequence[Runs], draws: Draws, *, level: float, large: float, remedy: Remedy,
    notes: tuple[str, ...], relations: Relations, bins: Bins, ready: bool, bounds: Any, correct: bool,
) -> Analysis:  # fmt: skip
    """Align the results by name, set aside what cannot be trusted, and combine the rest.

    ``every`` holds the results on the data sets, and those on as many of the release's own where they show a bias.
    ``relations`` says which estimates rest on what was not measured, ``bins`` which on values within bins; ``ready``,
    that the variances are those of a ready model, ``bounds`` between which values estimates lie; with ``correct``,
    the bias is taken off.
    """
    places = sorted(set.intersection(*(set(r.results) for r in every)))
    if len(places) < 2:
        raise InputError("The fit worked on fewer than two data sets and their counterparts.", remedy="Mend the fit.")
    _check_lengths(every, places)
    names = _all_names([r.results[i] for r in every for i in places])
    lots = [Lot.of(r, places, names, large) for r in every]
    kinds = ("absent", "astray", "nan", "negative")
    absent, astray, nan, negative = (np.any([getattr(lot, k) for lot in lots], axis=0) for k in kinds)
    unstable = np.any([lot.unstable for lot in lots], axis=0) & ~absent
    for lot in lots:
        lot.points[absent | unstable] = np.nan
    first, rows, total, m = lots[0], draws.rows, draws.total, len(draws)
    own = lots[1].points if len(lots) > 1 else None
    under = relations.under(names)
    estimates = tuple(
        _estimate(name, first.points[:, j], first.variances[:, j], None if own is None else own[:, j],
                  refused=remedy == "report" and bool(unstable[:, j].any()), rows=rows, total=total, m=m,
                  unmeasured=under[name], correct=correct)
        for j, name in enumerate(names)
    )  # fmt: skip
    elsewhere = isinstance(draws, Tables)
    estimates, cut = held([replace(e, elsewhere=elsewhere) for e in estimates], bounds, level)
    estimates = bins.told(estimates, level)
    faults = {"NaN": nan & unstable, "a negative variance": negative & unstable}
    decisive = [*relations.decisive(names), *bins.decisive(), *_notes_on_bias(estimates)]
    told = [
        *(f"{MARK} {note}" for note in decisive),
        *relations.notes(names),
        *bins.notes(estimates),
        *_notes_on_failures(every, m),
        *_notes_on_faults(names, faults, places, m, remedy),
        *_notes_on_names(names, astray, places, m),
        *_notes_on_absent(names, absent & ~astray, m),
        *_notes_on_unstable(names, unstable & ~nan & ~negative, m, large, remedy),
        *_notes_on_estimates(estimates),
        *notes_on_spread(estimates, lots[-1].points, lots[-1].variances, one=own is not None, ready=ready),
        *cut,
        *_notes_on_days(estimates, any(r.results[i].days for r in every for i in places), level),
        *_notes_on_warnings(every, m),
        *notes,
        *([] if own is None else [CORRECTED if correct else UNCORRECTED]),
        *without_general(draws.notes, relations),
    ]
    return Analysis(
        estimates, level, m, rows, total, draws.method, tuple(told), first.points, first.covariances, own, correct
    )


def _check_lengths(every: Sequence[Runs], places: Sequence[int]) -> None:
    """Estimates without names are told apart by their places, so there must be as many each time."""
    first = every[0].results[places[0]].names
    for runs in every:
        for i in places:
            names = runs.results[i].names
            if first == numbered(len(first)) and names == numbered(len(names)) and len(names) != len(first):
                raise InputError(
                    f"The fit returned {len(first)} estimates without names on data set {places[0] + 1}, and"
                    f" {len(names)} on data set {i + 1}.",
                    remedy="Return as many on every data set, or name them (a dict or a Series).",
                )


def _all_names(fitted: Sequence[Fitted]) -> tuple[str, ...]:
    """The names in the order of the fullest data set, and then what others add."""
    for f in fitted:
        if len(set(f.names)) < len(f.names):
            twice = next(n for n, often in Counter(f.names).items() if often > 1)
            raise InputError(f"The fit returned two estimates named {twice!r}.", remedy="Name them apart.")
    fullest = max(fitted, key=lambda f: len(f.names)).names
    names = tuple(dict.fromkeys([*fullest, *(n for f in fitted for n in f.names)]))
    if not names:
        raise InputError("The fit returned no estimates.", remedy="Return at least one.")
    return names


def _aligned(fitted: Sequence[Fitted], names: tuple[str, ...]) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Estimates and variances (data sets × names), and covariances where every data set has them; NaN where absent."""
    m, k, place = len(fitted), len(names), {n: j for j, n in enumerate(names)}
    points, variances = np.full((m, k), np.nan), np.full((m, k), np.nan)
    whole = all(f.covariance is not None for f in fitted)
    covariances = np.full((m, k, k), np.nan) if whole else None
    for i, f in enumerate(fitted):
        at = [place[n] for n in f.names]
        points[i, at], variances[i, at] = f.estimates, f.variances
        if covariances is not None and f.covariance is not None:
            covariances[np.ix_([i], at, at)] = f.covariance
    return points, variances, covariances


def _unstable(points: FloatArray, variances: FloatArray, stuck: AnyArray, large: float) -> AnyArray:
    """Results not to be trusted: not finite, too spread out, or all of a fit that did not converge and is neither."""
    with np.errstate(invalid="ignore"):
        deviations = np.sqrt(variances)
    finite = np.isfinite(points) & np.isfinite(deviations)
    least = np.where(finite, deviations, np.inf).min(axis=0)
    wild = finite & (deviations > large * np.maximum(np.where(np.isfinite(least), least, 1.0), 1.0))
    blown = ~finite | wild | (stuck[:, None] & (deviations > large))
    return np.asarray(blown | (stuck & ~(blown & ~np.isnan(points)).any(axis=1))[:, None])


def _estimate(
    name: str, points: FloatArray, variances: FloatArray, own: FloatArray | None, *, refused: bool, rows: int,
    total: float | None, m: int, unmeasured: tuple[Clique, ...], correct: bool,
) -> Estimate:  # fmt: skip
    good = np.isfinite(points)
    used = int(good.sum())
    if refused or used < 2:
        ratio = None if total is None else rows / total
        return Estimate(name, np.nan, np.nan, np.nan, np.nan, np.nan, used, m, ratio, unmeasured=unmeasured)
    known = None if total is None else rows
    centre = None if own is None else float(own[good].mean())
    found = combine(
        points[good], variances[good], rows=known, total=total, name=name, data_sets=m, centre=centre, correct=correct
    )
    return replace(found, unmeasured=unmeasured)


def _notes_on_failures(every: Sequence[Runs], m: int) -> list[str]:
    failures = {i: why for runs in every for i, why in runs.failures.items()}
    if not failures:
        return []
    texts = "; ".join(list(dict.fromkeys(failures.values()))[:_MAX_TEXTS])
    return [f"Left out: {len(failures)} of {m} data sets, on which the fit failed ({texts})."]


def _notes_on_faults(
    names: Sequence[str], faults: Mapping[str, AnyArray], places: Sequence[int], m: int, remedy: Remedy
) -> list[str]:
    """What a fit that says that it went well should not have returned."""
    end = "They were left out for it." if remedy == "drop" else "No interval is given."
    return [
        f"{name}: the fit returned {what} on {wrong.sum()} of {m} data sets, first on data set"
        f" {places[int(wrong.argmax())] + 1}. {end} Look at the fit; a table with few records of a kind may be"
        " why."
        for what, where in faults.items()
        for name, wrong in zip(names, where.T, strict=True)
        if wrong.any()
    ]


def _notes_on_names(names: Sequence[str], astray: AnyArray, places: Sequence[int], m: int) -> list[str]:
    return [
        f"{name}: on {wrong.sum()} of {m} data sets the fit returned other names than on the rest, first on"
        f" data set {places[int(wrong.argmax())] + 1}; they were left out for it. Return the same names on every"
        " data set."
        for name, wrong in zip(names, astray.T, strict=True)
        if wrong.any()
    ]


def _notes_on_absent(names: Sequence[str], absent: AnyArray, m: int) -> list[str]:
    return [
        f"{name}: {lacking} of {m} data sets cannot tell about it (no record in its category, or in the reference's)"
        " and were left out for it."
        for name, lacking in zip(names, absent.sum(axis=0).tolist(), strict=True)
        if lacking
    ]


def _notes_on_unstable(
    names: Sequence[str], unstable: AnyArray, m: int, large: float, remedy: Remedy
) -> list[str]:
    refused = 'No interval is given; remedy="drop" (--drop-unstable) leaves them out.'
    end = "They were left out for it." if remedy == "drop" else refused
    return [
        f"{name}: {wild} of {m} data sets gave no stable estimate (not converged, not finite, or a standard deviation"
        f" above {large:g}). An empty cell often is the cause. {end}"
        for name, wild in zip(names, unstable.sum(axis=0).tolist(), strict=True)
        if wild
    ]


def _notes_on_estimates(estimates: Sequence[Estimate]) -> list[str]:
    told = []
    flat = [e.name for e in estimates if e.variance == 0]
    lacking = [e.name for e in estimates if np.isfinite(e.estimate) and not e.known and e.name not in flat]
    if lacking:
        told.append(
            f"{', '.join(lacking)}: the rule gives no positive variance. Give n, the number of real records, or draw"
            " more data sets or more records in each."
        )
    if flat:
        told.append(f"{', '.join(flat)}: every data set gave the same value and no variance, so no interval is told.")
    short = [e.name for e in estimates if e.known and e.df < _FEW_DF]
    if short:
        told.append(
            f"{', '.join(short)}: fewer than {_FEW_DF:g} degrees of freedom make the interval very wide. Draw more"
            " data sets, or more records in each."
        )
    return told


def _notes_on_days(estimates: Sequence[Estimate], days: bool, level: float) -> list[str]:
    """Dates are analysed as numbers; here they are dates again."""
    told = []
    for e in (e for e in estimates if days and e.known):
        at, low, high = (day_in_words(day) for day in (e.estimate, *e.interval(level)))
        told.append(f"{e.name} is in days since 1970: {at}, with an interval of {low} to {high}.")
    return told


def _notes_on_bias(estimates: Sequence[Estimate]) -> list[str]:
    far = [e.name for e in estimates if e.biased]
    if not far:
        return []
    return [
        f"{', '.join(far)}: the bias that refits of the release show is more than {FAR:g} standard errors without it."
        " The noise hides too much of this for any interval from this release to be trusted."
    ]


def _notes_on_warnings(every: Sequence[Runs], m: int) -> list[str]:
    warned = sum((runs.warned for runs in every), Counter[str]())
    tables = m * len(every)
    return [f"Warned on {often} of {tables} data sets: {text}" for text, often in warned.most_common(_MAX_TEXTS)]
