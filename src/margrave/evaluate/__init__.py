"""Real against synthetic: for the custodian's eyes only. Nothing here is private, and none of it enters a release."""

from margrave.evaluate.evaluation import WARNING, ColumnSummary, Evaluation, evaluate

__all__ = ["WARNING", "ColumnSummary", "Evaluation", "evaluate"]
