"""The distinct texts of a column with their numbers of rows. Patterns are tried on all of them at once.

**Privacy:** NOT private: true counts, for the custodian only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from margrave.schema.parsing import SPACES, DateReader, Mask, numbers_of
from margrave.schema.text_moments import Moments, moments_of
from margrave.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class DistinctTexts(Collection[str]):
    """Distinct texts without blanks around them, in the order of their first rows, with their numbers of rows.

    Args:
        texts: The texts.
        rows: The number of rows of each.

    Example:
        >>> counts = DistinctTexts.of(["no", "yes", "no"])
        >>> list(counts.items()), counts.total(), "yes" in counts, counts.all_match(r"[a-z]+")
        ([('no', 2), ('yes', 1)], 3, True, True)
    """

    texts: pa.Array
    rows: IntArray
    _dates: dict[str, Moments | None] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, texts: Iterable[str]) -> DistinctTexts:
        """Return the counts of texts."""
        listed = list(texts)
        return cls.joined(pa.array(listed, pa.large_string()), np.ones(len(listed), dtype=np.int64))

    @classmethod
    def joined(cls, texts: pa.Array, rows: IntArray) -> DistinctTexts:
        """Return the counts of texts of which some may be equal, from the number of rows of each."""
        coded = texts.dictionary_encode()
        counts = np.bincount(coded.indices, weights=rows, minlength=len(coded.dictionary))
        return cls(coded.dictionary, counts.astype(np.int64))

    def __len__(self) -> int:
        """Return the number of distinct texts."""
        return len(self.texts)

    def __iter__(self) -> Iterator[str]:
        """Yield the texts."""
        piece = 1024
        for start in range(0, len(self), piece):
            yield from self.texts.slice(start, piece).to_pylist()

    def __contains__(self, text: object) -> bool:
        """Return True if a text is among them."""
        return bool(pc.any(pc.equal(self.texts, text)).as_py())

    def items(self) -> Iterator[tuple[str, int]]:
        """Yield each text with its number of rows."""
        return zip(self, self.rows.tolist(), strict=True)

    def total(self) -> int:
        """Return the number of rows."""
        return int(self.rows.sum())

    def keep(self, chosen: Mask) -> DistinctTexts:
        """Return the counts of some of the texts."""
        return DistinctTexts(self.texts.filter(pa.array(chosen)), self.rows[chosen])

    def most_common(self, number_of_texts: int | None = None) -> list[tuple[str, int]]:
        """Return the most frequent texts with their numbers of rows; of equals, the first ones."""
        order = np.argsort(-self.rows, kind="stable")[:number_of_texts]
        return list(
            zip(
                self.texts.take(pa.array(order)).to_pylist(), self.rows[order].tolist(), strict=True
            )
        )

    def matches(self, pattern: str) -> Mask:
        """Return which texts match a pattern as a whole.

        Args:
            pattern: A regular expression without references and lookaround.
        """
        return _matches(self.texts, pattern, ascii_only=self.are_ascii)

    def all_match(self, pattern: str) -> bool:
        """Return True if all texts match a pattern as a whole. A few are tried first."""
        few = 1000
        tried = _matches(self.texts[:few], pattern, ascii_only=self.are_ascii)
        return bool(tried.all()) and (len(self) <= few or bool(self.matches(pattern).all()))

    def counts_of(self, pattern: str) -> IntArray:
        """Return how often each text has a pattern."""
        found = pc.count_substring_regex(self.texts, _for_arrow(pattern, self.are_ascii))
        return np.asarray(found.to_numpy(zero_copy_only=False))

    @cached_property
    def are_ascii(self) -> bool:
        """True if all texts are ASCII."""
        return bool(pc.all(pc.string_is_ascii(self.texts)).as_py())

    @cached_property
    def lengths(self) -> IntArray:
        """The numbers of characters."""
        return np.asarray(pc.utf8_length(self.texts).to_numpy(zero_copy_only=False))

    @cached_property
    def words(self) -> IntArray:
        """The numbers of words."""
        return self.counts_of(r"\S+")

    @cached_property
    def digits(self) -> IntArray:
        """The numbers of digits."""
        return self.counts_of(r"\d")

    @cached_property
    def are_whole(self) -> bool:
        """True if all are whole numbers without leading zeros."""
        return self.all_match(r"-?(0|[1-9][0-9]{0,14})(\.0+)?")

    @cached_property
    def are_numbers(self) -> bool:
        """True if all are numbers that margrave reads."""
        form = r"-?((0|[1-9][0-9]*)(\.[0-9]+)?|\.[0-9]+)([eE][-+]?[0-9]{1,2})?"
        return self.all_match(form) and bool((np.abs(self.numbers) < 1e100).all())

    @cached_property
    def numbers(self) -> FloatArray:
        """The texts as numbers; NaN for the others."""
        return numbers_of(self.texts)

    def dates(self, pattern: str) -> Moments | None:
        """Return the moments of all texts; None if one is not written so.

        Args:
            pattern: Their format, for ``strptime``; "" for ISO 8601.
        """
        if pattern not in self._dates:
            few, read = 1000, DateReader(pattern or None)
            found = moments_of(self.texts[:few], read)
            if len(self) > few and not np.isnat(found.times).any():
                found = moments_of(self.texts, read)
            self._dates[pattern] = None if np.isnat(found.times).any() else found
        return self._dates[pattern]


def _matches(texts: pa.Array, pattern: str, *, ascii_only: bool) -> Mask:
    found = pc.match_substring_regex(texts, rf"\A(?:{_for_arrow(pattern, ascii_only)})\z")
    return np.asarray(found.to_numpy(zero_copy_only=False))


def _for_arrow(pattern: str, ascii_only: bool) -> str:
    r"""Return a pattern of Python for Arrow, which means ASCII by \d and \s; large classes take long to compile."""
    spaces = SPACES.encode("ascii", "ignore").decode() if ascii_only else SPACES
    pattern = pattern.replace(r"[^\W\d]", "[A-Za-z_]" if ascii_only else r"[\p{L}\p{Nl}\p{No}_]")
    pattern = pattern.replace(r"\s", f"[{spaces}]").replace(r"\S", f"[^{spaces}]")
    return pattern if ascii_only else pattern.replace(r"\d", r"\p{Nd}")
