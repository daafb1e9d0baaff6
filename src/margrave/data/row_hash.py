"""Keyed hashes of rows and person IDs: SipHash-2-4 with 128 bits of output, compiled.

A hash depends on the content of a row and on the secret key alone, so it is the same in every scan, in any order of
rows. The key comes from the operating system and never leaves the process that holds the table.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from margrave._kernel import kernel
from margrave.types import AnyArray, IntArray

#: One row of two words of 64 bits per hash.
Hashes = NDArray[np.uint64]


@dataclass(frozen=True, repr=False)
class RowKey:
    """A secret key of 128 bits.

    Args:
        words: Two words of 64 bits, of the operating system's randomness by default.
    """

    words: Hashes = field(
        default_factory=lambda: np.frombuffer(secrets.token_bytes(16), dtype=np.uint64).copy()
    )

    def of_words(self, codes: AnyArray, further: Hashes) -> Hashes:
        """Return the hash of each column of ``codes`` over ``further``: the content of a row.

        Args:
            codes: Unsigned codes of shape (columns, rows).
            further: Words of 64 bits of shape (any number, rows).
        """
        out = np.empty((codes.shape[1], 2), dtype=np.uint64)
        _hash_rows(codes, further, self.words[0], self.words[1], out)
        return out

    def of_occurrences(self, rows: Hashes, occurrence: IntArray) -> Hashes:
        """Return a word for the hash of every row with its number among equal rows."""
        out = np.empty(len(rows), dtype=np.uint64)
        _hash_occurrences(rows, occurrence, self.words[0], self.words[1], out)
        return out

    def of_texts(self, texts: pa.Array) -> Hashes:
        """Return the hash of every text; that of a null has no meaning."""
        texts = texts.cast(pa.large_binary())
        _, offsets, data = texts.buffers()
        out = np.zeros((len(texts), 2), dtype=np.uint64)
        if len(texts) and offsets is not None:
            ends = np.frombuffer(offsets, dtype=np.int64)[
                texts.offset : texts.offset + len(texts) + 1
            ]
            content = np.frombuffer(data or b"", dtype=np.uint8)
            _hash_texts(content, ends, self.words[0], self.words[1], out)
        return out


def digest_of(hashes: Hashes) -> Hashes:
    """Return the sum of hashes, word by word modulo 2^64: equal for equal rows in any order."""
    total: Any = hashes.sum(axis=0, dtype=np.uint64)
    return np.asarray(total, dtype=np.uint64)


@kernel
def _rotated(word, bits):  # type: ignore[no-untyped-def]
    return (word << np.uint64(bits)) | (word >> np.uint64(64 - bits))


@kernel
def _rounds(v0, v1, v2, v3, number):  # type: ignore[no-untyped-def]
    for _ in range(number):
        v0 = v0 + v1
        v1 = _rotated(v1, 13) ^ v0
        v0 = _rotated(v0, 32)
        v2 = v2 + v3
        v3 = _rotated(v3, 16) ^ v2
        v0 = v0 + v3
        v3 = _rotated(v3, 21) ^ v0
        v2 = v2 + v1
        v1 = _rotated(v1, 17) ^ v2
        v2 = _rotated(v2, 32)
    return v0, v1, v2, v3


@kernel
def _begun(k0, k1):  # type: ignore[no-untyped-def]
    return (
        k0 ^ np.uint64(0x736F6D6570736575),
        k1 ^ np.uint64(0x646F72616E646F6D) ^ np.uint64(0xEE),
        k0 ^ np.uint64(0x6C7967656E657261),
        k1 ^ np.uint64(0x7465646279746573),
    )


@kernel
def _mixed(v0, v1, v2, v3, word):  # type: ignore[no-untyped-def]
    v3 = v3 ^ word
    v0, v1, v2, v3 = _rounds(v0, v1, v2, v3, 2)
    return v0 ^ word, v1, v2, v3


@kernel
def _ended(v0, v1, v2, v3):  # type: ignore[no-untyped-def]
    v2 = v2 ^ np.uint64(0xEE)
    v0, v1, v2, v3 = _rounds(v0, v1, v2, v3, 4)
    first = v0 ^ v1 ^ v2 ^ v3
    v1 = v1 ^ np.uint64(0xDD)
    v0, v1, v2, v3 = _rounds(v0, v1, v2, v3, 4)
    return first, v0 ^ v1 ^ v2 ^ v3


@kernel
def _hash_rows(codes, further, k0, k1, out):  # type: ignore[no-untyped-def]
    """Hash every row as words: two codes in each, then the further words, then their number."""
    columns, words = codes.shape[0], further.shape[0]
    for i in range(codes.shape[1]):
        v0, v1, v2, v3 = _begun(k0, k1)
        word = np.uint64(0)
        for j in range(columns):
            word = (word << np.uint64(32)) | np.uint64(codes[j, i])
            if j % 2 == 1 or j == columns - 1:
                v0, v1, v2, v3 = _mixed(v0, v1, v2, v3, word)
                word = np.uint64(0)
        for j in range(words):
            v0, v1, v2, v3 = _mixed(v0, v1, v2, v3, further[j, i])
        v0, v1, v2, v3 = _mixed(v0, v1, v2, v3, np.uint64(columns + words))
        out[i, 0], out[i, 1] = _ended(v0, v1, v2, v3)


@kernel
def _hash_occurrences(rows, occurrence, k0, k1, out):  # type: ignore[no-untyped-def]
    for i in range(len(out)):
        v0, v1, v2, v3 = _begun(k0, k1)
        v0, v1, v2, v3 = _mixed(v0, v1, v2, v3, rows[i, 0])
        v0, v1, v2, v3 = _mixed(v0, v1, v2, v3, rows[i, 1])
        v0, v1, v2, v3 = _mixed(v0, v1, v2, v3, np.uint64(occurrence[i]))
        out[i] = _ended(v0, v1, v2, v3)[0]


@kernel
def _hash_texts(content, ends, k0, k1, out):  # type: ignore[no-untyped-def]
    for i in range(out.shape[0]):
        v0, v1, v2, v3 = _begun(k0, k1)
        length = ends[i + 1] - ends[i]
        word, filled = np.uint64(0), 0
        for at in range(ends[i], ends[i + 1]):
            word |= np.uint64(content[at]) << np.uint64(8 * filled)
            filled += 1
            if filled == 8:
                v0, v1, v2, v3 = _mixed(v0, v1, v2, v3, word)
                word, filled = np.uint64(0), 0
        word |= np.uint64(length & 0xFF) << np.uint64(56)
        v0, v1, v2, v3 = _mixed(v0, v1, v2, v3, word)
        out[i, 0], out[i, 1] = _ended(v0, v1, v2, v3)
