"""Code books: schemas from what data providers publish about their tables, and schemas in other programs' forms."""

from margrave.codebooks.export import Form, export_schema
from margrave.codebooks.grammar import schema_grammar
from margrave.codebooks.read import read_code_book
from margrave.codebooks.statistical import has_labels

__all__ = ["Form", "export_schema", "has_labels", "read_code_book", "schema_grammar"]
