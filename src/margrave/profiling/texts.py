"""Kinds of the texts of a column, for drafts: truth values, numbers, dates.

**Privacy:** NOT private: for the custodian alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from margrave.profiling.distinct_numbers import DistinctNumbers
from margrave.profiling.messages import Remark
from margrave.profiling.misspellings import misspelled
from margrave.schema.column_profile import MAX_LISTED_TEXTS, ColumnProfile
from margrave.schema.distinct_texts import DistinctTexts
from margrave.schema.text_moments import Moments
from margrave.schema.text_patterns import alike, date_format, either_way, mostly_numbers
from margrave.schema.toml_text import string


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
    often = evidence.counts.most_common(most)
    groups = [g for g in alike(t for t, _ in often) if len(g) > 1]
    if groups:
        shown = "; ".join(" and ".join(map(repr, g)) for g in groups[:3])
        more = f"; and {len(groups) - 3} more" if len(groups) > 3 else ""
        remark += (
            f' Equal but for case or blanks: {shown}{more}. Write same = "case" if these are one.'
        )
    if rare := misspelled(often):
        listed = f"{{{', '.join(f'{string(t)} = {string(c)}' for t, c in rare.items())}}}"
        rule = f'["case", {listed}]' if groups else listed
        remark += (
            f"{Remark.MISSPELLED} Then correct them in the table and draft anew. Or write same = {rule}: every release"
            " holds these texts, so list only those that are known without these rows."
        )
    return remark


@dataclass(frozen=True, eq=False)
class DatedTexts:
    """The dates or times in a column's texts.

    Attributes:
        pattern: How they are written, for ``strptime``; "" for ISO 8601.
        moments: The moments.
        days: The numbers of rows by day, as ordinals.
    """

    pattern: str
    moments: Moments
    days: DistinctNumbers

    @property
    def unit(self) -> str:
        """The unit of times; "" for dates."""
        return self.moments.unit

    def questions(self, evidence: ColumnProfile) -> str:
        """Return questions on how they are written."""
        swap = " Does the day come first, as in its format? All rows can be read either way."
        asked = swap if self.pattern and either_way(self.pattern, evidence.counts) else ""
        asked += Remark.CENTURY if "%y" in self.pattern else ""
        zoned = self.moments.offset or (evidence.zoned and self.unit)
        return asked + (Remark.OFFSET if zoned else "")


def dated_texts(counts: DistinctTexts) -> DatedTexts | None:
    """Return the dates or times that all texts are; None if they are not."""
    pattern = date_format(counts)
    found = None if pattern is None else counts.dates(pattern)
    if pattern is None or found is None:
        return None
    return DatedTexts(pattern, found, DistinctNumbers.of(found.days, counts.rows))
