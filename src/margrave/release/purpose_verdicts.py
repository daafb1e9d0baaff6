"""The verdict on each purpose of a release, by the numbers that it asks for, of all rows or of groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from margrave._card import counted, listed, listed_within
from margrave.bounds.gls import Unbiased
from margrave.formula import has_columns_alone, parse
from margrave.marginal import covers
from margrave.purposes import Purpose
from margrave.ratios import percent
from margrave.release.beyond_bounds import (
    columns_of_another_run,
    has_bounds_of_another_run,
    open_bounds,
    possible_limits,
)
from margrave.release.diagnostics import merged_together, summed_together
from margrave.release.far_values import far_values
from margrave.release.hidden_spread import hidden_spreads
from margrave.release.merged_codes import loses_relation
from margrave.release.number import ColumnNumber
from margrave.release.numbers import (
    group_name,
    headlines,
    numbers_by,
    numbers_of,
    rare_groups,
)
from margrave.release.purposes import PurposeSupport
from margrave.release.release import Release
from margrave.release.small_cells import (
    CellSize,
    cell_sizes,
    is_below_noise,
    small_levels,
    sum_sizes,
)
from margrave.schema import Schema
from margrave.schema.constraint_values import NUMERIC_KINDS
from margrave.schema.remedies import bins_remedy, bounds_remedy
from margrave.schema.sources import learned_of
from margrave.transcript import Transcript
from margrave.types import Attribute, Clique


@dataclass(frozen=True)
class PurposeVerdict:
    """A purpose, and what it asks for that is not reliable.

    Args:
        support: Its words, and what was measured of it.
        cliques: Its marginals; none if a column of it was left out of the release.
        doubts: The numbers and the marginals that are not reliable, in words.
        rare: The groups that may have no rows, by their noisy count; they have no verdict.
        hidden: The groups whose coefficients of a regression are not reliable, while others are.
        by: The columns of the groups.
        remedy: What would make the numbers of its groups, or a regression or correlation, reliable, in sentences; empty
            for other purposes, and without doubts.
    """

    support: PurposeSupport
    cliques: tuple[Clique, ...] = ()
    doubts: tuple[str, ...] = ()
    rare: tuple[str, ...] = ()
    by: tuple[Attribute, ...] = ()
    remedy: str = ""
    hidden: tuple[str, ...] = ()

    @property
    def serves(self) -> bool:
        """True if all its marginals were measured, and its numbers are reliable."""
        return self.support.measured and not self.doubts

    @property
    def warning(self) -> str:
        """The doubts in a sentence, without its point; empty without doubts."""
        if not self.doubts:
            return ""
        verb = "is" if len(self.doubts) == 1 else "are"
        return f"{listed(self.doubts, 12)} {verb} not reliable"

    @property
    def gap(self) -> str:
        """A sentence that names the groups without a verdict, or without a coefficient; empty without such groups."""
        if self.hidden:
            some = f"its coefficient{'s' if len(self.hidden) > 1 else ''} of {listed_within(self.hidden)}"
            return f"The noise hides {some}, which margrave analyze marks."
        if not self.rare:
            return ""
        some = f"{counted(len(self.rare), 'group')} of {', '.join(self.by)} that may have no rows"
        return f"No verdict on {some}: {_listed_groups(self.rare, self.by)}."

    @property
    def words(self) -> str:
        """The verdict in one sentence or two."""
        first = self.support.words
        if self.support.measured and self.doubts:
            first = f"{self.support.purpose}: {self.warning}"
        return " ".join(filter(None, (f"{first}.", self.gap, self.remedy)))


def purpose_verdicts(
    release: Release, numbers: Sequence[ColumnNumber]
) -> tuple[PurposeVerdict, ...]:
    """Return the verdict on each purpose of a release.

    A mean, a total, a quantile or a share rests on that very number: of all rows, or in each of its groups. A width
    that the purpose states is compared with its interval, if both have one unit. Groups that may have no rows have no
    verdict. Regressions and correlations are judged by what ``analyze`` marks: numbers whose spread or whose ends are
    not known, merged codes, and groups whose cells the noise hides. Coefficients of some groups are named, and those of
    all groups are a doubt. So are merged codes of a count, a share or an effect. Columns whose spread may be due to
    values that noise placed far out have no reliable correlation, nor coefficient as a regressor. A marginal of several
    columns is not reliable if the noise exceeds its average cell, unless sums were measured on which the purpose
    rests alone, or the numbers of groups state the noise.

    Args:
        release: The release.
        numbers: All numbers of the release.

    Privacy:
        None spent: noisy answers only.
    """
    return tuple(verdict_on(release, support, numbers) for support in release.purposes)


def verdict_on(
    release: Release, support: PurposeSupport, numbers: Sequence[ColumnNumber]
) -> PurposeVerdict:
    """Return the verdict on one purpose, by the rule of ``purpose_verdicts``."""
    if not support.marginals:
        return PurposeVerdict(support)
    schema, transcript = release.schema, release.transcript
    purpose = Purpose.of(support.purpose, schema.domain)
    if purpose.groups and _own_columns(purpose, schema):
        return _by_groups(release, support, purpose)
    if purpose.kind == "quantile":
        numbers = numbers_of(
            schema, transcript, release.model, 0.95, [purpose.outcome],
            quantiles=_quantiles(purpose),
        )  # fmt: skip
    own = [n for n in _own_numbers(purpose, schema, numbers) if _is_doubtful(purpose, schema, n)]
    coefficients, hidden, far = tuple[str, ...](), tuple[str, ...](), tuple[Attribute, ...]()
    is_relation = purpose.kind in ("ols", "logistic", "correlation")
    if is_relation:
        own = [n for n in own if _moves_slopes(release, n)]
        coefficients, hidden = _coefficients(release, purpose)
        far = _far_out(release, purpose)
    else:
        coefficients = _merged_results(release, purpose)
    sizes = cell_sizes(schema.domain, transcript)
    sums = summed_together(schema.domain, transcript) if _rests_on_sums(purpose) else ()
    below = [
        clique
        for clique in purpose.cliques
        if len(clique) > 1 and is_below_noise(sizes, clique) and not covers(sums, clique)
    ]
    doubts = (
        *(_words(n, purpose) for n in own),
        *coefficients,
        *(f"each relation of {name} (noise may have placed values far out)" for name in far),
        *(f"the marginal of {', '.join(clique)}" for clique in below),
    )
    remedy = ""
    if is_relation and doubts:
        wide = list(dict.fromkeys((*(n.column for n in own), *far)))
        remedy = _remedy_of_relation(schema, purpose, wide, below)
    return PurposeVerdict(support, purpose.cliques, doubts, remedy=remedy, hidden=hidden)


def _rests_on_sums(purpose: Purpose) -> bool:
    """Return whether sums in place of a marginal are all that a purpose rests on.

    A correlation also rests on the spread of both columns, and a regression with interactions or functions on cells.
    """
    if purpose.kind != "ols":
        return purpose.kind in ("mean", "total")
    return has_columns_alone(parse(purpose.rest))


def _far_out(release: Release, purpose: Purpose) -> tuple[Attribute, ...]:
    """Return the columns of a correlation, or the regressors, that values which noise placed may have widened."""
    coded = purpose.coded(release.schema.domain)
    spared = coded if purpose.kind == "correlation" else {*coded, purpose.outcome}
    found = far_values(release.schema, release.transcript)
    names = (name for name in purpose.columns if name in found and name not in spared)
    return tuple(name for name in names if found[name].weakens)


def _remedy_of_relation(
    schema: Schema, purpose: Purpose, wide: Sequence[Attribute], below: Sequence[Clique]
) -> str:
    """Return what would make a correlation or the coefficients of a regression reliable.

    Args:
        schema: The schema.
        purpose: The correlation or the regression.
        wide: Its columns whose spread or whose ends are not known.
        below: Its marginals whose average cell is below the noise.
    """
    learned = [name for name in wide if name in learned_of(schema.sources)]
    if wide:
        way = bounds_remedy(open_bounds(schema, learned)) if learned else bins_remedy()
        return f"In the schema of the next release, for {listed(learned or wide)} {way} Or raise the budget."
    cells = {a for clique in below for a in clique} or {*purpose.columns} - {purpose.outcome}
    several = [name for name in schema.domain.clique(cells) if schema.domain.size(name) > 2]
    if not several:
        return "A larger budget lowers the noise."
    return f"Fewer codes of {' or '.join(several)}, or a larger budget, lower the noise."


def _moves_slopes(release: Release, n: ColumnNumber) -> bool:
    """Return whether what makes a mean not reliable moves slopes too: its noise alone does not."""
    if n.statistic != "mean":
        return False
    another = (c.name for c in columns_of_another_run(release.schema))
    wide = hidden_spreads(release.schema, release.transcript)
    return bool(n.clipping) or n.may_hide_values or n.column in (*another, *wide)


def _coefficients(release: Release, purpose: Purpose) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the columns of a regression without a reliable coefficient, in words, and groups without one of others."""
    schema, transcript, domain = release.schema, release.transcript, release.schema.domain
    merged, unbiased = merged_together(domain, transcript), Unbiased(domain, transcript)
    sizes = cell_sizes(domain, transcript)
    sizes += sum_sizes(domain, transcript) if _rests_on_sums(purpose) else ()
    doubts, hidden = list[str](), list[str]()
    for name in purpose.columns:
        column, sets = schema.column(name), merged.get(name, ())
        if isinstance(column, NUMERIC_KINDS) and name not in purpose.coded(domain):
            counts = unbiased.estimate((name,)) if sets else None
            if counts is not None and loses_relation(column, sets, counts.values):
                doubts.append(f"each relation of {name} (rare codes were merged)")
        elif name != purpose.outcome:
            small = {code for codes in sets for code in codes}.union(
                *(
                    small_levels(domain, transcript, sizes, clique, name)
                    for clique in purpose.cliques
                    if {name, purpose.outcome} <= set(clique)
                )
            )
            levels = range(column.size - column.missing)
            own = [group_name(schema, name, code) for code in levels if code in small]
            if len(own) < len(levels) - 1:
                hidden += own
            elif own:
                doubts.append(f"each coefficient of {name}")
    return (*doubts, *_rare_outcome(schema, transcript, sizes, purpose)), tuple(hidden)


def _rare_outcome(
    schema: Schema, transcript: Transcript, sizes: Sequence[CellSize], purpose: Purpose
) -> Iterator[str]:
    """Yield the columns whose cells with a value of a two-valued outcome are small beside their noise, in words."""
    outcome, found = schema.column(purpose.outcome), dict[str, list[Attribute]]()
    if outcome.size - outcome.missing != 2:
        return
    for clique in (clique for clique in purpose.cliques if outcome.name in clique):
        small = small_levels(schema.domain, transcript, sizes, clique, outcome.name)
        for code in small & {0, 1}:
            own = found.setdefault(group_name(schema, outcome.name, code), [])
            own += [c for c in clique if c not in (*own, outcome.name)]
    for few, columns in found.items():
        yield f"each coefficient of {listed(columns)} (the noise hides the cells of {few})"


def _merged_results(release: Release, purpose: Purpose) -> tuple[str, ...]:
    """Return the columns whose rare codes share one count in the finest marginals of a purpose, in words."""
    unbiased = Unbiased(release.schema.domain, release.transcript)
    several = (clique for clique in purpose.cliques if len(clique) > 1)
    groups = {a: None for clique in several for a in unbiased.groups_of(clique) or {}}
    merged = listed(release.schema.domain.clique(groups), 12)
    return (f"each result for rare codes of {merged} (they were merged)",) if groups else ()


def _by_groups(release: Release, support: PurposeSupport, purpose: Purpose) -> PurposeVerdict:
    schema, transcript = release.schema, release.transcript
    by, columns = (schema.domain.clique(c) for c in (purpose.groups, purpose.columns))
    if not Unbiased(schema.domain, transcript).supports(columns):
        why = f"no measured marginal has all codes of {', '.join(columns)} together"
        doubt = f"each group's number of {purpose.outcome} ({why})"
        return PurposeVerdict(support, purpose.cliques, (doubt,))
    numbers = numbers_by(
        schema, transcript, release.model, 0.95, [purpose.outcome], by, _quantiles(purpose)
    )
    groups: dict[str, list[ColumnNumber]] = {}
    for n in numbers:
        groups.setdefault(n.group, []).append(n)
    rare = rare_groups(schema, transcript, *by)
    if len(rare) == len(groups):
        return PurposeVerdict(support, purpose.cliques, ("the row count of each group",))
    own = [_own_numbers(purpose, schema, found) for g, found in groups.items() if g not in rare]
    unreliable = [n for found in own for n in found if _is_doubtful(purpose, schema, n)]
    doubtful = {n.group: _words(n, purpose) for n in unreliable}
    some = f"{len(doubtful):,} of {counted(len(groups), 'group')} of {', '.join(by)}"
    where = f"{some} ({_listed_groups([*doubtful], by)})"
    if len(doubtful) == len(groups):
        where = f"all {counted(len(groups), 'group')} of {', '.join(by)}"
    doubts = tuple(f"{words} in {where}" for words in dict.fromkeys(doubtful.values()))
    remedy = _remedy(release, purpose, by, unreliable) if doubts else ""
    return PurposeVerdict(support, purpose.cliques, doubts, rare, by, remedy)


def _listed_groups(groups: Sequence[str], by: Clique) -> str:
    """Return groups as text: those of one column by their values alone."""
    named = f"{by[0]} = " if len(by) == 1 else ""
    return listed_within([group.removeprefix(named) for group in groups])


def _remedy(
    release: Release, purpose: Purpose, by: Clique, doubtful: Sequence[ColumnNumber]
) -> str:
    """Return what would help most: to bound what learned bounds hide, to place bins, or to lower the noise."""
    schema = release.schema
    column = schema.column(purpose.outcome) if purpose.kind in ("mean", "total") else None
    if isinstance(column, NUMERIC_KINDS):
        next_schema = f"In the schema of the next release, for {column.name}"
        limits = possible_limits(column, schema.sources)
        if has_bounds_of_another_run(column, limits) or any(n.may_hide_values for n in doubtful):
            return f"{next_schema} {bounds_remedy(schema.source(column.name).open_bounds)}"
        is_public = column.name not in learned_of(schema.sources)
        if is_public and column.name in hidden_spreads(schema, release.transcript):
            return f"{next_schema} {bins_remedy()}"
    several = [name for name in by if schema.domain.size(name) > 2]
    if not several:
        return "A larger budget lowers the noise."
    return f"Fewer codes of {' or '.join(several)}, or a larger budget, lower the noise."


def with_doubtful_means(release: Release, pairs: Iterable[Clique]) -> tuple[Clique, ...]:
    """Return the pairs of columns with a mean by group that is not reliable.

    The rule is that of a purpose such as ``mean cost by ward``: groups that may have no rows have no verdict. Both
    columns make groups if both are of numbers.

    Args:
        release: The release.
        pairs: Pairs of columns of the release.

    Privacy:
        None spent: noisy answers only.
    """
    columns = {c.name: c for c in release.schema.columns}
    return tuple(
        pair
        for pair in pairs
        if any(
            isinstance(columns[outcome], NUMERIC_KINDS) and _doubts_means(release, outcome, by)
            for outcome, by in (pair, pair[::-1])
        )
    )


def _doubts_means(release: Release, outcome: Attribute, by: Attribute) -> bool:
    schema, transcript = release.schema, release.transcript
    rare = rare_groups(schema, transcript, by)
    numbers = numbers_by(schema, transcript, release.model, 0.95, [outcome], [by], {})
    verdicts = (n.reliable for n in numbers if n.statistic == "mean" and n.group not in rare)
    return not next(verdicts, False) or not all(verdicts)


def _quantiles(purpose: Purpose) -> dict[str, float]:
    if purpose.kind != "quantile":
        return {}
    return {f"{percent(purpose.at, 'g')} quantile": purpose.at}


def _own_numbers(
    purpose: Purpose, schema: Schema, numbers: Sequence[ColumnNumber]
) -> list[ColumnNumber]:
    """Return the numbers on which a purpose rests, of all records or of one group."""
    names = {"total": ["total"], "quantile": [*_quantiles(purpose)]}.get(purpose.kind)
    if names is not None:
        return [n for n in numbers if n.column == purpose.outcome and n.statistic in names]
    return [n for n in headlines(numbers) if n.column in _own_columns(purpose, schema)]


def _own_columns(purpose: Purpose, schema: Schema) -> set[Attribute]:
    """Return the columns on whose numbers a purpose rests."""
    if purpose.kind in ("mean", "total", "quantile"):
        return {purpose.outcome}
    if purpose.kind not in ("share", "count"):
        return set(purpose.columns)
    # The main number of a column of numbers is its mean, which is a share if there are two values.
    name = purpose.outcome or purpose.columns[0]
    several = purpose.kind == "count" and len(purpose.columns) > 1
    column = schema.column(name)
    of_values = isinstance(column, NUMERIC_KINDS) and column.cells.count > 2
    return set() if several or of_values else {name}


def _is_doubtful(purpose: Purpose, schema: Schema, number: ColumnNumber) -> bool:
    """Return whether a number is not reliable, or has a wider interval than its purpose states.

    A width in another unit than the number's is not compared: that of a total, or of a column to learn.
    """
    in_its_unit = purpose.kind in ("mean", "quantile", "share")
    if not number.reliable or purpose.width is None or not in_its_unit:
        return not number.reliable
    if number.column in learned_of(schema.sources) or number.low is None or number.high is None:
        return False
    return (number.high - number.low) / 2 > purpose.width


def _words(number: ColumnNumber, purpose: Purpose) -> str:
    name = "main number" if number.is_of_category else number.statistic
    wide = f" within {purpose.width:g}" if number.reliable and purpose.width is not None else ""
    return f"the {name} of {number.column}{wide}"
