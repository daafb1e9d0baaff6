"""Means, totals and quantiles that the noisy counts alone call not reliable, counting what intervals here leave out."""

from __future__ import annotations

from collections.abc import Iterator

from margrave.inference.caveats.context import Context
from margrave.inference.estimands import By, Mean, Quantile, Total
from margrave.inference.estimate import Caveat
from margrave.ratios import percent
from margrave.release.numbers import numbers_of


def check(context: Context) -> Iterator[Caveat]:
    """Yield which means, totals or quantiles of all records or of groups ``Release.numbers`` calls not reliable."""
    fit, release = context.trial.fit, context.release
    by = fit.column if isinstance(fit, By) else None
    of = fit.model if isinstance(fit, By) else fit
    if not isinstance(of, Mean | Total | Quantile) or of.conditions or release is None:
        return
    domain, quantiles = release.schema.domain, dict[str, float]()
    statistic = "mean" if isinstance(of, Mean) else "total"
    if isinstance(of, Quantile):
        statistic = f"{percent(of.p, 'g')} quantile"
        quantiles = {statistic: of.p}
    if (
        release.transcript is None
        or release.answers is None
        or not {of.column, by or of.column} <= set(domain)
    ):
        return
    numbers = numbers_of(
        release.schema, release.transcript, release.answers, context.settings.level, [of.column], by,
        quantiles=quantiles,
    )  # fmt: skip
    known = [n for n in numbers if n.statistic == statistic and n.low is not None]
    marked = [n for n in known if not n.reliable]
    if not marked:
        return
    text = (
        f"By its noisy counts alone this {statistic} is not reliable: {marked[0].words}."
        if by is None
        else f"By their noisy counts alone {len(marked)} of these {len(known)} {statistic}s are not reliable."
    )
    where = (
        "" if quantiles else f" margrave numbers{'' if by is None else f' --by {by}'} shows them."
    )
    yield Caveat(
        "not reliable",
        context.names,
        False,
        f"{text} If the two disagree, take that interval.{where}",
    )
