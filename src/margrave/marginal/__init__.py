"""Marginals, the cliques they belong to, and the counting of codes."""

from margrave.marginal.cliques import closure, covers, maximal
from margrave.marginal.marginal import Marginal, project_array
from margrave.marginal.query import IDENTITY, Query

__all__ = ["IDENTITY", "Marginal", "Query", "closure", "covers", "maximal", "project_array"]
