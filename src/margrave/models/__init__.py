"""Distribution families: what a fit turns a transcript into. They never see rows."""

from __future__ import annotations

from margrave.models.answers import Answers, AnswersFit
from margrave.models.best_response import BestResponse, Objective
from margrave.models.copula import GaussianCopulaFit
from margrave.models.cost import CELLS_PER_MB, Cost, FitLoad
from margrave.models.families import (
    FAMILIES,
    FIT_CATALOG,
    FITS,
    Family,
    family_of,
    fit_named,
    register_family,
)
from margrave.models.genetic import GeneticFit
from margrave.models.graphical import GraphicalFit, GraphicalModel
from margrave.models.grem import GReMFit
from margrave.models.gum import GUMFit
from margrave.models.latent_classes import LatentClassFit, LatentClassModel
from margrave.models.least_squares import LeastSquaresAnswers, LeastSquaresFit
from margrave.models.local_consistency import LocalConsistencyFit, PseudoMarginals
from margrave.models.max_entropy import MaxEntropyFit, MaxEntropyModel
from margrave.models.merged_codes import MergedCodesModel
from margrave.models.mixture import AnnealedFit, GeneratorFit, MixtureModel, RelaxedFit
from margrave.models.network import NetworkFit, NetworkModel
from margrave.models.no_model import NoModel
from margrave.models.particles import ParticleFit
from margrave.models.projected_error import projected_error
from margrave.models.protocol import (
    MAX_MODEL_MB,
    Answerer,
    Fit,
    FittedAnswers,
    Model,
    ModelState,
    Needs,
    SimpleFit,
)
from margrave.models.weights import (
    EntropyProjectionFit,
    MultiplicativeWeightsFit,
    WeightsModel,
    empirical,
)

__all__ = [
    "CELLS_PER_MB",
    "FAMILIES",
    "FITS",
    "FIT_CATALOG",
    "MAX_MODEL_MB",
    "AnnealedFit",
    "Answerer",
    "Answers",
    "AnswersFit",
    "BestResponse",
    "Cost",
    "EntropyProjectionFit",
    "FittedAnswers",
    "Family",
    "Fit",
    "FitLoad",
    "GReMFit",
    "GUMFit",
    "GaussianCopulaFit",
    "GeneratorFit",
    "GeneticFit",
    "GraphicalFit",
    "GraphicalModel",
    "LatentClassFit",
    "LatentClassModel",
    "LeastSquaresAnswers",
    "LeastSquaresFit",
    "LocalConsistencyFit",
    "MaxEntropyFit",
    "MaxEntropyModel",
    "MergedCodesModel",
    "MixtureModel",
    "Model",
    "ModelState",
    "MultiplicativeWeightsFit",
    "Needs",
    "NetworkFit",
    "NetworkModel",
    "NoModel",
    "Objective",
    "ParticleFit",
    "PseudoMarginals",
    "RelaxedFit",
    "SimpleFit",
    "WeightsModel",
    "empirical",
    "family_of",
    "fit_named",
    "projected_error",
    "register_family",
]
