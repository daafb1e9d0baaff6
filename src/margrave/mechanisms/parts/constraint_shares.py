"""The shares that PrivPGD's constraints are about, and what they cost."""

from __future__ import annotations

from fractions import Fraction

from margrave.accounting import Budget, Unit
from margrave.domain import Domain
from margrave.marginal import HalfSpace
from margrave.mechanisms.common import PlannedMeasurement
from margrave.models import Fit
from margrave.models.particles import ConstraintPenalty
from margrave.privacy import Gaussian


def any_in(fit: Fit) -> bool:
    """Return whether a fit's penalties have constraints."""
    return any(isinstance(p, ConstraintPenalty) for p in fit.penalties)


def of_fit(fit: Fit, domain: Domain) -> list[HalfSpace]:
    """Return the shares that the constraints among a fit's penalties are about, each once."""
    constraints = (p for p in fit.penalties if isinstance(p, ConstraintPenalty))
    questions = (c.question(domain) for c in constraints)
    return list(dict.fromkeys(q for q in questions if q is not None))


def split(rho: Fraction, part: Fraction, queries: int) -> tuple[Fraction, Fraction]:
    """Return what each of the shares gets of a budget, and what all marginals get together."""
    return (rho * part / queries, rho * (1 - part)) if queries else (rho, rho)


def planned(share: HalfSpace, rho: Fraction, unit: Unit) -> PlannedMeasurement:
    """Return the plan to measure one share for rho."""
    scale = Gaussian.scale_for(rho, unit, share) / share.max_contribution
    return PlannedMeasurement(f"share: {share.describe}", [share.clique], 1, scale, single=True)


def fraction_of_paper(epsilon: float = 2.5, delta: float = 1e-5) -> Fraction:
    """Return the ``constraint_fraction`` that leaves the marginals what the paper leaves them.

    The paper measures the share with (epsilon / 5, delta / 5), the marginals with the other four
    fifths, and adds them up. The marginals then get rho(0.8 epsilon, 0.8 delta) of
    rho(epsilon, delta), and the shares get the rest here. In the paper most of that rest is lost to
    the addition.

    Args:
        epsilon: The whole epsilon; 2.5 in the paper's experiment.
        delta: The whole delta; 1e-5 there.

    Returns:
        The part, 0.345 for the paper's experiment.

    Raises:
        InputError: If epsilon or delta is out of range (``Budget.approx``).

    Privacy:
        None spent.

    Example:
        >>> round(float(fraction_of_paper()), 3)
        0.345

    References:
        Donhauser, Abad, Hulkund, Yang (2024), Appendix B.
    """
    return 1 - Budget.approx(0.8 * epsilon, 0.8 * delta).rho / Budget.approx(epsilon, delta).rho
