"""The verdict of a release: what to use it for and what not, from its marks and the pairs that were measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from margrave._card import counted, listed
from margrave.purposes import Purpose
from margrave.ratios import percent
from margrave.release import ColumnNumber, Release
from margrave.release.diagnostics import Coverage
from margrave.release.numbers import headlines, numbers_of
from margrave.release.purposes import PurposeSupport
from margrave.report.views import ColumnView
from margrave.report.wording import contradicted, nothing_asked
from margrave.schema import Schema
from margrave.schema.constraint_values import NUMERIC_KINDS
from margrave.unit import rows_per_person


@dataclass(frozen=True)
class Verdict:
    """The verdict in sentences, and the two lists.

    Args:
        mark: "good", "partly" or "bad", for the color.
        sentences: One or two sentences.
        use_for: Uses that the noisy answers support.
        not_for: Uses that they do not support.
    """

    mark: str
    sentences: tuple[str, ...]
    use_for: tuple[str, ...]
    not_for: tuple[str, ...]


def verdict(
    release: Release, numbers: Sequence[ColumnNumber], views: Sequence[ColumnView]
) -> Verdict:
    """Return the verdict of a release.

    Args:
        release: The release.
        numbers: All its numbers.
        views: Its columns, whose intervals say which groups drown in noise.
    """
    main = headlines(numbers)
    good = [n.column for n in main if n.reliable]
    doubtful = [n.column for n in main if not n.reliable]
    coverage = release.coverage
    return Verdict(
        _mark(release, len(good), len(main)),
        _sentences(release, len(good), len(main), coverage),
        tuple(_use_for(release, good, numbers, coverage)),
        tuple(_not_for(release, doubtful, numbers, coverage, views)),
    )


def _mark(release: Release, good: int, columns: int) -> str:
    if not release.account.private or release.no_model or release.misfit:
        return "bad"
    whole = release.coverage.measured == release.coverage.pairs
    return "good" if good == columns and whole and not release.unmeasured_columns else "partly"


def _sentences(release: Release, good: int, columns: int, coverage: Coverage) -> tuple[str, ...]:
    if not release.account.private:
        return ("Do not publish this release: its noise came from a seed, which is for tests.",)
    if release.no_model:
        return (
            f"This release has no synthetic rows yet: {release.no_model}.",
            "Its noisy answers can be used. margrave refit fits a model to them at no cost.",
        )
    if release.misfit:
        return (contradicted(release.misfit), "Do not use the synthetic rows for these columns.")
    of_all = "all" if good == columns else f"{good} of {columns}"
    first = f"The main numbers of {of_all} columns are reliable."
    if not coverage.pairs:
        return (first,)
    if coverage.measured == coverage.pairs:
        return (first, "All pairs of columns were measured together.")
    return (
        first,
        f"Relations can be used for the {coverage.measured:,} of {coverage.pairs:,} pairs of columns that were"
        " measured together.",
    )


def doubts(release: Release, support: PurposeSupport, numbers: Sequence[ColumnNumber]) -> list[str]:
    """Return the numbers, in words, that a purpose rests on and that are not reliable.

    A mean, a total, a quantile or a share rests on that very number of all rows. A regression rests on the mean of each
    number, and on the largest share of each column of categories.

    Args:
        release: The release.
        support: The purpose.
        numbers: All numbers of the release.
    """
    schema = release.schema
    purpose = Purpose.of(support.purpose, schema.domain)
    if purpose.kind == "quantile":
        name = f"{percent(purpose.at, 'g')} quantile"
        numbers = numbers_of(
            schema, release.transcript, release.model, 0.95, [purpose.outcome],
            quantiles={name: purpose.at},
        )  # fmt: skip
        own = [n for n in numbers if n.statistic == name]
    elif purpose.kind == "total":
        own = [n for n in numbers if (n.column, n.statistic) == (purpose.outcome, "total")]
    else:
        own = [n for n in headlines(numbers) if n.column in _columns_of(purpose, schema)]
    return [
        f"the {'main number' if n.is_of_category else n.statistic} of {n.column}"
        for n in own
        if not n.reliable
    ]


def doubts_words(names: Sequence[str]) -> str:
    """Return that numbers are not reliable, in words.

    >>> doubts_words(["the mean of cost"])
    'the mean of cost is not reliable'
    """
    return f"{listed(names, 12)} {'is' if len(names) == 1 else 'are'} not reliable"


def _columns_of(purpose: Purpose, schema: Schema) -> set[str]:
    """Return the columns on whose main numbers a purpose rests."""
    if purpose.kind == "mean":
        return {purpose.outcome}
    if purpose.kind not in ("share", "count"):
        return set(purpose.columns)
    # The main number of a column of numbers is its mean, which is a share if there are two values.
    name = purpose.outcome or purpose.columns[0]
    several = purpose.kind == "count" and len(purpose.columns) > 1
    column = schema.column(name)
    of_values = isinstance(column, NUMERIC_KINDS) and column.cells.count > 2
    return set() if several or of_values else {name}


def _use_for(
    release: Release, good: Sequence[str], numbers: Sequence[ColumnNumber], coverage: Coverage
) -> list[str]:
    if not release.account.private:
        return ["Tests of software."]
    found = [
        f"{p.words}. Take its intervals from margrave analyze."
        for p in release.purposes
        if p.marginals and not p.unmeasured and not doubts(release, p, numbers)
    ]
    if good:
        found.append(f"Counts, shares and averages of single columns: {listed(good, 12)}.")
    if coverage.measured:
        found.append(f"Relations of the {coverage.measured:,} measured pairs, which the map shows.")
    if not release.no_model:
        found.append("Developing and testing programs before they run on the real rows.")
    return found


def _not_for(
    release: Release,
    doubtful: Sequence[str],
    numbers: Sequence[ColumnNumber],
    coverage: Coverage,
    views: Sequence[ColumnView],
) -> list[str]:
    found = [f"{p.words}." for p in release.purposes if not p.marginals or p.unmeasured]
    for p in release.purposes:
        if p.marginals and not p.unmeasured and (names := doubts(release, p, numbers)):
            found.append(f"{p.purpose}: {doubts_words(names)}.")
    if silent := release.unmeasured_columns:
        found.append(nothing_asked(silent))
    if most := rows_per_person(release.account.unit):
        found.append(
            f"Totals and shares of the whole table, if persons have more than {counted(most, 'row')}: the others were"
            " left out."
        )
    if doubtful:
        found.append(f"The main number of {listed(doubtful, 12)}: it is not reliable.")
    if coverage.alone:
        found.append(f"Relations of {listed(coverage.alone, 12)} to other columns.")
    if indirect := coverage.pairs - coverage.measured:
        found.append(
            f"Means or shares by group, correlations and regressions that rest on one of the {indirect:,} pairs"
            " that were not measured together."
        )
    if errors := [v.error for v in views if v.measured is not None]:
        found.append(
            f"Groups of few records: a count is off by up to about {float(np.median(errors)):,.0f}"
            " through noise alone."
        )
    found.append("Facts about a single person. No synthetic row is a real one.")
    return found
