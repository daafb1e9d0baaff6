"""The templates of all pages: every text is escaped, and a missing value is an error."""

from __future__ import annotations

import re
from functools import cache

import jinja2
from markupsafe import Markup, escape

from margrave.content_policy import CONTENT_POLICY


@cache
def environment(*packages: str) -> jinja2.Environment:
    """Return the environment of the templates of these packages, and of those of the report: one for the process.

    Args:
        packages: Names of packages with a folder ``templates``.

    Example:
        >>> environment().from_string("{{ words }}").render(words="<b>")
        '&lt;b&gt;'
    """
    found = jinja2.Environment(
        loader=jinja2.ChoiceLoader(
            [jinja2.PackageLoader(package) for package in (*packages, "margrave.report")]
        ),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["unbroken"] = unbroken
    found.filters["breakable"] = breakable
    found.globals["content_policy"] = Markup(CONTENT_POLICY)
    return found


def unbroken(text: str) -> str:
    """Return a text whose lines do not break inside a number, its sign or a time.

    >>> unbroken("66.8 % to 67.7 %").split(" ")
    ['66.8\\xa0%', 'to', '67.7\\xa0%']
    """
    return re.sub(r"(?<=\d) (?=[%\d])|(?<=beyond) (?=-?\d)", "\N{NO-BREAK SPACE}", text)


def breakable(name: str) -> Markup:
    """Return a name whose line may break after an underscore.

    >>> breakable("left_home")
    Markup('left_<wbr>home')
    """
    return escape(name).replace("_", Markup("_<wbr>"))


def chart_style() -> str:
    """Return the style of a drawing by itself, which touches nothing else on its page."""
    loader = environment()
    colors, rules = (loader.get_template(name).render() for name in ("colors.css", "charts.css"))
    return f"{colors.replace(':root', 'svg.margrave')}{rules}svg.margrave {{ background: var(--page); }}"
