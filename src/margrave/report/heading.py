"""The heading of a report: public words of the custodian."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import date as calendar_date

from margrave.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Heading:
    """The title of a report and where it comes from. **All of it is public.**

    Args:
        title: The title; by default the name of the data set, or general words.
        office: The office that publishes the release.
        dataset: The name of the data set.
        date: The day of the report, such as 2026-11-26; empty for none.

    Raises:
        InputError: A text is too long or has control characters, or the date is not a day.

    Example:
        >>> Heading(dataset="Hospital visits 2025").words
        'Synthetic data: Hospital visits 2025'
    """

    title: str = ""
    office: str = ""
    dataset: str = ""
    date: str = ""

    def __post_init__(self) -> None:
        max_characters = 200
        for f in fields(self):
            value = getattr(self, f.name)
            if not isinstance(value, str) or len(value) > max_characters or not value.isprintable():
                raise InputError(
                    f"{f.name} of the report is not a line of text.",
                    remedy=f"Give at most {max_characters} characters in one line.",
                )
        if self.date:
            try:
                calendar_date.fromisoformat(self.date)
            except ValueError:
                raise InputError(
                    f"date of the report is {self.date!r}, which is not a day.",
                    remedy="Write it as year, month and day: 2026-11-26.",
                ) from None

    @property
    def words(self) -> str:
        """The title that the page shows."""
        named = f"Synthetic data: {self.dataset}" if self.dataset else "Synthetic data"
        return self.title or named
