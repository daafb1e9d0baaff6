"""`check_score`: a score's sensitivity, tried on neighbors."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from margrave._card import counted
from margrave.domain import Domain
from margrave.privacy import Score
from margrave.privacy.scores import lipschitz_of
from margrave.testing.loss import DOMAIN
from margrave.testing.tables import SIZES, Row, require, some_rows, tiny
from margrave.types import Clique

CANDIDATES: list[Clique] = [("a", "b"), ("a", "c"), ("b", "c")]


def check_score(make: Callable[[Domain, list[Clique]], Score], *, seed: int = 0) -> None:
    """Check that no count moves a score by more than it states, and that it keeps no counts.

    One row is added to tables of several sizes, in every cell. This finds a sensitivity that is
    stated too small on such tables. It proves nothing of others.

    Args:
        make: Returns the score for a domain and the candidates, which are its pairs of columns.
        seed: Seed of the tables.

    Raises:
        AssertionError: With one sentence, at the first check that fails.

    Privacy:
        None spent. The tables are made up.

    Example:
        >>> from margrave.privacy import Dependence
        >>> check_score(lambda domain, candidates: Dependence())
    """
    score = make(DOMAIN, CANDIDATES)
    score.check(DOMAIN, CANDIDATES)
    bound, terms = lipschitz_of(score), _terms(score)
    for size in (0, 1, 5, 40, 400):
        rows = some_rows(SIZES, size, seed)
        before = _scores(score, rows)
        for cell in np.ndindex(*DOMAIN.sizes):
            after = _scores(score, [*rows, tuple(map(int, cell))])
            moved = max(abs(x - y) for x, y in zip(before, after, strict=True))
            require(
                moved <= bound,
                f"One more row moves it by {float(moved):.6g}, and its lipschitz is {float(bound):.6g}.",
            )
        require(_scores(score, rows) == before, "Its scores depend on counts of earlier calls.")
    require(_terms(score) == terms, "Its terms, which are public, depend on counts.")
    require(lipschitz_of(score) == bound, "Its lipschitz, which is public, depends on counts.")


def _terms(score: Score) -> dict[str, list[float]]:
    return {name: list(values) for name, values in score.terms(CANDIDATES).items()}


def _scores(score: Score, rows: list[Row]) -> list[Fraction]:
    counts = tiny(SIZES, rows).count(CANDIDATES)
    for values in counts.values():
        values.flags.writeable = False
    found = score(CANDIDATES, counts)
    options = len(CANDIDATES) + len(score.readable(CANDIDATES))
    require(
        len(found.values) == options,
        f"It gives {counted(len(found.values), 'score')} to {counted(options, 'option')}.",
    )
    return [int(v) * found.grid for v in found.values]
