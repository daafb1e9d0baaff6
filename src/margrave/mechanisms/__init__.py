"""Mechanisms: one paper, one file. Each asks the gate, fits, and returns a release."""

from __future__ import annotations

from collections.abc import Mapping

from margrave.mechanisms.aim import AIM
from margrave.mechanisms.common import Mechanism, Progress
from margrave.mechanisms.dual_query import DualQuery
from margrave.mechanisms.fem import FEM
from margrave.mechanisms.gaussian import GaussianMechanism
from margrave.mechanisms.independent import Independent
from margrave.mechanisms.mst import MST
from margrave.mechanisms.mwem_pgm import MWEMPGM
from margrave.mechanisms.napsu_mq import NAPSUMQ

MECHANISMS: Mapping[str, type[Mechanism]] = {
    "aim": AIM,
    "mst": MST,
    "mwem-pgm": MWEMPGM,
    "napsu-mq": NAPSUMQ,
    "independent": Independent,
    "gaussian": GaussianMechanism,
    "dual-query": DualQuery,
    "fem": FEM,
}
"""Every mechanism by the name the command line uses."""

__all__ = [
    "AIM",
    "DualQuery",
    "FEM",
    "MECHANISMS",
    "MST",
    "MWEMPGM",
    "NAPSUMQ",
    "GaussianMechanism",
    "Independent",
    "Mechanism",
    "Progress",
]
