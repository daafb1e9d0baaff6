"""Spellings of R that formulas do not have, and what to write in their place."""

from __future__ import annotations

import re

from margrave.formula.nodes import quoted


def remedy_of(formula: str, place: int) -> str:
    """Return what to write in place of R's spelling at the place of an error; "" if it is not one.

    >>> remedy_of("y ~ age^2", 7), remedy_of("y ~ (a+b)^2", 9), remedy_of("y ~ factor(ward)", 4)
    ('Write I(age ** 2).', 'Write (a+b) ** 2.', 'Write C(ward).')
    """
    before, after = formula[:place], formula[place:]
    column, level = (
        r"\s*(?P<x>[\w.]+)\s*",
        r"(?:'(?P<v>[\w -]+)'|\"(?P<w>[\w -]+)\"|(?P<u>\w+))\s*\)",
    )
    if after.startswith("^"):
        return _power(before, after)
    if re.match(r"\.(?!\w)", after):
        return "Name the columns, such as y ~ a + b."
    if found := re.match(rf"(?:factor|ordered|relevel)\({column}[,)]", after):
        return f"Write C({found['x']})."
    category = re.search(rf"C\({column},\s*$", before)
    if category and (found := re.match(rf"ref\s*=\s*{level}", after)):
        named = quoted(found["v"] or found["w"] or found["u"])
        return f"Write C({category['x']}, Treatment({named}))."
    if found := re.match(rf"poly\({column},\s*(?:degree\s*=\s*)?(?P<n>[1-4])\s*[,)]", after):
        x, powers = found["x"], range(2, int(found["n"]) + 1)
        return f"Write {' + '.join([x, *(f'I({x} ** {n})' for n in powers)])}."
    if found := re.match(
        rf"(?:ns|rcs|s)\({column}(?:,\s*(?:df\s*=\s*)?(?P<n>\d\d?)\s*)?[,)]", after
    ):
        df = max(int(found["n"] or 3), 3)
        return f"Write cr({found['x']}, df={df}, constraints='center')."
    if found := re.match(rf"(?:[01]\s*)?\|+{column}", after):
        return (
            f"Random effects are not fitted. Write C({found['x']}) for coefficients of its values."
        )
    return ""


def _power(before: str, after: str) -> str:
    base = re.search(r"(?P<function>[\w.]*)(?P<group>\([^()]*\))\s*$|(?P<x>[\w.]+)\s*$", before)
    exponent = re.match(r"\^\s*([1-4])(?!\d)", after)
    if base is None or exponent is None or not base[0].isprintable():
        return "Write powers as **, such as I(age ** 2)."
    text = f"{base[0].strip()} ** {exponent[1]}"
    return f"Write {text}." if base["group"] and not base["function"] else f"Write I({text})."
