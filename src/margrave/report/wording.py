"""The guarantee of a release in plain words, from its account alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from margrave._card import counted, listed
from margrave.account import Account
from margrave.attack_risk import AttackRisk, attack_risk
from margrave.ratios import percent
from margrave.release import ColumnNumber
from margrave.release.certificate import several_at_thresholds
from margrave.release.coverage import Coverage
from margrave.release.diagnostics import Misfit
from margrave.types import Attribute, Clique


def guarantee(account: Account, *, has_public_records: bool = False) -> list[str]:
    """Return paragraphs on the exact privacy guarantee, the second of them on attacks.

    Args:
        account: The account of the release.
        has_public_records: Whether the release rests on a public table too.
    """
    odds = math.exp(min(account.epsilon, 700.0))
    sources = "those answers and from public records" if has_public_records else "those answers"
    return [
        "The rows of the table were read only through counts and sums with random noise added and through choices made"
        f" with random noise. Everything on this page and in the synthetic rows was computed from {sources}."
        f" Take any two tables that differ like this: {account.unit}. Whatever anyone computes from this release, no"
        f" outcome is more than e^{_number(account.epsilon)} = {_number(odds)} times as probable under one of them as"
        f" under the other, plus {_number(account.delta)}.",
        f"In other words: {_risk(account).sentence()}",
    ]


def _risk(account: Account) -> AttackRisk:
    return attack_risk(account.rho_budget, threshold_delta=account.threshold_delta)


def limits(account: Account) -> list[str]:
    """Return the limits of the promise, one point each."""
    return [
        f"The promise is for one such change ({account.unit}). For k at once rho is k squared times as large."
        f"{several_at_thresholds(account)}",
        "Facts about people in general can still be learned from the release: that is its purpose.",
        "The schema is published as it is. The columns, categories, bounds and bins that were declared are taken to be"
        " public knowledge.",
        "Other releases from the same rows spend their own budgets, and the budgets add up.",
        *([account.left_out] if account.left_out else []),
        "The promise does not cover the time and the memory of the run.",
    ]


def conditions(found: Mapping[str, Any], columns: int) -> str:
    """Return the checks that both tables of the promise pass, from the certificate's preconditions.

    >>> from margrave.release.preconditions import preconditions
    >>> from margrave.schema import Integer, Schema
    >>> age = Integer("age", 0, 9, outside="refuse", missing=True)
    >>> found = preconditions(Schema((age, Integer("stay", 0, 9, missing=True))))
    >>> conditions(found, columns=2).split('; ')[-1]
    'no value of age lies outside the schema. A refusal is not private.'
    """
    if found["preflight"] == "sealed":
        return "The promise holds between all tables: none is refused for its rows."
    if found["preflight"] == "source":
        return (
            "The rows were read by a table of another distribution. margrave refused none of them; a refusal by that"
            " table is a fact about the rows that the promise does not cover."
        )
    refused_if = found["refused_if"]
    checks = ["the table has rows"] if refused_if["no_rows"] else []
    for kind, check in (
        (
            "no_known_value_in",
            "{each} has a value that can be read, and one that the schema knows if it has ten values or more",
        ),
        ("value_outside_in", "no value of {any} lies outside the schema"),
        ("value_missing_in", "no value of {any} is missing or unreadable"),
    ):
        if names := refused_if[kind]:
            every = {"each": "each column", "any": "any column"}
            few = dict.fromkeys(every, named(names))
            checks.append(check.format(**(every if len(names) == columns else few)))
    if (person := refused_if["row_without_person_in"]) is not None:
        checks.append(f"every row has a person in {person}")
    checks += [f"no row violates {name}" for name in refused_if["row_violates"]]
    return (
        "The promise holds between two tables that both pass these checks, since a table that fails one is refused:"
        f" {'; '.join(checks)}. A refusal is not private."
    )


def public_words(sources: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return the stated sources of the columns, and which columns were learned, in a sentence.

    >>> public_words({"age": {"source": "public", "cite": "Codebook, p. 12"}})
    ['Bounds and categories that are declared as public rest on: age (Codebook, p. 12).']
    """
    cites = [f"{name} ({s['cite']})" for name, s in sources.items() if "cite" in s]
    learned = [name for name, s in sources.items() if s.get("source") == "learned"]
    words = []
    if cites:
        words.append(
            f"Bounds and categories that are declared as public rest on: {', '.join(cites)}."
        )
    if learned:
        words.append(f"Learned from noisy answers: {', '.join(learned)}.")
    return [" ".join(words)] if words else []


def nothing_asked(columns: Sequence[Attribute], *, ahead: bool = False) -> str:
    """Return a sentence on columns that no question covers; ``ahead``: for a run that is planned.

    >>> nothing_asked(["sex"])
    'Nothing was asked of sex: its synthetic values say nothing of the real ones.'
    """
    names = named(columns)
    whose = "its" if len(columns) == 1 else "their"
    was, say = ("will be", "will say") if ahead else ("was", "say")
    return (
        f"Nothing {was} asked of {names}: {whose} synthetic values {say} nothing of the real ones."
    )


def contradicted(misfits: Sequence[Misfit]) -> str:
    """Return a sentence on the measured marginals that a model contradicts.

    >>> contradicted([Misfit(("sex",), 0.214)])
    'The model contradicts what was measured: of sex it has 21 % of the records or more in wrong cells.'
    """
    worst, others = misfits[0], len(misfits) - 1
    marginal = " × ".join(worst.clique)
    more = f", and likewise {others:,} more marginal{'s' * (others > 1)}" if others else ""
    return (
        f"The model contradicts what was measured: of {marginal} it has"
        f" {percent(worst.share)} of the records or more in wrong cells{more}."
    )


def uncertain(numbers: Sequence[ColumnNumber]) -> list[str]:
    """Return sentences on the numbers of one column that are not reliable, its mean first.

    Args:
        numbers: All numbers of the column, as ``numbers_of`` returns them.
    """
    marked = [n for n in numbers if not n.reliable]
    if not marked:
        return []
    if all(n.low is None for n in numbers):
        return [
            f"Numbers of {marked[0].column} are not reliable: no measured marginal has all its codes."
        ]
    sentences = [unreliable(n) for n in marked if n.statistic == "mean"]
    others = [n.statistic_words for n in marked if n.statistic != "mean"]
    if others:
        too = ", too" if sentences else ""
        sentences.append(f"Not reliable{too}: {named(others, 6)}.")
    return sentences


def unreliable(n: ColumnNumber) -> str:
    """Return a sentence on a number that is not reliable."""
    between = n.interval.replace(" to ", " and ")
    sentence = f"The {n.statistic_words} of {n.column} is not reliable: between {between}."
    if n.clipping:
        return (
            f"{sentence} Values beyond its bounds may be missing from it: {percent(n.clipping)} of the"
            " records are in an end cell, far more than in the cells beside it."
        )
    inside = (
        n.synthetic is None or n.low is None or n.high is None or n.low <= n.synthetic <= n.high
    )
    return sentence if inside else f"{sentence} The synthetic rows are outside of that."


def all_measured() -> str:
    """Return the sentence on a release in which no pair of columns is missing."""
    return "All pairs of columns were measured together."


def none_measured() -> str:
    """Return the sentence on a release in which no marginal has two columns."""
    return "No pair of columns was measured together."


def measured_pairs(number: int) -> str:
    """Return the measured pairs of columns in words; a single one has no number.

    >>> measured_pairs(1), measured_pairs(2)
    ('measured pair', '2 measured pairs')
    """
    return "measured pair" if number == 1 else f"{number:,} measured pairs"


def related(found: Coverage) -> list[str]:
    """Return sentences on the pairs of columns that were not measured together, or that the noise hides.

    >>> related(Coverage(pairs=3, measured=1, in_part=0, alone=("sex",), public=False))[0].partition(":")[0]
    'sex was never measured together with another column'
    """
    hidden = [f"{hidden_words(found)}."] if found.hidden else []
    if found.measured == found.pairs:
        return [all_measured(), *hidden] if hidden else []
    sentences = []
    if found.public_only:
        sentences.append(
            f"The synthetic values of {named(found.public_only)} come from the public table alone."
        )
    if found.alone:
        was, its = ("was", "its") if len(found.alone) == 1 else ("were", "their")
        but = ", but for what the schema's constraints rule out" if found.constrained else ""
        sentences.append(
            f"{named(found.alone)} {was} never measured together with another column: {its} relations to others"
            f" in the synthetic rows carry no information{but}."
        )
    more = (
        f" Of {found.in_part:,} more, single counts, sums or selections are partly informative."
        if found.in_part
        else ""
    )
    public = ", or what the public table says" if found.public else ""
    were = "was" if found.measured == 1 else "were"
    if not (found.measured or found.in_part or found.public):
        return sentences or [none_measured()]
    sentences.append(
        f"Of the {counted(found.pairs, 'pair')} of columns {found.measured:,} {were} measured together.{more} The"
        f" others hold only indirect relations, by way of other columns{public}: means or shares by group that rest on"
        " them can be far from the real ones."
    )
    return [*sentences, *hidden]


def hidden_words(found: Coverage) -> str:
    """Return the pairs of columns whose relation the noise hides, in words.

    >>> hidden_words(Coverage(3, 2, 0, (), False, hidden=(("age", "sex"),)))
    'The noise exceeds the average cell of 1 of the 2 measured pairs, which hides its relation: age and sex'
    """
    whose = "its relation" if len(found.hidden) == 1 else "their relations"
    some = f"{len(found.hidden):,} of the " if found.measured > 1 else "the "
    return (
        f"The noise exceeds the average cell of {some}{measured_pairs(found.measured)}, which hides {whose}:"
        f" {pair_words(found.hidden)}"
    )


def pair_words(pairs: Sequence[Clique]) -> str:
    """Return pairs of columns in words; of many only the first dozen.

    >>> pair_words([("age", "sex"), ("age", "ward")])
    'age and sex, age and ward'
    """
    return listed([" and ".join(pair) for pair in pairs], 12)


def named(names: Sequence[str], max_names: int | None = None) -> str:
    """Return names in a sentence; of more than ``max_names`` only the first.

    >>> named(["a", "b", "c"]), named(["a", "b", "c"], 1)
    ('a, b and c', 'a and 2 more')
    """
    some = list(names[:max_names])
    some += [f"{len(names) - len(some):,} more"] * (len(some) < len(names))
    return ", ".join(some[:-1]) + " and " * (len(some) > 1) + some[-1]


def _number(value: float) -> str:
    return f"{value:.4g}" if value < 1e6 else f"{value:.2e}"
