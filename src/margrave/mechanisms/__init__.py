"""Mechanisms: one paper, one file. Each asks the gate, fits, and returns a release."""

from __future__ import annotations

from collections.abc import Mapping

from margrave.mechanisms.aim import AIM
from margrave.mechanisms.common import Mechanism, Progress
from margrave.mechanisms.dual_query import DualQuery
from margrave.mechanisms.fem import FEM
from margrave.mechanisms.gaussian import GaussianMechanism
from margrave.mechanisms.gem import GEM, GEMPub
from margrave.mechanisms.gem_aim import GEMAIM
from margrave.mechanisms.independent import Independent
from margrave.mechanisms.jam import JAM
from margrave.mechanisms.jam_pgm import JAMPGM
from margrave.mechanisms.mst import MST
from margrave.mechanisms.mwem import MWEM
from margrave.mechanisms.mwem_pgm import MWEMPGM
from margrave.mechanisms.napsu_mq import NAPSUMQ
from margrave.mechanisms.pep import PEP
from margrave.mechanisms.pep_pub import PEPPub
from margrave.mechanisms.pmw_pub import PMWPub
from margrave.mechanisms.private_gsd import PrivateGSD
from margrave.mechanisms.privpgd import PrivPGD
from margrave.mechanisms.rap import RAP

MECHANISMS: Mapping[str, type[Mechanism]] = {
    "aim": AIM,
    "mst": MST,
    "mwem-pgm": MWEMPGM,
    "napsu-mq": NAPSUMQ,
    "independent": Independent,
    "gaussian": GaussianMechanism,
    "mwem": MWEM,
    "pep": PEP,
    "pmw-pub": PMWPub,
    "pep-pub": PEPPub,
    "jam": JAM,
    "jam-pgm": JAMPGM,
    "gem": GEM,
    "gem-pub": GEMPub,
    "gem-aim": GEMAIM,
    "rap": RAP,
    "private-gsd": PrivateGSD,
    "privpgd": PrivPGD,
    "dual-query": DualQuery,
    "fem": FEM,
}
"""Every mechanism by the name the command line uses."""

__all__ = [
    "AIM",
    "DualQuery",
    "FEM",
    "GEM",
    "GEMAIM",
    "GEMPub",
    "JAM",
    "JAMPGM",
    "MECHANISMS",
    "MST",
    "MWEM",
    "MWEMPGM",
    "NAPSUMQ",
    "PEP",
    "RAP",
    "GaussianMechanism",
    "Independent",
    "Mechanism",
    "PEPPub",
    "PMWPub",
    "PrivateGSD",
    "PrivPGD",
    "Progress",
]
