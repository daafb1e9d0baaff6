"""Marginals, the cliques they belong to, and the counting of codes."""

from margrave.marginal.cliques import closure, covers, maximal
from margrave.marginal.linear import TOTAL, LinearQuery, Queries
from margrave.marginal.marginal import Marginal, project_array
from margrave.marginal.query import IDENTITY, Query

__all__ = [
    "IDENTITY",
    "TOTAL",
    "LinearQuery",
    "Marginal",
    "Queries",
    "Query",
    "closure",
    "covers",
    "maximal",
    "project_array",
]
