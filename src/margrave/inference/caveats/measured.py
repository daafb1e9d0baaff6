"""Relations that were never measured: estimates that depend on them rest on an assumption."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from margrave.inference.caveats.context import Context
from margrave.inference.columns import some
from margrave.inference.estimate import Caveat
from margrave.marginal import covers
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
    release, joins = context.release, {n: context.term(n).joins for n in context.names}
    if release is None:
        return dict.fromkeys(joins, ())
    counted = (*release.together, *release.in_part)
    lacking = [j for j in dict.fromkeys(joins.values()) if len(j) > 2 and not covers(counted, j)]
    return {
        n: tuple(j for j in lacking if set(own) <= set(j)) if own else ()
        for n, own in joins.items()
    }


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
    if new:  # else the pairs say it all
        cliques = dict.fromkeys(j for n in new for j in wholes[n])
        text = (
            f"{some([words_of(j) for j in cliques], '; ')} were never measured all at once: by construction the"
            " synthetic data hold no interaction of them, and in a part of the records the same relation as in all."
        )
        yield _assumed(context, text, [n for n in context.names if wholes[n]])


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
