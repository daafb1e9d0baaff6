"""Elements of SVG: every text and attribute is escaped here, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup, escape


def element(name: str, content: Iterable[object] | object = "", **attributes: object) -> Markup:
    """Return an element; ``class_`` and the like lose their underscore, others inside become hyphens.

    >>> element("text", "a<b", class_="t", text_anchor="end")
    Markup('<text class="t" text-anchor="end">a&lt;b</text>')
    """
    head = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_plain(value))}"'
        for key, value in attributes.items()
    )
    inside = escape(content) if isinstance(content, str) else Markup("").join(content)  # type: ignore[arg-type]
    return Markup(f"<{name}{head}>{inside}</{name}>")


def text(x: float, y: float, words: str, class_: str = "t", anchor: str = "middle") -> Markup:
    """Return a text at a place."""
    return element("text", words, class_=class_, x=x, y=y, text_anchor=anchor)


def label(x: float, y: float, words: str, whole: str) -> Markup:
    """Return the label of a row, which ends at a place; its whole text is a tooltip."""
    content = [escape(words), tooltip(whole)]
    return element("text", content, class_="l", x=x, y=y, text_anchor="end")


def tooltip(words: str) -> Markup:
    """Return the title of a shape, which browsers show beside the pointer."""
    return element("title", words)


def drawing(
    title: str,
    description: str,
    width: float,
    height: float,
    parts: Iterable[Markup],
    *,
    fixed: bool = False,
) -> Markup:
    """Return a picture with a title and a description for readers of a screen.

    It is as wide as its card, or, if ``fixed``, has a size of its own, and its room scrolls.
    """
    size = {"style": f"width:{width:.0f}px"} if fixed else {}
    return element(
        "svg",
        [element("title", title), element("desc", description), *parts],
        class_="margrave",
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        role="img",
        **size,
    )


def count_text(value: float) -> str:
    """Return a count in few characters.

    >>> count_text(-0.4), count_text(999.0), count_text(12_345.0), count_text(2.5e6)
    ('0', '999', '12.3k', '2.5M')
    """
    for limit, unit, divisor in ((1e9, "G", 1e9), (1e6, "M", 1e6), (1e4, "k", 1e3)):
        if abs(value) >= limit:
            return f"{value / divisor:.3g}{unit}"
    return f"{value:z,.0f}"


def _plain(value: object) -> object:
    return f"{value:.4g}" if isinstance(value, float) and abs(value) < 1000 else value
