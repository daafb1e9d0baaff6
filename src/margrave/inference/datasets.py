"""The data sets of an analysis, from a release that draws them or as tables, and their data frames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from margrave._fields import is_number, is_whole
from margrave.errors import InputError
from margrave.formula import Functions
from margrave.release.conditional import Conditional
from margrave.release.draws import Draws
from margrave.schema import Boolean, Categorical, Coded, Hour, Integer, Ordinal, Schema, Weekday

Progress = Callable[[str, float], None]

#: The note of all tables that were not drawn from a release here.
EXTERNAL = (
    "Tables drawn elsewhere: this is right only if each comes from its own draw of a posterior (release.draws). Rows of"
    " release.sample and release.complete do not vary with the noise, and intervals from them are too narrow."
)

#: Attributes of a frame: the real records that its data set stands for, all of its own, and the
#: commonest level of each column of categories, the schema's columns that are a function of one, and the
#: columns of truths, also those that hold 1 and 0 because some are missing, and the values of whole numbers.
TOTAL, ROWS, COMMONEST = "total", "rows", "commonest"
FUNCTIONS, TRUTHS, WHOLE_NUMBERS = "functions", "truths", "whole numbers"


@runtime_checkable
class DataSets(Protocol):
    """Data sets of independent records, each from its own draw of a posterior.

    If they have ``total_of(i)``, it is the number of real records that data set i stands for.
    """

    @property
    def method(self) -> str:
        """The way the distributions were drawn, in words."""
        ...

    @property
    def rows(self) -> int:
        """Records in each data set."""
        ...

    @property
    def total(self) -> float | None:
        """Estimated number of real records; None if unknown."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on the uncertainty that the data sets do not include."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, i: int, /) -> pa.Table: ...

    def released(self) -> DataSets | None:
        """Return as many of the refitted distribution, which show bias; None for a posterior."""
        ...


@runtime_checkable
class Source(Protocol):
    """A release: it draws data sets."""

    @property
    def schema(self) -> Schema:
        """The columns."""
        ...

    def draws(
        self, m: int | None = None, *, rows: int | None = None, method: str = "auto", seed: int | None = None,
        progress: Progress | None = None,
    ) -> DataSets:  # fmt: skip
        """Return ``m`` data sets of ``rows`` records; None for the source's own number."""
        ...


@dataclass(frozen=True, eq=False)
class Tables:
    """Tables drawn elsewhere, as data sets."""

    tables: tuple[pa.Table, ...]
    total: float | None = None
    method: str = "given tables"
    notes: tuple[str, ...] = (EXTERNAL,)

    @staticmethod
    def of(tables: Sequence[Any], n: float | None) -> Tables:
        """Return Arrow tables or pandas frames as data sets.

        Raises:
            InputError: They differ in columns or number of rows, or are fewer than two.
        """
        if n is not None and not (is_number(n) and n > 0):
            raise InputError(f"n is {n!r}.", remedy="Give the number of real records, above 0.")
        found = tuple(
            pa.Table.from_pandas(t, preserve_index=False) if isinstance(t, pd.DataFrame) else t
            for t in tables
        )
        if len(found) < 2 or not all(isinstance(t, pa.Table) for t in found):
            raise InputError(
                "The rules that combine data sets need a release, or at least two tables.",
                remedy="Give a release, or a list of Arrow tables or pandas frames.",
            )
        if len({t.num_rows for t in found}) > 1 or not found[0].num_rows:
            raise InputError(
                "The tables have different numbers of rows, or none.",
                remedy="Draw as many rows for each.",
            )
        if any(t.column_names != found[0].column_names for t in found):
            raise InputError(
                "The tables do not have the same columns.", remedy="Give tables of one kind."
            )
        return Tables(found, None if n is None else float(n))

    @property
    def rows(self) -> int:
        """Records in each."""
        return int(self.tables[0].num_rows)

    def __len__(self) -> int:
        return len(self.tables)

    def __getitem__(self, i: int, /) -> pa.Table:
        return self.tables[i]

    def released(self) -> None:
        """Return None: no distribution is known that was refitted."""


@dataclass(frozen=True)
class Frames:
    """The conversion of Arrow tables to data frames, the same for every data set.

    A category that one data set happens to lack is still a level there, and the reference of a
    factor is the same in all. Otherwise a coefficient of one name would mean different things.

    Attributes:
        levels: By column of texts, its levels and whether they are ordered.
        nullable: Columns that may lack values.
        commonest: By column of texts, its commonest level, the reference of a factor.
        functions: Columns of the schema that are a function of a column, such as its hour.
        truths: Columns of truths.
        whole_numbers: By column of whole numbers, its values by the schema.
    """

    levels: Mapping[str, tuple[tuple[str, ...], bool]]
    nullable: frozenset[str] = frozenset()
    commonest: Mapping[str, str] = field(default_factory=dict)
    functions: Functions = field(default_factory=dict)
    truths: frozenset[str] = frozenset()
    whole_numbers: Mapping[str, range] = field(default_factory=dict)

    @staticmethod
    def of_schema(schema: Schema, commonest: Mapping[str, str] | None = None) -> Frames:
        """Return a conversion with the schema's levels in their order."""
        levels = {}
        for column in schema.columns:
            if isinstance(column, Categorical | Ordinal | Hour | Weekday):
                labels = column.labels()
                texts = tuple(labels[:-1] if column.missing else labels)
                levels[column.name] = (texts, not isinstance(column, Categorical))
        nullable = frozenset(c.name for c in schema.columns if c.missing)
        truths = frozenset(c.name for c in schema.columns if isinstance(c, Boolean))
        functions = {f: p for f, p in schema.domain.functions.items() if f[1] in schema.domain}
        return Frames(levels, nullable, commonest or {}, functions, truths, _whole_numbers(schema))

    @staticmethod
    def of_tables(draws: DataSets) -> Frames:
        """Return a conversion with the levels of all data sets together, sorted."""
        found: dict[str, Counter[str]] = {}
        nullable: set[str] = set()
        truths = frozenset(f.name for f in draws[0].schema if pa.types.is_boolean(f.type))
        for table in (draws[i] for i in range(len(draws))):
            nullable |= {name for name in table.column_names if table[name].null_count}
            for name in (f.name for f in table.schema if _is_text(f.type)):
                counts = table[name].cast(pa.string()).drop_null().value_counts().to_pylist()
                own = found.setdefault(name, Counter())
                own.update({c["values"]: c["counts"] for c in counts})
        levels = {name: (tuple(sorted(texts)), False) for name, texts in found.items()}
        commonest = {
            n: max(sorted(texts), key=texts.__getitem__) for n, texts in found.items() if texts
        }
        return Frames(levels, frozenset(nullable), commonest, truths=truths)

    def of(self, table: pa.Table) -> pd.DataFrame:
        """Return a frame: numbers, categoricals, bool, datetime64; NaN or NaT for missing values.

        A nullable column of truths or whole numbers is float64, truths 1 and 0: the one type with
        room for missing values that means and formulas of statsmodels take alike.
        """
        columns = {f.name: self._column(f.name, f.type, table[f.name]) for f in table.schema}
        return pd.DataFrame(columns, index=pd.RangeIndex(table.num_rows))

    def with_origins(self, names: Iterable[str]) -> frozenset[str]:
        """Return names of columns with those of the columns that they are a function of."""
        found = frozenset(names)
        return found.union(of for (_, of), part in self.functions.items() if part in found)

    def draw(self, draws: DataSets, i: int, names: Collection[str] | None = None) -> pd.DataFrame:
        """Return data set i as a frame with its attributes, which its parts inherit; ``names`` are its columns."""
        frame = self.of(table_of(draws, i, names))
        frame.attrs = self.attributes(draws, i, len(frame))
        return frame

    def attributes(self, draws: DataSets, i: int, rows: int) -> dict[Any, Any]:
        """Return the attributes of the frame of data set i: its row counts, and commonest levels."""
        total = total_of(draws, i)
        counts = {ROWS: rows} | ({} if total is None else {TOTAL: total})
        return {
            **counts, COMMONEST: dict(self.commonest), FUNCTIONS: dict(self.functions),
            TRUTHS: tuple(sorted(self.truths)), WHOLE_NUMBERS: dict(self.whole_numbers),
        }  # fmt: skip

    def _column(self, name: str, kind: pa.DataType, values: pa.ChunkedArray) -> Any:
        if _is_text(kind):
            return _categorical(values, *self.levels[name])
        discrete = pa.types.is_boolean(kind) or pa.types.is_integer(kind)
        nullable = discrete and (name in self.nullable or values.null_count > 0)
        if pa.types.is_boolean(kind) and nullable:
            values = values.cast(pa.uint8())  # Arrow does not cast truths to floats
        if pa.types.is_decimal(kind) or nullable:
            return values.cast(pa.float64()).to_pandas()
        return values.to_pandas(date_as_object=False)


def _whole_numbers(schema: Schema) -> dict[str, range]:
    found = {c.name: range(c.low, c.high + 1) for c in schema.columns if isinstance(c, Integer)}
    return found | {c.name: range(c.codes) for c in schema.columns if isinstance(c, Coded)}


def commonest_numbers(draws: Draws, names: Collection[str]) -> dict[str, str]:
    """Return the commonest value of each column of whole numbers among some, and the least of a bin of several.

    The counts are those of the release's own distribution, so that a seed changes nothing; of a posterior, those of
    its first distribution.
    """
    model, found = next((draws.released() or draws).models()), dict[str, str]()
    for column in (c for c in draws.schema.columns if c.name in names):
        if isinstance(column, Integer | Coded):
            counts = model.project((column.name,)).values[: column.size - column.missing]
            code = int(np.argmax(counts))
            least = column.cells.extremes[0][code] if isinstance(column, Integer) else code
            found[column.name] = f"{least:.0f}"
    return found


def table_of(draws: DataSets, i: int, names: Collection[str] | None = None) -> pa.Table:
    """Return data set i, or its columns of some names, which may take less time to draw."""
    some = getattr(draws, "table", None)
    if names is None:
        return draws[i]
    if some is not None:
        return some(i, names)
    table = draws[i]
    return table.select([name for name in table.column_names if name in names])


def total_of(draws: DataSets, i: int) -> float | None:
    """Return the number of real records that data set i stands for; it varies with the noise."""
    own = getattr(draws, "total_of", None)
    return draws.total if own is None else float(own(i))


def are_runs(draws: DataSets) -> bool:
    """Return whether each data set is of an independent run, and not of a draw of one posterior."""
    return bool(getattr(draws, "runs", 0))


def size_of(frame: pd.DataFrame) -> tuple[float, int]:
    """Return the real records that a frame's data set stands for, and the data set's own."""
    rows = int(frame.attrs.get(ROWS, len(frame)))
    return float(frame.attrs.get(TOTAL, rows)), rows


def _categorical(values: pa.ChunkedArray, texts: tuple[str, ...], ordered: bool) -> pd.Categorical:
    coded = values.cast(pa.string()).combine_chunks().dictionary_encode()
    place = {text: i for i, text in enumerate(texts)}
    codes = np.array([*(place[t] for t in coded.dictionary.to_pylist()), -1], dtype=np.int64)
    at = pc.fill_null(coded.indices, len(codes) - 1).to_numpy(zero_copy_only=False)
    return pd.Categorical.from_codes(codes[at], categories=list(texts), ordered=ordered)


def _is_text(kind: pa.DataType) -> bool:
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_dictionary)
    return any(test(kind) for test in texts)


def open_source(
    source: Any, m: int | None, *, n: float | None, rows: int | None, method: str, seed: int | None,
    progress: Progress | None = None,
) -> tuple[DataSets, Frames]:  # fmt: skip
    """Return the data sets of a release, of its draws or of tables, and their conversion.

    Raises:
        InputError: The source is not one of these, or an argument does not apply to it.
    """
    if isinstance(source, Source):
        _check_n(n, "A release knows its number of records")
        if m is not None and not is_whole(m, 2):
            raise InputError(
                f"{m!r} data sets cannot be combined.", remedy="Draw at least 2, better 100."
            )
        drawn = source.draws(m, rows=rows, method=method, seed=seed, progress=progress)
        return drawn, Frames.of_schema(source.schema, getattr(drawn, "commonest", None))
    drawing = {"m": m, "rows": rows, "seed": seed, "method": None if method == "auto" else method}
    if isinstance(source, DataSets):
        _check_unused(drawing)
        _check_n(n, "Draws know the number of real records")
        schema = getattr(source, "schema", None)
        if schema is None:
            return source, Frames.of_tables(source)
        return source, Frames.of_schema(schema, getattr(source, "commonest", None))
    if isinstance(source, Sequence) and not isinstance(source, str):
        _check_unused(drawing)
        tables = Tables.of(source, n)
        return tables, Frames.of_tables(tables)
    part = isinstance(source, Conditional)
    raise InputError(
        f"Data sets cannot be drawn from a {type(source).__name__}.",
        remedy="Give the release itself, and name the part in the analysis: Logistic(..., where={'region': 'N'})"
        " (--where). A function of your own chooses its records from the frame."
        if part
        else "Give a release, its draws, or a list of tables.",
    )


def _check_n(n: float | None, why: str) -> None:
    if n is not None:
        raise InputError(f"{why}: n is for tables.", remedy="Leave n out.")


def _check_unused(drawing: Mapping[str, Any]) -> None:
    for name, value in drawing.items():
        if value is not None:
            raise InputError(
                f"{name} says how a release draws data sets, and these are drawn already.",
                remedy=f"Leave {name} out, or give the release.",
            )
