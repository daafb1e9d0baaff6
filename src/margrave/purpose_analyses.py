"""Purposes that the columns of a schema can serve: their analyses are checked before anything is spent."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from margrave.formula import check_outcome, parse
from margrave.purposes import Purpose, category_values, check_not_person, purposes_of
from margrave.schema import Schema


def checked_purposes(texts: Sequence[str], schema: Schema) -> tuple[Purpose, ...]:
    """Return the purposes of some texts, whose analyses fit the columns of a schema.

    Without the extra ``inference`` only their outcomes are checked: none may stand on the right side too.

    Raises:
        InputError: A text is not a purpose, or an analysis of it would be refused.

    Privacy:
        None spent: public inputs only.
    """
    check_not_person(texts, schema.person)
    found = purposes_of(texts, schema.domain, schema.kinds, category_values(schema.columns))
    if found and all(map(find_spec, ("pandas", "scipy", "statsmodels", "formulaic"))):
        from margrave.inference.in_words import check_analyses

        check_analyses(found, schema)
    else:
        for purpose in found:
            if purpose.kind in ("ols", "logistic"):
                check_outcome(parse(purpose.rest))
    return found
