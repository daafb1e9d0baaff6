"""Evidence: the codes that an attribute is known to take one of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from margrave.domain import Domain
from margrave.errors import InputError
from margrave.types import Attribute, FloatArray


def allowed_codes(domain: Domain, attribute: Attribute, codes: Sequence[int]) -> FloatArray:
    """Return 1 for each listed code, 0 for the others. Raise ``InputError`` for codes outside the
    domain.
    """
    size = domain.size(attribute)
    outside = [c for c in codes if not 0 <= c < size]
    if outside:
        raise InputError(
            f"Column {attribute!r} has no code {outside[0]}.",
            remedy=f"Its codes are 0 to {size - 1}.",
        )
    allowed: FloatArray = np.zeros(size)
    allowed[list(codes)] = 1.0
    return allowed
