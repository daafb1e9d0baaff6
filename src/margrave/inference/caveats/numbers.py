"""Numbers that cannot be trusted as they are: bias, unstable fits, wrong variances, bounds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from functools import partial

import numpy as np
import pandas as pd
from scipy import special

from margrave.inference.caveats.context import Context
from margrave.inference.columns import date_text, first_few
from margrave.inference.datasets import ROWS, are_runs, total_of
from margrave.inference.estimate import MAX_BIAS, Caveat, Estimate
from margrave.inference.fitted import Fitted
from margrave.inference.probe import try_fit
from margrave.inference.replicates import Status
from margrave.ratios import figure
from margrave.release.beyond_bounds import length_words
from margrave.release.draws import DEFAULT_DRAWS
from margrave.schema.elapsed import Elapsed

#: Texts of failures and of warnings that are quoted.
MAX_QUOTED = 3


def bias(context: Context) -> Iterator[Caveat]:
    """Yield the estimates whose bias is too large to be corrected."""
    names = tuple(e.name for e in context.estimates if e.biased)
    if names:
        yield Caveat(
            "bias", names, True,
            f"{context.about(names)}: the bias that refits of the release show is more than {MAX_BIAS:g} standard"
            f" errors without it ({_most_biased(context)}). The noise hides too much of this for any interval from"
            " this release to be trusted.",
        )  # fmt: skip


def _most_biased(context: Context) -> str:
    def std_errors(e: Estimate) -> float:
        return abs(e.bias) / math.sqrt(max(e.variance - e.bias**2 * e.corrected, 1e-300))

    most = max((e for e in context.estimates if e.biased), key=std_errors)
    return f"{most.name}: {figure(most.bias, 3)}, {figure(std_errors(most), 2)} standard errors"


def failures(context: Context) -> Iterator[Caveat]:
    """Yield how many data sets were left out because the fit failed."""
    found = {i: why for runs in context.runs for i, why in runs.failures.items()}
    if found:
        texts = "; ".join(list(dict.fromkeys(found.values()))[:MAX_QUOTED])
        m = len(context.draws)
        text = f"Left out: {len(found)} of {m} data sets, on which the fit failed ({texts})."
        yield Caveat("failed", (), False, text)


def set_aside(context: Context) -> Iterator[Caveat]:
    """Yield results that were set aside: why, and on how many data sets."""
    settings, status = context.settings, context.replicates[0].status
    dropped = settings.on_unstable == "drop"
    end = "They were left out for it." if dropped else "No interval is given."
    hint = "" if dropped else ' Pass on_unstable="drop" (--drop-unstable) to leave them out.'
    look = f"first on data set {{first}}. {end} Look at the fit; too few records of a kind may be the cause."
    texts = {
        Status.NAN: f"the fit returned NaN on {{of}}, {look}",
        Status.NEGATIVE: f"the fit returned a negative variance on {{of}}, {look}",
        Status.RENAMED: "on {of} the fit returned other names than on the rest, first on data set {first}; they were"
        " left out for it. Return the same names on every data set.",
        Status.UNDETERMINED: "{of} do not determine it (no record in its category, or in the reference's) and were left"
        " out for it.",
        Status.UNSTABLE: "{of} gave no stable estimate (not converged, not finite, or a standard error above"
        f" {settings.max_std_error:g}). An empty cell often is the cause. {end}{hint}",
    }  # fmt: skip
    for kind, text in texts.items():
        found = status == kind
        groups: dict[tuple[int, int], list[str]] = {}
        for name, column in zip(context.names, found.T, strict=True):
            if column.any():
                count, first = int(column.sum()), context.places[int(column.argmax())] + 1
                alike = (0, 0) if kind == Status.UNDETERMINED else (count, first)
                groups.setdefault(alike, []).append(name)
        for (_, first), names in groups.items():
            counts = {int(found[:, context.names.index(n)].sum()) for n in names}
            of = f"{max(counts)} of {len(context.draws)} data sets"
            of = of if len(counts) == 1 else f"up to {of}"
            text_of = f"{context.about(names)}: {text.format(of=of, first=first)}"
            yield Caveat(kind.name.lower(), tuple(names), False, text_of)


def no_variance(context: Context) -> Iterator[Caveat]:
    """Yield estimates without a variance, or with very few degrees of freedom."""
    # Degrees of freedom below which an interval is very wide.
    min_useful_df = 4.0
    flat = tuple(e.name for e in context.estimates if e.variance == 0)
    in_one_bin = tuple(e.name for e in context.estimates if e.is_in_one_bin)
    for names, text in (
        (
            tuple(e.name for e in context.estimates
                  if np.isfinite(e.estimate) and not e.has_interval and e.name not in flat),
            "the rule gives no positive variance. Give n, the number of real records, or draw more data sets or more"
            " records in each.",
        ),
        (
            tuple(n for n in flat if n not in in_one_bin),
            "all data sets gave the same value, with variance 0, so there is no interval.",
        ),
        (
            in_one_bin,
            "every data set gave the same value, also at the ranks that sampling may lead to. So the interval is the"
            " bin of that value.",
        ),
        (
            tuple(e.name for e in context.estimates if e.has_interval and e.df < min_useful_df),
            f"fewer than {min_useful_df:g} degrees of freedom make the interval very wide. {_more_data_sets(context)}",
        ),
    ):  # fmt: skip
        if names:
            yield Caveat("no variance", names, False, f"{context.about(names)}: {text}")


def _more_data_sets(context: Context) -> str:
    m = len(context.draws)
    if are_runs(context.draws):
        return f"The release has {m} runs; make the next one of more."
    few = m < DEFAULT_DRAWS
    return (
        f"Draw more than {m} data sets, {DEFAULT_DRAWS} by default."
        if few
        else "Draw more data sets."
    )


def wrong_variance(context: Context) -> Iterator[Caveat]:
    """Yield variances that do not agree with how much the data sets differ.

    Data sets of one distribution differ by their own sampling alone: with right variances,
    (m − 1) b / v̄ is χ² with m − 1 degrees of freedom. Those of a posterior differ by the sampling
    of the real records too, and by noise: (m − 1) b / ((1 + ratio) v̄) is χ² or larger.
    """
    if any(e.external for e in context.estimates):
        yield from _alike(context)
    elif context.is_function:
        one, last = len(context.replicates) > 1, context.replicates[-1]
        for e, q, v in zip(context.estimates, last.points.T, last.variances.T, strict=True):
            q, v = q[np.isfinite(q)], v[np.isfinite(q)]
            if e.has_interval and q.var() > 0 and v.mean() > 0:
                yield from _disagreement(e, float(q.var(ddof=1)), float(v.mean()), len(q), one)


def _disagreement(
    e: Estimate, between: float, within: float, m: int, one: bool
) -> Iterator[Caveat]:
    # A variance is wrong if it is this many times too large or too small.
    variance_factor = 4.0
    # Data sets of a posterior may vary this many times more than the fit says, by privacy's
    # noise.
    max_posterior_factor = 1e4
    # Probability, if a variance is right, of a caveat on it.
    variance_alpha = 1e-4
    ratio = between / within / (1.0 if one else 1.0 + (e.ratio or 0.0))
    most = variance_factor if one else max_posterior_factor
    if not 1.0 / variance_factor < ratio < most and _tail(ratio, m) < variance_alpha:
        of = "samples of one distribution" if one else "the data sets"
        yield Caveat(
            "variance", (e.name,), False,
            f"{e.name}: the fit returned variances of {figure(within, 3)} on average, and its estimates of {of} have"
            f" one of {figure(between, 3)}. Return the variance of the estimate: the square of its standard error, not"
            " a p-value or the variance of the records.",
        )  # fmt: skip


def _alike(context: Context) -> Iterator[Caveat]:
    # Probability, if tables come from a posterior, of a caveat that they come from one
    # distribution.
    likeness_alpha = 0.01
    known = [e for e in context.estimates if e.within > 0]
    ratios = [e.between / e.within / (1.0 + (e.ratio or 0.0)) for e in known]
    names = tuple(
        e.name
        for e, r in zip(known, ratios, strict=True)
        if r < 1.0 and _tail(r, e.used) < likeness_alpha / len(known)
    )
    if names:
        other = " (Or the fit returns variances that are too large.)" if context.is_function else ""
        yield Caveat(
            "external", names, False,
            f"{context.about(names)}: the tables differ as little as samples of one distribution do, which do not vary"
            " with the noise, and the intervals are too narrow. Analyze the release itself, or tables of release.draws."
            f"{other}",
        )  # fmt: skip


def _tail(ratio: float, m: int) -> float:
    """Return the probability that χ² / (m − 1) is as far out as ``ratio``, on its side."""
    at = (m - 1) * ratio
    return float(min(special.chdtr(m - 1, at), special.chdtrc(m - 1, at)))


def at_bounds(context: Context) -> Iterator[Caveat]:
    """Yield estimates that were moved to a bound, and intervals that were cut off there."""
    both = [p for p in zip(context.uncut, context.estimates, strict=True) if p[1].has_interval]
    moved = [(b, e) for b, e in both if figure(b.estimate, 3) != figure(e.estimate, 3)]
    if moved:
        each = [
            f"{e.name} came out at {figure(b.estimate, 3)}, and is given as {figure(e.estimate)}"
            for b, e in moved
        ]
        names = tuple(e.name for _, e in moved)
        yield Caveat("bounds", names, False, f"Impossible: {first_few(each)}.")
    level = context.settings.level
    cut = tuple(e.name for b, e in both if b.conf_int(level) != e.conf_int(level))
    if cut:
        text = f"{context.about(cut)}: the interval is cut off at what is possible."
        yield Caveat("bounds", cut, False, text)


def dates(context: Context) -> Iterator[Caveat]:
    """Yield the dates of estimates that are days since 1970."""
    each = []
    for e in (e for e in context.estimates if e.days and (e.has_interval or e.is_in_one_bin)):
        at = date_text(e.estimate)
        low, high = e.ends_as_texts(context.settings.level, date_text)
        each.append(f"{e.name} is {at}, with an interval of {low} to {high}")
    if each:
        yield Caveat("dates", context.names, False, f"In days since 1970: {'; '.join(each)}.")


def units(context: Context) -> Iterator[Caveat]:
    """Yield the unit of times elapsed, and estimates of them in units that people read."""
    basis, release = context.basis, context.release
    if basis is None or release is None:
        return
    schema = release.schema
    names = [c for c in basis.by_value if c in schema.domain]
    for column in (c for c in map(schema.column, names) if isinstance(c, Elapsed)):
        text = f"{column.name} is in {column.unit}s."
        if column.name == basis.columns[0] and basis.ends:
            each = []
            for e in (e for e in context.estimates if e.has_interval):
                show = partial(length_words, unit=column.unit)
                at, (low, high) = show(e.estimate), e.ends_as_texts(context.settings.level, show)
                each.append(f"{e.name} is {at}, with an interval of {low} to {high}")
            text = f"{text.removesuffix('.')}: {first_few(each)}." if each else text
        yield Caveat("units", context.names, False, text)


def warned(context: Context) -> Iterator[Caveat]:
    """Yield the warnings that the fit gave, the commonest first."""
    found = sum((runs.warned for runs in context.runs), Counter[str]())
    tables = len(context.draws) * len(context.runs)
    for text, count in found.most_common(MAX_QUOTED):
        yield Caveat("warning", (), False, f"Warned on {count} of {tables} data sets: {text}")


def own_notes(context: Context) -> Iterator[Caveat]:
    """Yield the sentences that belong to the analysis itself."""
    for text in () if context.basis is None else context.basis.notes:
        yield Caveat("analysis", (), False, text)


def sums(context: Context) -> Iterator[Caveat]:
    """Yield estimates of a function that double on the records taken twice: sums and counts.

    They grow with the data sets, whatever the number of real records is.
    """
    draws, runs = context.draws, context.runs[0]
    if not context.is_function or draws.total is None or 0 not in runs.results:
        return
    uncertain = len({total_of(draws, i) for i in range(min(len(draws), 3))}) > 1
    other_size = round(draws.total) != draws.rows
    names = _doubled(context, runs.results[0]) if uncertain or other_size else []
    if names:
        text = f"{context.about(names)}: sums or counts, twice as large on twice the records."
        if other_size:
            text += f" They are of the {draws.rows:,} records of a data set, of about {draws.total:,.0f} real ones."
        if uncertain:
            text += " The interval does not include the uncertainty of the number of real records."
        text += " Use Total and Count, or return means times frame.attrs['total']."
        yield Caveat("sums", tuple(names), False, text)


def _doubled(context: Context, first: Fitted) -> list[str]:
    # Relative difference up to which an estimate counts as doubled.
    doubling_tolerance = 1e-9
    frame = context.trial.frame
    twice = pd.concat([frame, frame], ignore_index=True)
    twice.attrs = {**frame.attrs, ROWS: 2 * len(frame)}
    found = try_fit(context.trial.fit, lambda: twice)
    after = {} if found is None else dict(zip(found.names, found.estimates.tolist(), strict=True))
    return [
        n
        for n, q in zip(first.names, first.estimates.tolist(), strict=True)
        if q and n in after and abs(after[n] - 2.0 * q) <= doubling_tolerance * abs(q)
    ]


def correction(context: Context) -> Iterator[Caveat]:
    """Yield whether the bias of refits was taken off."""
    if len(context.replicates) > 1:
        yield Caveat(
            "correction", (), False,
            "The bias that refits of the release show was taken off each estimate, and widens its interval."
            if context.settings.bias_correct
            else "The bias that refits of the release show was left in each estimate, and no interval includes it"
            " (bias_correct=False, --no-bias-correct).",
        )  # fmt: skip


def of_draws(context: Context) -> Iterator[Caveat]:
    """Yield what the data sets leave out of account, without what the checks say in detail."""
    general: tuple[str, ...] = ()
    if context.release is not None:
        general = context.release.relation_notes
        general = general[:1] if context.basis is None else general
    for text in context.draws.notes:
        if text not in general:
            yield Caveat("data sets", (), False, text)


#: Checks whose caveats change what a number says, and those of how it was made.
OF_NUMBERS = (dates, units, failures, set_aside, no_variance, wrong_variance, sums, at_bounds)
OF_METHODS = (warned, own_notes, correction, of_draws)
