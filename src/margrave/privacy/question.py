"""A question put to the gate, as plain data: what a journal keeps of it, and compares when a run is resumed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from margrave.marginal import Queries, Query, SingleQuery
from margrave.privacy.ledger_state import exact_text
from margrave.schema.domain import Domain
from margrave.typing import Clique, FloatArray, IntArray

Plain = dict[str, Any]
Answers = tuple[IntArray, ...]


@dataclass(frozen=True)
class Question:
    """What is asked, as plain data, with its price; the answer is one array of integers for each of ``shapes``."""

    what: str
    rho: Fraction
    asked: Plain
    shapes: tuple[tuple[int, ...], ...]

    def plain(self) -> Plain:
        """What the journal keeps of it, and compares: the texts and numbers that JSON gives back."""
        plain: Plain = json.loads(json.dumps({**self.asked, "what": self.what, "rho": exact_text(self.rho)}))
        return plain


def measuring(
    domain: Domain, asked: Sequence[Clique], scale: float, each: Fraction, query: Query
) -> Question:
    """Noisy marginals, at ``each`` (zCDP) a marginal."""
    answers = query.domain(domain)
    return Question(
        what=f"measure {_names(asked)}",
        rho=each * len(asked),
        asked={
            "kind": "measure",
            "cliques": [list(c) for c in asked],
            "scale": scale,
            "query": {a: groups.tolist() for a, groups in sorted(query.groups.items())},
        },
        shapes=tuple(answers.shape(c) for c in asked),
    )


def measuring_queries(queries: Sequence[SingleQuery], scale: float, each: Fraction) -> Question:
    """Noisy answers of single queries, at ``each`` (zCDP) a query."""
    return Question(
        what=f"measure {_count(len(queries), 'query')} on {_names(tuple(dict.fromkeys(q.clique for q in queries)))}",
        rho=each * len(queries),
        asked={
            "kind": "measure-queries",
            "queries": [q.plain() for q in queries],
            "scale": scale,
        },
        shapes=((len(queries),),),
    )


def choosing(
    asked: Sequence[Clique],
    epsilon: float,
    moved: float,
    rho: Fraction,
    terms: Mapping[str, FloatArray],
    readable: Sequence[Clique] = (),
    vouched: str = "",
) -> Question:
    """One of the candidates; the answer is its place among them, those that can be read from public data last."""
    return Question(
        what=f"choose one of {len(asked)} marginals",
        rho=rho,
        asked={
            "kind": "select",
            "candidates": [list(c) for c in asked],
            "epsilon": epsilon,
            "sensitivity": moved,
            "terms": {name: values.tolist() for name, values in sorted(terms.items())},
            **({"readable": [list(c) for c in readable]} if readable else {}),
            **({"vouched": vouched} if vouched else {}),
        },
        shapes=((),),
    )


def choosing_queries(
    queries: Queries, without: frozenset[int], signed: bool, times: int, epsilon: float, moved: float, rho: Fraction
) -> Question:
    """One of the linear queries, ``times`` over; the answers are places among the candidates."""
    return Question(
        what=f"choose {times} of {_count(len(queries) - len(without), 'query')}{' and complements' if signed else ''}",
        rho=rho,
        asked={
            "kind": "select-query",
            "cliques": [list(c) for c in queries.cliques],
            "sets": {a: [np.flatnonzero(s).tolist() for s in sets] for a, sets in sorted(queries.sets.items())},
            "without": sorted(without),
            "signed": signed,
            "times": times,
            "epsilon": epsilon,
            "sensitivity": moved,
        },
        shapes=((times,),),
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun[:-1]}ies"


def _names(cliques: Sequence[Clique]) -> str:
    shown = [" × ".join(c) or "all records" for c in cliques[:4]]
    return ", ".join(shown if len(cliques) <= 4 else [*shown[:3], f"and {len(cliques) - 3} more marginals"])
