"""The page and the charts of a release as objects: shown in notebooks, saved to files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any, ClassVar

from markupsafe import Markup

from margrave._io import check_ending, check_output, written_whole
from margrave.error_sanitizer import short_errors
from margrave.errors import InputError, ReleaseError
from margrave.release import Release
from margrave.release.opening import release_of
from margrave.report.charts import bars, heat
from margrave.report.heading import Heading
from margrave.report.page import render
from margrave.report.templating import chart_style
from margrave.report.views import column_view, pair_view


@dataclass(frozen=True, repr=False)
class Page:
    """A report as one HTML text.

    Args:
        html: The text, without scripts and without links to other hosts.
    """

    html: str

    title: ClassVar[str] = "Release report"

    @staticmethod
    def of(release: Release, heading: Heading | None = None) -> Page:
        """Return the page of a release; a heading without a date gets the day of today."""
        heading = Heading() if heading is None else heading
        dated = heading if heading.date else replace(heading, date=date.today().isoformat())
        return Page(render(release, dated))

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the page, whole or not at all, to a file whose name ends in ``.html``."""
        _write(self.html, path, ".html", overwrite)

    def __repr__(self) -> str:
        return f'{type(self).__name__}({len(self.html) // 1024} KB of HTML; .save("report.html") writes it)'

    def _repr_html_(self) -> str:
        frame = "width:100%;height:640px;border:1px solid #8884;border-radius:8px"
        return str(
            Markup('<iframe sandbox title="{}" style="{}" srcdoc="{}"></iframe>').format(
                self.title, frame, self.html
            )
        )


@dataclass(frozen=True, repr=False)
class Chart:
    """The chart of one or two columns of a release.

    Args:
        title: Its title.
        svg: The drawing, with its colors.
    """

    title: str
    svg: str

    @staticmethod
    def of(release: Release, columns: Sequence[Any]) -> Chart:
        """Return the chart of one column, or of two."""
        names = columns[0] if len(columns) == 1 and not isinstance(columns[0], str) else columns
        if not isinstance(names, Sequence) or len(names) not in (1, 2):
            raise InputError(
                "A chart is of one column or of two.",
                remedy='Give such as plot("age") or plot("age", "sex").',
            )
        clique = release.schema.domain.clique(names)
        if len(clique) != len(names):
            raise InputError(f"Column {names[0]!r} is given twice.", remedy="Give two columns.")
        remedy = release.model.remedy or "Fit one to its answers: release.refit('graphical')."
        if len(clique) == 1:
            column = column_view(release, clique[0])
            if column.model is None and column.measured is None:
                raise ReleaseError(
                    f"The release has no counts and no model of {clique[0]}.", remedy=remedy
                )
            return Chart(clique[0], _standing_alone(bars(column)))
        view = pair_view(release, clique)
        if view is None:
            raise ReleaseError(
                f"The release has no model of {' and '.join(clique)} together.", remedy=remedy
            )
        return Chart(" by ".join(clique), _standing_alone(heat(view)))

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the drawing, whole or not at all, to a file whose name ends in ``.svg``."""
        _write(self.svg, path, ".svg", overwrite)

    def __repr__(self) -> str:
        return f'Chart({self.title!r}; .save("chart.svg") writes it)'

    def _repr_html_(self) -> str:
        return str(
            Markup('<figure style="max-width:480px"><figcaption>{}</figcaption>{}</figure>').format(
                self.title, Markup(self.svg)
            )
        )


@short_errors
def write_report(
    release: Release | str | Path,
    path: str | Path,
    *,
    title: str = "",
    office: str = "",
    dataset: str = "",
    overwrite: bool = False,
) -> None:
    """Write the page, whole or not at all, to a file whose name ends in ``.html``.

    Args:
        release: A release, or its file.
        path: The page.
        title: Its title, in public words; by default the name of the data set.
        office: The office that publishes the release, in public words.
        dataset: The name of the data set, in public words.
        overwrite: Whether to replace an existing file.

    Raises:
        InputError: The file cannot be written, or a text is not a line.
        ReleaseError: The file is not a release.

    Privacy:
        None spent: the page shows the transcript, the model, public facts and the day of today.
    """
    check_output(path, overwrite=overwrite)
    check_ending(path, ".html")
    heading = Heading(title=title, office=office, dataset=dataset)
    Page.of(release_of(release), heading).save(path, overwrite=overwrite)


def _standing_alone(svg: Markup) -> str:
    opened = str(svg).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    start = opened.index(">") + 1
    return f"{opened[:start]}<style>{chart_style()}</style>{opened[start:]}"


def _write(text: str, path: str | Path, ending: str, overwrite: bool) -> None:
    check_output(path, overwrite=overwrite)
    check_ending(path, ending)
    with written_whole(path, overwrite=overwrite) as temporary:
        temporary.write_text(text, encoding="utf-8")
