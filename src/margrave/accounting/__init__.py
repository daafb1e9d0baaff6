"""Budgets, units of privacy, the accountant, and the files that record what was spent."""

from margrave.accounting.accountant import Accountant
from margrave.accounting.budget import Budget
from margrave.accounting.ledger import Ledger
from margrave.accounting.policy import Policy
from margrave.accounting.sensitivities import Sensitivity, sensitivity
from margrave.unit import (
    AddRemovePerson,
    AddRemoveRow,
    ReplacePerson,
    ReplaceRow,
    Unit,
    parse_unit,
    size_is_public,
)

__all__ = [
    "AddRemovePerson",
    "AddRemoveRow",
    "Budget",
    "Accountant",
    "Ledger",
    "Policy",
    "ReplacePerson",
    "ReplaceRow",
    "Sensitivity",
    "Unit",
    "parse_unit",
    "sensitivity",
    "size_is_public",
]
