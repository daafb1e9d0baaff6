"""Fit and sample, as in scikit-learn, over ``synthesize`` and ``Release.sample``."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from typing import Any, Literal, Self

from margrave._other_names import AnswersNames, in_our_words
from margrave.api import synthesize
from margrave.error_sanitizer import hide_table, reveal_table, short_errors
from margrave.errors import InputError, MargraveError, UnfinishedError, did_you_mean
from margrave.frame_kinds import Kind
from margrave.profiling.draft import accepted_draft
from margrave.release import Release
from margrave.release.conditions import Condition
from margrave.schema import Schema, schema_of
from margrave.sealed import registered_schema
from margrave.types import Attribute

State = Literal["not fitted", "fitted", "the fit failed"]


class Synthesizer(AnswersNames):
    """A synthesizer with ``fit`` and ``sample``. A fit spends the budget, so there is one.

    Args:
        schema: The confirmed schema, or its file; None with ``accept_draft``.
        epsilon: At most 10,000.
        delta: At most 0.01.
        accept_draft: Take what ``draft_schema`` does as public, such as names and kinds of columns, and learn other
            bounds and categories under the budget.
        options: Those of ``margrave.synthesize``, such as ``mechanism="mst"``. Several synthesizers
            of one data set add up: name its ``ledger``.

    Raises:
        InputError: There is neither a schema nor ``accept_draft``, or there are both; ``synthesize`` has no option of a
            name; or a sealed run would draft a schema.
        SchemaError: The schema cannot be read, or is not registered for a sealed run.

    Example:
        >>> import pyarrow as pa
        >>> schema = Schema.coded({"age": 3, "sex": 2})
        >>> made = Synthesizer(schema, epsilon=1.0, delta=1e-9, mechanism="independent")
        >>> made.fit(pa.table({"age": [0, 1, 2], "sex": [0, 1, 1]})).sample(5).num_rows
        5
    """

    def __init__(
        self,
        schema: Schema | str | Path | None = None,
        *,
        epsilon: float,
        delta: float,
        accept_draft: bool = False,
        **options: Any,
    ) -> None:
        check_options(options)
        if schema is None and not accept_draft:
            raise InputError(
                "A synthesizer needs either a schema or accept_draft=True.",
                remedy="Draft a schema with margrave.draft_schema; or give accept_draft=True, which takes the names"
                " and kinds of the columns as public and learns bounds and categories under the budget.",
            )
        if schema is not None and accept_draft:
            raise InputError(
                "The schema and accept_draft are both given, and a synthesizer has one schema.",
                remedy="Leave out accept_draft to fit with the schema, or the schema to fit with a draft.",
            )
        preflight = options.get("preflight", "custodian")
        if accept_draft and preflight != "custodian":
            raise InputError(
                f"accept_draft reads the rows for the custodian, and preflight is {preflight!r}.",
                remedy="Give the schema that the custodian registered, or leave out preflight.",
            )
        self.schema: Schema | None = None
        if preflight == "sealed" and schema is not None:
            books = options.get("ledger"), options.get("dataset")
            self.schema = registered_schema(schema, *books)
        elif schema is not None:
            self.schema = schema_of(schema)
        self._options = {"epsilon": epsilon, "delta": delta, **options}
        self._release: Release | None = None
        self._state: State = "not fitted"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._state})"

    def _hint(self, name: str) -> str:
        if name in dir(Release):
            return f"It is synthesizer.release.{name}."
        own = [n for n in dir(self) if not n.startswith("_")]
        return in_our_words("Release", name) or did_you_mean(name, own).strip()

    @property
    def release(self) -> Release:
        """The release, with the certificate, bounds and numbers.

        After a fit that failed, it is the release of the ``UnfinishedError``, with every noisy answer and no model.

        Raises:
            InputError: ``fit`` has not run, or left no release.
        """
        if self._release is not None:
            return self._release
        if self._state == "the fit failed":
            raise _failed()
        raise InputError("The synthesizer is not fitted.", remedy="Call fit(table) first.")

    @short_errors
    def fit(self, table: Any) -> Self:
        """Make the release of a sensitive table, and return the synthesizer.

        Raises:
            InputError: It was fitted already, or an option is wrong.
            MargraveError: As ``margrave.synthesize``.

        Warns:
            CustodianWarning: As ``margrave.synthesize``, and what an accepted draft takes as public with its questions;
                or what ``on_custodian`` would get.

        Privacy:
            Spends at most what (``epsilon``, ``delta``) allow, once.
        """
        table = hide_table(table)
        if self._state == "the fit failed":
            raise _failed()
        if self._state == "fitted":
            raise InputError(
                "The synthesizer was fitted already, and another fit would spend the budget again.",
                remedy="Use its release; or make another synthesizer, whose budget adds to this one.",
            )
        schema = self._schema_for(table)
        self._state = "the fit failed"
        try:
            self._release = synthesize(table, schema, **self._options)
        except UnfinishedError as error:
            self._release = error.release
            raise
        except MargraveError:  # refused before it spent, or its journal has what it spent
            self._state = "not fitted"
            raise
        self._state = "fitted"
        return self

    @short_errors
    def sample(
        self,
        num_rows: int | None = None,
        *,
        where: Mapping[Attribute, Condition] | None = None,
        as_: Kind | None = None,
        seed: int | None = None,
    ) -> Any:
        """Return synthetic rows as the kind of frame that was fitted.

        The schema decides the columns, their order and their types, so that no type depends on the rows.

        Args:
            num_rows: Number of rows; by default the estimated row count of the real table, or of its part in ``where``.
            where: As in ``Release.sample``.
            as_: As in ``Release.sample``.
            seed: Makes the rows repeatable.

        Raises:
            InputError: ``fit`` has not run, or an argument is wrong.
            ReleaseError: The fit failed, so that there is no model.

        Privacy:
            None spent.
        """
        return self.release.sample(num_rows, where=where, as_=as_, seed=seed)

    @short_errors
    def save(self, filepath: str | Path, *, overwrite: bool = False) -> None:
        """Write the release to one file, which ``load`` and ``Release.load`` read.

        Args:
            filepath: The file; its name ends in ``.margrave``.
            overwrite: Whether to replace an existing file.

        Raises:
            InputError: ``fit`` has not run, the file exists, or its name ends otherwise.

        Privacy:
            None spent.
        """
        self.release.save(filepath, overwrite=overwrite)

    @classmethod
    def load(cls, filepath: str | Path) -> Self:
        """Return the fitted synthesizer of a release, whose rows are Arrow by default.

        Args:
            filepath: The file of a release.

        Raises:
            ReleaseError: As ``Release.load``.

        Privacy:
            None spent.
        """
        made = cls.__new__(cls)
        made._release = Release.load(filepath)
        made.schema, made._state, made._options = made._release.schema, "fitted", {}
        return made

    def _schema_for(self, table: Any) -> Schema:
        if self.schema is not None:
            return self.schema
        return accepted_draft(reveal_table(table), self._options.get("on_custodian"))


def check_options(options: Mapping[str, Any]) -> None:
    """Raise ``InputError`` for an option that ``synthesize`` does not have beside those of a synthesizer."""
    own = ("table", "schema", "epsilon", "delta")
    names = [name for name in signature(synthesize).parameters if name not in own]
    for name in (n for n in options if n not in names):
        ours = in_our_words("argument", name)
        hint = did_you_mean(ours if ours in names else name, names).strip()
        raise InputError(
            f"A synthesizer has no argument {name!r}.",
            remedy=hint or f"Its options are: {', '.join(names)}.",
        )


def _failed() -> InputError:
    return InputError(
        "The fit of the synthesizer failed, and may have spent its budget.",
        remedy="Make another synthesizer: with the journal of this one and resume=True it pays nothing twice, and"
        " otherwise its budget adds to this one.",
    )
