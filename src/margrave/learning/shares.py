"""Shares of the budget that learning takes."""

from __future__ import annotations

from fractions import Fraction

from margrave.schema.learn import Learn


class LearningShares:
    """Shares of the budget for the steps of learning.

    Attributes:
        learning: Share of the whole budget for all columns to learn.
        sums: Share of that for clipped sums.
        decimals, extent, zoom, second_zoom: Shares of a column's part for its unit, its range, and up to two zooms. Its
            tree gets the rest.
    """

    learning: Fraction = Fraction(13, 100)
    sums: Fraction = Fraction(3, 13)
    decimals: Fraction = Fraction(2, 25)
    extent: Fraction = Fraction(1, 4)
    zoom: Fraction = Fraction(1, 5)
    second_zoom: Fraction = Fraction(1, 10)


def column_share(rho: Fraction, columns: int) -> Fraction:
    """Return the part of each column to learn, out of what all of them get together."""
    return rho * (1 - LearningShares.sums) / columns


def least_tree_share(column: Learn) -> Fraction:
    """Return the share of a column's part that its tree gets if all steps before it are taken."""
    left = 1 - LearningShares.extent - LearningShares.zoom
    if column.of == "real":
        left -= LearningShares.decimals
    return left - LearningShares.second_zoom if column.is_moment else left
