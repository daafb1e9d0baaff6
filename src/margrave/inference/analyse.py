"""Run an analysis on every data set, look at what came back, and combine it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from margrave.errors import InputError
from margrave.inference.analysis import Analysis
from margrave.inference.bins import Bins
from margrave.inference.combine import Mixture, mix
from margrave.inference.fits import read_fit
from margrave.inference.gather import Remedy, gather
from margrave.inference.limits import Bounds, bounds_of
from margrave.inference.relations import KnowsColumns, Relations
from margrave.inference.runs import Fit, Runs, run_all
from margrave.inference.sources import Draws, Frames, Progress, Source, settle
from margrave.inference.sums import notes_on_sums
from margrave.inference.tried import Trial, Tried
from margrave.parameters import check_level, is_number
from margrave.schema import Schema

LARGE = 1e3
"""The standard deviation above which an estimate counts as blown up: that of the NAPSU-MQ paper."""

DRAWING = 0.5
"""The share of the progress that drawing the distributions takes."""


def analyse(
    source: Source | Draws | Sequence[Any],
    fit: Fit,
    m: int | None = None,
    *,
    level: float = 0.95,
    rows: int | None = None,
    seed: int | None = None,
    method: str = "auto",
    n: float | None = None,
    large: float = LARGE,
    remedy: Remedy = "report",
    correct: bool = True,
    bounds: Bounds | Mapping[str, Bounds] | None = None,
    progress: Progress | None = None,
) -> Analysis:
    """Estimates and intervals for the **population** that the real records were sampled from.

    ``source`` is a release, which draws ``m`` data sets (100) of ``rows`` records from its posterior
    (``method`` and ``seed`` go to :meth:`Release.draws`), or its draws, or a list of tables drawn elsewhere,
    with ``n`` the number of real records: right only if each table comes from its own draw of a posterior, which
    the rows of ``release.sample`` and ``release.complete`` do not.
    ``fit`` is any analysis of one pandas frame as if it were the real one. It returns (estimates, variances), named
    by dicts or Series or not at all; (estimates, covariance matrix), which tests of several values need; a dict of
    name: (estimate, variance); or a statsmodels result. :mod:`margrave.inference.models` has ready ones.

    Texts are categoricals with the same levels in every data set. A coefficient that a data set cannot tell about
    (nobody is in its category) is left out for that data set, with a note. One that **blew up** in any (not finite, no
    convergence, a standard deviation above ``large`` and above ``large`` times the least in all data sets, as happens
    where a cell is empty and the outcome is separated) gets no interval, with a note. ``remedy="drop"`` leaves those
    single results out instead, as the NAPSU-MQ paper does, and data sets on which ``fit`` raised an error as well. What
    is left is then a selection, which favours data sets without empty cells.

    What the release never measured, the data sets cannot tell: relations of columns that lie together in no measured
    marginal, interactions and parts of the records whose columns do not all at once, codes that were merged. The first
    notes name them, and estimates that rest on them are marked (``unmeasured``). A function of your own is tried some
    times more, on changed data sets, to see its columns; where that fails, a note says where to look. Values beyond
    the schema's bounds lie in the last cell: where that is too full, what takes them by value is marked (``clipped``).
    Of a column with bins the data sets know the bin of a value alone: where an analysis takes the values themselves, a
    note says how wide the bins are, and of a mean what it would be at either end of them (``binned``, ``ends``).

    ``bounds``: the least and the greatest possible value, such as (0, 1) for shares, of all estimates or by name; None
    is no bound. What comes out beyond is moved there, and intervals are cut off, with a note. Ready models have
    theirs.

    Data sets of refitted distributions (the bootstrap) come with as many of the release's own, which show the refits'
    bias: ``fit`` runs on both, and estimates are 2 q̂ − q̄ (:func:`combine`). The i-th of one and of the other are used
    together or not at all. ``correct=False`` leaves the bias in the estimates; one whose bias is more than three
    standard errors keeps its mark.

    >>> import numpy as np, pyarrow as pa
    >>> rng = np.random.default_rng(0)
    >>> tables = [pa.table({"x": rng.normal(centre, 1.0, 500)}) for centre in rng.normal(2.0, 0.1, 50)]
    >>> def mean(frame):
    ...     return {"mean": (frame.x.mean(), frame.x.var() / frame.x.count())}
    >>> found = analyse(tables, mean, n=500)
    >>> low, high = found["mean"].interval()
    >>> low < 2.0 < high
    True

    **Privacy:** none spent: data sets of a release are post-processing.
    Source: Räisä, Jälkö, Kaski, Honkela 2023 (NAPSU-MQ): the pipeline, and the remedy for empty cells.
    """
    options: dict[str, Any] = {"level": level, "rows": rows, "seed": seed, "method": method, "n": n, "large": large}
    options |= {"remedy": remedy, "correct": correct, "progress": progress}
    return _analyses(source, [fit], m, bounds=bounds, **options)[0]


def analyse_several(
    source: Source | Draws | Sequence[Any],
    fits: Sequence[Fit],
    m: int | None = None,
    *,
    level: float = 0.95,
    rows: int | None = None,
    seed: int | None = None,
    method: str = "auto",
    n: float | None = None,
    large: float = LARGE,
    remedy: Remedy = "report",
    correct: bool = True,
    progress: Progress | None = None,
) -> list[Analysis]:
    """Several analyses of the same data sets, which are drawn once: as :func:`analyse` for each of ``fits``.

    **Privacy:** none spent.
    """
    if not isinstance(fits, list | tuple) or not fits:
        raise InputError(f"{fits!r} are no analyses.", remedy='Give a list, such as [Mean("stay"), Mean("age")].')
    options: dict[str, Any] = {"level": level, "rows": rows, "seed": seed, "method": method, "n": n, "large": large}
    return _analyses(source, fits, m, bounds=None, remedy=remedy, correct=correct, progress=progress, **options)


def _analyses(
    source: Source | Draws | Sequence[Any], fits: Sequence[Fit], m: int | None, *, level: float, large: float,
    remedy: Remedy, correct: bool, bounds: Any, progress: Progress | None, **drawing: Any,
) -> list[Analysis]:  # fmt: skip
    check_level(level)
    _check_remedy(large, remedy)
    limits = [bounds_of(bounds, fit) for fit in fits]
    draws, frames = _prepared(source, fits, m, progress=progress, **drawing)
    sources = [draws] if (own := draws.released()) is None else [draws, own]
    every = [[Runs(keep_going=remedy == "drop") for _ in fits] for _ in sources]
    for part, (lot, tables) in enumerate(zip(every, sources, strict=True)):
        run_all(lot, tables, frames, [_reading(fit) for fit in fits], _analysing(progress, part, len(sources)))
    return [
        _gathered(fit, [lot[j] for lot in every], draws, frames, correct,
                  level=level, large=large, remedy=remedy, bounds=limits[j])
        for j, fit in enumerate(fits)
    ]  # fmt: skip


def _gathered(
    fit: Fit, every: Sequence[Runs], draws: Draws, frames: Frames, correct: bool, **options: Any
) -> Analysis:
    ready, place = isinstance(fit, KnowsColumns), min(every[0].results)
    table = draws[place]
    trial = Trial(fit, table, frames, every[0].results[place], frames.told(draws, place, table.num_rows))
    knows = fit if isinstance(fit, KnowsColumns) else _tried(trial, draws)
    return gather(
        every,
        draws,
        notes=(*getattr(fit, "notes", ()), *([] if ready else _sums(fit, every[0], draws, frames))),
        relations=Relations.of(knows, draws),
        bins=Bins.of(knows, draws, trial, corrected=correct),
        ready=ready,
        correct=correct,
        **options,
    )


def _reading(fit: Fit) -> Fit:
    return lambda frame: read_fit(fit(frame))


def _tried(trial: Trial, draws: Draws) -> KnowsColumns | None:
    """What a function does with the columns, where there is something to tell of any of them; None if unknown."""
    notes = [*Relations.of(None, draws).notes([]), *Bins.of(None, draws, trial, corrected=False).notes([])]
    return Tried.of(trial) if notes or getattr(draws, "merged", None) else None


def analyse_posterior(
    source: Source | Draws | Sequence[Any],
    fit: Fit,
    m: int | None = None,
    *,
    names: Sequence[str] = (),
    rows: int | None = None,
    seed: int | None = None,
    method: str = "auto",
    progress: Progress | None = None,
) -> Mixture:
    """A Bayesian analysis: ``fit`` returns draws of its posterior (draws × quantities), and they are pooled.

    See :func:`mix` for what that needs: data sets of several times as many records as the real table. The bias that
    refits show is not taken off.

    **Privacy:** none spent.
    """
    draws, frames = _prepared(source, [fit], m, n=None, rows=rows, method=method, seed=seed, progress=progress)
    runs = Runs(keep_going=False)
    run_all([runs], draws, frames, [fit], _analysing(progress, 0, 1))
    return mix([runs.results[i] for i in sorted(runs.results)], names)


def _prepared(
    source: Any, fits: Sequence[Fit], m: int | None, *, n: float | None, rows: int | None, method: str,
    seed: int | None, progress: Progress | None,
) -> tuple[Draws, Frames]:  # fmt: skip
    """The data sets; ready models are shown the columns first, before any are drawn."""
    for fit in fits:
        if isinstance(fit, type) or not callable(fit):
            raise InputError(
                f"{getattr(fit, '__name__', fit)!r} is no analysis.",
                remedy='Give a function of a data frame, or a ready model with its column, such as Mean("stay").',
            )
        check = getattr(fit, "check", None)
        schema = getattr(source, "schema", None)
        if check is not None and isinstance(schema, Schema):
            check(Frames.of_schema(schema).of(_empty(schema)), schema)

    def drawing(stage: str, done: float) -> None:
        if progress is not None:
            progress(stage, DRAWING * done)

    drawing("drawing distributions", 0.0)
    return settle(source, m, n=n, rows=rows, method=method, seed=seed, progress=drawing)


def _sums(fit: Fit, runs: Runs, draws: Draws, frames: Frames) -> list[str]:
    return notes_on_sums(fit, runs.results[0], draws, frames) if 0 in runs.results else []


def _analysing(progress: Progress | None, part: int, parts: int) -> Callable[[float], None]:
    """What is told while the fit runs on one of several lots of data sets."""

    def told(done: float) -> None:
        if progress is not None:
            progress("analysing", DRAWING + (1.0 - DRAWING) * (part + done) / parts)

    return told


def _empty(schema: Schema) -> pa.Table:
    return pa.schema([pa.field(c.name, c.type) for c in schema.columns]).empty_table()


def _check_remedy(large: float, remedy: str) -> None:
    if remedy not in ("report", "drop"):
        raise InputError(f"There is no remedy {remedy!r}.", remedy="Choose report or drop.")
    if not is_number(large) or not large > 0:
        raise InputError(f"large is {large!r}.", remedy="Give a positive standard deviation, such as 1000.")
