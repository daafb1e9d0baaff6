"""The verdict of a release: what to use it for and what not, from its marks and the pairs that were measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from margrave._card import counted, listed
from margrave.marginal import covers
from margrave.purposes import Purpose
from margrave.ratios import percent
from margrave.release import ColumnNumber, Release
from margrave.release.coverage import Coverage, pair_evidence
from margrave.release.diagnostics import summed_together
from margrave.release.numbers import headlines, numbers_of
from margrave.release.purposes import PurposeSupport
from margrave.release.small_cells import cell_sizes, is_below_noise
from margrave.report.views import ColumnView
from margrave.report.wording import all_measured, contradicted, nothing_asked, pair_words
from margrave.schema import Schema
from margrave.schema.constraint_values import NUMERIC_KINDS
from margrave.types import Clique
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
    pairs = _Pairs.of(release, numbers)
    return Verdict(
        _mark(release, len(good), len(main), pairs),
        _sentences(release, len(good), len(main), pairs),
        tuple(_use_for(release, good, numbers, pairs)),
        tuple(_not_for(release, doubtful, numbers, pairs, views)),
    )


@dataclass(frozen=True)
class _Pairs:
    """The pairs of columns by what they can be used for.

    Args:
        coverage: The pairs that were measured, and those that the noise hides.
        usable: Measured pairs that the noise does not hide, and that no doubtful purpose rests on.
        named: Whether a purpose without doubts rests on one of the other measured pairs.
    """

    coverage: Coverage
    usable: tuple[Clique, ...]
    named: bool

    @staticmethod
    def of(release: Release, numbers: Sequence[ColumnNumber]) -> _Pairs:
        domain, coverage = release.schema.domain, release.coverage
        doubtful, served = set[Clique](), set[Clique]()
        for support in release.purposes:
            own = doubtful if doubts(release, support, numbers) else served
            for clique in Purpose.of(support.purpose, domain).cliques if support.marginals else ():
                own.update(combinations(clique, 2))
        measured = pair_evidence(domain, release.transcript, release.provenance).measured
        usable = measured - doubtful - set(coverage.hidden)
        order = sorted(usable, key=lambda pair: [domain.index(a) for a in pair])
        return _Pairs(coverage, tuple(order), bool(served & (measured - usable)))


def _mark(release: Release, good: int, columns: int, pairs: _Pairs) -> str:
    if not release.account.private or release.no_model or release.misfit:
        return "bad"
    whole = len(pairs.usable) == pairs.coverage.pairs
    return "good" if good == columns and whole and not release.unmeasured_columns else "partly"


def _sentences(release: Release, good: int, columns: int, pairs: _Pairs) -> tuple[str, ...]:
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
    coverage, usable = pairs.coverage, len(pairs.usable)
    if not coverage.pairs:
        return (first,)
    if usable < coverage.measured:
        return (
            first,
            f"{coverage.measured:,} of {coverage.pairs:,} pairs of columns were measured together, and relations can be"
            f" used for {f'{usable:,}' if usable else 'none'} of these.",
        )
    if coverage.measured == coverage.pairs:
        return (first, all_measured())
    return (
        first,
        f"Relations can be used for the {coverage.measured:,} of {coverage.pairs:,} pairs of columns that were"
        " measured together.",
    )


def doubts(release: Release, support: PurposeSupport, numbers: Sequence[ColumnNumber]) -> list[str]:
    """Return the numbers and the marginals, in words, that a purpose rests on and that are not reliable.

    A mean, a total, a quantile or a share rests on that very number of all rows. A regression rests on the mean of each
    number, and on the largest share of each column of categories. A marginal of several columns is not reliable if the
    noise exceeds its average cell, unless sums were measured in its place.

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
    sizes = cell_sizes(schema.domain, release.transcript)
    sums = summed_together(schema.domain, release.transcript) if purpose.takes_sums else ()
    return [
        *(
            f"the {'main number' if n.is_of_category else n.statistic} of {n.column}"
            for n in own
            if not n.reliable
        ),
        *(
            f"the marginal of {', '.join(clique)}"
            for clique in purpose.cliques
            if len(clique) > 1 and is_below_noise(sizes, clique) and not covers(sums, clique)
        ),
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
    release: Release, good: Sequence[str], numbers: Sequence[ColumnNumber], pairs: _Pairs
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
    usable, measured = pairs.usable, pairs.coverage.measured
    if usable and len(usable) == measured:
        found.append(f"Relations of the {measured:,} measured pairs, which the map shows.")
    elif usable:
        found.append(
            f"Relations of {len(usable):,} of the {measured:,} measured pairs: {pair_words(usable)}."
        )
    if not release.no_model:
        found.append("Developing and testing programs before they run on the real rows.")
    return found


def _not_for(
    release: Release,
    doubtful: Sequence[str],
    numbers: Sequence[ColumnNumber],
    pairs: _Pairs,
    views: Sequence[ColumnView],
) -> list[str]:
    coverage = pairs.coverage
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
    if coverage.hidden:
        apart = ", apart from the purposes that it can be used for" if pairs.named else ""
        found.append(
            f"Relations of {pair_words(coverage.hidden)}{apart}: the noise exceeds the average cell of each."
        )
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
