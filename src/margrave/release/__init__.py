"""What a custodian publishes: rows on demand, marginals with error bars, and the evidence of what was spent."""

from margrave.release.bounds import Bound, Intervals
from margrave.release.draws import Draws
from margrave.release.price import Price
from margrave.release.release import Conditional, Release, verify
from margrave.release.verification import Verification

__all__ = ["Bound", "Conditional", "Draws", "Intervals", "Price", "Release", "Verification", "verify"]
