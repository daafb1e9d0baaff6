"""Analyses in the words of purposes: "mean price by type", "ols price ~ area"."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from margrave.errors import InputError
from margrave.formula import Call, ColumnName, written
from margrave.inference.columns import SCHEMA
from margrave.inference.datasets import Frames
from margrave.inference.estimands import By, Correlation, Mean, Quantile, Total
from margrave.inference.fitted import Estimand
from margrave.inference.names import made_up
from margrave.inference.regression import OLS, Logistic
from margrave.purpose_words import regression_of
from margrave.purposes import Purpose, category_values, check_not_person
from margrave.schema import Schema


def analysis_of(fit: Any, source: Any) -> Any:
    """Return the analysis of a text, with missing-value codes of the schema read as missing; a function as it is.

    Args:
        fit: A purpose's text, such as "mean price by type", "median price", "correlation price, area",
            "ols price ~ area" or "logistic sold ~ price", or an analysis.
        source: What is analyzed; for a text it has a schema.

    Raises:
        InputError: The text is not a purpose, or one that names no single analysis.
    """
    if isinstance(source, str | PathLike):
        raise InputError(
            f"{str(source)!r} is a path, and an analysis takes a release.",
            remedy=f"Give margrave.Release.load({str(source)!r}).",
        )
    schema = getattr(source, "schema", None)
    if not isinstance(fit, str):
        is_read = isinstance(fit, Estimand) and isinstance(schema, Schema)
        return fit.with_missing(schema) if is_read else fit
    if not isinstance(schema, Schema):
        raise InputError(
            "An analysis in words needs a release, whose columns it names.",
            remedy='Give an estimand, such as Mean("stay").',
        )
    check_not_person([fit], schema.person)
    _check_form(fit)
    purpose = Purpose.of(fit, schema.domain, schema.kinds, category_values(schema.columns))
    found = _estimands(purpose, schema)
    if len(found) == 1:
        return found[0]
    raise InputError(
        f"The purpose {purpose.text[:80]!r} does not name one analysis.",
        remedy=_one_analysis(purpose, schema),
    )


def _check_form(text: str) -> None:
    """Raise `InputError` for a text that does not begin as a purpose does. It lists the texts of analyses alone."""
    kind, _, rest = " ".join(text.split()).partition(" ")
    known = (*Purpose.by_groups, "count", "correlation", "ols", "logistic", "effect")
    if not rest or kind.lower() not in known:
        raise InputError(
            f"The analysis {text[:80]!r} is not understood.",
            remedy='Write "mean price by type" (or total, median), "quantile price 0.9", "correlation price, area",'
            ' "ols price ~ area + C(type)" or "logistic sold ~ price". Or give an estimand, such as Mean("price").',
        )


def _one_analysis(purpose: Purpose, schema: Schema) -> str:
    """Return the remedy for a purpose that is not one analysis."""
    if purpose.kind == "effect":
        others = [c for c in purpose.columns if c != purpose.outcome]
        formula = regression_of(purpose.outcome, others, schema.domain)
        return f'An effect is a coefficient of a regression: write "ols {formula}".'
    return (
        'Give an estimand: Proportion("sex", "F"), Count("sex", "F"), By(Mean("stay"), "ward") or another of'
        " margrave.inference."
    )


def check_analyses(purposes: Iterable[Purpose], schema: Schema) -> None:
    """Raise `InputError` if the columns of a schema do not fit the analyses of a purpose. Reads no rows.

    The analyses run on made-up records of the schema, unless it has columns to learn.
    """
    empty, made = empty_frame(schema), None if schema.to_learn else made_up(schema)
    for purpose in purposes:
        try:
            for fit in _estimands(purpose, schema):
                # the numbers of a release have groups that no analysis has: bins of a column
                model = fit.model if isinstance(fit, By) else fit
                model.check(empty, schema)
                if made is not None:
                    _try(model, made)
        except InputError as error:
            raise InputError(
                f"The purpose {purpose.text[:80]!r} cannot be analyzed. {error.message}",
                remedy=error.remedy,
            ) from None


def _try(fit: Any, frame: pd.DataFrame) -> None:
    """Raise the `InputError` of an analysis; any other failure depends on the values of made-up records."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            fit(frame.copy())
        except InputError:
            raise
        except Exception:
            return


def empty_frame(schema: Schema) -> pd.DataFrame:
    """Return a frame without rows, whose columns have the kinds and the levels of a schema's output.

    A column of categories to learn holds texts: its levels are not known.
    """
    names = [c.name for c in schema.output_columns]
    unknown = {c.name for c in schema.to_learn if not c.is_number}
    known = [pa.field(c.name, c.type) for c in schema.output_columns if c.name not in unknown]
    declared = Frames.of_schema(schema).of(pa.schema(known).empty_table())
    texts = pd.DataFrame({n: pd.Series(dtype=object) for n in unknown}, index=declared.index)
    frame = pd.concat([declared, texts], axis=1)[names]
    frame.attrs[SCHEMA] = schema
    return frame


def _names_of_groups(purpose: Purpose, schema: Schema) -> list[str]:
    """Return the columns of groups as an analysis names them: a part by its function, ``hour(pickup)``."""
    calls = {
        part: written(Call(function, (ColumnName(column),)))
        for (function, column), part in schema.domain.functions.items()
        if column in schema.domain
    }
    return [calls.get(a, a) for a in purpose.groups]


def _estimands(purpose: Purpose, schema: Schema) -> list[Estimand]:
    """Return the analyses of a purpose: one for each column of groups, and each pair of a correlation."""
    of_column: dict[str, Any] = {
        "mean": Mean,
        "total": Total,
        "quantile": lambda c: Quantile(c, purpose.at),
    }
    outcome = purpose.outcome
    if purpose.kind == "ols":
        return [OLS(purpose.rest)]
    if purpose.kind == "logistic":
        return [Logistic(purpose.rest)]
    if purpose.kind == "correlation":
        return [Correlation(outcome, a) for a in purpose.columns if a != outcome]
    if purpose.kind not in of_column:
        return []
    model: Any = of_column[purpose.kind](outcome)
    return [By(model, a) for a in _names_of_groups(purpose, schema)] or [model]
