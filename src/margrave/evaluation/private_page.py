"""The private report: a comparison as one HTML page for the custodian, which is never stored beside a release."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from margrave._card import counted
from margrave._io import check_ending, check_output, written_whole
from margrave.errors import InputError
from margrave.evaluation.comparison import WARNING, Evaluation
from margrave.evaluation.numeric import Spread
from margrave.ratios import percent
from margrave.report.charts import matrix, overlay
from margrave.report.display import Page
from margrave.report.templating import environment
from margrave.report.views import OverlayView, axis_of


@dataclass(frozen=True, repr=False)
class PrivatePage(Page):
    """The private report of an evaluation as one HTML text. **Not private**: for the custodian alone.

    Args:
        html: The text, with a stamp at its top and on every printed page.
    """

    title: ClassVar[str] = "Private report, NOT PRIVATE"

    @staticmethod
    def of(found: Evaluation) -> PrivatePage:  # type: ignore[override]
        """Return the page of an evaluation."""
        template = environment("margrave.evaluation").get_template("evaluation.html")
        return PrivatePage(str(template.render(_content(found))))

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the page, whole or not at all, for the owner of the file alone.

        Args:
            path: A file whose name ends in ``.html``, in a folder without a release.
            overwrite: Whether to replace an existing file.

        Raises:
            InputError: The file cannot be written, or it would lie beside a release.

        Privacy:
            NOT private: keep the file in the office.
        """
        check_apart(path, overwrite=overwrite)
        with written_whole(path, overwrite=overwrite) as temporary:
            temporary.touch(mode=0o600)
            temporary.write_text(self.html, encoding="utf-8")


def check_apart(path: str | Path, *, overwrite: bool = False, option: str | None = None) -> None:
    """Raise ``InputError`` unless a private report can be written to a file that is not beside a release.

    A release is published as a file or with its folder, and a report beside it would go with it.

    Args:
        path: The file of the report.
        overwrite: Whether to replace an existing file.
        option: The option of the command line that names it.
    """
    check_output(path, overwrite=overwrite)
    check_ending(path, ".html", option)
    folder = Path(os.path.realpath(path)).parent
    releases = sorted(p.name for p in folder.iterdir() if p.suffix.lower() == ".margrave")
    if releases:
        raise InputError(
            f"The private report {path} would lie beside the release {releases[0]} and could be published with it.",
            remedy=f"Name a folder without releases, such as not-private/{Path(path).name}.",
        )


def _content(found: Evaluation) -> dict[str, Any]:
    pictures, max_pairs = found.pictures, 25
    names = list(pictures.shares)
    real, synthetic = pictures.associations
    pairs = sorted(found.two_way.items(), key=lambda pair: -pair[1])[:max_pairs]
    return {
        "warning": WARNING,
        "note": found.note,
        "tiles": _tiles(found),
        "columns": _columns(found),
        "numbers": [
            (
                n.name,
                _mean(n.real),
                _mean(n.synthetic),
                n.words(),
                _quartiles(n.real),
                _quartiles(n.synthetic),
            )
            for n in found.numbers
        ],
        "several": len(names) > 1,
        "matrices": [
            matrix(names, real, title="Association of pairs, real"),
            matrix(names, synthetic, title="Association of pairs, synthetic"),
            matrix(names, synthetic - real, title="Difference: synthetic minus real", signed=True),
        ]
        if len(names) > 1
        else [],
        "matrix_titles": ["Real", "Synthetic", "Synthetic minus real"],
        "largest_difference": f"{float(np.abs(synthetic - real).max(initial=0.0)):.2f}",
        "pairs": [(", ".join(c), f"{v:.4f}") for c, v in pairs],
        "worst": [(", ".join(c), f"{e:.4f}") for c, e in found.worst(15)],
        "cells": [(c.cell, _share(c.real), _share(c.synthetic)) for c in pictures.cells],
        "groups": pictures.groups,
        "purposes": found.purposes,
    }


def _tiles(found: Evaluation) -> list[tuple[str, str]]:
    matching = "no sample" if found.matching_share is None else percent(found.matching_share, ".3g")
    return [
        ("real rows", f"{found.real_rows:,}"),
        ("synthetic rows", f"{found.synthetic_rows:,}"),
        ("mean total variation of columns", f"{found.mean_one_way:.4f}"),
        *(
            [("mean total variation of pairs", f"{found.mean_two_way:.4f}")]
            if found.two_way
            else []
        ),
        (
            f"workload error over {counted(len(found.errors), 'marginal')} (0 to 2)",
            f"{found.workload_error:.4f}",
        ),
        ("random sample that is as accurate, as a share of the real rows", matching),
        ("largest error of a count, as a share of all rows", _share(found.queries.largest)),
    ]


def _columns(found: Evaluation) -> list[dict[str, Any]]:
    columns = []
    for c in sorted(found.columns, key=lambda c: -c.total_variation):
        axis = axis_of(found.pictures.schema, c.name)
        view = OverlayView(c.name, axis, *found.pictures.shares[c.name])
        columns.append(
            {
                "name": c.name,
                "chart": overlay(view),
                "total_variation": f"{c.total_variation:.4f}",
                "furthest": f"Furthest: {c.value}: {_share(c.real_share)} real, {_share(c.synthetic_share)} synthetic."
                if c.total_variation
                else "All shares are equal.",
                "values": [
                    (label, _share(float(p)), _share(float(q)))
                    for label, p, q in zip(axis.labels, view.real, view.synthetic, strict=True)
                ],
            }
        )
    return columns


def _share(share: float) -> str:
    return percent(share, ".2f")


def _mean(spread: Spread | None) -> str:
    return "none" if spread is None else f"{spread.mean:,.6g}"


def _quartiles(spread: Spread | None) -> str:
    if spread is None:
        return "none"
    return ", ".join(f"{q:,.5g}" for q in (spread.quarter, spread.median, spread.three_quarters))
