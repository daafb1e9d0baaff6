"""Checks of a person ID column, for the custodian only.

**Privacy:** NOT private: true counts of the rows.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from margrave._card import counted
from margrave.schema.alarms import Alarm
from margrave.schema.column_profile import ColumnProfile
from margrave.schema.toml_text import string
from margrave.types import AnyArray

#: Alarm thresholds: rows of one person, and their share of all rows.
MIN_ROWS_FOR_PERSON_ALARM, MAX_PERSON_SHARE = 20, 0.05
#: Alarm thresholds: rows of one person as a multiple of this quantile of the others' rows.
PERSON_QUANTILE, MIN_RATIO_TO_OTHERS = 0.99, 10


def normalize_identifier(written: str) -> str:
    """Return an identifier without differences of spelling: case, width, leading zeros, ".0" behind
    a number.

    >>> [normalize_identifier(name) for name in ("P0001", "p1", "00000007", "7.0", "0")]
    ['p1', 'p1', '7', '7', '0']
    """
    written = written if written.isascii() else unicodedata.normalize("NFKC", written)
    number = re.fullmatch(r"(\d+)\.0+", written)
    return re.sub(r"(?<![\d.])0+(?=\d)", "", number[1] if number else written.casefold())


def normalize_identifiers(names: pa.Array) -> pa.Array:
    """Return each identifier as ``normalize_identifier`` does: those in ASCII at once, the others one by one.

    >>> normalize_identifiers(pa.array(["P0001", "7.0", "\u00c900"])).to_pylist()
    ['p1', '7', '\u00e90']
    """
    found = pc.replace_substring_regex(pc.ascii_lower(names), r"\A([0-9]+)\.0+\z", r"\1")
    found = pc.replace_substring_regex(found, r"(\A|[^0-9.])0+([0-9])", r"\1\2")
    odd = pc.invert(pc.string_is_ascii(names))
    if not pc.any(odd).as_py():
        return found
    others = [normalize_identifier(n) for n in names.filter(odd).to_pylist()]
    return pc.replace_with_mask(found, odd, pa.array(others, names.type))


@dataclass(frozen=True)
class PersonCheck:
    """The number of persons, the most rows of one person, and the share of rows kept at K rows a
    person.

    ``alike``: the number of identifiers that equal another up to case, leading zeros or ".0".
    ``usual``: 99 % of the other persons have at most this number of rows.
    """

    persons: int
    most: int
    rows: int
    kept: dict[int, float]
    alike: int = 0
    usual: int = 0

    @staticmethod
    def of(persons: AnyArray, names: Iterable[str] = ()) -> PersonCheck:
        """Return the counts for one person number per row; numbers below 0 mean no person."""
        alike = pc.value_counts(normalize_identifiers(pa.array(names, pa.large_string())))
        often = alike.field("counts").to_numpy()
        alike = int(often[often > 1].sum())
        return PersonCheck.of_counts(np.bincount(persons[persons >= 0]), alike)

    @staticmethod
    def of_counts(each: AnyArray, alike: int) -> PersonCheck:
        """Return the counts for the number of rows of each person."""
        # Row bounds per person whose effect is reported.
        kept_row_bounds = (1, 2, 3, 5, 10, 20)
        rows = int(each.sum())
        kept = {k: float(np.minimum(each, k).sum() / rows) for k in kept_row_bounds if rows}
        others = np.sort(each)[:-1]
        usual = (
            int(others[min(int(PERSON_QUANTILE * len(others)), len(others) - 1)])
            if len(others)
            else 0
        )
        return PersonCheck(len(each), int(each.max(initial=0)), rows, kept, alike, usual)

    def alarms(self) -> Iterator[Alarm]:
        """Yield alarms: an identifier with very many rows may be a missing-value code or several
        persons.
        """
        if self.alike:
            yield Alarm(
                "identifiers",
                f"{self.alike:,} of the {self.persons:,} identifiers of persons equal another but for case, leading"
                " zeros or '.0'. Each is taken for a person of its own, and a person who has several is not protected"
                " as one: write them alike in the table.",
            )
        large, beyond = (
            self.most > MAX_PERSON_SHARE * self.rows,
            0 < MIN_RATIO_TO_OTHERS * self.usual < self.most,
        )
        if self.most < MIN_ROWS_FOR_PERSON_ALARM or not (large or beyond):
            return
        compared = "" if large else f", and 99 % of the others have {self.usual:,} at most"
        yield Alarm(
            "rows of one person",
            f"One person has {self.most:,} of the {self.rows:,} rows{compared}. Is it a person, or a mark for those"
            " that are not known? Rows of several persons under one identifier are not protected as theirs.",
        )

    def lines(self, unit: str = 'unit="add-remove-person:K"') -> list[str]:
        """Return sentences on the rows that a unit of persons would keep.

        Args:
            unit: The argument for such a unit, as the reader writes it.
        """
        shares = ", ".join(f"{100 * share:.4g} % with {k}" for k, share in self.kept.items())
        return [
            f"{counted(self.persons, 'person')}, with {counted(self.most, 'row')} at most.",
            *(
                [
                    f"Share of the rows that count, by the most rows that a person keeps ({unit}): {shares}."
                ]
                if shares
                else []
            ),
        ]


def overlooked_person(person: ColumnProfile, is_ignored: bool) -> Alarm:
    """Return an alarm: a column that is ignored or synthesized looks like a person ID column."""
    what, remedy = (
        ("ignored", "take it out of ignore")
        if is_ignored
        else ("synthesized", "take its [[column]] out")
    )
    return Alarm(
        f"person: {person.name}",
        f"Column {person.name!r} is {what}, and looks as if it said whose row it is: {len(person.counts):,}"
        f" identifiers, one of them with {int(person.counts.rows.max()):,} of the {person.rows:,} rows. If so,"
        f" {remedy}, and write person = {string(person.name)} in [schema]: without it a run protects single rows,"
        " and no persons.",
    )
