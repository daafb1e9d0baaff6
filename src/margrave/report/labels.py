"""Texts of charts: numbers in few characters, and labels that stay distinct when they are cut."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from unicodedata import east_asian_width


def plain_number(value: float) -> str:
    """Return a number in few characters; years have no thousands separator.

    >>> plain_number(2026.0), plain_number(25_000.0), plain_number(0.125), plain_number(1.5e6)
    ('2026', '25,000', '0.125', '1.5M')
    """
    if abs(value) >= 1e6:
        return f"{value / 1e6:,.6g}M" if abs(value) < 1e12 else f"{value:.3g}"
    if value == round(value) and abs(value) < 1e4:
        return f"{value:.0f}"
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"


def pixels(text: str) -> float:
    """Return about how wide a label of a chart is, in the pixels of its drawing, in a wide font.

    >>> pixels("WW") > pixels("mm") - 1 > pixels("ab") > pixels("il")
    True
    """
    return sum(map(_pixels, text))


def _pixels(letter: str) -> float:
    if letter in "mwMW@%" or east_asian_width(letter) in "WF":
        return 12.0
    if letter in " ijl.,;:'|!()-/":
        return 4.6
    return 8.4 if letter.isupper() else 7.3


def cut(text: str, max_pixels: float) -> str:
    """Return a text cut to a width in pixels, with its beginning and its end.

    >>> cut("Municipality of 012", 80), cut("Bern", 80)
    ('Munici… 012', 'Bern')
    """
    lengths = range(len(text), 4, -1)
    return next((s for n in lengths if pixels(s := _short(text, n)) <= max_pixels), text[:4])


def _short(text: str, max_characters: int) -> str:
    if len(text) <= max_characters:
        return text
    tail = (max_characters - 1) * 2 // 5
    return f"{text[: max_characters - 1 - tail]}\N{HORIZONTAL ELLIPSIS}{text[len(text) - tail :]}"


def shorten(labels: Sequence[str], max_pixels: float) -> list[str]:
    """Return the labels of a chart cut to a width, which differ wherever the labels differ.

    If cut labels would be equal, a beginning or an end that they share is left out.

    >>> shorten(["District 001, northern part", "District 002, northern part", "Bern"], 90)
    ['District 001…', 'District 002…', 'Bern']
    """
    long = list(dict.fromkeys(label for label in labels if pixels(label) > max_pixels))
    found = dict(zip(long, _cut_apart(long, max_pixels), strict=True))
    short = [found.get(label, label) for label in labels]
    first = dict(zip(short[::-1], labels[::-1], strict=True))
    return [
        text if first[text] == label else cut(f"{i + 1}: {text}", max_pixels)
        for i, (text, label) in enumerate(zip(short, labels, strict=True))
    ]


def _cut_apart(texts: Sequence[str], max_pixels: float) -> list[str]:
    """Return different texts cut to a width; those that stay equal are cut among themselves."""
    short = [cut(text, max_pixels) for text in texts]
    for whole_words in (True, False):
        if len(set(short)) == len(texts):
            return short
        short = _with_least_cut(_without_common_parts(texts, whole_words), max_pixels)
    alike: dict[str, list[str]] = {}
    for text, label in zip(texts, short, strict=True):
        alike.setdefault(label, []).append(text)
    apart: dict[str, str] = {}
    for label, group in alike.items():
        whole = len(group) in (1, len(texts))
        own = [label] * len(group) if whole else _cut_apart(group, max_pixels)
        apart |= zip(group, own, strict=True)
    return [apart[text] for text in texts]


def _without_common_parts(texts: Sequence[str], whole_words: bool) -> Iterator[list[str]]:
    """Yield the texts without the end, the beginning, or both parts that all share."""
    dots = "\N{HORIZONTAL ELLIPSIS}"
    begin = _shared(texts, whole_words)
    end = _shared([text[begin:][::-1] for text in texts], whole_words)
    for first, last in ((0, end), (begin, 0), (begin, end)):
        before, after = dots * bool(first), dots * bool(last)
        yield [f"{before}{text[first : len(text) - last]}{after}" for text in texts]


def _with_least_cut(candidates: Iterable[list[str]], max_pixels: float) -> list[str]:
    """Return the most distinct of several lists of texts after the cut, and of these the one that loses least."""

    def rank(texts: list[str]) -> tuple[int, int]:
        short = [cut(text, max_pixels) for text in texts]
        return len(set(short)), sum(map(len, short)) - sum(map(len, texts))

    return [cut(text, max_pixels) for text in max(candidates, key=rank)]


def _shared(texts: Sequence[str], whole_words: bool) -> int:
    letters = enumerate(zip(*texts, strict=False))
    length = next((i for i, some in letters if len(set(some)) > 1), min(map(len, texts)))
    while whole_words and any(
        text[max(length - 1, 0) : length].isalnum() and text[length : length + 1].isalnum()
        for text in texts
    ):
        length -= 1
    return length
