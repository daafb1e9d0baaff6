"""Marginals, the cliques they belong to, and the counting of codes."""

from margrave.marginal.axes import project_array
from margrave.marginal.cliques import closure, covers, maximal
from margrave.marginal.half_space import HalfSpace
from margrave.marginal.linear_map import IDENTITY, LinearMap
from margrave.marginal.linear_queries import TOTAL, LinearQuery, QueryFamily
from margrave.marginal.marginal import Marginal

#: A query whose answer is one whole number.
SingleQuery = LinearQuery | HalfSpace

__all__ = [
    "IDENTITY",
    "TOTAL",
    "HalfSpace",
    "LinearQuery",
    "Marginal",
    "QueryFamily",
    "LinearMap",
    "SingleQuery",
    "closure",
    "covers",
    "maximal",
    "project_array",
]
