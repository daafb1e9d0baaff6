"""The verdict of a release: what to use it for and what not, from its marks and the pairs that were measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from margrave._card import counted
from margrave.release import ColumnNumber, Release
from margrave.release.certificate import large_delta
from margrave.release.coverage import Coverage, pair_evidence
from margrave.release.diagnostics import merged_together
from margrave.release.numbers import headlines
from margrave.release.purpose_verdicts import (
    PurposeVerdict,
    purpose_verdicts,
    with_doubtful_means,
)
from margrave.report.views import LEVEL, ColumnView, doubtful_categories, has_rows
from margrave.report.wording import (
    all_measured,
    contradicted,
    measured_pairs,
    named,
    none_measured,
    nothing_asked,
    pair_words,
)
from margrave.types import Attribute, Clique
from margrave.unit import rows_per_person


@dataclass(frozen=True)
class Verdict:
    """The verdict in sentences, and the two lists.

    Args:
        mark: "good", "partly" or "bad", for the color. A release is good only if it serves all its purposes.
        sentences: One to four sentences.
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
    constant = [v.name for v in views if v.has_one_value and has_rows(release)]
    pairs = _Pairs.of(release, purposes, constant, doubtful_categories(numbers))
    return Verdict(
        _mark(release, len(good), len(main), pairs, purposes),
        _sentences(release, len(good), len(main), pairs),
        tuple(_use_for(release, good, purposes, pairs)) or ("Nothing.",),
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


def _mark(
    release: Release,
    good: int,
    columns: int,
    pairs: _Pairs,
    purposes: Sequence[PurposeVerdict],
) -> str:
    account = release.account
    if not account.private or large_delta(account.delta, release.model.total):
        return "bad"
    if release.no_model or release.misfit:
        return "bad"
    whole = has_rows(release) and len(pairs.usable) == pairs.coverage.pairs
    whole = whole and not merged_together(release.schema.domain, release.transcript)
    serves = good == columns and all(p.serves for p in purposes)
    return "good" if serves and whole and not release.unmeasured_columns else "partly"


def _sentences(release: Release, good: int, columns: int, pairs: _Pairs) -> tuple[str, ...]:
    if not release.account.private:
        return ("Do not publish this release: its noise came from a seed, which is for tests.",)
    if release.no_model:
        return (
            f"This release has no model and no synthetic rows, because {release.no_model}.",
            release.model.remedy,
        )
    if release.misfit:
        return (contradicted(release.misfit), "Do not use the synthetic rows for these columns.")
    weak = large_delta(release.account.delta, release.model.total)
    without = () if has_rows(release) else (_answers_alone(),)
    return (
        *((weak,) if weak else ()),
        *without,
        _of_columns(good, columns),
        *_of_pairs(pairs.coverage, len(pairs.usable), len(pairs.rough)),
    )


def _answers_alone() -> str:
    return (
        "This release holds noisy answers only, and no synthetic rows can be drawn from it. A refit makes a model at no"
        " further cost: margrave refit --fit graphical."
    )


def _of_columns(good: int, columns: int) -> str:
    if not good:
        return "No column has a reliable main number."
    if good == columns:
        return "The main numbers of all columns are reliable."
    if good == 1:
        return f"The main number of 1 of {columns} columns is reliable."
    return f"The main numbers of {good} of {columns} columns are reliable."


def _of_pairs(coverage: Coverage, usable: int, rough: int) -> tuple[str, ...]:
    """Return a sentence on the measured pairs: usable ones, and ones of which only counts by both columns are."""
    measured, pairs = coverage.measured, coverage.pairs
    if not pairs:
        return ()
    if not measured:
        return (none_measured(),)
    were = "was" if measured == 1 else "were"
    if usable < measured:
        of_all = "The only pair" if pairs == 1 else f"{measured:,} of {pairs:,} pairs"
        return (
            f"{of_all} of columns {were} measured together, and {_usable(measured, usable, rough)}.",
        )
    if measured == pairs:
        return (all_measured(),)
    return (
        f"Relations can be used for the {measured:,} of {pairs:,} pairs of columns that {were} measured together.",
    )


def _usable(measured: int, usable: int, rough: int) -> str:
    counts = "counts by both columns can be used, but not means by group"
    if measured == 1:
        return counts if rough else "its relation cannot be used"
    if not usable and rough == measured:
        return counts
    found = f"relations can be used for {f'{usable:,}' if usable else 'none'} of these"
    return f"{found}, and of {rough:,} more only counts by both columns" if rough else found


def _use_for(
    release: Release, good: Sequence[str], purposes: Sequence[PurposeVerdict], pairs: _Pairs
) -> list[str]:
    if not release.account.private:
        return ["Tests of software."]
    found = [
        f"{p.words} Take its intervals from margrave analyze, and do not use those that it marks."
        for p in purposes
        if p.serves
    ]
    if good:
        found.append(f"Counts, shares and averages of single columns: {named(good, 12)}.")
    usable, measured = pairs.usable, pairs.coverage.measured
    if usable and len(usable) == measured:
        found.append(f"Relations of the {measured_pairs(measured)}, which the map shows.")
    elif usable:
        found.append(
            f"Relations of {len(usable):,} of the {counted(measured, 'measured pair')}: {pair_words(usable)}."
        )
    if few := pairs.rough:
        some = "" if len(few) == measured else f"{len(few):,} of "
        found.append(
            f"Counts by both columns of {some}the {measured_pairs(measured)}, but not means by group, of which"
            f" some are not reliable: {pair_words(few)}. Take these from margrave numbers --by, which marks them."
        )
    if has_rows(release):
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
    if not release.no_model and (silent := release.unmeasured_columns):
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
    if merged := merged_together(release.schema.domain, release.transcript):
        names = release.schema.domain.clique(merged)
        found.append(
            f"Relations of rare codes of {named(names, 12)}: they were merged in all pairs."
        )
    if indirect := coverage.pairs - coverage.measured:
        were_not = (
            "the pair that was not"
            if indirect == 1
            else f"one of the {indirect:,} pairs that were not"
        )
        found.append(
            f"Means or shares by group, correlations and regressions that rest on {were_not} measured together."
        )
    if errors := [v.error for v in views if v.measured is not None]:
        least, largest = (f"{e:{',.0f' if e >= 1 else '.1g'}}" for e in (min(errors), max(errors)))
        reach = least if least == largest else f"{least} to {largest}, by the column"
        found.append(
            f"Groups of few records: with probability {LEVEL:g} noise alone puts a count off by at most about {reach}."
        )
    rows = " Synthetic rows are drawn from a model, and one may equal a real row by chance."
    found.append(f"Facts about a single person.{rows * has_rows(release)}")
    return found
