"""What a custodian publishes: synthetic rows on demand, marginals, and the evidence of what was spent."""

from margrave.release.release import Conditional, Release

__all__ = ["Conditional", "Release"]
