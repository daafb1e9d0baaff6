"""Functions and codings that formulas may use: a closed list."""

from __future__ import annotations

from dataclasses import dataclass

#: The largest whole number that an option takes, such as the degrees of freedom of a spline.
MAX_COUNT = 100

COUNT, CENTER, TRUTH = f"a whole number up to {MAX_COUNT}", "'center'", "True or False"
NUMBER, NUMBERS = "a number", "a list of numbers"


@dataclass(frozen=True)
class Function:
    """A function: how many expressions it takes, its options by name, and those that it needs.

    ``factor``: it makes a factor of a formula and cannot stand inside of another expression.
    """

    arguments: int = 1
    options: tuple[tuple[str, str], ...] = ()
    needs: tuple[str, ...] = ()
    factor: bool = False


_BOUNDS = (("lower_bound", NUMBER), ("upper_bound", NUMBER))

FUNCTIONS = {
    **{f"np.{name}": Function() for name in ("log", "log2", "log10", "log1p", "exp", "sqrt", "abs", "floor")},
    "np.maximum": Function(2),
    "np.minimum": Function(2),
    **{name: Function() for name in ("I", "year", "month", "weekday", "hour", "center", "standardize")},
    "pd.cut": Function(
        options=(("bins", NUMBERS), ("right", TRUTH), ("include_lowest", TRUTH)), needs=("bins",), factor=True
    ),
    "bs": Function(
        options=(("df", COUNT), ("knots", NUMBERS), ("degree", COUNT), ("include_intercept", TRUTH), *_BOUNDS),
        factor=True,
    ),
    "cr": Function(
        options=(("df", COUNT), ("knots", NUMBERS), *_BOUNDS, ("constraints", CENTER)), factor=True
    ),
}  # fmt: skip

#: Other spellings of functions.
ALIASES = {name.removeprefix("np."): name for name in FUNCTIONS if name.startswith("np.")} | {
    "np.absolute": "np.abs",
    "scale": "standardize",
}

#: Codings of categories, with what their option is called.
CODINGS = {"Treatment": "reference", "Sum": None, "Poly": "scores", "Helmert": None, "Diff": None}

MISSING = {"isna": False, "isnull": False, "notna": True, "notnull": True}

#: Names before a function, with what margrave writes.
MODULES = {"np": "np", "numpy": "np", "pd": "pd", "pandas": "pd"}

PARTS = ("year", "month", "weekday", "hour")
