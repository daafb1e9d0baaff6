"""Estimates of a release with their errors: bounds, intervals, numbers of columns, and the equivalent sample size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from margrave.bounds.equivalent_sample import EquivalentSample, equivalent_sample
from margrave.bounds.error_bounds import (
    Bounds,
    BoundTable,
    Intervals,
    cliques_asked_for,
    cliques_of_interest,
    intervals_of,
)
from margrave.bounds.reference import ModelReference, Reference, TableReference
from margrave.domain import Codes
from margrave.error_sanitizer import short_errors
from margrave.frame_kinds import Kind, as_kind
from margrave.release.display import Display
from margrave.release.numbers import numbers_of, numbers_table
from margrave.transcript import Hindsight
from margrave.types import Attribute, Clique
from margrave.workload import Workload


class Estimates(Display):
    """The methods of a release that return estimates with their errors, by the noisy answers alone."""

    hindsight: Sequence[Hindsight]

    @short_errors
    def bounds(
        self,
        cliques: Iterable[Iterable[Attribute]] | None = None,
        *,
        level: float = 0.95,
        joint: bool = False,
        table: pa.Table | Codes | None = None,
        paper: bool = False,
    ) -> BoundTable:
        """Return upper bounds of ``||M_r(D) − M_r(model)||_1`` for marginals r.

        Args:
            cliques: The marginals; by default the downward closure of the workload.
            level: Probability with which each bound holds.
            joint: Whether all bounds hold together with that probability.
            table: Synthetic rows, whose marginals, scaled to the row count, take the place of the
                model's.
            paper: Whether to use AIM's own constants and estimator instead of tighter ones.

        Returns:
            One bound per marginal. A release that was refitted bounds only marginals that lie in a
            measured one.

        Privacy:
            None spent: a function of the transcript, the model and the given table.

        References:
            McKenna, Mullins, Sheldon, Miklau (2022), AIM, Section 5; ``docs/bounds.md``.
        """
        domain = self.schema.domain
        if cliques is None:
            asked = cliques_of_interest(domain, self.transcript, self.provenance)
        else:
            asked = cliques_asked_for(domain, cliques)
        maker = Bounds(domain, self.transcript, self.hindsight, level, joint, paper)
        return BoundTable(maker.of(asked, self._reference(asked, table)))

    @short_errors
    def intervals(
        self, attributes: Iterable[Attribute], *, level: float = 0.95, simultaneous: bool = False
    ) -> Intervals:
        """Return the unbiased estimate of every cell of a marginal, with an interval around it.

        Args:
            attributes: Columns of a marginal that lies in a measured one.
            level: Probability with which each interval holds.
            simultaneous: Whether all intervals hold together with that probability.

        Raises:
            ReleaseError: No measured marginal contains it.

        Privacy:
            None spent.
        """
        clique = self.schema.domain.clique(attributes)
        return intervals_of(self.schema.domain, self.transcript, clique, level, simultaneous)

    @short_errors
    def numbers(
        self,
        *,
        columns: Iterable[Attribute] | None = None,
        by: Attribute | Sequence[Attribute] | None = None,
        level: float = 0.95,
        details: bool = False,
        as_: Kind = "arrow",
    ) -> Any:
        """Return means, totals, quantiles and shares of columns, with intervals and verdicts.

        Each row is a ``ColumnNumber``, which lists what the interval covers. The columns are ``column``,
        ``statistic``, ``group`` (only with ``by``), ``estimate``, ``low``, ``high`` and ``reliable``. Dates and times
        count days, or their unit, since 1970. If the frame has any, ``text`` and ``interval`` give all numbers in
        words, and dates in ISO 8601.
        If the unit is a person, the numbers cover a limited number of rows of each person. ``attrs["note"]`` of a
        pandas frame states the limit, and so does ``note`` in the metadata of an Arrow table.

        Args:
            columns: These columns only; by default all.
            by: One column whose values make groups, each with numbers of its own: ``by="ward"``.
            level: Probability with which each interval holds, on its own.
            details: Also ``text`` and ``interval``, the same in words, and the parts of the interval: ``noise``,
                ``bins``, ``clipping``, ``beyond_below``, ``beyond_above`` and ``synthetic``.
            as_: The kind of frame: "pandas", "polars" or "arrow". By default "arrow", as all tables of results are.
                So a script reads a new release and a loaded one alike. Only rows come as the real table came.

        Raises:
            InputError: ``columns`` is text, or ``by`` is not one column or the only one of ``columns``, or one is not a
                column of the release.

        Privacy:
            None spent.
        """
        found = numbers_of(self.schema, self.transcript, self.model, level, columns, by)
        dated = {c.name for c in self.schema.columns if pa.types.is_temporal(c.type)}
        texts = any(n.column in dated for n in found)
        table = numbers_table(found, grouped=by is not None, details=details, texts=texts)
        if self.account.left_out:
            table = table.replace_schema_metadata({"note": self.account.left_out})
        return as_kind(table, as_, without_missing=["reliable"])

    def equivalent_sample_size(self, *, level: float = 0.95) -> EquivalentSample:
        """Return the least number of real rows that would be as far off if they were published.

        It follows from ``bounds(joint=True)`` on the workload (all three-way marginals if the
        mechanism has none) and the closed form of Appendix C. Bounds are several times the error,
        so the true number is well above; the custodian computes it with ``margrave evaluate``.

        Raises:
            ReleaseError: The release has no distribution.

        Privacy:
            None spent.

        References:
            McKenna, Mullins, Sheldon, Miklau (2022), AIM, Section 5 and Appendix C.
        """
        domain = self.schema.domain
        workload = self.provenance.workload_on(domain) or Workload.all_kway(domain, 3)
        bounds = self.bounds(workload, level=level, joint=True)
        found = {b.clique: b for b in bounds}
        return equivalent_sample(self.model.distribution(), found, workload.weights, level)

    def _reference(self, cliques: Sequence[Clique], table: pa.Table | Codes | None) -> Reference:
        if table is None:
            self._require_model()
            return ModelReference(self.model)
        codes = table if isinstance(table, Codes) else self.schema.encode(table)
        return TableReference.of(self.model, codes, cliques)
