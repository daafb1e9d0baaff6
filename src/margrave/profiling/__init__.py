"""Drafts of schemas and checks of tables. They read rows: the results are for the custodian alone.

**Privacy:** NOT private.
"""

from margrave.profiling.check import check_table
from margrave.profiling.draft import draft_schema
from margrave.profiling.proposals import taken_as_public
from margrave.profiling.relations import ConstraintQuestion, constraint_questions, with_questions
from margrave.profiling.time_pairs import backward_rows

__all__ = [
    "ConstraintQuestion",
    "backward_rows",
    "check_table",
    "constraint_questions",
    "draft_schema",
    "taken_as_public",
    "with_questions",
]
