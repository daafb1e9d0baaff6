"""Which relations of an analysis were measured, and which are an assumption of the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Protocol, runtime_checkable

from margrave.inference.kinds import some
from margrave.inference.merged import NONE_MERGED, Merged
from margrave.marginal import covers
from margrave.release.draws import ABSENT, MERGED, Draws
from margrave.typing import Clique

READ = " (known from the public table only, which is of other records and left out here)"


@runtime_checkable
class KnowsColumns(Protocol):
    """A fit that can say which columns its estimates are about: the ready models.

    It may have ``joins(name)`` too: the columns whose relation all at once the estimate of that name is about.
    """

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that it uses."""
        ...

    def leans(self, name: str, apart: Clique) -> bool:
        """Whether the estimate of that name is about the relation of these columns, or about a single one."""
        ...


@dataclass(frozen=True)
class Relations:
    """What was not measured of an analysis.

    ``apart`` are pairs of its columns, or single ones, that lie in no measured marginal, ``public`` those of them that
    were read from public data; ``in_part`` pairs of which single counts alone are known; ``joint`` its columns, where
    all pairs were measured but not all columns at once. ``leans`` says which estimates are about a pair, ``joins`` the
    columns that one joins; ``together`` are those of each marginal that is known, or of which single counts are.
    ``merged`` are codes that no marginal tells apart. ``general`` is told where its columns are unknown.
    """

    apart: tuple[Clique, ...] = ()
    public: tuple[Clique, ...] = ()
    in_part: tuple[Clique, ...] = ()
    joint: Clique = ()
    together: tuple[Clique, ...] = ()
    merged: Merged = NONE_MERGED
    general: str = ""
    leans: Callable[[str, Clique], bool] = lambda _name, _apart: False
    joins: Callable[[str], Clique] = lambda _name: ()

    @staticmethod
    def of(fit: Any, draws: Any) -> Relations:
        """Of a fit on draws of a release. Tables from elsewhere do not say what was measured, nor does this.

        ``fit`` is one that knows its columns, or None.
        """
        if not isinstance(draws, Draws):
            return Relations()
        together, in_part = draws.together, draws.in_part
        if not isinstance(fit, KnowsColumns):
            return Relations(general=_general(together, tuple(c.name for c in draws.schema.columns)))
        columns = tuple(dict.fromkeys(fit.columns))
        lone = tuple((c,) for c in columns if not covers((*together, *in_part), (c,)))
        known = [c for c in columns if (c,) not in lone]
        relates = getattr(fit, "relates", lambda _columns: True)
        pairs = [p for p in combinations(known, 2) if not covers(together, p) and relates(p)]
        apart = (*lone, *(p for p in pairs if not covers(in_part, p)))
        part = tuple(p for p in pairs if covers(in_part, p))
        joint = columns if not (apart or part or covers(together, columns)) and relates(columns) else ()
        return Relations(
            apart,
            tuple(a for a in apart if covers(draws.read, a)),
            part,
            joint,
            (*together, *in_part),
            Merged.of(fit, draws),
            leans=fit.leans,
            joins=getattr(fit, "joins", lambda _name: ()),
        )

    def under(self, names: Sequence[str]) -> dict[str, tuple[Clique, ...]]:
        """By estimate, what was not measured that it rests on."""
        wholes, merged = self._wholes(names), self.merged.under(names)
        return {
            n: tuple(dict.fromkeys([*(a for a in self.apart if self.leans(n, a)), *wholes[n], *merged[n]]))
            for n in names
        }

    def _wholes(self, names: Sequence[str]) -> dict[str, tuple[Clique, ...]]:
        """By estimate, three and more columns that were not measured all at once and that it joins.

        Or that another joins whose lower-order term it is: the effect of x in x * z is that at one value of z.
        """
        joined = {n: self.joins(n) for n in names}
        lacking = [j for j in dict.fromkeys(joined.values()) if len(j) > 2 and not covers(self.together, j)]
        return {n: tuple(j for j in lacking if set(joined[n]) <= set(j)) if joined[n] else () for n in names}

    def decisive(self, names: Sequence[str]) -> list[str]:
        """What makes estimates an assumption, the worst first."""
        under = self.under(names)
        told = [
            *_never([a for a in self.apart if a in self.public], names, under, read=True),
            *_never([a for a in self.apart if a not in self.public], names, under),
        ]
        wholes = self._wholes(names)
        new = [n for n in names if wholes[n] and not any(self.leans(n, a) for a in self.apart)]
        if new:  # else the pairs say it all
            them = dict.fromkeys(j for n in new for j in wholes[n])
            told.append(
                f"{some([_words(j) for j in them], '; ')} were never measured all at once: by construction the"
                " synthetic data hold no interaction of them, and in a part of the records the same relation as in all."
                f" {_consequence(names, [n for n in names if wholes[n]])}"
            )
        return [*told, *self.merged.decisive(names)]

    def notes(self, names: Sequence[str]) -> list[str]:
        """What else a reader must know."""
        told = []
        if self.in_part:
            told.append(
                f"{_pairs(self.in_part)}: single counts alone were measured of them together, not whole marginals."
                " The rest of their relation is an assumption of the model."
            )
        if self.joint and not any(self._wholes(names).values()):
            told.append(
                f"All pairs of {_words(self.joint)} were measured, but no marginal of all of them: what three or"
                " more do together beyond what was measured is an assumption of the model."
            )
        return [*([self.general] if self.general else []), *told, *self.merged.notes(names)]


def without_general(notes: Sequence[str], relations: Relations) -> list[str]:
    """The notes of draws, less those on relations, in whose place an analysis has its own."""
    own = ABSENT if relations.general else (ABSENT, MERGED)
    return [n for n in notes if not n.startswith(own)]


def _general(together: Sequence[Clique], columns: Clique) -> str:
    """What is told where nobody knows which columns a fit joins; nothing where all were measured at once."""
    if covers(together, columns):
        return ""
    return (
        f"{ABSENT} Which columns this fit joins could not be found out, and no estimate is marked: look whether they"
        " were measured together (all at once, where it looks at a part of the records or at interactions), in"
        " release.transcript.cliques, or for single counts the cliques of release.transcript.answers."
    )


def _never(
    apart: Sequence[Clique], names: Sequence[str], under: Mapping[str, Sequence[Clique]], *, read: bool = False
) -> list[str]:
    """What is told of pairs, and of single columns; ``read``: of those that a public table holds."""
    lone, pairs = [a for a in apart if len(a) == 1], [a for a in apart if len(a) > 1]
    told = []
    if pairs:
        told.append(
            f"{_pairs(pairs)} were never measured together{READ if read else ''}: the synthetic data hold no relation"
            " between them beyond what passes through other columns."
            f" {_consequence(names, _leaning(names, under, pairs))}"
        )
    if lone:
        them = _words([a for (a,) in lone])
        was, it = ("was", "it") if len(lone) == 1 else ("were", "them")
        told.append(
            f"{them} {was} never measured{READ if read else ''}: the synthetic data know nothing of {it}."
            f" {_consequence(names, _leaning(names, under, lone))}"
        )
    return told


def _leaning(names: Sequence[str], under: Mapping[str, Sequence[Clique]], on: Sequence[Clique]) -> list[str]:
    return [n for n in names if set(under[n]) & set(on)]


def _consequence(names: Sequence[str], leaning: Sequence[str]) -> str:
    if not leaning:
        return "The estimates rest on that."
    told = f"What this says of {some(leaning)} is an assumption of the model, not evidence."
    if len(leaning) == len(names):
        return told
    return f"{told} The other estimates are adjusted for it, and rest on it too."


def _pairs(pairs: Sequence[Clique]) -> str:
    return some([" and ".join(p) for p in pairs], "; ")


def _words(columns: Sequence[str]) -> str:
    return columns[0] if len(columns) == 1 else f"{', '.join(columns[:-1])} and {columns[-1]}"
