"""Rare texts that may be a frequent category, misspelled or abbreviated.

**Privacy:** NOT private: for the custodian alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from margrave.schema.spellings import folded


def misspelled(counts: Sequence[tuple[str, int]]) -> dict[str, str]:
    """Return by each rare text the frequent category that it is nearly equal to.

    A text is rare if it is on a twentieth of the category's rows at most. It is nearly equal if one letter is missing,
    added, replaced or exchanged with the next, or if it is the beginning of the category before a period. Texts
    with digits are codes, and texts of a few letters are too alike.

    Args:
        counts: Texts with their numbers of rows, the most frequent first.

    Example:
        >>> misspelled([("Chirurgie", 900), ("Innere Medizin", 800), ("Chirugie", 9), ("Innere Med.", 8), ("HNO", 7)])
        {'Chirugie': 'Chirurgie', 'Innere Med.': 'Innere Medizin'}
    """
    max_share, min_letters = 0.05, 5
    words = [(text, folded(text), rows) for text, rows in counts]
    words = [w for w in words if len(w[1]) >= min_letters and not any(c.isdigit() for c in w[1])]
    found = {}
    for text, rare, rows in words:
        for category, frequent, often in words:
            if rows > max_share * often:
                break
            if rare != frequent and (_is_one_edit(rare, frequent) or _abbreviates(rare, frequent)):
                found[text] = category
                break
    return found


def _abbreviates(short: str, long: str) -> bool:
    return short.endswith(".") and long.startswith(short[:-1]) and len(long) > len(short)


def _is_one_edit(one: str, other: str) -> bool:
    """Return True if a letter is missing, added, replaced, or exchanged with the next."""
    if abs(len(one) - len(other)) > 1:
        return False
    start = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    if start is None:
        return True  # the longer one has a letter more
    a, b = one[start:], other[start:]
    swapped = a[:2] == b[:2][::-1] and a[2:] == b[2:]
    return swapped or a[1:] == b[1:] or a[1:] == b or a == b[1:]
