"""The verdict of a release: what to use it for and what not, from its marks and the pairs that were measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from margrave._card import counted
from margrave.release import ColumnNumber, Release
from margrave.release.coverage import Coverage, pair_evidence
from margrave.release.numbers import headlines
from margrave.release.purpose_verdicts import (
    PurposeVerdict,
    purpose_verdicts,
    with_doubtful_means,
)
from margrave.report.views import ColumnView, doubtful_categories
from margrave.report.wording import all_measured, contradicted, named, nothing_asked, pair_words
from margrave.types import Attribute, Clique
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
    purposes = purpose_verdicts(release, numbers)
    constant = [v.name for v in views if v.has_one_value]
    pairs = _Pairs.of(release, purposes, constant, doubtful_categories(numbers))
    return Verdict(
        _mark(release, len(good), len(main), pairs),
        _sentences(release, len(good), len(main), pairs),
        tuple(_use_for(release, good, purposes, pairs)),
        tuple(_not_for(release, doubtful, purposes, pairs, views)),
    )


@dataclass(frozen=True)
class _Pairs:
    """The pairs of columns by what they can be used for.

    Args:
        coverage: The pairs that were measured, and those that the noise hides.
        usable: Measured pairs without a constant or doubtful column, that the noise does not hide, that no doubtful
            purpose rests on, and whose means by group are reliable.
        rough: Pairs that are not usable for some of their means by group alone.
        served: Pairs that a purpose without doubts rests on.
        constant: Columns of measured pairs that have one value in the model.
        doubtful: Other columns of measured pairs whose main number is the share of a category and not reliable.
    """

    coverage: Coverage
    usable: tuple[Clique, ...]
    rough: tuple[Clique, ...]
    served: frozenset[Clique]
    constant: tuple[Attribute, ...]
    doubtful: tuple[Attribute, ...]

    @staticmethod
    def of(
        release: Release,
        purposes: Sequence[PurposeVerdict],
        constant: Sequence[Attribute],
        categories: Sequence[Attribute],
    ) -> _Pairs:
        domain, coverage = release.schema.domain, release.coverage
        doubtful, served = set[Clique](), set[Clique]()
        for purpose in purposes:
            own = doubtful if purpose.doubts else served
            for clique in purpose.cliques:
                own.update(combinations(clique, 2))
        measured = pair_evidence(domain, release.transcript, release.provenance).measured
        usable = {
            pair
            for pair in measured - doubtful - set(coverage.hidden)
            if not {*constant, *categories}.intersection(pair)
        }
        order = sorted(usable, key=lambda pair: [domain.index(a) for a in pair])
        rough = with_doubtful_means(release, order)
        reliable = tuple(pair for pair in order if pair not in rough)
        in_pairs = {a for pair in measured for a in pair}
        return _Pairs(
            coverage,
            reliable,
            rough,
            frozenset(served),
            tuple(a for a in constant if a in in_pairs),
            tuple(a for a in categories if a in in_pairs and a not in constant),
        )

    def apart_from_purposes(self, pairs: Iterable[Clique]) -> str:
        """Return the words that except the pairs of purposes without doubts; empty if none is among these pairs."""
        is_served = not self.served.isdisjoint(pairs)
        return ", apart from the purposes that it can be used for" * is_served

    def not_related(self) -> list[str]:
        """Return sentences on the columns of which no relation can be used."""
        kinds = {
            "columns with one value in all synthetic rows": self.constant,
            "columns whose main number is not reliable": self.doubtful,
        }
        return [
            f"Relations of {kind}{self.apart_from_purposes(touched)}: {named(names, 12)}."
            for kind, names in kinds.items()
            if names
            for touched in [[p for p in self.served if not set(names).isdisjoint(p)]]
        ]


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
            release.model.remedy,
        )
    if release.misfit:
        return (contradicted(release.misfit), "Do not use the synthetic rows for these columns.")
    of_all = "all" if good == columns else f"{good} of {columns}"
    first = f"The main numbers of {of_all} columns are reliable."
    coverage, usable = pairs.coverage, len(pairs.usable)
    were = "was" if coverage.measured == 1 else "were"
    if not coverage.pairs:
        return (first,)
    if usable < coverage.measured:
        return (
            first,
            f"{coverage.measured:,} of {counted(coverage.pairs, 'pair')} of columns {were} measured together, and"
            f" relations can be used for {f'{usable:,}' if usable else 'none'} of these.",
        )
    if coverage.measured == coverage.pairs:
        return (first, all_measured())
    return (
        first,
        f"Relations can be used for the {coverage.measured:,} of {coverage.pairs:,} pairs of columns that {were}"
        " measured together.",
    )


def _use_for(
    release: Release, good: Sequence[str], purposes: Sequence[PurposeVerdict], pairs: _Pairs
) -> list[str]:
    if not release.account.private:
        return ["Tests of software."]
    found = [f"{p.words} Take its intervals from margrave analyze." for p in purposes if p.serves]
    if good:
        found.append(f"Counts, shares and averages of single columns: {named(good, 12)}.")
    usable, measured = pairs.usable, pairs.coverage.measured
    if usable and len(usable) == measured:
        found.append(f"Relations of the {counted(measured, 'measured pair')}, which the map shows.")
    elif usable:
        found.append(
            f"Relations of {len(usable):,} of the {counted(measured, 'measured pair')}: {pair_words(usable)}."
        )
    if few := pairs.rough:
        of_all = "all" if len(few) == measured else f"{len(few):,} of the"
        found.append(
            f"Counts by both columns of {of_all} {counted(measured, 'measured pair')}, but not means by group, of which"
            f" some are not reliable: {pair_words(few)}. Take these from margrave numbers --by, which marks them."
        )
    if not release.no_model:
        found.append("Developing and testing programs before they run on the real rows.")
    return found


def _not_for(
    release: Release,
    doubtful: Sequence[str],
    purposes: Sequence[PurposeVerdict],
    pairs: _Pairs,
    views: Sequence[ColumnView],
) -> list[str]:
    coverage = pairs.coverage
    found = [p.words for p in purposes if not p.serves]
    if silent := release.unmeasured_columns:
        found.append(nothing_asked(silent))
    if most := rows_per_person(release.account.unit):
        found.append(
            f"Totals and shares of the whole table, if persons have more than {counted(most, 'row')}: the others were"
            " left out."
        )
    if doubtful:
        numbers_are = "number" if len(doubtful) == 1 else "numbers"
        they_are = "it is" if len(doubtful) == 1 else "they are"
        found.append(f"The main {numbers_are} of {named(doubtful, 12)}: {they_are} not reliable.")
    if coverage.alone:
        found.append(f"Relations of {named(coverage.alone, 12)} to other columns.")
    if coverage.hidden:
        apart = pairs.apart_from_purposes(coverage.hidden)
        found.append(
            f"Relations of {pair_words(coverage.hidden)}{apart}: the noise exceeds the average cell of each."
        )
    found += pairs.not_related()
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
