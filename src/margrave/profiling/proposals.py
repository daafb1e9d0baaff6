"""Columns of a draft: their kinds are seen in the rows; their bounds and categories are to be learned.

**Privacy:** NOT private: kinds and remarks depend on the rows.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from margrave.profiling.distinct_numbers import DistinctNumbers
from margrave.profiling.messages import Remark, code_like_learned, far_off_learned, usual_question
from margrave.profiling.rounding import day_of
from margrave.profiling.sentinels import marked, marks_in, text_codes, without_words
from margrave.profiling.texts import dated_texts, says_truth, spelling
from margrave.schema.categorical import Boolean
from margrave.schema.column import Column
from margrave.schema.column_profile import MAX_LISTED_TEXTS, ColumnProfile
from margrave.schema.distinct_texts import DistinctTexts
from margrave.schema.learn import Learn
from margrave.schema.numeric import Integer
from margrave.schema.schema import Schema
from margrave.schema.text_patterns import alike, dotted_thousands, has_sentences
from margrave.schema.usual_values import are_usual_categories


def propose(evidence: ColumnProfile) -> tuple[Column, str]:
    """Return a column without a value of its rows, and a remark for the person who checks it.

    It has a missing state whether or not a value is missing. Numbers that are 0 or 1 stay numbers,
    so that a release states their mean.
    """
    name, texts = evidence.name, evidence.counts
    whole = texts.are_whole
    if evidence.truth or says_truth(texts):
        return Boolean(name, missing=True), ""
    if whole and set(np.unique(texts.numbers).tolist()) == {0.0, 1.0}:
        return Integer(name, 0, 1, missing=True, outside="missing"), ""
    found = dated_texts(texts)
    if found is not None:
        form, asked = found.pattern or None, found.questions(evidence)
        asked += marked(found.days, far_off_learned, day_of)
        if found.unit == "":
            return Learn(name, "date", format=form), asked.strip()
        return Learn(name, "timestamp", unit=found.unit, format=form), asked.strip()
    if whole and (names_codes(name) or (names_a_list(name) and len(texts) <= Learn.max_categories)):
        return Learn(name, "categorical"), f"{Remark.CODES}{_code_question(texts)}"
    if whole or texts.are_numbers:
        numbers = DistinctNumbers.of(texts.numbers, texts.rows)
        if whole:
            asked = Remark.FEW if are_classes(numbers) else ""
            asked += marked(numbers, far_off_learned, _shown)
            return Learn(name, "integer"), asked.strip()
        asked = Remark.DECIMALS if evidence.written and dotted_thousands(texts) is None else ""
        return Learn(name, "real"), (asked + marked(numbers, far_off_learned)).strip()
    asked = spelling(evidence, Learn.max_categories)
    asked += Remark.MARKS if evidence.marked else ""
    asked += Remark.SENTENCES if has_sentences(texts) else ""
    asked += _code_question(texts) + _usual_question(texts)
    return Learn(name, "categorical"), asked.strip()


def _code_question(texts: DistinctTexts) -> str:
    codes = text_codes(texts)
    return code_like_learned(list(codes)) if codes else ""


def _usual_question(texts: DistinctTexts) -> str:
    """Return the question on texts that are usual categories. They are offered and never declared."""
    if len(texts) > MAX_LISTED_TEXTS or alike(texts):
        return ""
    codes = list(text_codes(texts))
    others = texts.keep(np.array([t not in codes for t in texts]))
    if not Boolean("truth", missing=True).encode(others.texts).outside.any():
        return usual_question((), codes, sorted(others))
    return usual_question(sorted(others), codes, ()) if are_usual_categories(list(others)) else ""


def missing_marks(evidence: ColumnProfile, *, listed: bool = False) -> dict[str, int]:
    """Return the values of a column that look like missing-value codes, with their numbers of rows.

    Args:
        evidence: The texts of a column.
        listed: The column is a list of categories, and not one of numbers or dates.
    """
    if listed:
        return text_codes(evidence.counts)
    texts = without_words(evidence)[0].counts
    found = dated_texts(texts) if texts else None
    if found is not None:
        return marks_in(found.days, day_of)
    if not texts or not texts.are_numbers:
        return {}
    numbers = DistinctNumbers.of(texts.numbers, texts.rows)
    return marks_in(numbers, _shown) if texts.are_whole else marks_in(numbers)


def names_codes(name: str) -> bool:
    """Return True if a column's name suggests codes, which are not quantities.

    >>> [n for n in ("zip", "occ_code", "ICD10", "marital.status", "encoded", "zipper", "age") if names_codes(n)]
    ['zip', 'occ_code', 'ICD10', 'marital.status']
    """
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    words = (
        r"(codes?|cd|zip|zipcode|plz|postcode|postal|fips|puma|icd\d*|naics\w?|sic|isco|soc|occp?|occupation|"
        r"industry|cpt|drg|atc|type|class|category|kind|status|group|sex|gender|race|ethnicity|region|county|"
        r"district|precinct|sector)"
    )
    return re.search(rf"(^|[^a-z0-9]){words}($|[^a-z0-9])", plain) is not None


def names_a_list(name: str) -> bool:
    """Return True if a column's name ends as that of a key, whose few values are then codes.

    >>> [n for n in ("admission_source_id", "PULocationID", "unit_key", "paid", "idle") if names_a_list(n)]
    ['admission_source_id', 'PULocationID', 'unit_key']
    """
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return re.search(r"[^a-z0-9](ids?|key|ref|kennung)$", plain) is not None


def are_classes(numbers: DistinctNumbers) -> bool:
    """Return True for a few small whole numbers, which may be answers or classes.

    If 0 is the commonest, they count something.

    >>> samples = [1, 2, 2, 3, 9], [0, 0, 1, 2], range(1, 20)
    >>> [are_classes(DistinctNumbers.of(np.array(n), np.ones(len(n), dtype=int))) for n in samples]
    [True, False, False]
    """
    max_values, largest = 10, 20
    few = len(numbers) <= max_values and bool((np.abs(numbers.points) <= largest).all())
    return few and numbers.commonest != 0


def _shown(value: float) -> str:
    return str(int(value))


def taken_as_public(schema: Schema) -> str:
    """Return what a draft of columns to learn takes as public, in a sentence."""
    names = defaultdict(list)
    for column in schema.columns:
        truth = isinstance(column, Integer) and (column.low, column.high) == (0, 1)
        kind = "0 or 1" if truth else column.kind
        names[kind].append(column.name)
    values = {"0 and 1": names.get("0 or 1"), "true and false": names.get("boolean")}
    stated = "; ".join(f"{v} alone in {', '.join(n)}" for v, n in values.items() if n)
    units, formats = defaultdict(list), defaultdict(list)
    for column in schema.to_learn:
        if column.unit:
            units[column.unit].append(column.name)
        if column.format:
            formats[column.format].append(column.name)
    times = f" Units of times: {_listed(units)}." if units else ""
    dates = f" Formats of dates and times: {_listed(formats)}." if formats else ""
    ignored = f" Left out: {', '.join(schema.ignore)}." if schema.ignore else ""
    person = "" if schema.person is None else f" Person ID column: {schema.person}."
    codes = {n: s.missing_codes for n, s in schema.sources.items() if s.missing_codes}
    missing = "; ".join(f"{', '.join(found)} in {n}" for n, found in codes.items())
    later = [
        f"{c.name} is never before {c.since}" for c in schema.to_learn if c.since and c.low == 0
    ]
    order = f" By their names: {', '.join(later)}." if later else ""
    kinds = f"Taken as public: the names and kinds of the columns ({_listed(names)})."
    no_value = f" Codes for missing values: {missing}." if missing else ""
    bounds = f" Values: {stated}." if stated else ""
    return f"{kinds}{bounds}{times}{dates}{order}{no_value}{ignored}{person}"


def _listed(names: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{key}: {', '.join(columns)}" for key, columns in sorted(names.items()))
