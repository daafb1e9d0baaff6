"""Charts as SVG: columns with their noise, real and synthetic side by side, grids of pairs, and the risk of an attack.

Each function returns ``markupsafe.Markup`` with a title and a description, for pages and for readers of a screen.
Colors come from the style of the page.
"""

from margrave.report.charts.columns import bars, overlay
from margrave.report.charts.grids import heat, matrix, pair_map
from margrave.report.charts.risk import risk

__all__ = ["bars", "heat", "matrix", "overlay", "pair_map", "risk"]
