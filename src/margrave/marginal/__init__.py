"""Marginals, the cliques they belong to, and the counting of codes."""

from margrave.marginal.cliques import closure, covers, maximal
from margrave.marginal.half_space import HalfSpace
from margrave.marginal.linear import TOTAL, LinearQuery, Queries
from margrave.marginal.marginal import Marginal, project_array
from margrave.marginal.query import IDENTITY, Query

SingleQuery = LinearQuery | HalfSpace
"""A query whose answer is one whole number."""

__all__ = [
    "IDENTITY",
    "TOTAL",
    "HalfSpace",
    "LinearQuery",
    "Marginal",
    "Queries",
    "Query",
    "SingleQuery",
    "closure",
    "covers",
    "maximal",
    "project_array",
]
