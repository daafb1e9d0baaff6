"""The published result: rows on demand, marginals with error bars, and the evidence of the privacy
loss.
"""

from margrave.release.catalog_entry import croissant
from margrave.release.conditional import Conditional
from margrave.release.draws import Draws
from margrave.release.measurement_tables import measurement_table, measurement_tables
from margrave.release.number import ColumnNumber
from margrave.release.opening import verify
from margrave.release.release import Release
from margrave.release.verification import Verification

__all__ = [
    "ColumnNumber",
    "Conditional",
    "Draws",
    "Release",
    "Verification",
    "croissant",
    "measurement_table",
    "measurement_tables",
    "verify",
]
