"""Kinds of the texts of a column, for drafts: truth values, numbers, dates.

**Privacy:** NOT private: for the custodian alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from margrave.profiling.messages import Remark
from margrave.schema.column_profile import MAX_LISTED_TEXTS, ColumnProfile
from margrave.schema.parsing import in_utc, number, parser
from margrave.schema.text_patterns import alike, date_format, either_way, mostly_numbers


def is_whole(text: str) -> bool:
    """Return True if a text is a whole number without leading zeros."""
    return re.fullmatch(r"-?(0|[1-9][0-9]{0,14})(\.0+)?", text) is not None


def is_number(text: str) -> bool:
    """Return True if a text is a number that margrave reads."""
    return (
        re.fullmatch(r"-?(0|[1-9][0-9]*)?(\.[0-9]+)?([eE][-+]?[0-9]{1,2})?", text) is not None
        and abs(number(text)) < 1e100
    )


def says_truth(texts: Iterable[str]) -> bool:
    """Return True if all texts are true or false."""
    return all(t.lower() in ("true", "false") for t in texts)


def spelling(evidence: ColumnProfile, most: int) -> str:
    """Return questions on categories: those alike among the ``most`` frequent, and numbers."""
    remark = (
        Remark.NUMBERS
        if mostly_numbers(evidence.counts) and len(evidence.counts) > MAX_LISTED_TEXTS
        else ""
    )
    groups = [g for g in alike(t for t, _ in evidence.counts.most_common(most)) if len(g) > 1]
    if groups:
        shown = "; ".join(" and ".join(map(repr, g)) for g in groups[:3])
        more = f"; and {len(groups) - 3} more" if len(groups) > 3 else ""
        remark += (
            f' Equal but for case or blanks: {shown}{more}. Write same = "case" if these are one.'
        )
    return remark


@dataclass(frozen=True, eq=False)
class DatedTexts:
    """The dates or times in a column's texts.

    Attributes:
        pattern: How they are written, for ``strptime``; "" for ISO 8601.
        moments: The moments, in UTC.
        unit: The unit of times; "" for dates.
        days: The numbers of rows by day, as ordinals.
        offset: Whether some have an offset from UTC.
    """

    pattern: str
    moments: list[datetime]
    unit: str
    days: Counter[int]
    offset: bool

    def questions(self, evidence: ColumnProfile) -> str:
        """Return questions on how they are written."""
        swap = " Does the day come first, as in its format? All rows can be read either way."
        asked = swap if self.pattern and either_way(self.pattern, evidence.counts) else ""
        asked += Remark.CENTURY if "%y" in self.pattern else ""
        return asked + (Remark.OFFSET if self.offset else "")


def dated_texts(counts: Counter[str]) -> DatedTexts | None:
    """Return the dates or times that all texts are; None if they are not."""
    pattern = date_format(counts)
    if pattern is None:
        return None
    read = [(parser(pattern or None)(text), count) for text, count in counts.items()]
    days: Counter[int] = Counter()
    moments = []
    for moment, count in read:
        moment = None if moment is None else in_utc(moment)
        if moment is not None:
            moments.append(moment)
            days[moment.toordinal()] += count
    offset = any(m is not None and m.utcoffset() for m, _ in read)
    return DatedTexts(pattern, moments, _unit(moments), days, offset)


def _unit(moments: Collection[datetime]) -> str:
    if all(m == datetime(m.year, m.month, m.day) for m in moments):
        return ""
    if any(m.second or m.microsecond for m in moments):
        return "second"
    return "minute" if any(m.minute for m in moments) else "hour"
