"""Drawing the columns that records lack: what the models' ways of doing so share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from margrave.domain import Codes, Domain
from margrave.errors import InputError
from margrave.types import Attribute, Clique, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Given:
    """Records some of whose columns are known, by the distinct combinations of codes that they have there.

    ``codes`` holds one record per combination, in the order of the attributes; ``which`` says for each row which of
    them is its own. ``lacking`` are the attributes of the domain that are to be drawn.
    """

    codes: Codes
    which: IntArray
    lacking: Clique

    @staticmethod
    def of(domain: Domain, rows: Codes, by: Clique | None = None) -> Given:
        """Return the rows, grouped by some of their columns; None means all."""
        check_given(domain, rows)
        known = rows.domain.project(rows.domain.attributes if by is None else by)
        values = rows.values[[rows.domain.index(a) for a in known]]
        lacking = tuple(a for a in domain if a not in rows.domain)
        if not len(known):
            return Given(Codes(known, values[:, :1]), np.zeros(len(rows), dtype=np.int64), lacking)
        order = np.lexsort(values[::-1])
        first = np.ones(len(order), dtype=np.bool_)
        first[1:] = (values[:, order[1:]] != values[:, order[:-1]]).any(axis=0)
        which = np.empty(len(order), dtype=np.int64)
        which[order] = np.cumsum(first) - 1
        return Given(Codes(known, values[:, order[first]]), which, lacking)

    def __len__(self) -> int:
        return len(self.codes)


def check_given(domain: Domain, rows: Codes) -> None:
    """Raise ``InputError`` unless the columns of the rows are some of the domain's, whose codes mean the same."""
    for attribute in rows.domain:
        if attribute not in domain:
            raise InputError(
                f"The rows' column {attribute!r} is not the release's.",
                remedy="Encode them with the release's schema.",
            )
        if difference := domain.difference_in(attribute, rows.domain):
            raise InputError(
                f"The rows are not of the release's schema: {difference}.",
                remedy="Encode them with the release's schema.",
            )


def joined(domain: Domain, rows: Codes, drawn: dict[Attribute, IntArray]) -> Codes:
    """Return the rows with the columns that were drawn for them."""
    return Codes.of(domain, {a: drawn[a] if a in drawn else rows.column(a) for a in domain})


def drawn_within(
    weights: FloatArray, starts: IntArray, ends: IntArray, which: IntArray, rng: np.random.Generator
) -> IntArray:
    """Return for every row a position in its group's range, drawn by the weights; −1 if all are
    zero.

    The n rows of a group take the positions at (i + u) / n of its weight, in random order, for one
    uniform u. So each row's position has the right distribution, and a position with share s is
    taken n · s times, rounded down or up.

    >>> found = drawn_within(np.array([3.0, 1.0, 0.0]), np.array([0, 2]), np.array([2, 3]),
    ...                      np.array([0, 0, 0, 0, 1]), np.random.default_rng(0))
    >>> np.sort(found).tolist()
    [-1, 0, 0, 0, 1]
    """
    order = rng.permutation(len(which))
    order = order[np.argsort(which[order], kind="stable")]
    uniform, found, at = rng.random(len(starts)), np.empty(len(which), dtype=np.int64), 0
    for group, n in enumerate(np.bincount(which, minlength=len(starts)).tolist()):
        reached = np.cumsum(weights[starts[group] : ends[group]])
        rows, at = order[at : at + n], at + n
        if not reached.size or not reached[-1] > 0:
            found[rows] = -1
            continue
        # below the end, so that a place without weight is never taken
        points = np.minimum((np.arange(n) + uniform[group]) / max(n, 1), 1 - 1e-15) * reached[-1]
        found[rows] = starts[group] + np.searchsorted(reached, points, side="right")
    return found


def nothing_like(rows: int) -> InputError:
    """Return the error for rows whose codes the model considers impossible."""
    return InputError(
        f"The model holds no records like {rows:,} of the combinations in these rows.",
        remedy="Give fewer of their columns, or refit the release with GraphicalFit() (margrave refit --fit graphical),"
        " which leaves everything possible but what the schema rules out.",
    )
