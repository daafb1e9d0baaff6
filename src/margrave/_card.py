"""Cards: a few public facts of an object, as text in a terminal and as a small table in a notebook."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from html import escape
from itertools import accumulate
from typing import NamedTuple


class Facts(NamedTuple):
    """The content of a card: one line, named facts, and notes."""

    line: str
    facts: Sequence[tuple[str, str]] = ()
    notes: Sequence[str] = ()


class Card:
    """An object that shows a short line as its ``repr``, and its first facts as text and in notebooks."""

    @abstractmethod
    def _facts(self) -> Facts:
        """Return the content of the card."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._facts().line})"

    def _first_facts(self) -> Facts:
        most, found = 40, self._facts()
        more = [f"And {len(found.facts) - most:,} more."] if len(found.facts) > most else []
        return Facts(found.line, found.facts[:most], [*more, *found.notes])

    def __str__(self) -> str:
        found = self._first_facts()
        width = max((len(name) for name, _ in found.facts), default=0)
        rows = [f"  {name:<{width}}  {value}" for name, value in found.facts]
        return "\n".join([repr(self), *rows, *found.notes])

    def _repr_html_(self) -> str:
        found = self._first_facts()
        return html_card(f"{type(self).__name__}: {found.line}", found.facts, found.notes)


def html_card(
    title: str, rows: Iterable[Sequence[object]], notes: Iterable[str] = (), *, head: bool = False
) -> str:
    """Return a small table; every text is escaped.

    Args:
        title: The line above it.
        rows: The rows; with ``head`` the first one names the columns.
        notes: The lines below it.
        head: Whether the first row is a head.

    >>> html_card("a<b", [], ["note"])
    '<div><strong>a&lt;b</strong><table></table><p>note</p></div>'
    """
    left = 'style="text-align:left;padding:2px 12px 2px 0"'
    body = ""
    for i, row in enumerate(rows):
        tag = "th" if head and i == 0 else "td"
        body += f"<tr>{''.join(f'<{tag} {left}>{escape(str(c))}</{tag}>' for c in row)}</tr>"
    below = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return f"<div><strong>{escape(title)}</strong><table>{body}</table>{below}</div>"


def counted(n: int, noun: str) -> str:
    """Return a number of things.

    >>> counted(1, "row"), counted(2500, "row"), counted(2, "category")
    ('1 row', '2,500 rows', '2 categories')
    """
    plural = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"
    return f"{n:,} {noun if n == 1 else plural}"


def listed(names: Sequence[str], most: int = 8) -> str:
    """Return names in a row; of many only the first.

    >>> listed(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"


def listed_within(names: Sequence[str], max_letters: int = 120) -> str:
    """Return the first names that fit into ``max_letters`` letters, at least one, and the number of the rest.

    >>> listed_within(["a", "b", "c"], 6), listed_within(["a long name", "b", "c"], 6)
    ('a, b and 1 more', 'a long name and 2 more')
    """
    ends = accumulate(len(name) + len(", ") for name in names)
    return listed(names, max(1, sum(end <= max_letters for end in ends)))
