"""Bayesian networks: each column given its parents, in an order."""

from margrave.models.network.fit import NetworkFit
from margrave.models.network.model import ConditionalTable, NetworkModel, load_network

__all__ = ["ConditionalTable", "NetworkFit", "NetworkModel", "load_network"]
