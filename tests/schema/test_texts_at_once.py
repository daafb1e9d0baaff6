"""Texts that Arrow reads or writes for many values at once are those of the readers of one value."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from margrave.profiling import draft_schema
from margrave.schema.parsing import (
    MOMENT,
    DateReader,
    distinct,
    in_utc,
    number,
    numbers,
    parse_moment,
    text,
    units_since,
)
from margrave.schema.person_check import normalize_identifier, normalize_identifiers
from margrave.schema.text_moments import moments, moments_of
from tests.support.strategies import seeded

PATTERNS = (
    "", "%d/%m/%Y", "%m/%d/%Y %H:%M:%S", "%Y%m%d", "%Y%m%d%H%M", "%d.%m.%y", "%d  %m %Y", "%H:%M", "%m-%d",
    "%d %b %Y", "%y %Y", "%%%Y-%m-%d", "%Y-%m-%dT%H:%M:%S%z",
)  # fmt: skip
#: Further ways to write ISO 8601, and some that look like it.
ISO = (
    "%Y-%m-%d", "%Y-%m-%dT%H", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S.000", "%Y%m%d",
    "%Y-%m-%d %H:%M:%S.5", "%Y-%m-%d %H:%M:%S.0000000001", "%Y-%m-%d %H:%M:%S,00", "%Y-%m-%d  %H:%M",
    "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S+14:00", "%Y-%m-%dT%H:%M:%S-14:00", "%Y-W%m-%d",
)  # fmt: skip


@st.composite
def written_moments(draw: st.DrawFn, pattern: str) -> str:
    """A moment in a pattern, or nearly one."""
    number = st.integers
    parts = {
        "%Y": f"{draw(st.sampled_from([0, 1, 1900, 1970, 2000, 2023, 9999]) | number(1, 9999)):04}",
        "%y": f"{draw(st.sampled_from([0, 68, 69, 99])):02}",
        "%m": f"{draw(st.sampled_from([2, 12, 13]) | number(0, 12)):02}",
        "%d": f"{draw(st.sampled_from([28, 29, 30, 31]) | number(0, 32)):02}",
        "%H": f"{draw(number(0, 24)):02}",
        "%M": f"{draw(st.sampled_from([0, 59, 60])):02}",
        "%S": f"{draw(st.sampled_from([0, 59, 60, 61])):02}",
        "%b": draw(st.sampled_from(["Jan", "feb", "Sept"])),
        "%z": draw(st.sampled_from(["Z", "+0130", "-1400"])),
        "%%": "%",
    }
    written = pattern or draw(st.sampled_from(ISO))
    for key, value in parts.items():
        written = written.replace(key, value)
    if draw(number(0, 3)) == 0:
        place = draw(number(0, len(written) - 1))
        odd = draw(
            st.sampled_from(["", "0", "1", " ", "x", "T", "t", "\n", "\0", "\u0663", "\uff11"])
        )
        written = written[:place] + odd + written[place + 1 :]
    return written.strip()


def the_moment(written: str, pattern: str) -> tuple[datetime | None, bool]:
    found = DateReader(pattern or None)(written)
    return (None, False) if found is None else (in_utc(found), bool(found.utcoffset()))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_moments_at_once_are_those_of_python(pattern: str) -> None:
    odd = [
        "",
        "2023-02-30",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "30/02/2023",
        "\0",
    ]

    @seeded(12)
    @given(st.lists(written_moments(pattern), max_size=12))
    @example(odd)
    def same(texts: list[str]) -> None:
        found = moments_of(pa.array(texts, pa.large_string()), DateReader(pattern or None))
        wanted = [the_moment(t, pattern) for t in texts]
        assert found.times.tolist() == [moment for moment, _ in wanted]
        assert found.offset is any(offset for _, offset in wanted)

    same()


@pytest.mark.parametrize("pattern", [None, "%d/%m/%Y", "%Y-%d-%m %H"])
@pytest.mark.parametrize("output", [False, True])
def test_rows_of_texts_have_the_moments_of_single_ones(pattern: str | None, output: bool) -> None:
    read = DateReader(pattern, output)
    near = written_moments(pattern or "") | written_moments("")
    texts = near | st.sampled_from(["", " ", "NaN ", "2020-05-06 07", "2020-05-06", "null"])
    before = st.sampled_from(["", "", " ", MOMENT, MOMENT + " ", " " + MOMENT])

    @seeded(15)
    @given(st.lists(st.none() | st.builds(str.__add__, before, texts), max_size=12))
    def same(values: list[str | None]) -> None:
        wanted = [
            units_since(
                parse_moment(t.removeprefix(MOMENT)) if t.startswith(MOMENT) else read(t), 60
            )
            for t in (v or "" for v in values)
        ]
        found, empty = moments(pa.array(values, pa.string()), 60, read)
        np.testing.assert_array_equal(found, wanted)
        assert empty.tolist() == list(map(is_empty, values))

    same()


def is_empty(value: str | None) -> bool:
    return value is None or value.strip().lower() in ("", "nan")


NUMBERS = (
    st.builds(repr, st.floats() | st.integers())
    | st.text(st.sampled_from("012345.-+eE_ "), max_size=8)
    | st.sampled_from(["1e400", "-1e-400", "1" * 400, "0." + "0" * 400 + "1", "0x1p3", "Infinity"])
    | st.sampled_from(["true", "False ", " nan", "\u0663", "\xa05", "1,5", "1.5\n", "1e5 ", "-0", "\0", ""])
    | st.none()
)  # fmt: skip


@seeded(60)
@given(st.lists(NUMBERS, max_size=12))
@example(["9007199254740993", "2.2250738585072011e-308", "0.1" + "0" * 60 + "1", "1e23", "-.0"])
def test_rows_of_texts_have_the_numbers_of_single_ones(values: list[str | None]) -> None:
    found, empty = numbers(pa.array(values, pa.string()))
    wanted = np.array([number(v) for v in values], dtype=np.float64)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found[found == 0]), np.signbit(wanted[wanted == 0]))
    assert empty.tolist() == list(map(is_empty, values))


@pytest.mark.parametrize("read", [False, True])
def test_a_moment_that_has_no_year_in_utc_is_drafted(read: bool) -> None:
    odd = ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"]
    plain = [str(np.datetime64("2020-01-01", "D") + day) for day in range(90)]
    for texts in (odd * 100, [*odd, *plain] * 3):
        sex = ["f", "m"] * (len(texts) // 2)
        assert draft_schema(pa.table({"seen": texts, "sex": sex}), read=read).columns


DOUBLES = (
    st.floats()
    | st.floats(width=32)
    | st.integers(-(2**54), 2**54).map(float)
    | st.builds(lambda n, p: n / 10**p, st.integers(-(10**16), 10**16), st.integers(0, 12))
    | st.sampled_from([-0.0, 1e16, 1e15, 1e10, 1e-5, 1e-3, 9999999999.5, 17511184608.70226, math.nan, -math.inf])
)  # fmt: skip


def same_texts(values: pa.Array) -> None:
    """Check that each row has the text of its value."""
    rows, texts = distinct(values)
    assert texts[-1] is None
    assert rows.dtype == np.int64
    assert [texts[r] for r in rows] == [text(v) for v in values.to_pylist()]


@seeded(60)
@given(st.lists(DOUBLES | st.none(), max_size=20), st.sampled_from([pa.float64(), pa.float32()]))
@example(np.array([0x7FF0000000000001], np.uint64).view(float).tolist(), pa.float64())
def test_floats_have_the_texts_of_single_ones(
    values: list[float | None], kind: pa.DataType
) -> None:
    same_texts(pa.array(values, pa.float64()).cast(kind, safe=False))


WORDS = st.text(st.sampled_from("a1 \t\n\0\x1c\xa0\u2003\u200b\u3000?t\U0001f600")) | st.text(
    max_size=3
)


def times(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Values of a kind of times that Python has too."""
    if pa.types.is_date(kind):
        return st.dates()
    low, high = datetime(1, 1, 2), datetime(9999, 12, 30)
    if kind.unit == "ns":
        low, high = datetime(1678, 1, 1), datetime(2262, 1, 1)
    known = st.datetimes(low, high) | st.sampled_from(
        [datetime(1970, 1, 1), datetime(2020, 1, 1, 0, 0, 0, 500000)]
    )
    known = known.map(
        lambda t: t.replace(
            microsecond=t.microsecond // 1000 * 1000 if kind.unit == "ms" else t.microsecond
        )
    )
    return known.map(lambda t: t.replace(microsecond=0)) if kind.unit == "s" else known


KINDS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.string(): WORDS,
    pa.large_string(): WORDS,
    pa.string_view(): WORDS,
    pa.int8(): st.integers(-128, 127),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.bool_(): st.booleans(),
    pa.binary(): st.binary(max_size=3),
    pa.decimal128(9, 2): st.decimals(-1000, 1000, places=2),
    pa.list_(pa.int8()): st.lists(st.integers(0, 1), max_size=2),
    **{kind: times(kind) for kind in (pa.date32(), pa.date64(), *map(pa.timestamp, ("s", "ms", "us", "ns")))},
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_distinct_texts_are_those_of_single_values(kind: pa.DataType) -> None:
    @seeded(12)
    @given(st.lists(KINDS[kind] | st.none(), max_size=12), st.data())
    def same(values: list[Any], data: st.DataObject) -> None:
        array = pa.array(values, kind)
        wanted = [unmarked(text(v)) for v in values]
        pieces = [array]
        if not (pa.types.is_nested(kind) or kind == pa.string_view()):
            pieces.append(array.dictionary_encode())
        cut = data.draw(st.integers(0, len(array)))
        pieces.append(pa.chunked_array([array[:cut], array[cut:]], kind).combine_chunks())
        pieces.append(pa.concat_arrays([array[:1], array])[len(array[:1]) :])  # one with an offset
        for piece in pieces:
            rows, texts = distinct(piece)
            assert texts[-1] is None
            assert rows.dtype == np.int64
            assert [texts[r] for r in rows] == wanted

    same()


def unmarked(written: str | None) -> str | None:
    return None if written is None else written.removeprefix(MOMENT)


@seeded(200)
@given(
    names=st.lists(
        st.lists(
            st.sampled_from([*"019.-_aP\n", "00", ".0", ".00", "É", "\u0660", "\uff10", "ß"]),
            max_size=6,
        ).map("".join),
        max_size=6,
    )
)
@example(names=["P0-01.0", "000", "0.0", "1.05", "007.00\n", "a.01b00"])
def test_identifiers_at_once_are_those_of_single_ones(names: list[str]) -> None:
    found = normalize_identifiers(pa.array(names, pa.large_string()))
    assert found.to_pylist() == [normalize_identifier(n) for n in names]
