"""Run an analysis on every data set, combine the results, and check what they rest on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from margrave._fields import check_level, is_number
from margrave.error_sanitizer import short_errors
from margrave.errors import InputError
from margrave.inference.caveats import caveats_of, flagged
from margrave.inference.caveats.bins import bins_of, bounds_of
from margrave.inference.caveats.context import AnalysisSettings, Columns, Context
from margrave.inference.caveats.stated import with_open_ends
from margrave.inference.combine import Mixture, combine, mix
from margrave.inference.datasets import (
    COMMONEST,
    DataSets,
    Frames,
    Progress,
    Source,
    Tables,
    are_runs,
    commonest_numbers,
    open_source,
    table_of,
)
from margrave.inference.estimate import Bounds, Estimate, check_bounds, within_bounds
from margrave.inference.fitted import Basis, Estimand, read_fit
from margrave.inference.in_words import analysis_of, empty_frame
from margrave.inference.probe import Trial, named_basis, probe
from margrave.inference.replicates import (
    Fit,
    OnUnstable,
    Replicates,
    Runs,
    Status,
    names_of,
    run_all,
)
from margrave.inference.results import Analysis
from margrave.progress import reporting
from margrave.release.draws import Draws
from margrave.schema import Schema
from margrave.types import IntArray

#: Share of the progress that drawing the distributions takes.
DRAWING_SHARE = 0.5


@short_errors
def analyze(
    source: Source | DataSets | Sequence[Any],
    fit: Fit | str,
    m: int | None = None,
    *,
    columns: Columns = None,
    level: float = 0.95,
    rows: int | None = None,
    seed: int | None = None,
    method: str = "auto",
    n: float | None = None,
    max_std_error: float = 1e3,
    on_unstable: OnUnstable = "report",
    bias_correct: bool = True,
    bounds: Bounds | Mapping[str, Bounds] | None = None,
    progress: Progress | bool | None = None,
) -> Analysis:
    """Return estimates and intervals for the population that the real records were sampled from.

    The fit runs on each data set as if it were the real table, and the results are combined.
    Texts are categoricals with the same levels in every data set.

    Unmeasured relations are absent from all data sets: relations of columns that lie
    together in no measured marginal, merged codes, values within bins or beyond the schema's
    bounds. The result names these first, and flags the estimates that rest on them.

    Refits by the bootstrap show the bias of the release's own distribution. The fit then runs on
    as many tables of that, and estimates are 2 q̂ − q̄ (see `combine`).

    Args:
        source: A release, which draws ``m`` data sets; its draws; or tables drawn elsewhere,
            which is right only if each comes from its own draw of a posterior.
        fit: An estimand such as ``Mean("stay")``, the text of a purpose such as ``"ols stay ~ age"``, or a
            function of one pandas frame. A function
            returns (estimates, variances), named by dicts or Series or not at all; (estimates,
            covariance matrix), which tests of several values need; a dict of name: (estimate,
            variance); or a statsmodels result.
        m: Data sets to draw, at least 2; by default 100, or all runs of a `Repeated` release.
        columns: The columns that a function uses, ``("stay", "age")``, with which it is checked
            what was measured; an estimand knows its own. The function's frames have these alone,
            which take less time to draw than all. ``"probe"`` finds them by running the
            function up to 60 times on changed data sets. A part of a timestamp, such as
            "pickup.hour", is a column here too.
        level: Level of the intervals, between 0 and 1.
        rows: Records in each data set; by default as many as the release estimates.
        seed: Seed of the draws.
        method: ``"auto"``, ``"posterior"`` or ``"bootstrap"``; see `Release.draws`.
        n: Number of real records, for tables.
        max_std_error: A result is unstable if it is not finite or did not converge, or if its
            standard error is above this and above this many times the least in all data sets, as
            where an empty cell separates the outcome.
        on_unstable: ``"report"`` withholds the interval of an estimate that is unstable on any
            data set. ``"drop"`` leaves out those single results, and data sets on which the fit
            failed. The rest is a selection that favors data sets without empty cells.
        bias_correct: Take the bias of refits off. Estimates with a large bias are flagged anyway.
        bounds: Least and greatest possible value, such as (0, 1), of all estimates or by name;
            None means no bound. Estimands have their own.
        progress: Callback (stage, fraction). By default a bar in a terminal or a notebook; False for none.

    Raises:
        InputError: An argument does not fit the source, or the fit failed.

    Privacy:
        None spent: data sets of a release are post-processing.

    Example:
        >>> import numpy as np, pyarrow as pa
        >>> rng = np.random.default_rng(0)
        >>> tables = [pa.table({"x": rng.normal(center, 1.0, 500)}) for center in rng.normal(2.0, 0.1, 50)]
        >>> def mean(frame):
        ...     return {"mean": (frame.x.mean(), frame.x.var() / frame.x.count())}
        >>> found = analyze(tables, mean, n=500)
        >>> low, high = found["mean"].conf_int()
        >>> low < 2.0 < high
        True

    References:
        Räisä, Jälkö, Kaski, Honkela 2023 (NAPSU-MQ): the pipeline, and dropping unstable results.
    """
    return analyze_several(
        source, [fit], m, columns=columns, level=level, rows=rows, seed=seed, method=method, n=n,
        max_std_error=max_std_error, on_unstable=on_unstable, bias_correct=bias_correct,
        bounds=bounds, progress=progress,
    )[0]  # fmt: skip


def analyze_several(
    source: Source | DataSets | Sequence[Any],
    fits: Sequence[Fit | str],
    m: int | None = None,
    *,
    columns: Columns = None,
    level: float = 0.95,
    rows: int | None = None,
    seed: int | None = None,
    method: str = "auto",
    n: float | None = None,
    max_std_error: float = 1e3,
    on_unstable: OnUnstable = "report",
    bias_correct: bool = True,
    bounds: Bounds | Mapping[str, Bounds] | None = None,
    progress: Progress | bool | None = None,
) -> list[Analysis]:
    """Return several analyses of the same data sets, which are drawn once.

    Arguments are those of `analyze`; ``columns`` and ``bounds`` apply to every fit of ``fits``.

    Privacy:
        None spent.
    """
    if not isinstance(fits, list | tuple) or not fits:
        raise InputError(
            f"{fits!r} is not a list of analyses.",
            remedy='Give a list, such as [Mean("stay"), Mean("age")].',
        )
    analyses: list[Fit] = [analysis_of(fit, source) for fit in fits]
    _check_fits(analyses)
    settings = AnalysisSettings(level, max_std_error, on_unstable, bias_correct, bounds, columns)
    _check_settings(settings, source, analyses)
    with reporting(progress) as callback:
        draws, frames = _open(
            source, analyses, m, n=n, rows=rows, method=method, seed=seed, progress=callback
        )
        own = draws.released()
        tables = [draws] if own is None else [draws, own]
        analyses = [_with_levels(fit, own or draws, frames) for fit in analyses]
        every = [[Runs(on_unstable, isinstance(f, Estimand)) for f in analyses] for _ in tables]
        reading = [_reading(fit) for fit in analyses]
        names = _named(analyses, columns, draws, frames)
        for i, (runs, lot) in enumerate(zip(every, tables, strict=True)):
            run_all(
                runs, lot, frames, reading, _analyzing(callback, i, len(tables)),
                names=names,
                states_columns=all(isinstance(f, Estimand) for f in analyses),
            )  # fmt: skip
    return [
        _analysis(fit, [runs[j] for runs in every], draws, frames, settings, names)
        for j, fit in enumerate(analyses)
    ]


def analyze_posterior(
    source: Source | DataSets | Sequence[Any],
    fit: Fit,
    m: int | None = None,
    *,
    names: Sequence[str] = (),
    rows: int | None = None,
    seed: int | None = None,
    method: str = "auto",
    progress: Progress | None = None,
) -> Mixture:
    """Return the pooled posterior of a Bayesian analysis.

    Args:
        source: As for `analyze`.
        fit: A function of one frame that returns draws of its posterior (draws × k).
        m: As for `analyze`.
        names: The k quantities.
        rows: Records in each data set: several times as many as the real table has, see `mix`.
        seed: As for `analyze`.
        method: As for `analyze`. The bias that refits show is not corrected.
        progress: As for `analyze`.

    Privacy:
        None spent.
    """
    _check_fits([fit])
    draws, frames = _open(
        source, [fit], m, n=None, rows=rows, method=method, seed=seed, progress=progress
    )
    runs = Runs("report")
    run_all([runs], draws, frames, [fit], _analyzing(progress, 0, 1))
    return mix([runs.results[i] for i in sorted(runs.results)], names)


def _check_settings(settings: AnalysisSettings, source: Any, fits: Sequence[Fit]) -> None:
    check_level(settings.level)
    check_bounds(settings.bounds)
    if settings.on_unstable not in ("report", "drop"):
        raise InputError(
            f"on_unstable is {settings.on_unstable!r}.", remedy="Choose report or drop."
        )
    if not is_number(settings.max_std_error) or not settings.max_std_error > 0:
        raise InputError(
            f"max_std_error is {settings.max_std_error!r}.",
            remedy="Give a positive standard error, such as 1000.",
        )
    schema = getattr(source, "schema", None)
    known = [c.name for c in schema.columns] if isinstance(schema, Schema) else None
    functions = any(not isinstance(f, Estimand) for f in fits)
    _check_columns(settings.columns, known, functions)


def _check_columns(columns: Columns, known: Sequence[str] | None, functions: bool) -> None:
    remedy = (
        'Name them, columns=("stay", "age"); or pass columns="probe" to find them by running the function on changed'
        " data sets."
    )
    if columns is None:
        if known is not None and functions:
            raise InputError(
                "The columns that the function uses are needed, to check which were measured together.",
                remedy=remedy,
            )
    elif not functions:
        raise InputError(
            "columns is for functions: an estimand has its own.", remedy="Leave columns out."
        )
    elif columns != "probe":
        whole = isinstance(columns, str) or not columns
        names = [columns] if whole else [c for c in columns if known is not None and c not in known]
        if names:
            raise InputError(f"columns names {names[0]!r}, which is not a column.", remedy=remedy)


def _check_fits(fits: Sequence[Fit]) -> None:
    for fit in fits:
        if isinstance(fit, type) or not callable(fit):
            raise InputError(
                f"{getattr(fit, '__name__', fit)!r} is not an analysis.",
                remedy='Give a function of a data frame, or an estimand with its column, such as Mean("stay").',
            )


def _open(
    source: Any, fits: Sequence[Fit], m: int | None, *, progress: Progress | None, **drawing: Any
) -> tuple[DataSets, Frames]:
    schema = getattr(source, "schema", None)
    if isinstance(schema, Schema):
        for fit in (f for f in fits if isinstance(f, Estimand)):
            fit.check(empty_frame(schema), schema)

    def report(stage: str, fraction: float) -> None:
        if progress is not None:
            progress(stage, DRAWING_SHARE * fraction)

    report("drawing distributions", 0.0)
    return open_source(source, m, progress=report, **drawing)


def _analyzing(progress: Progress | None, part: int, parts: int) -> Callable[[float], None]:
    def report(fraction: float) -> None:
        if progress is not None:
            done = (part + fraction) / parts
            progress("analyzing", DRAWING_SHARE + (1.0 - DRAWING_SHARE) * done)

    return report


def _reading(fit: Fit) -> Fit:
    return lambda frame: read_fit(fit(frame))


def _analysis(
    fit: Fit, every: Sequence[Runs], draws: DataSets, frames: Frames, settings: AnalysisSettings,
    names_drawn: frozenset[str] | None,
) -> Analysis:  # fmt: skip
    places = sorted(set.intersection(*(set(r.results) for r in every)))
    if len(places) < 2:
        raise InputError(
            "The fit worked on fewer than two data sets and their counterparts.",
            remedy="Correct the fit.",
        )
    names = names_of(every, places)
    aligned = [Replicates.of(r, places, names, settings.max_std_error) for r in every]
    replicates = [r.joined(aligned) for r in aligned]
    trial = _trial(fit, every[0], draws, frames, names_drawn)
    basis = _basis(trial, every, places, names, draws, settings.columns)
    bounds = settings.bounds
    if bounds is None and basis is not None:
        bounds = bounds_of(basis, draws, frames)
    bins = bins_of(basis, draws, frames)
    tests_zero = basis is None or basis.tests_zero
    days = any(runs.results[i].days for runs in every for i in places)
    every_estimate = (
        replace(_estimate(j, n, replicates, draws, settings), tests_zero=tests_zero, days=days)
        for j, n in enumerate(names)
    )
    uncut = tuple(
        replace(e, bins=bins) if bins is not None and (bins.are_wide or e.variance == 0) else e
        for e in every_estimate
    )
    context = Context(
        within_bounds(uncut, bounds), uncut, basis, draws, trial, every, places, replicates, settings
    )  # fmt: skip
    context = with_open_ends(context, bins)
    return Analysis(
        flagged(context), settings.level, len(draws), draws.rows, draws.total, draws.method,
        caveats_of(context), replicates[0].points, replicates[0].covariances,
        replicates[1].points if len(replicates) > 1 else None, settings.bias_correct,
        are_runs(draws),
    )  # fmt: skip


def _with_levels(fit: Fit, draws: DataSets, frames: Frames) -> Fit:
    if not isinstance(fit, Estimand) or not fit.leveled:
        return fit
    frame = frames.draw(draws, 0, frames.with_origins(fit.leveled))
    if isinstance(draws, Draws):
        frame.attrs[COMMONEST] |= commonest_numbers(draws, fit.leveled)
    return fit.with_levels(frame)


def _named(
    fits: Sequence[Fit], columns: Columns, draws: DataSets, frames: Frames
) -> frozenset[str] | None:
    """Return the columns of the frames of functions; None for all, or until estimands state theirs."""
    functions = all(not isinstance(f, Estimand) for f in fits)
    if columns is None or columns == "probe" or not functions or not isinstance(draws, Draws):
        return None
    return frames.with_origins(columns)


def _trial(
    fit: Fit, runs: Runs, draws: DataSets, frames: Frames, names: frozenset[str] | None
) -> Trial:
    place = min(
        runs.results
    )  # estimands were run on all of its columns: they had not stated theirs
    table = table_of(draws, place, names)
    attrs = frames.attributes(draws, place, table.num_rows)
    return Trial(fit, table, frames, runs.results[place], attrs)


def _basis(
    trial: Trial, every: Sequence[Runs], places: Sequence[int], names: tuple[str, ...],
    draws: DataSets, columns: Columns,
) -> Basis | None:  # fmt: skip
    """Return an estimand's basis, or that of a function's columns.

    A function that calls an estimand may have chosen records before, so its basis is not used.
    """
    if isinstance(trial.fit, Estimand):
        return Basis.union([runs.results[i] for runs in every for i in places])
    if columns is None or not isinstance(draws, Draws):
        return None
    if columns == "probe":
        return probe(trial, names)
    return named_basis(tuple(dict.fromkeys(columns)), names, trial.found.formula)


def _any_unstable(status: IntArray) -> bool:
    return bool(np.isin(status, (Status.UNSTABLE, Status.NEGATIVE, Status.NAN)).any())


def _estimate(
    j: int, name: str, replicates: Sequence[Replicates], draws: DataSets, settings: AnalysisSettings
) -> Estimate:
    first, own = replicates[0], replicates[1].points[:, j] if len(replicates) > 1 else None
    points, good = first.points[:, j], np.isfinite(first.points[:, j])
    used, m, external = int(good.sum()), len(draws), isinstance(draws, Tables)
    if used < 2 or (settings.on_unstable == "report" and _any_unstable(first.status[:, j])):
        ratio = None if draws.total is None else draws.rows / draws.total
        nan = np.nan
        return Estimate(name, nan, nan, nan, nan, nan, used, m, ratio, external=external)
    found = combine(
        points[good], first.variances[good, j], rows=None if draws.total is None else draws.rows,
        total=draws.total, name=name, data_sets=m,
        center=None if own is None else float(own[good].mean()),
        bias_correct=settings.bias_correct, runs=are_runs(draws),
    )  # fmt: skip
    return replace(found, external=external)
