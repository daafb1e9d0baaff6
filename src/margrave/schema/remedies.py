"""Remedies for bounds and bins, in the keys of a schema."""

from __future__ import annotations

from collections.abc import Sequence


def bounds_remedy(keys: Sequence[str] = ("low", "high")) -> str:
    """Return what to write for a column whose bounds were learned: its public bounds, and not these alone.

    Args:
        keys: The keys of the bounds that are not public yet. Without any, closer bounds are what may help.

    >>> bounds_remedy(["high"]).partition(". ")[0]
    'write learn = true and beside it high = ..., if that bound is public'
    >>> bounds_remedy([])
    'write a higher low or a lower high, if one is public.'
    """
    if not keys:
        return "write a higher low or a lower high, if one is public."
    bounds = " and ".join(f"{key} = ..." for key in keys)
    public = "that bound is" if len(keys) == 1 else "these bounds are"
    return (
        f"write learn = true and beside it {bounds}, if {public} public. Bounds in place of learn = true have bins of"
        " equal width, so they also need finer edges where values concentrate."
    )


def learn_remedy() -> str:
    """Return what to write for a column with public bounds whose bins do not fit its values.

    >>> learn_remedy()
    'write learn = true beside low and high'
    """
    return "write learn = true beside low and high"


def bins_remedy() -> str:
    """Return what to write for a column with public bounds whose bins are too wide.

    >>> bins_remedy()
    'write learn = true beside low and high, or give finer edges where values concentrate.'
    """
    return f"{learn_remedy()}, or give finer edges where values concentrate."
