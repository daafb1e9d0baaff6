"""margrave: synthetic copies of sensitive tables under differential privacy.

Importing the package loads nothing heavy: each name below is fetched from its module when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from margrave import inference as inference
    from margrave import models as models
    from margrave import report as report
    from margrave.accounting import (
        AddRemovePerson,
        AddRemoveRow,
        Budget,
        Ledger,
        Policy,
        ReplacePerson,
        ReplaceRow,
    )
    from margrave.api import read_public, synthesize
    from margrave.data import MemoryTable, Table, read_synthetic, read_table
    from margrave.domain import Domain
    from margrave.errors import (
        BudgetError,
        DataError,
        InputError,
        LedgerError,
        MargraveError,
        ModelTooLargeError,
        PolicyError,
        ReleaseError,
        SchemaError,
        UnfinishedError,
    )
    from margrave.evaluation import Evaluation
    from margrave.inference.results import Analysis
    from margrave.inference.run import analyze
    from margrave.marginal import HalfSpace, LinearQuery, Marginal, QueryFamily
    from margrave.mechanisms import (
        AIM,
        FEM,
        GEM,
        HDMM,
        JAMPGM,
        MECHANISMS,
        MST,
        MWEM,
        MWEMPGM,
        NAPSUMQ,
        PEP,
        RAP,
        AIMMixture,
        AIMPub,
        DualQuery,
        GaussianMechanism,
        GEMPub,
        Independent,
        PEPPub,
        PMWPub,
        PrivateGSD,
        PrivBayes,
        PrivLCM,
        PrivMRF,
        PrivPGD,
        PrivSyn,
        RAPPlus,
        ResidualPlanner,
    )
    from margrave.models.answers import AnswersFit
    from margrave.models.genetic import GeneticFit
    from margrave.models.graphical import GraphicalFit
    from margrave.models.grem import GReMFit
    from margrave.models.gum import GUMFit
    from margrave.models.latent_classes import LatentClassFit
    from margrave.models.least_squares import LeastSquaresFit
    from margrave.models.local_consistency import LocalConsistencyFit
    from margrave.models.max_entropy import MaxEntropyFit
    from margrave.models.mixture import AnnealedFit, GeneratorFit, RelaxedFit
    from margrave.models.network import NetworkFit
    from margrave.models.particles import ParticleFit
    from margrave.models.weights import EntropyProjectionFit, MultiplicativeWeightsFit
    from margrave.privacy import Gaussian, MarginalGap, Private, QueryGap, protect
    from margrave.public_table import PublicTable
    from margrave.release import Release, verify
    from margrave.run import Run
    from margrave.schema import Schema
    from margrave.transcript import Transcript
    from margrave.workload import Workload

__version__ = "0.1.0"

_HOME = {
    "read_public": "margrave.api",
    "synthesize": "margrave.api",
    "MemoryTable": "margrave.data",
    "Table": "margrave.data",
    "read_synthetic": "margrave.data",
    "read_table": "margrave.data",
    "BudgetError": "margrave.errors",
    "DataError": "margrave.errors",
    "InputError": "margrave.errors",
    "LedgerError": "margrave.errors",
    "MargraveError": "margrave.errors",
    "ModelTooLargeError": "margrave.errors",
    "PolicyError": "margrave.errors",
    "ReleaseError": "margrave.errors",
    "SchemaError": "margrave.errors",
    "UnfinishedError": "margrave.errors",
    "Evaluation": "margrave.evaluation",
    "Analysis": "margrave.inference.results",
    "analyze": "margrave.inference.run",
    "HalfSpace": "margrave.marginal",
    "LinearQuery": "margrave.marginal",
    "Marginal": "margrave.marginal",
    "QueryFamily": "margrave.marginal",
    "AIM": "margrave.mechanisms",
    "DualQuery": "margrave.mechanisms",
    "FEM": "margrave.mechanisms",
    "GEM": "margrave.mechanisms",
    "AIMMixture": "margrave.mechanisms",
    "GEMPub": "margrave.mechanisms",
    "AIMPub": "margrave.mechanisms",
    "JAMPGM": "margrave.mechanisms",
    "RAP": "margrave.mechanisms",
    "RAPPlus": "margrave.mechanisms",
    "MECHANISMS": "margrave.mechanisms",
    "MST": "margrave.mechanisms",
    "MWEM": "margrave.mechanisms",
    "MWEMPGM": "margrave.mechanisms",
    "PEP": "margrave.mechanisms",
    "PEPPub": "margrave.mechanisms",
    "PMWPub": "margrave.mechanisms",
    "PrivateGSD": "margrave.mechanisms",
    "GaussianMechanism": "margrave.mechanisms",
    "HDMM": "margrave.mechanisms",
    "ResidualPlanner": "margrave.mechanisms",
    "Independent": "margrave.mechanisms",
    "PrivBayes": "margrave.mechanisms",
    "PrivLCM": "margrave.mechanisms",
    "PrivMRF": "margrave.mechanisms",
    "PrivPGD": "margrave.mechanisms",
    "PrivSyn": "margrave.mechanisms",
    "NAPSUMQ": "margrave.mechanisms",
    "AnswersFit": "margrave.models.answers",
    "GeneticFit": "margrave.models.genetic",
    "GReMFit": "margrave.models.grem",
    "GUMFit": "margrave.models.gum",
    "GraphicalFit": "margrave.models.graphical",
    "LatentClassFit": "margrave.models.latent_classes",
    "LeastSquaresFit": "margrave.models.least_squares",
    "LocalConsistencyFit": "margrave.models.local_consistency",
    "MaxEntropyFit": "margrave.models.max_entropy",
    "GeneratorFit": "margrave.models.mixture",
    "RelaxedFit": "margrave.models.mixture",
    "AnnealedFit": "margrave.models.mixture",
    "NetworkFit": "margrave.models.network",
    "ParticleFit": "margrave.models.particles",
    "EntropyProjectionFit": "margrave.models.weights",
    "MultiplicativeWeightsFit": "margrave.models.weights",
    "AddRemovePerson": "margrave.accounting",
    "AddRemoveRow": "margrave.accounting",
    "Budget": "margrave.accounting",
    "Gaussian": "margrave.privacy",
    "Ledger": "margrave.accounting",
    "MarginalGap": "margrave.privacy",
    "Policy": "margrave.accounting",
    "Private": "margrave.privacy",
    "QueryGap": "margrave.privacy",
    "ReplacePerson": "margrave.accounting",
    "ReplaceRow": "margrave.accounting",
    "protect": "margrave.privacy",
    "PublicTable": "margrave.public_table",
    "Release": "margrave.release",
    "verify": "margrave.release",
    "Domain": "margrave.domain",
    "Run": "margrave.run",
    "Schema": "margrave.schema",
    "Transcript": "margrave.transcript",
    "Workload": "margrave.workload",
}

_PARTS = (
    "accounting",
    "bounds",
    "data",
    "domain",
    "errors",
    "evaluation",
    "inference",
    "marginal",
    "mechanisms",
    "models",
    "privacy",
    "profiling",
    "public_table",
    "release",
    "report",
    "schema",
    "transcript",
    "workload",
)
"""The parts with names of their own, as in ``margrave.privacy.SeededRandomness``."""

__all__ = [
    "AIM",
    "DualQuery",
    "FEM",
    "GEM",
    "AIMMixture",
    "AIMPub",
    "JAMPGM",
    "MECHANISMS",
    "MST",
    "MWEM",
    "MWEMPGM",
    "NAPSUMQ",
    "PEP",
    "RAP",
    "RAPPlus",
    "AddRemovePerson",
    "AddRemoveRow",
    "Analysis",
    "AnnealedFit",
    "Budget",
    "BudgetError",
    "DataError",
    "Domain",
    "EntropyProjectionFit",
    "Evaluation",
    "GEMPub",
    "Gaussian",
    "GaussianMechanism",
    "HDMM",
    "ResidualPlanner",
    "GeneratorFit",
    "AnswersFit",
    "GReMFit",
    "GUMFit",
    "GeneticFit",
    "GraphicalFit",
    "HalfSpace",
    "Independent",
    "InputError",
    "LedgerError",
    "Ledger",
    "LinearQuery",
    "Marginal",
    "MarginalGap",
    "MargraveError",
    "LatentClassFit",
    "LeastSquaresFit",
    "LocalConsistencyFit",
    "MaxEntropyFit",
    "MemoryTable",
    "ModelTooLargeError",
    "MultiplicativeWeightsFit",
    "PEPPub",
    "PMWPub",
    "NetworkFit",
    "ParticleFit",
    "Policy",
    "PolicyError",
    "PrivBayes",
    "PrivLCM",
    "PrivMRF",
    "PrivPGD",
    "PrivSyn",
    "Private",
    "PrivateGSD",
    "PublicTable",
    "QueryFamily",
    "QueryGap",
    "RelaxedFit",
    "Release",
    "ReleaseError",
    "ReplacePerson",
    "ReplaceRow",
    "Run",
    "Schema",
    "SchemaError",
    "Table",
    "Transcript",
    "UnfinishedError",
    "Workload",
    "analyze",
    "protect",
    "read_public",
    "read_synthetic",
    "read_table",
    "synthesize",
    "verify",
]


def __getattr__(name: str) -> object:
    """Fetch a public name from the module it lives in, or a part of the package (PEP 562)."""
    if name in _PARTS:
        return import_module(f"margrave.{name}")
    try:
        home = _HOME[name]
    except KeyError:
        raise AttributeError(f"module 'margrave' has no attribute {name!r}") from None
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, *_PARTS})
