"""Mechanisms: one paper, one file. Each asks the gate, fits, and returns a release."""

from __future__ import annotations

from collections.abc import Mapping

from margrave.domain import Domain
from margrave.mechanisms.aim import AIM
from margrave.mechanisms.aim_mixture import AIMMixture
from margrave.mechanisms.aim_pub import AIMPub
from margrave.mechanisms.common import Mechanism, Progress
from margrave.mechanisms.dual_query import DualQuery
from margrave.mechanisms.fem import FEM
from margrave.mechanisms.forests import Forests
from margrave.mechanisms.gaussian import GaussianMechanism
from margrave.mechanisms.gem import GEM, GEMPub
from margrave.mechanisms.hdmm import HDMM
from margrave.mechanisms.independent import Independent
from margrave.mechanisms.jam_pgm import JAMPGM
from margrave.mechanisms.mst import MST
from margrave.mechanisms.mwem import MWEM
from margrave.mechanisms.mwem_pgm import MWEMPGM
from margrave.mechanisms.napsu_mq import NAPSUMQ
from margrave.mechanisms.pep import PEP
from margrave.mechanisms.pep_pub import PEPPub
from margrave.mechanisms.pmw_pub import PMWPub
from margrave.mechanisms.private_gsd import PrivateGSD
from margrave.mechanisms.privbayes import PrivBayes
from margrave.mechanisms.privlcm import PrivLCM
from margrave.mechanisms.privmrf import PrivMRF
from margrave.mechanisms.privpgd import PrivPGD
from margrave.mechanisms.privsyn import PrivSyn
from margrave.mechanisms.rap import RAP
from margrave.mechanisms.rap_plus import RAPPlus
from margrave.mechanisms.repeated import Repeated
from margrave.mechanisms.residual_planner import ResidualPlanner
from margrave.plugins import MECHANISM_GROUP, Catalog, class_fault

#: Every built-in mechanism by its name on the command line.
MECHANISMS: Mapping[str, type[Mechanism]] = {
    kind.name: kind
    for kind in (
        AIM,
        MST,
        Forests,
        PrivMRF,
        PrivBayes,
        PrivSyn,
        MWEMPGM,
        AIMMixture,
        NAPSUMQ,
        PrivLCM,
        Repeated,
        PrivPGD,
        PrivateGSD,
        Independent,
        GaussianMechanism,
        ResidualPlanner,
        HDMM,
        MWEM,
        PEP,
        GEM,
        RAP,
        RAPPlus,
        DualQuery,
        FEM,
        AIMPub,
        JAMPGM,
        GEMPub,
        PMWPub,
        PEPPub,
    )
}


def _fault(name: str, value: object) -> str:
    stated = getattr(value, "name", None)
    return class_fault(Mechanism, value) or (
        "" if stated == name else f"the class states the name {stated!r}"
    )


#: The built-in mechanisms, and those of other distributions.
MECHANISM_CATALOG: Catalog[type[Mechanism]] = Catalog(
    "mechanism", MECHANISM_GROUP, MECHANISMS, _fault, "AIM()"
)


def default_mechanism(domain: Domain) -> type[Mechanism]:
    """Return the default for a run without a workload or purposes: AIM, or Forests for wide tables."""
    max_aim_columns = 50
    return AIM if len(domain) <= max_aim_columns else Forests


__all__ = [
    "AIM",
    "DualQuery",
    "FEM",
    "Forests",
    "GEM",
    "HDMM",
    "AIMMixture",
    "GEMPub",
    "AIMPub",
    "JAMPGM",
    "MECHANISMS",
    "MECHANISM_CATALOG",
    "MST",
    "MWEM",
    "MWEMPGM",
    "NAPSUMQ",
    "PEP",
    "RAP",
    "RAPPlus",
    "GaussianMechanism",
    "Independent",
    "Mechanism",
    "PEPPub",
    "PMWPub",
    "PrivBayes",
    "PrivLCM",
    "PrivMRF",
    "PrivateGSD",
    "PrivPGD",
    "PrivSyn",
    "Progress",
    "Repeated",
    "ResidualPlanner",
]
