"""Columns, and levels of categories, that were measured only in cells which are small beside their noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import combinations

from margrave._card import counted
from margrave.errors import InputError
from margrave.inference.caveats.context import Context
from margrave.inference.caveats.measured import words_of
from margrave.inference.caveats.stated import numbers_by_estimate
from margrave.inference.columns import first_few
from margrave.inference.estimate import Caveat
from margrave.inference.fitted import EstimateTerm
from margrave.marginal import covers
from margrave.ratios import figure
from margrave.release.conditions import codes_of
from margrave.release.draws import Draws
from margrave.release.numbers import group_name
from margrave.release.small_cells import is_below_noise, pooled_size, small_levels, sum_sizes
from margrave.schema.constraint_values import NUMERIC_KINDS
from margrave.types import Attribute, Clique


def below_noise(context: Context) -> dict[str, tuple[Clique, ...]]:
    """Return the fewest columns of each estimate whose cells are too small beside their noise.

    These are columns whose average cell is smaller than its noise, and columns of which `hidden_levels` has a level.

    Counts cannot be negative. So a fit moves records from the large cells of such a marginal into
    cells where the noise is positive, unless sums hold it to a mean: to that of an estimate, or to the sums and
    sums of products that a linear regression of plain columns rests on. A bootstrap shows a part of
    this bias only, and no interval includes the rest.
    """
    whole, levels = context.once(_hidden), context.once(hidden_levels)
    return {
        name: tuple(dict.fromkeys([*whole[name], *(columns for columns, _ in levels[name])]))
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
    levels = context.once(hidden_levels)
    if names := tuple(n for n, own in levels.items() if own):
        groups = dict.fromkeys(group for n in names for _, group in levels[n])
        yield Caveat(
            "small cells", names, True,
            f"The noise hides the cells of {first_few(groups)}, which hold few records. Differences from other"
            " records are too small there. Give the columns fewer codes, or the release a larger budget, for a valid"
            f" interval of {context.about(names)}.",
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
    for by in (a for a in term.levels if a in domain and a != term.joins[0]):
        columns = tuple(dict.fromkeys([*term.joins, by]))
        sums = sum_sizes(domain, transcript) if context.rests_on_sums(columns) else ()
        small = small_levels(domain, transcript, (*release.cell_sizes, *sums), columns, by)
        compared = sorted(small.intersection(_codes(release, by, term.levels[by])))
        found += [(columns, group_name(release.schema.column(by), code)) for code in compared]
    return tuple(found)


def _codes(release: Draws, by: Attribute, labels: tuple[str, ...] | None) -> set[int]:
    """Return the codes of the levels that an estimate compares; none for a level that is not in the schema."""
    column = release.schema.column(by)
    if labels is None:
        return (
            set() if isinstance(column, NUMERIC_KINDS) else {*range(column.size - column.missing)}
        )
    found: set[int] = set()
    for label in labels:
        with suppress(InputError):
            label = label or release.commonest.get(by, column.labels()[0])
            found.update(codes_of(release.schema, by, label))
    return found


def _small(context: Context, term: EstimateTerm) -> tuple[Clique, ...]:
    release, basis = context.release, context.basis
    if release is None or basis is None:
        return ()
    singles = [(c,) for c in term.columns]
    pairs = [p for p in combinations(basis.columns, 2) if term.depends_on(p)]
    found: list[Clique] = []
    for columns in filter(None, (*singles, *pairs, term.joins)):
        if (
            is_below_noise(release.cell_sizes, columns)
            and not context.rests_on_sums(columns)
            and not any(set(fewer) <= set(columns) for fewer in found)
        ):
            found.append(columns)
    return tuple(found)


def _measured_alone(context: Context, columns: Clique) -> bool:
    assert context.release is not None
    sizes = context.release.cell_sizes
    return covers([c for c, _ in sizes if len(c) <= len(columns)], columns)


def _text(context: Context, hidden: Sequence[Clique], names: str, own_marginal: bool) -> str:
    assert context.release is not None
    sizes = context.release.cell_sizes
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
