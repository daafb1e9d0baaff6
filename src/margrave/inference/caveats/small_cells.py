"""Columns that were measured only in marginals whose cells are smaller than their noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from margrave.inference.caveats.context import Context
from margrave.inference.caveats.measured import words_of
from margrave.inference.estimate import Caveat
from margrave.inference.fitted import EstimateTerm
from margrave.marginal import covers
from margrave.ratios import figure
from margrave.release.small_cells import is_below_noise, pooled_size
from margrave.types import Clique


def below_noise(context: Context) -> dict[str, tuple[Clique, ...]]:
    """Return the fewest columns of each estimate whose average cell is smaller than its noise.

    Counts cannot be negative. So a fit moves records from the large cells of such a marginal into
    cells where the noise is positive, unless sums hold it to a mean: to that of an estimate, or to the sums and
    sums of products that a linear regression of plain columns rests on. A bootstrap shows a part of
    this bias only, and no interval includes the rest.
    """
    return {
        name: () if context.summed(name) else _small(context, context.term(name))
        for name in context.names
    }


def check(context: Context) -> Iterator[Caveat]:
    """Yield which columns the noise hides, and which estimates depend on them."""
    by_name = context.once(below_noise)
    hidden = list(dict.fromkeys(c for own in by_name.values() for c in own))
    for own_marginal in (True, False):
        columns = [c for c in hidden if _measured_alone(context, c) == own_marginal]
        if columns:
            names = tuple(n for n, own in by_name.items() if set(own) & set(columns))
            text = _text(context, columns, context.about(names), own_marginal)
            yield Caveat("small cells", names, True, text)


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
    more = f" and {len(hidden) - 3:,} more sets of columns" if len(hidden) > 3 else ""
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
