"""The guarantee of a release in plain words, from its account alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from margrave.ratios import percent
from margrave.release.misfit import Misfit
from margrave.release.together import Together
from margrave.transcript import Account
from margrave.typing import Attribute


def guarantee(account: Account) -> list[str]:
    """Paragraphs that say what is promised, exactly enough to be held to.

    The second uses the bound of any (epsilon, delta)-private release on a test that accuses with false-alarm rate a:
    it is right at most ``exp(epsilon) a + delta`` of the time.
    """
    odds = math.exp(min(account.epsilon, 700.0))
    power = odds * 0.05 + account.delta
    bound = f"It can be right about the other in at most {100 * power:.3g} of 100."
    if power >= 1.0:
        bound = "An epsilon this large does not stop it from always being right about the other."
    return [
        "The rows of the table were read only through counts with random noise added and through choices made with"
        " random noise; everything on this page and in the synthetic rows was computed from those answers."
        f" Take any two tables that differ like this: {account.unit}. Whatever anyone computes from this release, no"
        f" outcome is more than e^{_number(account.epsilon)} = {_number(odds)} times as probable under one of them as"
        f" under the other, plus {_number(account.delta)}.",
        "In other words: suppose somebody knows everything except which of the two tables was used, and sets up a test"
        f" on this release that is wrong about one of them in 5 of 100 cases. {bound}",
    ]


def limits(account: Account) -> list[str]:
    """What is not promised, one point each."""
    return [
        f"The promise is for one such change ({account.unit}). For k at once rho is k squared times as large.",
        "What is true of people in general can still be learnt from the release: that is what it is for.",
        "The schema (columns, categories, bounds, bins) is published as it is and taken to be public knowledge.",
        "Other releases from the same rows spend their own budgets, and the budgets add up.",
        *([account.left_out] if account.left_out else []),
        "How long the run took, and the memory it used, are outside the promise.",
    ]


def conditions(found: Mapping[str, Any], columns: int) -> str:
    """Return the checks that both tables of the promise pass, from the certificate's preconditions.

    >>> found = {"outside": ["age"], "missing": [], "constraints": [], "person": None}
    >>> conditions(found, columns=2).endswith("; no value of age lies outside the schema. A refusal is not private.")
    True
    """
    checks = ["the table has rows", "each column has a value that the schema knows"]
    for kind, what in (("outside", "lies outside the schema"), ("missing", "is missing or unreadable")):
        if names := found[kind]:
            checks.append(f"no value of {'any column' if len(names) == columns else _named(names)} {what}")
    if found["person"] is not None:
        checks.append(f"every row has a person in {found['person']}")
    checks += [f"no row violates {name}" for name in found["constraints"]]
    return (
        "The promise holds between two tables that both pass these checks, since a table that fails one is refused:"
        f" {'; '.join(checks)}. A refusal is not private."
    )


def nothing_asked(columns: Sequence[Attribute], *, ahead: bool = False) -> str:
    """What columns that nothing tells of mean for the synthetic rows; ``ahead``: of a run that is planned.

    >>> nothing_asked(["sex"])
    'Nothing was asked of sex: its synthetic values say nothing of the real ones.'
    """
    names = _named(columns)
    whose = "its" if len(columns) == 1 else "their"
    was, say = ("will be", "will say") if ahead else ("was", "say")
    return f"Nothing {was} asked of {names}: {whose} synthetic values {say} nothing of the real ones."


def contradicted(misfits: Sequence[Misfit]) -> str:
    """What it means that a model contradicts what was measured.

    >>> contradicted([Misfit(("sex",), 0.214)])
    'The model contradicts what was measured: of sex it has 21 % of the records or more in wrong cells.'
    """
    worst, others = misfits[0], len(misfits) - 1
    named = " × ".join(worst.clique)
    more = f", and likewise {others:,} more marginal{'s' * (others > 1)}" if others else ""
    return (
        f"The model contradicts what was measured: of {named} it has"
        f" {percent(worst.share)} of the records or more in wrong cells{more}."
    )


def related(found: Together) -> list[str]:
    """What the rows cannot tell of how columns hang together; nothing where all pairs were measured.

    >>> related(Together(pairs=3, measured=1, in_part=0, alone=("sex",), public=False))[0]
    'Measured with no other column: sex. What the synthetic rows show of its relation to others is not the real one.'
    """
    if found.measured == found.pairs:
        return []
    told = []
    if found.borrowed:
        values = "its synthetic values are" if len(found.borrowed) == 1 else "their synthetic values are"
        told.append(f"Of {_named(found.borrowed)} only the public table tells: {values} as they are there.")
    if found.alone:
        whose = "its relation to others is not the real one" if len(found.alone) == 1 else (
            "their relations to others are not the real ones"
        )
        but = ", but for what the schema's constraints rule out" if found.ruled else ""
        told.append(
            f"Measured with no other column: {_named(found.alone)}. What the synthetic rows show of {whose}{but}."
        )
    more = f" Of {found.in_part:,} more, single counts or choices tell a part." if found.in_part else ""
    public = ", or what the public table says" if found.public else ""
    were = "was" if found.measured == 1 else "were"
    told.append(
        f"Of the {found.pairs:,} pairs of columns {found.measured:,} {were} measured together.{more} The others hold"
        f" only indirect relations, by way of other columns{public}: means or shares by group that rest on them can be"
        " far from the real ones."
    )
    return told


def _named(columns: Sequence[Attribute]) -> str:
    return ", ".join(columns[:-1]) + " and " * (len(columns) > 1) + columns[-1]


def _number(value: float) -> str:
    return f"{value:.4g}" if value < 1e6 else f"{value:.2e}"
