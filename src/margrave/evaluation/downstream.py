"""Train a model on a synthetic table and test it on real rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from margrave.domain import Codes
from margrave.errors import InputError
from margrave.evaluation.inputs import check_codes
from margrave.types import AnyArray, Attribute


def downstream_error(
    train: Codes,
    test: Codes,
    target: Attribute,
    *,
    regression: bool = False,
    rng: np.random.Generator | None = None,
) -> float:
    """Return the test error of gradient boosting trained on synthetic records and tested on real
    ones.

    scikit-learn's gradient boosting with its default parameters predicts the code of ``target`` from the codes of all
    other columns. The error is the share of rows that are misclassified, or with ``regression`` the mean squared
    error, in codes squared.

    **Privacy:** NOT private: the test rows are real. They should be rows that no release was made from.

    ``rng``: None is a fixed seed. Raises ``InputError`` where scikit-learn is missing, for tables of other columns or
    without rows, and for a table of the target alone.

    Source: Donhauser, Abad, Hulkund, Yang 2024, Section 4.1.
    """
    features = _features(train, test, target)
    known, truth = (codes.column(target).astype(np.int64) for codes in (train, test))
    if (known == known[0]).all():
        predicted: AnyArray = np.full(len(truth), known[0])  # there is only one class
    else:
        rng = np.random.default_rng(0) if rng is None else rng
        model = _boosting(regression, int(rng.integers(1 << 31)))
        predicted = model.fit(features(train), known).predict(features(test))
    return float(np.mean((predicted - truth) ** 2 if regression else predicted != truth))


def _features(train: Codes, test: Codes, target: Attribute) -> Any:
    check_codes("The table to train on", train)
    check_codes("The table to test on", test)
    if difference := train.domain.difference(test.domain):
        raise InputError(
            f"The two tables do not have the same schema: {difference}.",
            remedy="Read both with the same schema.",
        )
    place = train.domain.index(target)
    if len(train.domain) < 2:
        raise InputError(f"There is no column besides {target!r} to predict it from.")
    if not len(train) or not len(test):
        raise InputError(
            "One of the two tables has no rows.",
            remedy="Give rows to train on, and rows to test on.",
        )
    return lambda codes: np.delete(codes.values, place, axis=0).T.astype(np.float32)


def _boosting(regression: bool, seed: int) -> Any:
    try:
        from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
    except ModuleNotFoundError:
        raise InputError(
            "The downstream error needs scikit-learn, which is not installed.",
            remedy="pip install 'margrave[evaluate]'",
        ) from None
    return (GradientBoostingRegressor if regression else GradientBoostingClassifier)(
        random_state=seed
    )
