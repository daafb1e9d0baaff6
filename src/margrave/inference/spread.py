"""Whether the variances that a fit returns go with how much the data sets differ."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import special

from margrave.inference.estimate import Estimate
from margrave.inference.kinds import some
from margrave.typing import FloatArray

FACTOR = 4.0
"""A variance is told to be wrong where it is so many times too large, or too small."""
MOST = 1e4
"""So many times may the data sets of a posterior vary as the fit says: noise for privacy is not known to the fit."""
RARELY = 1e-4
"""How often chance alone may make a right variance look so wrong."""
ALIKE = 0.01
"""How often tables of a posterior may pass for samples of one distribution."""

REMEDY = "Return the variance of the estimate: the square of its standard error, no p-value, not that of the records."


def notes_on_spread(
    estimates: Sequence[Estimate], points: FloatArray, variances: FloatArray, *, one: bool, ready: bool
) -> list[str]:
    """What is told where they do not: of a function of one's own, and of tables drawn elsewhere.

    Data sets of one distribution (``one``) differ by their own sampling alone, so that with right variances
    (m − 1) b / v̄ is χ² with m − 1 degrees of freedom. Those of a posterior differ by the sampling of the real records
    too, and by noise: (m − 1) b / ((1 + ratio) v̄) is χ² or larger. ``points`` and ``variances`` are of those
    of one distribution where there are any, else of the others (data sets × estimates).
    """
    if any(e.elsewhere for e in estimates):
        return _alike(estimates, ready)
    told = []
    for e, q, v in zip(estimates, points.T, variances.T, strict=True):
        good = np.isfinite(q)
        if ready or not e.known or not q[good].var() > 0 or not v[good].mean() > 0:
            continue
        between, within = float(q[good].var(ddof=1)), float(v[good].mean())
        ratio = between / within / (1.0 if one else 1.0 + (e.ratio or 0.0))
        if not 1.0 / FACTOR < ratio < (FACTOR if one else MOST) and _chance(ratio, int(good.sum())) < RARELY:
            of = "samples of one distribution" if one else "the data sets"
            told.append(
                f"{e.name}: the fit returned variances of {within:.3g} on average, and its estimates of {of} have"
                f" one of {between:.3g}. {REMEDY}"
            )
    return told


def _alike(estimates: Sequence[Estimate], ready: bool) -> list[str]:
    known = [e for e in estimates if e.within > 0]
    ratios = [e.between / e.within / (1.0 + (e.ratio or 0.0)) for e in known]
    alike = [e for e, r in zip(known, ratios, strict=True) if r < 1.0 and _chance(r, e.used) < ALIKE / len(known)]
    if not alike:
        return []
    return [
        f"{some([e.name for e in alike])}: the tables differ as little as samples of one distribution do, which know"
        " nothing of the noise, and the intervals are too narrow. Analyse the release itself, or tables of"
        f" release.draws.{'' if ready else ' (Or the fit returns variances that are too large.)'}"
    ]


def _chance(ratio: float, m: int) -> float:
    """How likely χ² / (m − 1) is to be as far out as ``ratio``, to its side."""
    at = (m - 1) * ratio
    return float(min(special.chdtr(m - 1, at), special.chdtrc(m - 1, at)))
