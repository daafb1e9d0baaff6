"""Value labels of numbers: whether they list all values of a column, or label only some."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from margrave.schema.parsing import number


def list_all_values(labels: Mapping[str, str]) -> bool:
    """Return True if the labelled codes of a column of numbers are taken for all its values.

    These are two or more codes that start at 1 or below and have no gap. A gap may lie before codes labelled as "no
    answer" or "other", and above negative codes. Codes with decimals are taken to have none.

    >>> scale, answers = {"0": "unhappy", "10": "happy"}, {"1": "yes", "2": "no", "9": "refused"}
    >>> list_all_values(scale), list_all_values(answers), list_all_values({"90": "90 or more", "99": "refused"})
    (False, True, False)
    """
    other = r"\b(others?|sonstiges?|andere[rs]?|something else|autres?|otr[oa]s?)\b"
    aside = {*_without_answer(labels), *_matching(labels, other)}
    codes = {number(code) for code in labels if code not in aside}
    if any(code % 1 for code in codes):
        return len(codes) > 1
    return _are_consecutive(codes) or _are_consecutive({code for code in codes if code >= 0})


def split_labels(labels: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Return the codes labelled as "no answer", and the other labels as notes.

    >>> split_labels({"1": "unknown", "7": "well known", "98": "weiß nicht", "99": "Keine Angabe"})
    (['98', '99'], ['1 = unknown', '7 = well known'])
    """
    codes = _without_answer(labels)
    return codes, [f"{code} = {label}" for code, label in labels.items() if code not in codes]


def _without_answer(labels: Mapping[str, str]) -> list[str]:
    words = (
        r"(do(n['\u2019]t| not)|can(['\u2019]t|not)) (know|say|answer|remember)|not known|unknown|refus|"
        r"no (answer|response|information|data)|not (stated|answered|ascertained|asked|available|applicable|reported)|"
        r"non-?response|missing|inapplicable|declined|prefer not|\bn\.?/?a\b|\bdk\b|"
        r"kein\w* (angabe|antwort|auskunft)|wei(ß|ss) (es )?nicht|verweiger|unbekannt|nicht (bekannt|erhoben|gefragt|"
        r"beantwortet)|\bk\.? ?a\b|ne sait pas|(sans|pas de|non) r[eé]ponse|"
        r"no sabe|no contesta|ns/nc|non sa|non risponde"
    )
    return _matching(labels, words)


def _matching(labels: Mapping[str, str], words: str) -> list[str]:
    max_end = 5  # codes up to it may be an end of a scale
    return [
        code
        for code, label in labels.items()
        if not 0 <= number(code) <= max_end and re.search(words, label, re.IGNORECASE)
    ]


def _are_consecutive(codes: Collection[float]) -> bool:
    return len(codes) > 1 and min(codes) <= 1 and max(codes) - min(codes) == len(codes) - 1
