"""Fit and sample, as in scikit-learn, over ``synthesize`` and ``Release.sample``."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from margrave.api import synthesize
from margrave.error_sanitizer import hide_table, reveal_table, short_errors
from margrave.errors import InputError, MargraveError, UnfinishedError
from margrave.profiling import draft_schema
from margrave.release import Release
from margrave.schema import Schema, schema_of


class Synthesizer:
    """A synthesizer with ``fit`` and ``sample``. A fit spends the budget, so there is one.

    Args:
        schema: The confirmed schema, or its file; None with ``accept_draft``.
        epsilon: At most 10,000.
        delta: At most 0.01.
        accept_draft: Take the names and kinds of the table's columns as public, and learn bounds and
            categories under the budget.
        options: Those of ``margrave.synthesize``, such as ``mechanism="mst"``. Several synthesizers
            of one data set add up: name its ``ledger``.

    Raises:
        InputError: There is neither a schema nor ``accept_draft``, or there are both.

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
        if (schema is None) != bool(accept_draft):
            raise InputError(
                "A synthesizer needs either a schema or accept_draft=True.",
                remedy="Draft a schema with margrave.draft_schema; or give accept_draft=True, which takes the names"
                " and kinds of the columns as public and learns bounds and categories under the budget.",
            )
        self.schema = None if schema is None else schema_of(schema)
        self._options = {"epsilon": epsilon, "delta": delta, **options}
        self._release: Release | None = None
        self._spent = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'fitted' if self._spent else 'not fitted'})"

    @property
    def release(self) -> Release:
        """The release, with the certificate, bounds and numbers.

        Raises:
            InputError: ``fit`` has not run.
        """
        if self._release is None:
            raise InputError("The synthesizer is not fitted.", remedy="Call fit(table) first.")
        return self._release

    @short_errors
    def fit(self, table: Any) -> Self:
        """Make the release of a sensitive table, and return the synthesizer.

        Raises:
            InputError: It was fitted already, or an option is wrong.
            MargraveError: As ``margrave.synthesize``.

        Privacy:
            Spends at most what (``epsilon``, ``delta``) allow, once.
        """
        table = hide_table(table)
        if self._spent:
            raise InputError(
                "The synthesizer was fitted already, and another fit would spend the budget again.",
                remedy="Use its release; or make another synthesizer, whose budget adds to this one.",
            )
        schema = self._schema_for(table)
        self._spent = True
        try:
            self._release = synthesize(table, schema, **self._options)
        except MargraveError as error:  # any but an unfinished run was refused before it spent
            self._spent = isinstance(error, UnfinishedError)
            raise
        return self

    def sample(self, num_rows: int | None = None, *, seed: int | None = None) -> Any:
        """Return synthetic rows as the kind of frame that was fitted. Spends nothing."""
        return self.release.sample(num_rows, seed=seed)

    def _schema_for(self, table: Any) -> Schema:
        if self.schema is not None:
            return self.schema
        return draft_schema(reveal_table(table))
