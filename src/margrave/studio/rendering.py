"""Pages from templates. Every text is escaped, and a name that a template lacks is an error."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from margrave.accounting.ledger_state import DatasetState, epsilon_or_zero
from margrave.errors import InputError, MargraveError
from margrave.profiling.hints import HintWords
from margrave.ratios import percent
from margrave.report.axes import Axis
from margrave.report.charts import bars
from margrave.report.templating import environment
from margrave.report.views import ColumnView
from margrave.studio.choices import policy_words
from margrave.studio.project import Project
from margrave.studio.state import ProjectSettings
from margrave.unit import parse_unit


class Site:
    """The pages of a project.

    Args:
        project: The project.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self._templates = environment("margrave.studio")
        self._templates.globals["chart"] = chart
        self._templates.globals["policies"] = policy_words()
        self._templates.filters["plain"] = plain
        self._templates.filters["share"] = lambda x: percent(x, ".3g")
        self._templates.filters["count"] = lambda x: (
            f"{x:,.4g}" if isinstance(x, float) else f"{x:,}"
        )

    @property
    def settings(self) -> ProjectSettings:
        """The settings of the project."""
        return self.project.settings

    def page(
        self,
        template: str,
        step: str = "",
        *,
        error: MargraveError | Mapping[str, Any] | None = None,
        code: int = 200,
        **context: Any,
    ) -> Response:
        """Return a page, with the words of an error if there is one."""
        words: Mapping[str, Any] | None = None
        if isinstance(error, MargraveError):
            words = {"message": plain(error.message), "remedy": plain(error.remedy or "")}
            if not template.startswith("_"):  # htmx takes parts with code 200 only
                code = 422
        elif error is not None:
            words = {"message": plain(error["message"]), "remedy": plain(error["remedy"])}
        text = self._templates.get_template(template).render(
            settings=self.settings,
            steps=self.settings.steps,
            step=step,
            latest=self.project.latest(),
            error=words,
            **context,
        )
        return HTMLResponse(text, code)

    def style(self) -> Response:
        """Return the style of all pages, with the colors and charts of the reports."""
        text = self._templates.get_template("studio.css").render()
        return Response(text, media_type="text/css")

    def check_form(self, request: Request, step: str) -> None:
        """Raise ``InputError`` if a form is about another table, columns read before, or an earlier ledger."""
        if form_of(request).get("fingerprint") != self.project.fingerprint(step):
            raise InputError(
                "The table, its columns or the ledger have changed since this form was opened. The table is"
                f" {self.settings.table} now.",
                remedy="Nothing on the form was kept. Open its page again from the steps above.",
            )

    def closed(self, step: str) -> Response | None:
        """Return the way to the step that can be opened, if this one cannot be yet."""
        return None if self.settings.can_open(step) else go(f"/{self.settings.reached}")


def chart(
    name: str,
    labels: Sequence[str],
    counts: Sequence[float],
    noisy: Sequence[float] | None = None,
    error: float = 0.0,
) -> Markup:
    """Return the chart of a column's counts, as the report draws it."""
    measured = None if noisy is None else np.array(noisy)
    axis = Axis(labels, ordered=True)
    return bars(ColumnView(name, list(labels), np.array(counts), measured, error, axis=axis))


def plain(text: str) -> str:
    """Return a text for a page: what to do there, and no sentence on options, on Python or on a schema file's lines."""
    for words, there in (
        ("or leave --for (purposes) out", "or remove the purposes"),
        (
            "a unit that replaces: ReplaceRow(), or --unit replace-row",
            "rows whose number is public, on the page Protection",
        ),
        (": --public-columns (in Python columns=[...])", ""),
        (" (--mechanism aim-pub)", ""),
        ("Name another file. If it was a ledger, restore", "Restore"),
        ("the schema's folder", "the studio's folder"),
        (" of a constraint", ""),
        (
            "give its path from the schema, without '..' and without a leading '/'",
            "write the name of the copy",
        ),
        (", and its policy is 'refuse'", ", which stops the run"),
        ("Draw fewer (--rows), or name a .parquet or .csv file", "Choose Parquet or CSV"),
        ("Name a .parquet or .csv file", "Choose Parquet or CSV"),
        (", or raise the column's low", ""),
        ("Name a file elsewhere", "Check that the disk has room"),
    ):
        text = text.replace(words, there)
    sentences = re.split(r"(?<=[.?!])\s+(?=[A-Z])", text)
    return " ".join(
        s for s in sentences if not re.search(r"--[a-z]|Python|refit\(| = |\[schema\]", s)
    )


def remark_on_page(remark: str) -> str:
    """Return a remark of a draft, with the fields of its card in place of the lines of a schema file."""
    words = HintWords(
        missing="list it under the codes that mean missing",
        apart="choose “A date or time of its own”",
        classes="choose “Its numbers are classes: learn these”",
        person="The next page asks.",
        again="read it again",
    )
    return plain(words.hint(remark))


def dataset_line(dataset: DatasetState) -> dict[str, Any]:
    """Return a data set of the ledger with its unit in words, and the epsilon that is charged and left."""
    delta = dataset.cap.conversion_delta
    return {
        "state": dataset,
        "unit": str(parse_unit(dataset.unit)),
        "charged": epsilon_or_zero(dataset.charged, delta),
        "left": epsilon_or_zero(dataset.remaining, delta),
    }


def form_of(request: Request) -> dict[str, str]:
    """Return the fields of a form, which the guard has read."""
    form: dict[str, str] = request.scope.get("form", {})
    return form


def go(path: str) -> Response:
    """Return the way to another page."""
    return RedirectResponse(path, 303)


def go_whole(path: str) -> Response:
    """Return the way to another page, from a request for a part of a page."""
    return Response(status_code=200, headers={"HX-Redirect": path})


def number(text: str, what: str, least: float, most: float) -> float:
    """Return a number in a field.

    Raises:
        InputError: It is not a number from ``least`` to ``most``, or has a comma.
    """
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not least <= value <= most:
        raise InputError(
            f"{what} is {text[:40]!r}.",
            remedy=f"Write a number from {least:g} to {most:g}. Its decimals follow a point.",
        )
    return value


def whole(text: str, what: str, least: int, most: int) -> int:
    """Return a whole number in a field. Commas and blanks may group its digits by thousands.

    Raises:
        InputError: It is not a whole number from ``least`` to ``most``.
    """
    digits = re.sub(r"(?<=\d)[,\s](?=\d{3}(?!\d))", "", text.strip())
    value = int(digits) if re.fullmatch(r"\d{1,15}", digits) else least - 1
    if not least <= value <= most:
        raise InputError(
            f"{what} is {text[:40]!r}.",
            remedy=f"Write a whole number from {least:,} to {most:,}, without a point.",
        )
    return value
