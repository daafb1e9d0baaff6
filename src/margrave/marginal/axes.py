"""Arrays with one axis per attribute: summed, broadcast and multiplied along axes that go by name."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from margrave.errors import InputError
from margrave.types import AnyArray, Attribute, Clique, FloatArray


def other_axes(clique: Clique, onto: Clique) -> tuple[int, ...]:
    """Return the axes of the attributes of ``clique`` that are not in ``onto``."""
    return tuple(i for i, a in enumerate(clique) if a not in onto)


def project_array(values: AnyArray, clique: Clique, onto: Clique) -> AnyArray:
    """Sum an array over all attributes but those of ``onto``.

    Args:
        values: One axis per attribute of ``clique``.
        clique: The attributes of the axes, in their order.
        onto: Attributes of ``clique``, in any order.

    Returns:
        A contiguous array with the axes in the order of ``onto``.

    Raises:
        InputError: If ``onto`` names an attribute that ``clique`` lacks.

    Example:
        >>> project_array(np.array([[1, 2], [3, 4]]), ("age", "sex"), ("sex",)).tolist()
        [4, 6]
    """
    if any(a not in clique for a in onto):
        raise InputError(f"The marginal of {clique} cannot be summed down to {onto}.")
    summed = values.sum(axis=other_axes(clique, onto))
    kept = [a for a in clique if a in onto]
    return np.asarray(np.transpose(summed, [kept.index(a) for a in onto]), order="C")


def expand_axes(values: AnyArray, clique: Clique, onto: Clique) -> AnyArray:
    """Return a view that broadcasts against arrays of a larger clique.

    Args:
        values: One axis per attribute of ``clique``; more axes may come before these and stay first.
        clique: The attributes of the last axes, in their order.
        onto: A clique that contains ``clique``, in any order.

    Returns:
        The values with one axis per attribute of ``onto``, of length 1 for those that ``clique`` lacks.

    Example:
        >>> expand_axes(np.array([1, 2, 3]), ("age",), ("sex", "age")).shape
        (1, 3)
    """
    batch = values.ndim - len(clique)
    order = sorted(range(len(clique)), key=lambda i: onto.index(clique[i]))
    ordered = values.transpose(*range(batch), *(batch + i for i in order))
    sizes = iter(ordered.shape[batch:])
    shape = (next(sizes) if a in clique else 1 for a in onto)
    return ordered.reshape((*ordered.shape[:batch], *shape))


def logsumexp_onto(table: FloatArray, clique: Clique, onto: Clique) -> FloatArray:
    """Return log Σ exp over all attributes but those of ``onto``, axes in the order of ``clique``.

    Nothing overflows; −inf is the logarithm of 0, alone or in a sum. ``table`` itself is returned if
    there is nothing to sum.
    """
    axes = other_axes(clique, onto)
    if not axes:
        return table
    top = table.max(axis=axes, keepdims=True)
    top = np.where(top > -np.inf, top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(table - top).sum(axis=axes)) + top.squeeze(axis=axes))


def multiply_along(
    values: FloatArray, clique: Clique, factors: Mapping[Attribute, AnyArray]
) -> FloatArray:
    """Multiply by one factor per code of each attribute that has factors.

    Args:
        values: One axis per attribute of ``clique``.
        clique: The attributes of the axes.
        factors: For some attributes, one number per code. Attributes outside the clique are ignored.

    Example:
        >>> multiply_along(np.ones((2, 2)), ("age", "sex"), {"sex": np.array([2.0, 3.0])}).tolist()
        [[2.0, 3.0], [2.0, 3.0]]
    """
    for attribute in clique:
        if attribute in factors:
            values = values * expand_axes(factors[attribute], (attribute,), clique)
    return values
