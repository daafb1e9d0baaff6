"""Remedies for bounds and bins, in the keys of a schema."""

from __future__ import annotations

from collections.abc import Sequence


def bounds_remedy(keys: Sequence[str] = ("low", "high")) -> str:
    """Return what to write for a column whose bounds were learned: its public bounds, and not these alone.

    Args:
        keys: The keys of the bounds that are not public yet.

    >>> bounds_remedy(["high"]).partition(". ")[0]
    'write learn = true and beside it high = ..., if that bound is public'
    """
    bounds = " and ".join(f"{key} = ..." for key in keys)
    public = "that bound is" if len(keys) == 1 else "these bounds are"
    return (
        f"write learn = true and beside it {bounds}, if {public} public. Bounds in place of learn = true have bins of"
        " equal width, so they also need finer edges where values concentrate."
    )


def bins_remedy() -> str:
    """Return what to write for a column with public bounds whose bins are too wide.

    >>> bins_remedy()
    'write learn = true beside low and high, or give finer edges where values concentrate.'
    """
    return "write learn = true beside low and high, or give finer edges where values concentrate."
