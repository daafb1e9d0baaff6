"""Errors of purposes in words: the form that was probably meant."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from margrave.domain import Domain
from margrave.errors import InputError, did_you_mean
from margrave.formula import Call, ColumnName, Text, time_part, written
from margrave.types import Attribute


def check_words(words: str, domain: Domain) -> None:
    """Raise ``InputError`` for a condition, a value, another word for "by", or a width that is not a number.

    Args:
        words: A purpose without its width.
        domain: The columns, whose names may have such words.
    """
    if "'" in words or '"' in words or "`" in words:
        return  # a formula may quote any words
    kind, _, rest = words.partition(" ")
    is_formula = kind.lower() in ("ols", "logistic")
    wrong = f"The purpose {words[:80]!r}"

    def split_at(pattern: str) -> tuple[str, str, str] | None:
        if any(re.search(f" ({pattern}) ", f" {name} ") for name in domain):
            return None
        found = re.fullmatch(f"(.+?) ({pattern}) (.+)", rest)
        return None if found is None else (found[1], found[2], found[3])

    if (found := split_at("where|if")) is not None:
        before, word, condition = found
        raise InputError(
            f"{wrong} has a condition, and purposes have none.",
            remedy=f'Leave "{word} {condition}" out{_with_column(kind, before, condition, domain)}. An analysis takes a'
            " part of the rows afterwards, by --where (in Python where=).",
        )
    if (found := split_at("within")) is not None:
        raise InputError(
            f"{wrong} has the width {found[2]!r}, which is not a number.",
            remedy=f'Write a number at the end: "{kind} {found[0]} within 0.1".',
        )
    if is_formula:
        return
    if (found := split_at("for|per|across|over")) is not None and found[0] in domain:
        raise InputError(
            f"{wrong} has {found[1]!r} before its groups.",
            remedy=f'Write by: "{kind} {found[0]} by {found[2]}".',
        )
    outcome, by, groups = rest.partition(" by ")
    compared = re.fullmatch(r"(.+?)\s*([=<>!]=?\s*.+)", outcome)
    if outcome not in domain and compared is not None and compared[1] in domain:
        plain = f"{kind} {compared[1]}{by}{groups}"
        shares = (
            f', or "ols {outcome} ~ 1", whose intercept is a share' if "=" not in outcome else ""
        )
        raise InputError(
            f"{wrong} has {compared[2]!r}, and {kind} {compared[1]} covers every value.",
            remedy=f'Leave it out: "{plain}"{shares}.',
        )


def _with_column(kind: str, before: str, condition: str, domain: Domain) -> str:
    """Return how a statistic by groups includes the column of a condition; "" for any other purpose."""
    names = [n for n in domain if re.match(rf"{re.escape(n)}(?!\w)", condition)]
    if not names or kind.lower() in ("ols", "logistic", "effect", "correlation"):
        return ""
    by = ", " if " by " in f" {before}" else " by "
    return f', and name its column: "{kind} {before}{by}{max(names, key=len)}"'


def check_outcome_words(
    kind: str, rest: str, domain: Domain, values: Mapping[str, Sequence[str]]
) -> None:
    """Raise ``InputError`` for "of" before the column of a statistic, and for a value in place of it.

    Args:
        kind: The first word of the purpose.
        rest: The words after it.
        domain: The columns.
        values: The categories of each column that has some; empty if the caller has no schema.
    """
    own = rest.removeprefix("by ") if kind == "count" else rest
    plain = re.sub("^of (the )?", "", own)
    if _begins_with_column(own, domain):
        return
    name, by, groups = plain.partition(" by ")
    form = "count by" if kind == "count" else kind
    if plain != own and (_begins_with_column(plain, domain) or time_part(name) is not None):
        meant = f'"{form} {plain}"'
        if name in values and kind not in ("count", "share", "proportion", "correlation"):
            meant = f'"share {plain}": {name!r} has categories, which have no {kind}'
        raise InputError(
            f"The purpose {f'{kind} {rest}'[:80]!r} has 'of' before its column.",
            remedy=f"Write {meant}.",
        )
    column = next((c for c, own in values.items() if name in own), None)
    if column is not None:
        form = "count by" if kind == "count" else "share"
        end = "" if column in re.split(", | and ", groups) else f"{by}{groups}"
        raise InputError(
            f"There is no column {name!r}: it is a value of {column!r}.",
            remedy=f'Write "{form} {column}{end}", which covers every value.',
        )
    if plain != own:
        example = next((a for a in domain if a in domain.unordered), domain.attributes[0])
        such_as = f', such as "{form} {example}"' if form in ("share", "count by") else ""
        raise InputError(
            f"There is no column {name!r}.",
            remedy=f'{did_you_mean(name, domain)}Write "{form} COLUMN"{such_as}. The columns are:'
            f" {', '.join(domain.attributes)}.",
        )


def _begins_with_column(words: str, domain: Domain) -> bool:
    return any(words == a or words.startswith((f"{a} ", f"{a},")) for a in domain)


def regression_of(
    outcome: Attribute, others: Sequence[Attribute], domain: Domain, value: str | None = None
) -> str:
    """Return the formula of an outcome, or of its comparison with a value, by other columns.

    >>> regression_of("ward", ["age"], Domain.of({"ward": 3, "age": 9}), "surgery")
    "ward == 'surgery' ~ age"
    """
    calls = {part: call for call, part in domain.functions.items()}

    def term(column: Attribute) -> str:
        if column not in calls:
            return written(ColumnName(column))
        function, whole = calls[column]
        return written(Call(function, (ColumnName(whole),)))

    compared = "" if value is None else f" == {written(Text(value))}"
    return f"{term(outcome)}{compared} ~ {' + '.join(map(term, others))}"


def no_effect(
    outcome: Attribute,
    others: Sequence[Attribute],
    domain: Domain,
    values: Mapping[str, Sequence[str]],
    text: str,
) -> InputError:
    """Return the error of an effect on a column of categories."""
    left = None
    if domain.size(outcome) - (outcome in domain.missing) > 2:
        left = next(iter(values.get(outcome, ())), "VALUE")
    formula = regression_of(outcome, others, domain, left)
    return InputError(
        f"The purpose {text[:80]!r} has the outcome {outcome!r}, which has categories. An effect is on a number or on"
        " yes and no.",
        remedy=f'Name another outcome, or write "logistic {formula}".',
    )


def no_pair(column: Attribute, other: str, text: str) -> InputError:
    """Return the error of a correlation of one column, with another column as an example."""
    return InputError(
        f"A correlation is between two columns, and the purpose {text[:80]!r} has one.",
        remedy=f'Write "correlation {column} and {other}".',
    )


def check_separated(name: str, domain: Domain, between: str) -> None:
    """Raise ``InputError`` for a name that is several columns with another separator than that of purposes.

    Args:
        name: A text that is not a column.
        domain: The columns.
        between: The separator after the first column: a comma, or "by".
    """
    parts = [p for p in re.split(r"[\s;&+/|:]+", name) if p]
    if len(parts) > 1 and all(p in domain for p in parts):
        missing = "a comma is" if between == ", " else f"{between.strip()!r} is"
        raise InputError(
            f"There is no column {name!r}: {missing} missing between {parts[0]!r} and {parts[1]!r}.",
            remedy=f'Write "{parts[0]}{between}{", ".join(parts[1:])}".',
        )


def check_once(names: Sequence[Attribute], text: str) -> None:
    """Raise ``InputError`` if a purpose names a column twice."""
    twice = next((n for i, n in enumerate(names) if n in names[:i]), None)
    if twice is not None:
        raise InputError(
            f"The purpose {text[:80]!r} names {twice!r} twice.", remedy="Name each column once."
        )


def unclear(text: str, domain: Domain | None = None) -> InputError:
    """Return the error of a text that is not a purpose."""
    columns = "" if domain is None else f" The columns are: {', '.join(domain.attributes)}."
    return InputError(
        f"The purpose {text[:80]!r} is not understood.",
        remedy='Write "mean price by type" (or total, median, share), "quantile price 0.9", "count by type, area",'
        ' "correlation price, area", "ols price ~ area + C(type)", "logistic sold ~ price" or "effect of drug on'
        ' outcome given age"; with'
        f' "within 0.1" at its end for a width.{columns}',
    )
