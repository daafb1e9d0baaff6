"""Compare a synthetic table with the real one on the marginals of a workload."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from margrave._card import counted, html_card
from margrave._front import part
from margrave._io import path_of
from margrave.bounds.matching_subsample import Subsampling
from margrave.data import BatchTable, Table
from margrave.error_sanitizer import hide_rows
from margrave.errors import InputError
from margrave.evaluation.inputs import (
    Real,
    Synthetic,
    comparison_sides,
    is_table,
    opened,
)
from margrave.evaluation.numeric import NumberSummary, Spread, number_summaries
from margrave.evaluation.pictures import (
    Gathering,
    Pictures,
    PurposeGap,
    purpose_cliques,
    purpose_gaps,
)
from margrave.evaluation.queries import (
    Errors,
    QueryErrors,
    batches,
    check_same,
    fits_in_memory,
    query_errors,
    share,
)
from margrave.marginal import QueryFamily
from margrave.ratios import MAX_RATIO, percent
from margrave.release import Release
from margrave.schema import Schema, schema_of
from margrave.types import Attribute, Clique, FloatArray, IntArray
from margrave.workload import Workload

WARNING = "NOT PRIVATE: computed from the real rows. Do not publish it or choose a release by it."


@dataclass(frozen=True)
class ColumnSummary:
    """One column: the total variation between real and synthetic, and the value whose share is furthest off."""

    name: Attribute
    total_variation: float
    value: str
    real_share: float
    synthetic_share: float


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """The result of ``evaluate``. **Not private**: every number comes from the real rows.

    Attributes:
        errors: ``errors[r] = sum |p_real − p_synthetic|`` over the cells of marginal r (0 to 2),
            for the workload.
        one_way: Total variations (half of that, 0 to 1) of all columns.
        two_way: Total variations of all pairs.
        queries: Errors of single counts as shares of all records: of every cell of the workload, or
            of the given queries.
        matching_rows: Number of real rows, drawn with replacement and without privacy, that have
            the same expected workload error; None if no number has.
        numbers: Means and quartiles of numeric columns, if the real side is a frame or file: a
            table that was read keeps codes alone.
        note: The part of the differences that may not be noise.
        pictures: What the report draws.
        purposes: The purposes of the release, and how far their marginals differ.
    """

    private: ClassVar[bool] = False

    real_rows: int
    synthetic_rows: int
    workload_error: float
    errors: Mapping[Clique, float]
    one_way: Mapping[Attribute, float]
    two_way: Mapping[Clique, float]
    columns: tuple[ColumnSummary, ...]
    queries: QueryErrors
    pictures: Pictures
    matching_rows: int | None = None
    numbers: tuple[NumberSummary, ...] = ()
    note: str = ""
    purposes: tuple[PurposeGap, ...] = ()

    @property
    def matching_share(self) -> float | None:
        """``matching_rows`` as a share of the real rows."""
        return (
            self.matching_rows / self.real_rows
            if self.matching_rows is not None and self.real_rows
            else None
        )

    @property
    def mean_one_way(self) -> float:
        """The mean total variation over columns."""
        return float(np.mean(list(self.one_way.values()))) if self.one_way else 0.0

    @property
    def mean_two_way(self) -> float:
        """The mean total variation over pairs of columns, 0 for a single column."""
        return float(np.mean(list(self.two_way.values()))) if self.two_way else 0.0

    def equivalent_sample_size(self) -> str:
        """Return the matching subsample in words."""
        if self.matching_share is None:
            return "no random sample of the real rows is as far from them"
        if self.matching_share > MAX_RATIO:
            return f"as accurate as {self.matching_rows:,} random draws of the real rows"
        return f"as accurate as a random {percent(self.matching_share, '.3g')} of the real rows"

    def worst(self, count: int = 5) -> list[tuple[Clique, float]]:
        """Return the marginals of the workload with the largest errors."""
        return sorted(self.errors.items(), key=lambda pair: -pair[1])[:count]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that fits in JSON, with the warning first."""
        return {
            "warning": WARNING,
            "private": self.private,
            **({"note": self.note} if self.note else {}),
            "real_rows": self.real_rows,
            "synthetic_rows": self.synthetic_rows,
            "workload_error": self.workload_error,
            "queries": self.queries.to_dict(),
            "matching_subsample": {"rows": self.matching_rows, "share": self.matching_share},
            "total_variation": {
                "one_way_mean": self.mean_one_way,
                "two_way_mean": self.mean_two_way if self.two_way else None,
            },
            "columns": [vars(c) for c in self.columns],
            "numbers": [n.to_dict() for n in self.numbers],
            "worst": [{"marginal": list(c), "error": e} for c, e in self.worst(10)],
            "errors": [{"marginal": list(c), "error": e} for c, e in self.errors.items()],
        }

    def report(self) -> Any:
        """Return the comparison as a page with charts, written by ``.save("not-private/visits.html")``.

        Returns:
            A ``margrave.evaluation.PrivatePage``.

        Privacy:
            NOT private: every number comes from the real rows. The page is stamped so, and it is not
            written into a folder with a release.
        """
        return part("evaluation").PrivatePage.of(self)

    def __repr__(self) -> str:
        return f"Evaluation(NOT PRIVATE, marginals: {len(self.errors)}; print it to see the errors)"

    def _repr_html_(self) -> str:
        columns = [(c.name, f"{c.total_variation:.4f}") for c in self.columns]
        rows = [
            ("workload error (0 to 2)", f"{self.workload_error:.4f}"),
            ("mean total variation, one-way", f"{self.mean_one_way:.4f}"),
            *(
                [("mean total variation, two-way", f"{self.mean_two_way:.4f}")]
                if self.two_way
                else []
            ),
            *((f"total variation of {name}", error) for name, error in columns),
            *((f"error of {', '.join(c)}", f"{e:.4f}") for c, e in self.worst()),
        ]
        notes = [WARNING, *([self.note] if self.note else [])]
        return html_card("Evaluation, NOT PRIVATE: real against synthetic", rows, notes)

    def __str__(self) -> str:
        pairs = f", {self.mean_two_way:.4f} two-way" if self.two_way else ""
        lines = [
            WARNING,
            f"{self.real_rows} real rows, {self.synthetic_rows} synthetic rows",
            *([self.note] if self.note else []),
            f"workload error {self.workload_error:.4f} over {counted(len(self.errors), 'marginal')} (0 to 2)",
            f"errors of {self.queries.queries} counts, as shares of all records: largest {self.queries.largest:.4f},"
            f" mean {self.queries.mean:.6f}, root mean square {self.queries.rmse:.5f}",
            f"equivalent sample size: {self.equivalent_sample_size()}",
            f"mean total variation {self.mean_one_way:.4f} one-way{pairs}",
            *(f"  {', '.join(c)}: {e:.4f}" for c, e in self.worst()),
            *(
                f"mean of {n.name}: {_mean(n.real)} real, {_mean(n.synthetic)} synthetic"
                for n in self.numbers
            ),
        ]
        return "\n".join(lines)


@hide_rows
def evaluate(
    real: Real,
    synthetic: Synthetic,
    workload: Workload | Mapping[Clique, float] | Iterable[Iterable[Attribute]] | None = None,
    *,
    schema: Schema | str | Path | None = None,
    queries: QueryFamily | None = None,
    rows: int | None = None,
    seed: int | None = None,
) -> Evaluation:
    """Compare the real table with a release (records drawn from it) or another table of the same
    schema.

    The workload error is ``sum_r c_r ||M_r(D) − M_r(D')||_1 / (n sum_r c_r)``, with the synthetic
    counts scaled to the real number of rows n: between 0 and 2 whatever the weights, and the
    paper's if they are 1.

    Args:
        real: The real table, a frame or a file.
        synthetic: A release or its file, or a table as above.
        workload: Marginals, with or without weights; by default every three-way marginal.
        schema: The schema, or its file, by which frames and files are read; by default the one of
            the release, or of the table that was read.
        queries: Queries whose errors are reported; by default every cell of the workload.
        rows: Records drawn from a release; by default its estimated row count.
        seed: Seed of the draw. Without it, two evaluations of a release differ by chance.

    Raises:
        InputError: Tables, workload or queries of other columns; a frame if no side has a schema;
            or ``rows`` or ``seed`` with a table that has its own records.

    Privacy:
        NOT private. It reads the real rows outside the gate, for the custodian only. The result is
        marked so, and a release has no place for it.

    References:
        McKenna, Mullins, Sheldon, Miklau 2022, Definition 2 and Appendix C.
    """
    given, made = real, opened(synthetic)
    stated = None if schema is None else schema_of(schema, table=path_of(real))
    if seed is None and isinstance(made, Release):
        seed = secrets.randbits(63)  # counts and values are of the same draw
    real, other = comparison_sides(real, made, rows, seed, stated)
    if difference := real.domain.difference(other.domain):
        raise InputError(
            f"The two tables do not have the same schema: {difference}.",
            remedy="Read both with the same schema.",
        )
    if queries is not None:
        check_same(other.domain, real, queries)
    domain = real.domain
    chosen = Workload.all_kway(domain, 3) if workload is None else Workload.of(domain, workload)
    pairs = list(combinations(domain.attributes, 2))
    singles = [(a,) for a in domain]
    purposes = [c for cliques in purpose_cliques(made).values() for c in cliques]
    fits_in_memory(domain, (*chosen.cliques, *pairs, *purposes))
    errors: dict[Clique, float] = {}
    gathering = Gathering(real.schema)
    weights, subsampling = chosen.weights, Subsampling(real.rows())
    heaviness = sum(weights.values())
    cells = Errors(QueryFamily.cells(domain, chosen.cliques))
    for clique, left, right in _counts(
        real, other, dict.fromkeys((*chosen.cliques, *pairs, *singles, *purposes))
    ):
        p, q = share(left), share(right)
        errors[clique] = float(np.abs(p - q).sum())
        if clique in weights:
            cells.add(clique, p, q)
            subsampling.add(left, weights[clique] / heaviness)
        gathering.add(clique, left, right)
    pictures = gathering.found()
    workload_error = sum(c * errors[r] for r, c in weights.items()) / heaviness
    return Evaluation(
        purposes=purpose_gaps(made, errors),
        real_rows=real.rows(),
        synthetic_rows=other.rows(),
        workload_error=workload_error,
        errors={r: errors[r] for r in weights},
        one_way={a: errors[(a,)] / 2 for a in domain},
        two_way={r: errors[r] / 2 for r in pairs},
        columns=tuple(_summary(real.schema, a, *pictures.shares[a]) for a in domain),
        queries=cells.found(real.schema) if queries is None else query_errors(real, other, queries),
        pictures=pictures,
        matching_rows=subsampling.matching(workload_error),
        numbers=_numbers(given, made, real.schema, other.rows(), seed),
        note=" ".join(filter(None, (note_on_persons(real.schema, made), _note_on_sample(real)))),
    )


def _note_on_sample(real: Table) -> str:
    sampled = "The real means and quartiles are those of about a million rows."
    return sampled if isinstance(real, BatchTable) else ""


def note_on_persons(schema: Schema, synthetic: object) -> str:
    """Return a note if persons' rows were cut, or may have been, before anything was counted.

    ``schema`` is the real table's. A release records whether rows were cut, a table does not.
    """
    cut = (
        "All real rows are counted here: part of the differences, in the number of rows too, {}"
        " that cut and not noise."
    )
    if isinstance(synthetic, Release):
        left_out = synthetic.account.left_out
        return f"{left_out} {cut.format('is')}" if left_out else ""
    if schema.person is None:
        return ""
    return (
        f"The schema says whose row it is ({schema.person}). A release whose unit is a person holds at most K rows of"
        f" each. {cut.format('may be')} Give the .margrave release in place of the table to find out."
    )


def _mean(spread: Spread | None) -> str:
    return "none" if spread is None else f"{spread.mean:.6g}"


def _numbers(
    real: Real, synthetic: Synthetic, read: Schema, rows: int, seed: int | None
) -> tuple[NumberSummary, ...]:
    if is_table(real) or is_table(synthetic):
        return ()
    drawn = synthetic.codes(rows, seed=seed) if isinstance(synthetic, Release) else synthetic
    return number_summaries(real, drawn, read, seed=seed)


def _counts(
    real: Table, other: Table, cliques: Iterable[Clique]
) -> Iterator[tuple[Clique, IntArray, IntArray]]:
    for batch in batches(real.domain, cliques):
        left, right = real.count(batch), other.count(batch)
        for clique in batch:
            yield clique, left[clique], right[clique]


def _summary(schema: Schema, attribute: Attribute, p: FloatArray, q: FloatArray) -> ColumnSummary:
    column = schema.columns[schema.domain.index(attribute)]
    furthest = int(np.argmax(np.abs(p - q)))
    return ColumnSummary(
        name=attribute,
        total_variation=float(np.abs(p - q).sum()) / 2,
        value=column.labels()[furthest],
        real_share=float(p[furthest]),
        synthetic_share=float(q[furthest]),
    )
