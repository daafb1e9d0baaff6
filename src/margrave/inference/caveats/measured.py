"""Relations that were never measured: estimates that depend on them rest on an assumption."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from margrave.inference.caveats.context import Context
from margrave.inference.columns import some
from margrave.inference.estimate import Caveat
from margrave.marginal import covers
from margrave.ratios import percent
from margrave.release.draws import ABSENT
from margrave.types import Clique


@dataclass(frozen=True)
class Relations:
    """Relations among an analysis's columns that the release did not measure.

    Attributes:
        apart: Single columns and pairs that lie in no measured marginal.
        public: Those of them that were read from public data.
        in_part: Pairs of which single counts or weighted sums alone were measured.
        joint: The analysis's columns, if all pairs were measured but not all columns at once.
    """

    apart: tuple[Clique, ...] = ()
    public: tuple[Clique, ...] = ()
    in_part: tuple[Clique, ...] = ()
    joint: Clique = ()


def relations(context: Context) -> Relations:
    """Return the relations that were not measured; none for tables from elsewhere."""
    release, basis = context.release, context.basis
    if release is None or basis is None:
        return Relations()
    measured, counted = release.together, (*release.together, *release.in_part)

    def open_to(columns: Clique) -> bool:
        return any(t.depends_on(columns) for t in basis.terms.values())

    lone = [(c,) for c in basis.columns if not covers(counted, (c,))]
    known = [c for c in basis.columns if (c,) not in lone]
    pairs = [p for p in combinations(known, 2) if not covers(measured, p) and open_to(p)]
    apart = (*lone, *(p for p in pairs if not covers(counted, p)))
    in_part = tuple(p for p in pairs if covers(counted, p))
    whole = apart or in_part or covers(measured, basis.columns)
    return Relations(
        apart,
        tuple(a for a in apart if covers(release.read, a)),
        in_part,
        basis.columns if not whole and open_to(basis.columns) else (),
    )


def by_pair(context: Context) -> dict[str, tuple[Clique, ...]]:
    """Return the single columns and pairs not measured that each estimate depends on."""
    apart = context.once(relations).apart
    return {n: tuple(a for a in apart if context.term(n).depends_on(a)) for n in context.names}


def by_interaction(context: Context) -> dict[str, tuple[Clique, ...]]:
    """Return three and more columns, not measured at once, that each estimate joins.

    Or that another joins whose lower-order term it is: in x * z, the effect of x is that at one z.
    """
    joins, left_out = {n: context.term(n).joins for n in context.names}, context.once(by_left_out)
    lacking = [
        *(j for j in dict.fromkeys(joins.values()) if _never_at_once(context, j)),
        *dict.fromkeys(j for own in left_out.values() for j in own),
    ]
    return {
        n: tuple(j for j in dict.fromkeys(lacking) if set(own) <= set(j)) if own else ()
        for n, own in joins.items()
    }


def by_left_out(context: Context) -> dict[str, dict[Clique, float]]:
    """Return, by coefficient, its columns with one whose missing values leave records out, if not measured at once.

    Each has the share of the records with values of the others that it leaves out, by the first data set.
    """
    # Share of the records that may be left out without a mark.
    max_share_left_out = 0.02
    found: dict[str, dict[Clique, float]] = {n: {} for n in context.names}
    release, basis = context.release, context.basis
    if release is None or basis is None:
        return found
    table = context.trial.table
    origins = {part: column for (_, column), part in release.schema.domain.functions.items()}
    known = [c for c in basis.columns if origins.get(c, c) in table.column_names]
    present = {c: table[origins.get(c, c)].is_valid().to_numpy() for c in known}
    for name, own in found.items():
        joins = context.term(name).joins
        every = [present[c] for c in joins if c in present]
        rest = np.logical_and.reduce(every) if every else np.ones(table.num_rows, dtype=np.bool_)
        for column in (c for c in basis.needed if c in present and c not in joins):
            share = float((rest & ~present[column]).sum() / max(int(rest.sum()), 1))
            wanted = (*joins, column)
            if share > max_share_left_out and _never_at_once(context, wanted):
                own[wanted] = share
    return found


def _never_at_once(context: Context, columns: Clique) -> bool:
    """Return whether columns are three or more that no marginal and no count has together."""
    release = context.release
    if release is None or len(columns) < 3:
        return False
    return not covers((*release.together, *release.in_part), columns)


def check(context: Context) -> Iterator[Caveat]:
    """Yield what was never measured together, and which estimates depend on it."""
    read = " (known from the public table only, which is of other records and left out here)"
    release, found = context.release, context.once(relations)
    if release is None:
        return
    yield from _unknown(context)
    public = [a for a in found.apart if a in found.public]
    yield from _apart(context, public, read)
    yield from _apart(context, [a for a in found.apart if a not in public], "")
    yield from _interactions(context)
    if found.in_part:
        yield Caveat(
            "unmeasured", (), False,
            f"{_pairs(found.in_part)}: single counts or sums alone were measured of them together, not whole marginals."
            " The rest of their relation is an assumption of the model.",
        )  # fmt: skip
    if found.joint and not any(context.once(by_interaction).values()):
        yield Caveat(
            "unmeasured", (), False,
            f"All pairs of {words_of(found.joint)} were measured, but no marginal of all of them. An interaction of"
            " three or more, beyond what was measured, is an assumption of the model.",
        )  # fmt: skip


def _unknown(context: Context) -> Iterator[Caveat]:
    release = context.release
    assert release is not None
    columns = tuple(c.name for c in release.schema.columns)
    if context.basis is None and not covers(release.together, columns):
        yield Caveat(
            "unmeasured", (), False,
            f"{ABSENT} The columns that this fit joins could not be found, and no estimate is marked. Check that they"
            " were measured together (all at once, where it looks at a part of the records or at interactions), in"
            " release.transcript.cliques, or for single counts in release.transcript.answers.",
        )  # fmt: skip


def _apart(context: Context, apart: Sequence[Clique], read: str) -> Iterator[Caveat]:
    pairs, lone = [a for a in apart if len(a) > 1], [a for a in apart if len(a) == 1]
    by_name = context.once(by_pair)
    if pairs:
        text = (
            f"{_pairs(pairs)} were never measured together{read}: the synthetic data hold no relation between them"
            " beyond what passes through other columns."
        )
        yield _assumed(context, text, _depending(by_name, pairs))
    if lone:
        was, it = ("was", "it") if len(lone) == 1 else ("were", "them")
        text = (
            f"{words_of([a for (a,) in lone])} {was} never measured{read}: the synthetic data carry no information"
            f" about {it}."
        )
        yield _assumed(context, text, _depending(by_name, lone))


def _interactions(context: Context) -> Iterator[Caveat]:
    wholes, pairs = context.once(by_interaction), context.once(by_pair)
    new = [n for n in context.names if wholes[n] and not pairs[n]]
    left_out = {j: share for own in context.once(by_left_out).values() for j, share in own.items()}
    cliques = dict.fromkeys(j for n in new for j in wholes[n])
    parts = [j for j in cliques if j in left_out]
    if parts:
        shares = {j[-1]: left_out[j] for j in sorted(parts, key=left_out.__getitem__)}
        lacking = some([f"{column}: {percent(share)}" for column, share in shares.items()])
        text = (
            f"Records without a value are left out ({lacking}), and {some([words_of(j) for j in parts], '; ')} were"
            " never measured all at once: by construction the relations of the other columns are the same with a value"
            " as without one."
        )
        yield _assumed(context, text, [n for n in new if {*parts} & {*wholes[n]}])
    if any(j not in left_out for j in cliques):  # else the pairs say it all
        cliques = dict.fromkeys(j for j in cliques if j not in left_out)
        sets = [*{frozenset(j): j for j in reversed(cliques)}.values()][
            ::-1
        ]  # in any order of columns
        text = (
            f"{some([words_of(j) for j in sets], '; ')} were never measured all at once: by construction the synthetic"
            " data hold no interaction of them, and the odds ratios of a part of the records are those of all."
        )
        yield _assumed(context, text, [n for n in context.names if {*cliques} & {*wholes[n]}])


def _depending(by_name: Mapping[str, Sequence[Clique]], cliques: Sequence[Clique]) -> list[str]:
    return [n for n, own in by_name.items() if set(own) & set(cliques)]


def _assumed(context: Context, text: str, names: Sequence[str]) -> Caveat:
    if not names:
        text += " The estimates rest on that."
    else:
        text += (
            f" The result for {context.about(names)} is an assumption of the model, not evidence."
        )
        if len(names) < len(context.names):
            text += " The other estimates are adjusted for it, and rest on it too."
    return Caveat("unmeasured", tuple(names), True, text)


def _pairs(pairs: Sequence[Clique]) -> str:
    return some([" and ".join(p) for p in pairs], "; ")


def words_of(columns: Sequence[str]) -> str:
    """Return the names of columns in words."""
    return columns[0] if len(columns) == 1 else f"{', '.join(columns[:-1])} and {columns[-1]}"
