"""Learning: bounds, bins and categories from noisy answers about raw columns.

Everything here is a function of noisy answers and of public values.
"""

from margrave.learning.categories import advice_on, categories_of
from margrave.learning.learn import Learning, learn_schema
from margrave.learning.noisy_column import GateColumn, NoisyColumn
from margrave.learning.number import LearnedNumber, learn_number

__all__ = [
    "GateColumn",
    "LearnedNumber",
    "Learning",
    "NoisyColumn",
    "advice_on",
    "categories_of",
    "learn_number",
    "learn_schema",
]
