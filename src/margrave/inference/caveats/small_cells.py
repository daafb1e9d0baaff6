"""Columns that were measured only in marginals whose cells are smaller than their noise."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from margrave.inference.caveats.context import Context
from margrave.inference.caveats.measured import words_of
from margrave.inference.columns import some
from margrave.inference.estimate import Caveat
from margrave.inference.fitted import EstimateTerm
from margrave.marginal import covers
from margrave.release.small_cells import pooled_size
from margrave.types import Clique


def below_noise(context: Context) -> dict[str, tuple[Clique, ...]]:
    """Return the fewest columns of each estimate whose average cell is smaller than its noise.

    Counts cannot be negative. So a fit moves records from the large cells of such a marginal into
    cells where the noise is positive. A bootstrap shows a part of this bias only, and no interval
    includes the rest.
    """
    return {name: _small(context, context.term(name)) for name in context.names}


def check(context: Context) -> Iterator[Caveat]:
    """Yield which columns the noise hides, and which estimates depend on them."""
    by_name = context.once(below_noise)
    for columns in dict.fromkeys(c for own in by_name.values() for c in own):
        names = tuple(n for n, own in by_name.items() if columns in own)
        yield Caveat("small cells", names, True, _text(context, columns, some(names)))


def _small(context: Context, term: EstimateTerm) -> tuple[Clique, ...]:
    release, basis = context.release, context.basis
    if release is None or basis is None:
        return ()
    singles = [(c,) for c in term.columns]
    pairs = [p for p in combinations(basis.columns, 2) if term.depends_on(p)]
    found: list[Clique] = []
    for columns in filter(None, (*singles, *pairs, term.joins)):
        small = 0.0 < pooled_size(release.cell_sizes, columns) < 1.0
        if small and not any(set(fewer) <= set(columns) for fewer in found):
            found.append(columns)
    return tuple(found)


def _text(context: Context, columns: Clique, names: str) -> str:
    release = context.release
    assert release is not None
    words = words_of(columns)
    alone = covers([c for c, _ in release.cell_sizes if len(c) <= len(columns)], columns)
    remedy = (
        f"give {words} fewer codes, or the release a larger budget"
        if alone
        else f"measure {words} in a marginal of {'its' if len(columns) == 1 else 'their'} own"
        " (--workload)"
    )
    return (
        f"The noise exceeds the average cell in every measured marginal with {words}:"
        f" {remedy}, for a valid interval of {names}."
    )
