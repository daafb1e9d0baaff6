"""Drafts of schemas and checks of tables. They read rows: the results are for the custodian alone.

**Privacy:** NOT private.
"""

from margrave.profiling.check import check_table
from margrave.profiling.draft import draft_schema
from margrave.profiling.proposals import taken_as_public
from margrave.profiling.relations import ConstraintQuestion, constraint_questions, with_questions

__all__ = [
    "ConstraintQuestion",
    "check_table",
    "constraint_questions",
    "draft_schema",
    "taken_as_public",
    "with_questions",
]
