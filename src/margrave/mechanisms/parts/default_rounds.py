"""The number of rounds that a budget is worth, where none is given."""

from __future__ import annotations

import math
from fractions import Fraction

from margrave.marginal import QueryFamily

#: The fewest rounds of single queries, and the most rounds, where no number is given.
MIN_ROUNDS, MAX_ROUNDS = 10, 400


def default_rounds(
    rho: Fraction, records: float, queries: QueryFamily, *, warm_public: bool = False
) -> int:
    """Return how many rounds of single queries a budget is worth.

    T = 3 d / 2 + c · n · sqrt(rho · log|X|) / log|Q|, with d columns.

    T rounds leave an approximation error of about sqrt(log|X| / T) and noise of about sqrt(T / rho)
    log|Q| / n; the sum is least where T is proportional to the second part. c = 0.065 was found on
    ADULT (reduced). The first part is for what has to be learned before that counts, the columns
    themselves; ``warm_public``: public records give them. From ``MIN_ROUNDS`` to
    ``MAX_ROUNDS``.

    **Privacy:** none spent; ``records`` is public, or a noisy answer.
    """
    domain = queries.domain
    cells = sum(math.log(s) for s in domain.sizes)
    columns = 0.0 if warm_public else 1.5 * len(domain)
    rounds = columns + 0.065 * records * math.sqrt(rho * max(cells, 1.0)) / math.log(
        max(len(queries), 3)
    )
    return int(min(max(rounds, MIN_ROUNDS), MAX_ROUNDS))


def default_marginal_rounds(
    rho: Fraction, records: float, queries: QueryFamily, *, queries_per_round: int = 1
) -> int:
    """Return how many rounds of whole marginals a budget is worth.

    T = 0.3 (n · sqrt(rho · log|X|) / cells)^(2/3).

    The argument is that of ``default_rounds``: T rounds leave an approximation error, which falls
    with T, and noise. The noise of a marginal is ``cells · sqrt(T / rho) / n``, where ``cells`` is
    the geometric mean over the marginals: the choice counts noise against a marginal, so that small
    ones are taken first. The approximation error fell as 1 / T on NLTCS (0.046, 0.020 and 0.010
    after 16, 40 and 70 rounds of RAP), faster than the bound sqrt(log|X| / T), which holds for any
    table. The sum of a / T and b · sqrt(T) is least at T = (2 a / b)^(2/3).

    The constant is the largest that leaves the defaults of ACS (reduced) as they are up to epsilon
    = 1, where 25 rounds instead of 15 raised the mean error by a sixth. NLTCS then has 32 rounds at
    epsilon = 1 and 133 at 10.

    Args:
        rho: The budget.
        records: Number of records, public or a noisy answer.
        queries: The cells of the marginals.
        queries_per_round: Number of marginals that a round measures.

    Returns:
        The number of rounds, which can be 0.

    Privacy:
        None spent.
    """
    domain = queries.domain
    information = sum(math.log(s) for s in domain.sizes)
    cells = math.exp(
        sum(math.log(max(domain.possible(r), 1)) for r in queries.cliques) / len(queries.cliques)
    )
    signal = max(records, 0.0) * math.sqrt(rho * max(information, 1.0)) / cells
    return int(0.3 * min(signal, 1e9) ** (2 / 3) / queries_per_round)
