"""Purposes of a release: statistics and regressions in words, and the marginals that they rest on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

from margrave.domain import Domain
from margrave.errors import InputError
from margrave.formula import columns_in, expand, gives_truth, parse, quoting_hint, time_part
from margrave.purpose_words import (
    check_once,
    check_outcome_words,
    check_separated,
    check_words,
    no_effect,
    no_pair,
    unclear,
)
from margrave.schema.categorical import Categorical, Ordinal
from margrave.schema.learn import Learn
from margrave.schema.numeric import Date, Timestamp
from margrave.schema.parts import Hour, Weekday
from margrave.schema.remedies import bounds_remedy
from margrave.types import Attribute, Clique
from margrave.workload import Workload


@dataclass(frozen=True)
class Purpose:
    """One statistic or regression that a release must serve.

    Attributes:
        text: Its words.
        kind: "mean", "total", "quantile", "share", "count", "correlation", "ols", "logistic" or "effect".
        outcome: The column whose values are averaged, or that is explained; empty for counts.
        cliques: The marginals that it rests on.
        width: The half-width that its intervals should have at most, in the unit that a plan states it in; None if
            it was not stated.
        at: The share of the rows below a quantile; 0.5 for the median, and if it was not stated.

    Example:
        >>> domain = Domain.of({"price": 9, "type": 3, "area": 5})
        >>> purpose = Purpose.of("mean price by type within 0.1", domain)
        >>> purpose.kind, purpose.cliques, purpose.width
        ('mean', (('price', 'type'),), 0.1)
        >>> Purpose.of("ols price ~ area + C(type)", domain).cliques
        (('price', 'area'), ('price', 'type'), ('type', 'area'))
    """

    text: str
    kind: str
    outcome: Attribute
    cliques: tuple[Clique, ...]
    width: float | None = None
    at: float = 0.5

    #: Words for the statistics that may be given by groups.
    by_groups: ClassVar[Mapping[str, str]] = {
        "mean": "mean", "average": "mean", "total": "total", "sum": "total", "median": "quantile",
        "quantile": "quantile", "quantiles": "quantile", "share": "share", "proportion": "share",
    }  # fmt: skip
    #: Statistics of numbers.
    of_numbers: ClassVar[tuple[str, ...]] = (
        "mean", "total", "quantile", "correlation", "ols", "effect",
    )  # fmt: skip
    #: Statistics that have the unit of their outcome.
    in_a_unit: ClassVar[tuple[str, ...]] = ("mean", "total", "quantile", "effect")
    #: Most columns of a marginal that a purpose asks for.
    max_ways: ClassVar[int] = 3
    #: Sums of numbers weigh codes by their distance from the mean, up to this number of standard deviations.
    max_deviations: ClassVar[float] = 3.0

    @classmethod
    def of(
        cls,
        text: str,
        domain: Domain,
        kinds: Mapping[str, str] | None = None,
        values: Mapping[str, Sequence[str]] | None = None,
    ) -> Purpose:
        """Return the purpose of a text.

        Args:
            text: One of "mean Y", "mean Y by G, H" (also total, median, share, and "quantile Y 0.9"), "count by G",
                "correlation X, Y", "ols FORMULA", "logistic FORMULA", and "effect of T on Y given X, Z"; with
                "within W" at its end for a width. A part of a timestamp may be written as its
                function, such as "count by weekday(pickup)".
            domain: The columns.
            kinds: The kind of each column of the schema. Without them only columns without an order are known to hold
                no numbers.
            values: The values of columns of categories, which errors name.

        Raises:
            InputError: The text is not one of these, names other columns, or needs numbers of a column that has none.
        """
        words, width = _width(text)
        kind, _, rest = words.partition(" ")
        kind = kind.lower()
        if not rest:
            raise unclear(text)
        check_words(words, domain)
        outcome, others, cliques, at = "", list[Attribute](), list[Clique](), 0.5
        if kind in ("count", "correlation", *cls.by_groups):
            check_outcome_words(kind, rest, domain, values or {})
        if kind in ("ols", "logistic"):
            outcome, cliques = _regression(rest, domain)
        elif kind == "effect":
            outcome, others, cliques = _effect(rest, domain, text)
        elif kind == "correlation":
            outcome, *others = _columns(rest, domain, text)
            cliques = [(outcome, a) for a in others]
        elif kind == "count":
            cliques = [tuple(_columns(rest.removeprefix("by "), domain, text))]
        elif kind in cls.by_groups:
            if kind in ("quantile", "quantiles"):
                rest, at = _quantile(rest, domain, text)
            outcome, groups = _grouped(rest, domain, text)
            kind, cliques = cls.by_groups[kind], [(outcome, *groups)]
        if kind in cls.of_numbers:
            if kind == "effect" and _has_categories(outcome, domain, kinds or {}):
                raise no_effect(outcome, others, domain, values or {}, text)
            columns = _numbers_in(kind, rest, [outcome, *others], domain)
            _check_numbers(kind, columns, domain, kinds or {}, text)
        if kind == "correlation" and not others:
            raise no_pair(outcome, _other_number(outcome, domain, kinds or {}), text)
        smaller = (c for clique in cliques for c in _at_most(clique, cls.max_ways))
        named = tuple(dict.fromkeys(domain.clique(c) for c in smaller))
        if not named:
            raise unclear(text)
        return cls(" ".join(text.split()), kind, outcome, named, width, at)

    @property
    def takes_sums(self) -> bool:
        """True if sums of its numbers serve it in place of a marginal."""
        return self.kind in ("mean", "total", "correlation", "ols")

    @property
    def rest(self) -> str:
        """Its text after the kind, without the width: the formula of a regression."""
        return _width(self.text)[0].partition(" ")[2]

    @property
    def columns(self) -> tuple[Attribute, ...]:
        """Its columns."""
        return tuple(dict.fromkeys(a for c in self.cliques for a in c))

    def coded(self, domain: Domain) -> frozenset[Attribute]:
        """Return the columns of a regression that enter as categories alone, by ``C(...)``.

        >>> domain = Domain.of({"price": 9, "type": 3, "area": 5})
        >>> sorted(Purpose.of("ols price ~ area + C(type)", domain).coded(domain))
        ['type']
        """
        if self.kind not in ("ols", "logistic"):
            return frozenset()
        right = parse(self.rest).right
        every, by_value = (
            columns_in(right, coded=coded, functions=domain.functions) for coded in (True, False)
        )
        return frozenset(every) - {*by_value}

    @property
    def groups(self) -> tuple[Attribute, ...]:
        """The columns after "by", whose codes make groups of the rows for a statistic of the outcome."""
        is_grouped = self.kind in self.by_groups.values()
        return tuple(a for a in self.columns if a != self.outcome) if is_grouped else ()


def purposes_of(
    texts: Iterable[str],
    domain: Domain,
    kinds: Mapping[str, str] | None = None,
    values: Mapping[str, Sequence[str]] | None = None,
) -> tuple[Purpose, ...]:
    """Return the purposes of some texts. See ``Purpose.of``.

    Raises:
        InputError: They are not a list of texts, or one of them is not understood.
    """
    if isinstance(texts, str) or not all(isinstance(t, str) for t in texts):
        raise InputError(
            "The purposes are not a list of texts.", remedy='Give ["mean price by type"], say.'
        )
    return tuple(Purpose.of(text, domain, kinds, values) for text in texts)


def category_values(columns: Iterable[object]) -> dict[Attribute, list[str]]:
    """Return the values of the columns of categories, without the missing one."""
    return {
        c.name: c.labels()[: c.size - c.missing]
        for c in columns
        if isinstance(c, Categorical | Ordinal)
    }


def open_ended(purposes: Iterable[Purpose], learned: Iterable[Learn]) -> tuple[str, ...]:
    """Return a sentence for each purpose whose mean values beyond a learned bound may change.

    Args:
        purposes: The purposes.
        learned: The columns to learn of the schema.

    Privacy:
        None spent: public inputs only.

    Example:
        >>> purpose = Purpose("mean price", "mean", "price", (("price",),))
        >>> open_ended([purpose], [Learn("price", "real", low=0)])[0].partition(":")[0]
        'mean price'
        >>> open_ended([purpose], [Learn("price", "real", low=0, high=100)])
        ()
    """
    ends = {c.name: _open_ends(c) for c in learned if c.is_number and not c.is_moment}
    found = []
    for purpose in purposes:
        own = [c for c in purpose.columns if ends.get(c)]
        if purpose.kind not in ("mean", "total", "correlation", "ols", "effect") or not own:
            continue
        without = " and ".join(f"{c} without a public {_bounds_words(ends[c])}" for c in own)
        remedy = bounds_remedy(list(dict.fromkeys(key for c in own for key in ends[c])))
        if purpose.groups:
            found.append(
                f"{purpose.text}: the release learns {without}. All values beyond a learned bound may be in one"
                f" group, so the {purpose.kind} of each group is marked as not reliable unless the group is very large."
                f' Ask for "median {purpose.rest}", which such values hardly change. Or, in the schema, {remedy}'
            )
            continue
        found.append(
            f"{purpose.text}: the release learns {without}. Values beyond a learned bound may change"
            f" {'its' if len(own) == 1 else 'their'} mean, which is then often marked as not reliable. Ask for a"
            f" quantile or a share, which such values hardly change. Or, in the schema, {remedy}"
        )
    return tuple(found)


def _open_ends(column: Learn) -> tuple[str, ...]:
    bounds = {"low": column.low, "high": column.high}
    return tuple(key for key, bound in bounds.items() if bound is None)


def _bounds_words(keys: Sequence[str]) -> str:
    words = {"low": "lower", "high": "upper"}
    return f"{' or '.join(words[k] for k in keys)} bound"


def check_not_person(texts: Iterable[str], person: Attribute | None) -> None:
    """Raise ``InputError`` if a purpose names the person ID column, which no release has."""
    word = None if person is None else re.compile(rf"(?<!\w){re.escape(person)}(?!\w)")
    for text in (t for t in texts if isinstance(t, str) and word is not None and word.search(t)):
        raise InputError(
            f"The purpose {text[:80]!r} names {person!r}, the person ID column. It says whose row it is, and is never"
            " published.",
            remedy="Name other columns. Counts of rows are of rows, and not of persons.",
        )


def workload_for(purposes: Sequence[Purpose], base: Workload) -> Workload:
    """Return a workload in which the purposes together weigh as much as the others do.

    The purposes have equal shares, and so have the marginals of each.
    """
    each = sum(base.weights.values()) / len(purposes)
    weights = dict(base.weights)
    for purpose in purposes:
        for clique in purpose.cliques:
            weights[clique] = weights.get(clique, 0.0) + each / len(purpose.cliques)
    return Workload(weights, tuple(p.text for p in purposes), first_of(purposes))


def first_of(purposes: Iterable[Purpose]) -> tuple[Clique, ...]:
    """Return the marginals of purposes, those with an outcome before those of other columns alone."""
    own = dict.fromkeys(c for p in purposes for c in p.cliques if p.outcome in ("", *c))
    return tuple(dict.fromkeys([*own, *(c for p in purposes for c in p.cliques)]))


def _width(text: str) -> tuple[str, float | None]:
    plain = " ".join(text.split())
    found = re.fullmatch(r"(.*) within ([0-9]*\.?[0-9]+)", plain)
    if found is None:
        return plain, None
    if not float(found[2]) > 0:
        raise InputError(
            f"The width of the purpose {plain[:80]!r} is 0.", remedy="Widths are positive."
        )
    return found[1], float(found[2])


def _quantile(rest: str, domain: Domain, text: str) -> tuple[str, float]:
    """Return "Y by G" of "Y 0.9 by G", and 0.9; 0.5 without a number."""
    found = re.fullmatch(r"(.+?) ([0-9]*\.[0-9]+|[0-9]+)((?: by .+)?)", rest)
    if found is None or rest.partition(" by ")[0] in domain:
        return rest, 0.5
    if not 0.0 < float(found[2]) < 1.0:
        raise InputError(
            f"The quantile of the purpose {text[:80]!r} is not between 0 and 1.",
            remedy='Write "quantile stay 0.9" for the value that 90 % of the rows do not exceed.',
        )
    return found[1] + found[3], float(found[2])


def _regression(formula: str, domain: Domain) -> tuple[Attribute, list[Clique]]:
    """Return the outcome of a formula, and the pairs of its terms with it and with each other."""
    tree = parse(formula)
    outcomes = columns_in(tree.left, functions=domain.functions)
    _, terms = expand(tree.right)
    parts = [
        tuple(
            dict.fromkeys(
                a for node in term.values() for a in columns_in(node, functions=domain.functions)
            )
        )
        for term in terms
    ]
    for a in (*outcomes, *(a for part in parts for a in part)):
        if a not in domain and (hint := quoting_hint(a, domain)):
            raise InputError(f"The table has no column {a!r}.", remedy=hint.strip())
        domain.index(a)
    y = tuple(outcomes)
    together = [tuple(dict.fromkeys((*one, *two))) for one, two in combinations(parts, 2)]
    return y[0], [*(tuple(dict.fromkeys((*y, *part))) for part in parts), *together] or [y]


def _numbers_in(
    kind: str, rest: str, columns: Sequence[Attribute], domain: Domain
) -> Sequence[Attribute]:
    """Return the columns of a statistic of numbers whose values are the numbers: a comparison has none."""
    if kind == "effect":
        return columns[:1]
    if kind != "ols":
        return columns
    left = parse(rest).left
    return () if gives_truth(left) else columns_in(left, functions=domain.functions)


def _check_numbers(
    kind: str,
    columns: Sequence[Attribute],
    domain: Domain,
    kinds: Mapping[str, str],
    text: str,
) -> None:
    """Raise ``InputError`` if a statistic of numbers is of a column that has none, as its analysis would."""
    lacks = f"The purpose {text[:80]!r} needs numbers, and"
    parts = {} if kind == "ols" else {part: call for call, part in domain.functions.items()}
    for column in columns:
        own = kinds.get(column)
        if _has_categories(column, domain, kinds):
            number = next((c for c in columns if not _has_categories(c, domain, kinds)), None)
            ask = (
                f'shares: "share {column}"'
                if number is None
                else f'the mean by group: "mean {number} by {column}"'
            )
            raise InputError(
                f"{lacks} {column!r} has categories.",
                remedy=f"Ask for {ask}. Or, if its values are whole numbers, declare it in the"
                ' schema with kind = "integer".',
            )
        if column in parts:
            function, whole = parts[column]
            raise InputError(
                f"{lacks} {column!r} is the {function} of {whole!r}, which has shares alone.",
                remedy=f'Ask for them: "share {column}".',
            )
        if kind == "total" and own in (Date.kind, Timestamp.kind):
            raise InputError(
                f"{lacks} {column!r} holds dates, which have no total.",
                remedy=f'Ask for their mean: "mean {column}".',
            )


def _has_categories(column: Attribute, domain: Domain, kinds: Mapping[str, str]) -> bool:
    return column in domain.unordered or kinds.get(column) == Ordinal.kind


def _other_number(column: Attribute, domain: Domain, kinds: Mapping[str, str]) -> str:
    """Return a column of numbers other than this one, or "COLUMN"."""
    others = (c for c in domain if c not in (column, *domain.functions.values()))
    return next((c for c in others if not _has_categories(c, domain, kinds)), "COLUMN")


def _effect(
    rest: str, domain: Domain, text: str
) -> tuple[Attribute, list[Attribute], list[Clique]]:
    """Return Y, then T, X and Z of "of T on Y given X, Z", and its triples: (T, Y, X) for each X."""
    found = re.fullmatch(r"of (.+) on (.+?)(?: given (.+))?", rest)
    if found is None:
        raise unclear(text)
    treatment, outcome = (_column(found[i].strip(), domain) for i in (1, 2))
    given = _columns(found[3], domain, text) if found[3] else []
    check_once((treatment, outcome, *given), text)
    cliques: list[Clique] = [(treatment, outcome, a) for a in given] or [(treatment, outcome)]
    return outcome, [treatment, *given], cliques


def _grouped(rest: str, domain: Domain, text: str) -> tuple[Attribute, list[Attribute]]:
    pieces = rest.split(" by ")
    for i in range(1, len(pieces) + 1):
        outcome, groups = " by ".join(pieces[:i]).strip(), " by ".join(pieces[i:])
        if outcome in domain or time_part(outcome) is not None:
            outcome = _column(outcome, domain)
            listed = _columns(groups, domain, text) if groups else []
            check_once((outcome, *listed), text)
            return outcome, listed
    check_separated(pieces[0], domain, " by ")
    domain.index(pieces[0].strip())
    raise unclear(text, domain)


def _columns(listed: str, domain: Domain, text: str) -> list[Attribute]:
    names = [_column(name.strip(), domain) for name in re.split(r",| and ", listed)]
    check_once(names, text)
    return names


def _column(name: str, domain: Domain) -> Attribute:
    """Return the column of a name, or of a function of a column such as hour(pickup)."""
    call = None if name in domain else time_part(name)
    if call is None:
        if name not in domain:
            check_separated(name, domain, ", ")
        return domain.attributes[domain.index(name)]
    if call in domain.functions:
        return domain.functions[call]
    function, column = call
    domain.index(column)
    raise InputError(
        f"The schema has no {function} of {column!r}.",
        remedy=f'Add a column with kind = "{function}" and part_of = "{column}".'
        if function in (Hour.kind, Weekday.kind)
        else f"Name {column!r} itself.",
    )


def _at_most(clique: Clique, ways: int) -> list[Clique]:
    return [clique] if len(clique) <= ways else list(combinations(clique, ways))
