"""Graphical models on junction trees: Private-PGM, on an engine of our own."""

from margrave.models.graphical.fit import GraphicalFit
from margrave.models.graphical.junction_tree import JunctionTree
from margrave.models.graphical.model import GraphicalModel, load_graphical

__all__ = ["GraphicalFit", "GraphicalModel", "JunctionTree", "load_graphical"]
