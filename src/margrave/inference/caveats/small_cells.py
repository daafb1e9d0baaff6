"""Columns, and levels of categories, that were measured only in cells which are small beside their noise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import combinations

import numpy as np

from margrave._card import counted
from margrave.bounds.gls import Unbiased
from margrave.errors import InputError
from margrave.inference.caveats.context import Context
from margrave.inference.caveats.measured import words_of
from margrave.inference.caveats.stated import numbers_by_estimate
from margrave.inference.columns import first_few
from margrave.inference.estimands import By
from margrave.inference.estimate import Caveat
from margrave.inference.fitted import EstimateTerm
from margrave.inference.subset import SubsetEstimand
from margrave.marginal import covers
from margrave.ratios import figure
from margrave.release.conditions import Condition, codes_of, in_words
from margrave.release.draws import Draws
from margrave.release.number import MAX_DEVIATIONS_FROM_ZERO
from margrave.release.numbers import group_name
from margrave.release.small_cells import (
    CellSize,
    is_below_noise,
    pooled_size,
    small_levels,
    sum_sizes,
)
from margrave.schema import Column
from margrave.schema.constraint_values import NUMERIC_KINDS
from margrave.types import Attribute, Clique


def below_noise(context: Context) -> dict[str, tuple[Clique, ...]]:
    """Return the fewest columns of each estimate whose cells are too small beside their noise.

    These are columns whose average cell is smaller than its noise, and columns of which `hidden_levels` has a level or
    `hidden_parts` a part.

    Counts cannot be negative. So a fit moves records from the large cells of such a marginal into
    cells where the noise is positive, unless sums hold it to a mean: to that of an estimate, or to the sums and
    sums of products that a linear regression of plain columns rests on. A bootstrap shows a part of
    this bias only, and no interval includes the rest.
    """
    whole, levels = context.once(_hidden), context.once(hidden_levels)
    parts = context.once(hidden_parts)
    return {
        name: tuple(
            dict.fromkeys(
                [*whole[name], *(columns for columns, _ in (*levels[name], *parts[name]))]
            )
        )
        for name in context.names
    }


def hidden_levels(context: Context) -> dict[str, tuple[tuple[Clique, str], ...]]:
    """Return, for each estimate, the levels that it compares whose average cell is small beside its noise.

    Each is a text such as "ward = b", with the columns of the cells. An estimate that the numbers of the release
    state takes the verdict of its number instead.
    """
    stated, whole = context.once(numbers_by_estimate), context.once(_hidden)
    return {
        name: () if name in stated or whole[name] else _levels(context, context.term(name))
        for name in context.names
    }


def hidden_parts(context: Context) -> dict[str, tuple[tuple[Clique, str], ...]]:
    """Return, for each estimate, the part of the records that it is about if its cells are small beside their noise.

    It is a text such as "ward = b and sex = F", with the columns of the cells. The average cell of a part by one code
    of each column is small like that of a level, and that of any other part like that of a whole marginal.
    """
    stated, whole = context.once(numbers_by_estimate), context.once(_hidden)
    return {
        name: ()
        if name in stated or whole[name] or context.summed(name)
        else _parts(context, context.term(name))
        for name in context.names
    }


def check(context: Context) -> Iterator[Caveat]:
    """Yield which columns the noise hides, and which estimates depend on them."""
    by_name = context.once(_hidden)
    hidden = list(dict.fromkeys(c for own in by_name.values() for c in own))
    for own_marginal in (True, False):
        columns = [c for c in hidden if _measured_alone(context, c) == own_marginal]
        if columns:
            names = tuple(n for n, own in by_name.items() if set(own) & set(columns))
            text = _text(context, columns, context.about(names), own_marginal)
            yield Caveat("small cells", names, True, text)
    few, weak = "hold few records", "Differences from other records are too small there"
    yield from _of_few(context, context.once(hidden_levels), few, weak)
    few = "are few"
    weak = "Relations are too weak there, and means too near the middle of the range"
    yield from _of_few(context, context.once(hidden_parts), few, weak, "the records with ")


def _of_few(
    context: Context,
    hidden: Mapping[str, tuple[tuple[Clique, str], ...]],
    few: str,
    weak: str,
    which: str = "",
) -> Iterator[Caveat]:
    """Yield which groups or parts of few records the noise hides."""
    if names := tuple(n for n, own in hidden.items() if own):
        groups = dict.fromkeys(group for n in names for _, group in hidden[n])
        yield Caveat(
            "small cells", names, True,
            f"The noise hides the cells of {which}{first_few(groups)}, which {few}. {weak}. Give the columns fewer"
            f" codes, or the release a larger budget, for a valid interval of {context.about(names)}.",
        )  # fmt: skip


def _hidden(context: Context) -> dict[str, tuple[Clique, ...]]:
    return {
        name: () if context.summed(name) else _small(context, context.term(name))
        for name in context.names
    }


def _levels(context: Context, term: EstimateTerm) -> tuple[tuple[Clique, str], ...]:
    release, found = context.release, list[tuple[Clique, str]]()
    if release is None or release.transcript is None:
        return ()
    domain, transcript = release.schema.domain, release.transcript
    for columns, by, labels in _compared(context, term):
        by_sums = context.rests_on_sums(columns)
        sums = sum_sizes(domain, transcript) if by_sums else ()
        if by_sums and by == term.joins[0] and not covers([c for c, _ in sums], columns):
            continue  # the sums are those of products with the outcome
        small = small_levels(domain, transcript, _sizes(release, sums), columns, by)
        codes = sorted(small.intersection(_codes(release, by, labels)))
        found += [(columns, group_name(release.schema, by, code)) for code in codes]
    return tuple(found)


def _compared(
    context: Context, term: EstimateTerm
) -> Iterator[tuple[Clique, Attribute, tuple[str, ...] | None]]:
    """Yield the columns of cells, and of which of them the cells of which labels are compared; None for all labels.

    A regression compares the values of its outcome in the cells of each pair, if they are two or it names one.
    """
    assert context.release is not None
    schema, basis = context.release.schema, context.basis
    outcome = next(iter(term.joins), "")
    for by in (a for a in term.levels if a in schema.domain and a != outcome):
        yield tuple(dict.fromkeys([*term.joins, by])), by, term.levels[by]
    if basis is None or basis.kind != "coefficients" or outcome not in schema.domain:
        return
    labels = term.levels.get(outcome, ())
    if _is_pair_of_codes(schema.column(outcome)):
        labels = None
    others = [c for c in term.columns if c != outcome and term.depends_on((outcome, c))]
    if labels is None or labels:
        cliques = [term.joins] if len(term.joins) > 1 else [(outcome, c) for c in others]
        yield from ((columns, outcome, labels) for columns in cliques)


def _is_pair_of_codes(column: Column) -> bool:
    return column.size - column.missing == 2


def _codes(release: Draws, by: Attribute, labels: tuple[str, ...] | None) -> set[int]:
    """Return the codes of the levels that an estimate compares; none for a level that is not in the schema."""
    column = release.schema.column(by)
    if labels is None:
        numbers = isinstance(column, NUMERIC_KINDS) and not _is_pair_of_codes(column)
        return set() if numbers else {*range(column.size - column.missing)}
    found: set[int] = set()
    for label in labels:
        with suppress(InputError):
            label = label or release.commonest.get(by, column.labels()[0])
            found.update(codes_of(release.schema, by, label))
    return found


def _parts(context: Context, term: EstimateTerm) -> tuple[tuple[Clique, str], ...]:
    release, basis, fit = context.release, context.basis, context.trial.fit
    of = fit.model if isinstance(fit, By) else fit
    if release is None or release.transcript is None or not isinstance(of, SubsetEstimand):
        return ()
    where: dict[str, Condition] = {
        a: w for a, w in of.conditions.items() if a in release.schema.domain
    }
    if not where or basis is None:
        return ()
    if isinstance(fit, By):
        where |= {a: labels[0] for a, labels in term.levels.items() if labels}
    columns = tuple(dict.fromkeys([*term.joins, *where]))
    with suppress(InputError):  # a group that is not a code
        codes = {a: codes_of(release.schema, a, wanted) for a, wanted in where.items()}
        size, limit = _part_size(release, columns, codes), 1.0
        if all(len(own) == 1 for own in codes.values()):
            limit = MAX_DEVIATIONS_FROM_ZERO
        if 0.0 < size < limit:
            return ((columns, in_words(where)),)
    return ()


def _sizes(release: Draws, sums: tuple[CellSize, ...] = ()) -> tuple[CellSize, ...]:
    """Return the sizes of the marginals' cells; of independent runs, which are fitted one by one, those of one."""
    share = math.sqrt(release.runs or 1)
    return tuple((columns, size / share) for columns, size in (*release.cell_sizes, *sums))


def _part_size(release: Draws, columns: Clique, codes: Mapping[Attribute, Sequence[int]]) -> float:
    """Return the size of the average cell of some columns at some codes, in noise scales; 0 if it is unknown."""
    assert release.transcript is not None
    domain = release.schema.domain
    unbiased, by = Unbiased(domain, release.transcript), domain.clique(codes)
    estimate = unbiased.estimate(by) if unbiased.supports(by) else None
    size = pooled_size(_sizes(release), columns)
    if estimate is None or not math.isfinite(size):
        return 0.0
    own = float(estimate.values[np.ix_(*(codes[a] for a in by))].mean())
    return size * max(own, 1e-9) / max(float(estimate.values.mean()), 1.0)


def _small(context: Context, term: EstimateTerm) -> tuple[Clique, ...]:
    release, basis = context.release, context.basis
    if release is None or basis is None:
        return ()
    singles = [(c,) for c in term.columns]
    pairs = [p for p in combinations(basis.columns, 2) if term.depends_on(p)]
    found: list[Clique] = []
    for columns in filter(None, (*singles, *pairs, term.joins)):
        if (
            is_below_noise(_sizes(release), columns)
            and not context.rests_on_sums(columns)
            and not any(set(fewer) <= set(columns) for fewer in found)
        ):
            found.append(columns)
    return tuple(found)


def _measured_alone(context: Context, columns: Clique) -> bool:
    assert context.release is not None
    sizes = _sizes(context.release)
    return covers([c for c, _ in sizes if len(c) <= len(columns)], columns)


def _text(context: Context, hidden: Sequence[Clique], names: str, own_marginal: bool) -> str:
    assert context.release is not None
    sizes = _sizes(context.release)
    each = "; ".join(
        f"{words_of(c)} (noise of {figure(1 / pooled_size(sizes, c), 2)} average cells)"
        for c in hidden[:3]
    )
    more = f" and {counted(len(hidden) - 3, 'more set')} of columns" if len(hidden) > 3 else ""
    one = len(hidden) == 1
    words = words_of(hidden[0]) if one else "these columns" if own_marginal else "each of these"
    its = "their" if one and len(hidden[0]) > 1 else "its"
    remedy = (
        f"give {words} fewer codes, or the release a larger budget"
        if own_marginal
        else f"measure {words} in a marginal of {its} own (--workload)"
    )
    return (
        f"The noise exceeds the average cell in every measured marginal with {each}{more}:"
        f" {remedy}, for a valid interval of {names}."
    )
