"""How many records a table is drawn with, where no number is given: about as many as there are, if that is known."""

from __future__ import annotations

from margrave.errors import InputError

TOLD = 4.0
"""How many standard deviations of its noise the number of records must be: it is then known to about a quarter, and an
empty table passes for one of records three times in a hundred thousand."""


def is_told(total: float, deviation: float) -> bool:
    """Whether noisy answers tell the number of records, with the standard deviation that their noise gives it."""
    return total >= TOLD * deviation


def check_told(total: float, deviation: float) -> None:
    """An InputError where the number of records is lost in noise: what is drawn then would be any number."""
    if not is_told(total, deviation):
        raise InputError(
            f"The noise hides how many records there are: about {total:,.0f} by the noisy answers, give or take"
            f" {deviation:,.0f}.",
            remedy="Give the number of rows to draw: sample(1000), rows=1000, or --rows 1000.",
        )
