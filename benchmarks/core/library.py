"""All that the benchmarks take from margrave: a name that moves there is changed here."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

import margrave
from margrave import (
    AddRemovePerson,
    AddRemoveRow,
    Budget,
    PublicTable,
    Release,
    ReplaceRow,
    Schema,
    Workload,
    protect,
    read_table,
    synthesize,
)
from margrave.account import Account, Debit
from margrave.accounting import Unit
from margrave.bounds import Bound
from margrave.bounds.gls import Unbiased
from margrave.bounds.matching_subsample import Subsampling
from margrave.data import MemoryTable, Table
from margrave.domain import Codes, Domain
from margrave.errors import MargraveError, ModelTooLargeError
from margrave.evaluation import evaluate, geometry_errors
from margrave.inference import OLS, Analysis, Estimate, Fitted, Logistic, analyze, combine
from margrave.inference.fitted import estimable
from margrave.learning import GateColumn, LearnedNumber, learn_schema
from margrave.learning.shares import LearningShares, column_share
from margrave.learning_stage import budget_for
from margrave.marginal import HalfSpace, LinearQuery
from margrave.marginal.counting import count_cliques
from margrave.marginal.half_space import centers
from margrave.mechanisms import (
    AIM,
    FEM,
    GEM,
    HDMM,
    JAMPGM,
    MST,
    MWEM,
    MWEMPGM,
    NAPSUMQ,
    PEP,
    RAP,
    AIMMixture,
    AIMPub,
    DualQuery,
    Forests,
    GaussianMechanism,
    GEMPub,
    Independent,
    Mechanism,
    PEPPub,
    PMWPub,
    PrivateGSD,
    PrivBayes,
    PrivLCM,
    PrivMRF,
    PrivPGD,
    PrivSyn,
    ResidualPlanner,
)
from margrave.models import (
    Answerer,
    AnswersFit,
    EntropyProjectionFit,
    Fit,
    GeneratorFit,
    GeneticFit,
    GraphicalFit,
    MaxEntropyFit,
    Model,
    ParticleFit,
    RelaxedFit,
)
from margrave.models.particles import HideShare
from margrave.models.progress import ShareProgress, no_progress
from margrave.privacy import Gaussian
from margrave.profiling import draft_schema
from margrave.provenance import Provenance
from margrave.release.bootstrap import Bootstrap, fit_of
from margrave.run import Run
from margrave.schema import Allowed, Learn
from margrave.transcript import Measurement, PublicTotal, Transcript

VERSION: str = margrave.__version__


def workload_error(real: Codes, synthetic: Codes, cliques: Iterable[tuple[str, ...]]) -> float:
    """Return the mean over marginals of Σ|p_real − p_synthetic|: 0 is equal, 2 is disjoint."""
    cliques = list(cliques)
    left, right = count_cliques(real, cliques), count_cliques(synthetic, cliques)
    gaps = [np.abs(left[c] / len(real) - right[c] / len(synthetic)).sum() for c in cliques]
    return float(np.mean(gaps))
