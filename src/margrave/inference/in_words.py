"""Analyses in the words of purposes: "mean price by type", "ols price ~ area"."""

from __future__ import annotations

from os import PathLike
from typing import Any

from margrave.errors import InputError
from margrave.inference.estimands import By, Correlation, Mean, Quantile, Total
from margrave.inference.fitted import Estimand
from margrave.inference.regression import OLS, Logistic
from margrave.purposes import Purpose, check_not_person
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
    return _estimand(Purpose.of(fit, schema.domain))


def _estimand(purpose: Purpose) -> Estimand:
    of_column: dict[str, Any] = {
        "mean": Mean,
        "total": Total,
        "quantile": lambda c: Quantile(c, purpose.at),
    }
    outcome = purpose.outcome
    if purpose.kind == "ols":
        return OLS(purpose.rest)
    if purpose.kind == "logistic":
        return Logistic(purpose.rest)
    others = [a for a in purpose.columns if a != outcome]
    if purpose.kind == "correlation" and len(others) == 1:
        return Correlation(outcome, others[0])
    if purpose.kind in of_column and len(others) < 2:
        model: Any = of_column[purpose.kind](outcome)
        return By(model, others[0]) if others else model
    raise InputError(
        f"The purpose {purpose.text[:80]!r} does not name one analysis.",
        remedy='Give an estimand: Proportion("sex", "F"), Count("sex", "F"), By(Mean("stay"), "ward") or another of'
        " margrave.inference.",
    )
