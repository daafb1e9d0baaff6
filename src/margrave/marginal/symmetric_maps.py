r"""Interactions from answers of linear maps that treat all codes of a column alike.

A factor K of a map is such a map if KᵀK = a·I + b·1·1ᵀ: the identity, or the map to interactions. KᵀK then
multiplies vectors that sum to zero by a, and the constant ones by a + n·b. So the answers y = K M_r + noise,
independent in all answers, split into one estimate per interaction A ⊆ r, with uncorrelated noise:

    R_A ≈ residual(Σ_{r∖A} Kᵀ y) / λ_A,    λ_A = Π_{i∈A} a_i Π_{i∈r∖A} (a_i + n_i b_i).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from margrave.domain import Domain
from margrave.marginal.axes import project_array
from margrave.marginal.linear_map import LinearMap
from margrave.marginal.residual import degrees_of_freedom, residual, subsets
from margrave.types import AnyArray, Attribute, Clique, FloatArray


def interactions_of(
    query: LinearMap, clique: Clique, domain: Domain, answers: AnyArray
) -> Iterator[tuple[Clique, FloatArray, float]]:
    """Yield the interactions that the answers determine, each with its precision.

    Args:
        query: The map. One that treats codes differently determines nothing here.
        clique: The attributes of the marginal.
        domain: The domain.
        answers: The noisy answers, with noise of variance 1.

    Yields:
        A subset A of the clique, an unbiased estimate of R_A, and the precision q: its noise is the interaction of
        independent noise of variance 1 / q in each cell of A.

    Example:
        >>> domain, pair = Domain.of({"age": 2, "sex": 2}), ("age", "sex")
        >>> found = interactions_of(LinearMap(), pair, domain, np.array([[3, 1], [1, 1]]))
        >>> [(inner, values.tolist(), precision) for inner, values, precision in found][:2]
        [((), 6.0, 0.25), (('age',), [1.0, -1.0], 0.5)]
    """
    factors = {a: _eigenvalues(query, a, domain.size(a)) for a in clique}
    if any(factor is None for factor in factors.values()):
        return
    spread = query.spread(clique, np.asarray(answers, dtype=np.float64))
    for inner in subsets(clique):
        eigenvalue = prod(
            factor[a not in inner] for a, factor in factors.items() if factor is not None
        )
        if eigenvalue > 0.0 and degrees_of_freedom(domain.shape(inner)):
            values = residual(project_array(spread, clique, inner)) / eigenvalue
            yield inner, values, eigenvalue * domain.cells(inner) / domain.cells(clique)


def _eigenvalues(query: LinearMap, attribute: Attribute, size: int) -> tuple[float, float] | None:
    """Return the eigenvalues of KᵀK on vectors that sum to zero and on constant ones; None if it has others."""
    if attribute in query.groups:
        return None
    if attribute not in query.matrices:
        return 1.0, 1.0
    matrix = query.matrices[attribute].astype(np.float64)
    gram = matrix.T @ matrix
    on, off = float(gram[0, 0]), float(gram[0, -1]) if size > 1 else 0.0
    if not np.array_equal(gram, np.where(np.eye(size, dtype=bool), on, off)):
        return None
    return on - off, on + (size - 1) * off
