"""Which relations of an analysis were measured, and which are an assumption of the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Protocol, runtime_checkable

from margrave.inference.formulas import some
from margrave.marginal import covers
from margrave.release.draws import ABSENT
from margrave.typing import Clique


@runtime_checkable
class KnowsColumns(Protocol):
    """A fit that can say which columns its estimates are about: the ready models."""

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

    ``apart`` are pairs of its columns, or single ones, that lie in no measured marginal; ``in_part`` pairs of
    which single counts alone are known; ``joint`` its columns, where all pairs were measured but not all columns
    at once. ``leans`` says which estimates are about a pair. ``general`` is told where its columns are unknown.
    """

    apart: tuple[Clique, ...] = ()
    in_part: tuple[Clique, ...] = ()
    joint: Clique = ()
    general: str = ""
    leans: Callable[[str, Clique], bool] = lambda _name, _apart: False

    @staticmethod
    def of(fit: Any, draws: Any) -> Relations:
        """Of a fit on draws of a release. Tables from elsewhere do not say what was measured, nor does this."""
        together: tuple[Clique, ...] | None = getattr(draws, "together", None)
        if together is None:
            return Relations()
        in_part: tuple[Clique, ...] = draws.in_part
        if not isinstance(fit, KnowsColumns):
            return Relations(general=_general(together, tuple(c.name for c in draws.schema.columns)))
        columns = tuple(dict.fromkeys(fit.columns))
        lone = tuple((c,) for c in columns if not covers((*together, *in_part), (c,)))
        known = [c for c in columns if (c,) not in lone]
        pairs = [p for p in combinations(known, 2) if not covers(together, p)]
        apart = (*lone, *(p for p in pairs if not covers(in_part, p)))
        part = tuple(p for p in pairs if covers(in_part, p))
        joint = columns if not (apart or part or covers(together, columns)) else ()
        return Relations(apart, part, joint, leans=fit.leans)

    def under(self, name: str) -> tuple[Clique, ...]:
        """What was not measured that the estimate of that name rests on."""
        return tuple(a for a in self.apart if self.leans(name, a))

    def notes(self, names: Sequence[str]) -> list[str]:
        """What a reader must know, the worst first."""
        told = [*_never(self.apart, names, [n for n in names if self.under(n)])]
        if self.in_part:
            told.append(
                f"{_pairs(self.in_part)}: single counts alone were measured of them together, not whole marginals."
                " The rest of their relation is an assumption of the model."
            )
        if self.joint:
            told.append(
                f"All pairs of {_words(self.joint)} were measured, but no marginal of all of them: what three or"
                " more do together beyond what was measured is an assumption of the model."
            )
        return [*told, *([self.general] if self.general else [])]


def without_general(notes: Sequence[str]) -> list[str]:
    """The notes of draws, less the one on relations, in whose place an analysis has its own."""
    return [n for n in notes if n != ABSENT]


def _general(together: Sequence[Clique], columns: Clique) -> str:
    """What is told where nobody knows which columns a fit joins; nothing where all were measured at once."""
    if covers(together, columns):
        return ""
    return (
        f"{ABSENT} Which columns this fit joins is not known here: look whether they were measured together,"
        " in release.transcript.cliques, or for single counts the cliques of release.transcript.answers."
    )


def _never(apart: Sequence[Clique], names: Sequence[str], leaning: Sequence[str]) -> list[str]:
    lone, pairs = [a for a in apart if len(a) == 1], [a for a in apart if len(a) > 1]
    end = _consequence(names, leaning)
    told = []
    if pairs:
        told.append(
            f"{_pairs(pairs)} were never measured together: the synthetic data hold no relation between them"
            f" beyond what passes through other columns. {end}"
        )
    if lone:
        them = _words([a for (a,) in lone])
        was, it = ("was", "it") if len(lone) == 1 else ("were", "them")
        told.append(f"{them} {was} never measured: the synthetic data know nothing of {it}. {end}")
    return told


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
