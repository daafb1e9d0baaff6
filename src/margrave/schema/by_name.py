"""The columns of a schema by their names, and answers to names that a schema does not have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NoReturn

from margrave._other_names import AnswersNames, in_our_words
from margrave.domain import Domain
from margrave.errors import did_you_mean
from margrave.schema.column import Column


class _OwnNames(type):
    """The type of a schema class, which answers names of other libraries."""

    if not TYPE_CHECKING:  # which would take every name for one of a schema

        def __getattr__(cls, name: str) -> NoReturn:
            hint = "" if name.startswith("_") else _hint_of(name, dir(cls))
            raise AttributeError(
                f"type object {cls.__name__!r} has no attribute {name!r}.{hint and f' {hint}'}"
            )


class ByName(AnswersNames, metaclass=_OwnNames):
    """A schema as a mapping of the names of its columns to the columns."""

    columns: Sequence[Column]

    if TYPE_CHECKING:

        @cached_property
        def domain(self) -> Domain: ...

    def column(self, name: str) -> Column:
        """Return a column by its name. ``schema["age"]`` is the same."""
        return self.columns[self.domain.index(name)]

    __getitem__ = column

    def __iter__(self) -> Iterator[str]:
        return iter(self.domain)

    def _hint(self, name: str) -> str:
        return _hint_of(name, dir(type(self)))


def _hint_of(name: str, known: list[str]) -> str:
    public = [n for n in known if not n.startswith("_")]
    return in_our_words("Schema", name) or did_you_mean(name, public).strip()
