"""Names of an analysis's estimates, known from the schema before any data set is drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
import pandas as pd

from margrave._other_names import in_our_words
from margrave.domain import Codes
from margrave.errors import InputError, did_you_mean
from margrave.formula import columns_in, factors_of, spelled
from margrave.formula.coefficients import split
from margrave.inference.datasets import COMMONEST, FUNCTIONS, TRUTHS, Frames
from margrave.inference.fitted import Estimand
from margrave.inference.probe import try_fit
from margrave.schema import Schema


def other_words(word: str) -> tuple[str, str] | None:
    """Return the analysis that another word stands for, in Python and on the command line; None for none.

    >>> other_words("Median")
    ('Quantile("stay", 0.5)', 'quantile RELEASE COLUMN 0.5')
    """
    forms = {
        "quantile": ('Quantile("stay", 0.5)', "quantile RELEASE COLUMN 0.5"),
        "mean": ('Mean("stay")', "mean RELEASE COLUMN"),
        "total": ('Total("stay")', "total RELEASE COLUMN"),
        "proportion": ('Proportion("smokes", True)', "proportion RELEASE COLUMN VALUE"),
        "ols": ('OLS("stay ~ age")', "ols RELEASE FORMULA"),
        "logistic": ('Logistic("smokes ~ age")', "logistic RELEASE FORMULA"),
        "correlation": ('Correlation("stay", "age")', "correlation RELEASE COLUMN COLUMN"),
    }
    return forms.get(in_our_words("analysis", word))


def check_names(
    schema: Schema, fit: Estimand, tests: Sequence[str], contrasts: Sequence[str] = ()
) -> None:
    """Raise `InputError` for a name that an analysis cannot have. Looks at the schema alone.

    The analysis runs on made-up records with every category. A name of a level that only real
    numbers would show passes, and so does every name if the analysis fails on these records.

    Args:
        schema: The columns.
        fit: The analysis.
        tests: Estimates, or terms that stand for all of their coefficients.
        contrasts: Estimates alone.
    """
    if not tests and not contrasts:
        return
    frame, found_names = made_up(schema), list[tuple[str, ...]]()
    for end in (0, -1):  # a category that is the reference has no coefficient
        levels = {str(c): v.cat.categories for c, v in frame.items() if _has_categories(v)}
        frame.attrs[COMMONEST] = {c: found[end] for c, found in levels.items() if len(found)}
        fitted = try_fit(fit, lambda: frame)
        found_names.append(() if fitted is None else fitted.names)
    known = list(dict.fromkeys(chain(*found_names)))
    terms = dict.fromkeys(map(term_of, known))
    open_terms = dict.fromkeys(
        term_of(n) for n in known if not all(n in names for names in found_names)
    )
    for name in (*tests, *contrasts) if known else ():
        own = spelled(name)
        if own not in known and own not in terms and not _of_numbers(own, terms, frame):
            raise no_estimate(name, known, terms if name in tests else (), open_terms)
    for name in contrasts:
        if spelled(name) in terms and spelled(name) not in known:
            raise no_estimate(name, known, (), open_terms)


def no_estimate(
    name: str, known: Iterable[str], terms: Iterable[str] = (), open_terms: Iterable[str] = ()
) -> InputError:
    """Return the error of a name that is not an estimate's.

    Args:
        name: The name.
        known: The names of estimates.
        terms: The terms that may stand for all of their coefficients.
        open_terms: The terms of which one level, not known yet, is the reference.
    """
    known = list(known)
    groups, unknown = [t for t in terms if t not in known], list(open_terms)
    hint = did_you_mean(name, [*known, *groups])
    if term_of(name) != name and term_of(name) in map(term_of, known):
        hint += "A reference level has none: the coefficients of the other levels are differences from it. "
    less = f", without the commonest level of {' and of '.join(unknown)}" if unknown else ""
    more = f" A term stands for all of its coefficients: {', '.join(groups)}." if groups else ""
    return InputError(
        f"There is no estimate {name!r}.",
        remedy=f"{hint}They are: {', '.join(known)}{less}.{more}",
    )


def term_of(name: str) -> str:
    """Return the term that a coefficient belongs to."""
    try:
        return ":".join(text for text, _ in split(name))
    except InputError:
        return name


def _of_numbers(name: str, terms: Iterable[str], frame: pd.DataFrame) -> bool:
    """Return True for a level of a known term whose levels are numbers, dates or intervals."""
    if term_of(name) not in terms:
        group = name.partition(" | ")[2].partition(" = ")[0]
        has_names = group in frame.attrs[TRUTHS] or (
            group in frame and _has_categories(frame[group])
        )
        return group in frame and not has_names
    try:
        columns = [c for node, level in factors_of(name) if level for c in columns_in(node)]
    except InputError:
        return True
    return any(c in frame and not _has_categories(frame[c]) for c in columns)


def _has_categories(values: pd.Series) -> bool:
    return isinstance(values.dtype, pd.CategoricalDtype)


def made_up(schema: Schema) -> pd.DataFrame:
    """Return records whose columns take all codes equally often, independent of each other."""
    rows, rng = 2_000, np.random.default_rng(0)
    domain = schema.domain
    codes = {a: rng.permutation(np.arange(rows) % domain.size(a)) for a in domain}
    frames = Frames.of_schema(schema)
    frame = frames.of(schema.decode(Codes.of(domain, codes), rng=rng, as_numbers=True))
    frame.attrs |= {FUNCTIONS: dict(frames.functions), TRUTHS: tuple(frames.truths)}
    return frame
