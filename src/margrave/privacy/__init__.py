"""The gate between rows and everything else: units, budgets, the ledger, exact noise and private choice."""

from margrave.privacy.budget import Budget
from margrave.privacy.gate import Private
from margrave.privacy.ledger import Ledger
from margrave.privacy.ledger_file import LedgerFile
from margrave.privacy.noise import Gaussian, Randomness, SeededRandomness, SystemRandomness
from margrave.privacy.opening import protect
from margrave.privacy.policy import Policy
from margrave.privacy.scores import GridScores, Improvement, MarginalGap, QueryGap, Score
from margrave.privacy.unit import (
    AddRemovePerson,
    AddRemoveRow,
    ReplacePerson,
    ReplaceRow,
    Sensitivity,
    Unit,
    parse_unit,
    sensitivity,
    size_is_public,
)

__all__ = [
    "AddRemovePerson",
    "AddRemoveRow",
    "Budget",
    "Gaussian",
    "GridScores",
    "Improvement",
    "Ledger",
    "LedgerFile",
    "MarginalGap",
    "Policy",
    "Private",
    "QueryGap",
    "Randomness",
    "ReplacePerson",
    "ReplaceRow",
    "Score",
    "SeededRandomness",
    "Sensitivity",
    "SystemRandomness",
    "Unit",
    "parse_unit",
    "protect",
    "sensitivity",
    "size_is_public",
]
