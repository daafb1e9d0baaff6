"""Learn the categories of an open column from the values that a threshold let through."""

from __future__ import annotations

from statistics import NormalDist

from margrave.schema.categorical import Categorical
from margrave.schema.learn import Learn
from margrave.schema.spellings import spellings_of
from margrave.transcript import Discovery


def categories_of(column: Learn, discovery: Discovery) -> Categorical | None:
    """Return a column of the listed and the most frequent discovered values, or None if there is none.

    All other values are one open category. Noisy counts choose among discovered values and are not
    used further: those just above the threshold are too large on average.

    Args:
        column: The column that was to be learned.
        discovery: Its frequent values.

    >>> import numpy as np
    >>> from fractions import Fraction
    >>> price = {"scale": 9.0, "rho": Fraction(1, 162), "delta": Fraction(1, 10**9)}
    >>> found = Discovery("town", ("Basel", "Bern"), np.array([130, 207, 3]), 0, 57, **price)
    >>> categories_of(Learn("town", "categorical"), found).labels()
    ['Basel', 'Bern', 'other', '(missing)']
    """
    room = max(column.max_categories - discovery.listed, 0)
    counts = discovery.discovered
    kept = sorted(counts, key=lambda value: (-counts[value], value))[:room]
    values = [*discovery.values[: discovery.listed], *sorted(kept)]
    if not values or values == ["other"]:
        return None
    same = spellings_of(column.same, values)
    return Categorical(column.name, values, other=True, missing=True, same=same)


def advice_on(discovery: Discovery) -> str:
    """Return the threshold that no value reached, and which epsilon or delta would lower it.

    A threshold grows with the noise scale, and with the root of the logarithm of delta.
    """
    threshold, delta = discovery.threshold, float(discovery.delta)
    larger = min(1e3 * delta, 0.4)
    share = NormalDist().inv_cdf(larger) / NormalDist().inv_cdf(delta)
    return (
        f"A category needs a noisy count of {threshold:,}: with 4 times the epsilon about {-(-threshold // 4):,} would"
        f" do, with {larger / delta:,.0f} times the delta about {round(threshold * share):,}."
    )
