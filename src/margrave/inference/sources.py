"""Where the data sets of an analysis come from: a release that draws them, or tables that somebody has drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from margrave.errors import InputError
from margrave.parameters import is_number, is_whole
from margrave.release.release import Conditional
from margrave.schema import Categorical, Ordinal, Schema

Progress = Callable[[str, float], None]

MANY = 100
"""How many data sets are drawn by default."""

ELSEWHERE = (
    "Tables drawn elsewhere: this is right only if each comes from its own draw of a posterior (release.draws). Rows of"
    " release.sample and release.complete know nothing of the noise, and intervals from them are too narrow."
)
"""The note of all tables that were not drawn here."""


TOTAL, ROWS = "total", "rows"
"""Attributes of a frame: the real records that its data set stands for, and all records of the data set."""


@runtime_checkable
class Draws(Protocol):
    """Data sets, each of independent records from a distribution of its own, drawn from the posterior."""

    @property
    def method(self) -> str:
        """How the distributions were drawn."""
        ...

    @property
    def rows(self) -> int:
        """Records in each data set."""
        ...

    @property
    def total(self) -> float | None:
        """Real records, as estimated; None where that is not known."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What they leave out of account."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, i: int, /) -> pa.Table: ...

    def released(self) -> Draws | None:
        """As many of the distribution that was refitted, which show the refits' bias; None for a posterior."""
        ...


@runtime_checkable
class Source(Protocol):
    """What draws data sets: a release."""

    @property
    def schema(self) -> Schema:
        """The columns."""
        ...

    def draws(
        self,
        m: int = 100,
        *,
        rows: int | None = None,
        method: str = "auto",
        seed: int | None = None,
        progress: Progress | None = None,
    ) -> Draws:
        """``m`` data sets of ``rows`` records."""
        ...


@dataclass(frozen=True, eq=False)
class Tables:
    """Tables at hand, as :class:`Draws`."""

    tables: tuple[pa.Table, ...]
    total: float | None = None
    method: str = "given tables"
    notes: tuple[str, ...] = (ELSEWHERE,)

    @staticmethod
    def of(tables: Sequence[Any], n: float | None) -> Tables:
        """Tables of Arrow or pandas, all of one number of rows and the same columns."""
        if n is not None and not (is_number(n) and n > 0):
            raise InputError(f"n is {n!r}.", remedy="Give the number of real records, above 0.")
        found = tuple(
            pa.Table.from_pandas(t, preserve_index=False) if isinstance(t, pd.DataFrame) else t for t in tables
        )
        if len(found) < 2 or not all(isinstance(t, pa.Table) for t in found):
            raise InputError(
                "The rules that combine data sets need a release, or at least two tables.",
                remedy="Give a release, or a list of Arrow tables or pandas frames.",
            )
        if len({t.num_rows for t in found}) > 1 or not found[0].num_rows:
            raise InputError(
                "The tables have different numbers of rows, or none.", remedy="Draw as many rows for each."
            )
        if any(t.column_names != found[0].column_names for t in found):
            raise InputError("The tables do not have the same columns.", remedy="Give tables of one kind.")
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
        """Nothing is known of where they come from."""


@dataclass(frozen=True)
class Frames:
    """The way from Arrow tables to pandas frames that is the same for every data set.

    ``levels`` names the texts of every categorical column and whether they are ordered: those of the schema, or of
    all tables together. A category that one data set happens to lack is then still a level there, and the first
    level is the same in all of them; otherwise a coefficient of one name would mean different things. ``holed``
    are the columns that may lack values, by the schema or in any of the tables, so that the type of a column is the
    same too.
    """

    levels: Mapping[str, tuple[tuple[str, ...], bool]]
    holed: frozenset[str] = frozenset()

    @staticmethod
    def of_schema(schema: Schema) -> Frames:
        """Levels in the order that the schema declares."""
        found = {}
        for column in schema.columns:
            if isinstance(column, Categorical | Ordinal):
                labels = column.labels()
                texts = tuple(labels[:-1] if column.missing else labels)
                found[column.name] = (texts, isinstance(column, Ordinal))
        return Frames(found, frozenset(c.name for c in schema.columns if c.missing))

    @staticmethod
    def of_tables(draws: Draws) -> Frames:
        """Levels that occur in any of the data sets, sorted."""
        found: dict[str, set[str]] = {}
        holed: set[str] = set()
        for i in range(len(draws)):
            table = draws[i]
            holed |= {name for name in table.column_names if table[name].null_count}
            for field in table.schema:
                if _is_text(field.type):
                    texts = table[field.name].cast(pa.string()).unique().drop_null().to_pylist()
                    found.setdefault(field.name, set()).update(texts)
        levels = {name: (tuple(sorted(texts)), False) for name, texts in found.items()}
        return Frames(levels, frozenset(holed))

    def of(self, table: pa.Table) -> pd.DataFrame:
        """A frame: numbers as numbers, texts as categoricals, dates and times as datetime64, missing as NaN or NaT.

        Truths are bool, and whole numbers int64. Where a column may lack values both are float64, truths 1 and 0: the
        only type with room for missing ones that means and formulas of statsmodels take alike.
        """
        columns = {f.name: self._column(f.name, f.type, table[f.name]) for f in table.schema}
        return pd.DataFrame(columns, index=pd.RangeIndex(table.num_rows))

    def draw(self, draws: Draws, i: int) -> pd.DataFrame:
        """The i-th data set as a frame that knows how many records it has and stands for, as its parts do."""
        frame = self.of(draws[i])
        frame.attrs = self.told(draws, i, len(frame))
        return frame

    def told(self, draws: Draws, i: int, rows: int) -> dict[Any, Any]:
        """What the frame of the i-th data set knows: how many records it has and stands for."""
        total = total_of(draws, i)
        return {ROWS: rows} | ({} if total is None else {TOTAL: total})

    def _column(self, name: str, kind: pa.DataType, values: pa.ChunkedArray) -> Any:
        if _is_text(kind):
            texts, ordered = self.levels[name]
            return _categorical(values, texts, ordered)
        holed = name in self.holed or values.null_count > 0
        if pa.types.is_boolean(kind) and holed:
            values = values.cast(pa.uint8())  # Arrow knows no way from truths to numbers with fractions
        if pa.types.is_decimal(kind) or (holed and (pa.types.is_boolean(kind) or pa.types.is_integer(kind))):
            return values.cast(pa.float64()).to_pandas()
        return values.to_pandas(date_as_object=False)


def total_of(draws: Draws, i: int) -> float | None:
    """The real records that a data set's distribution stands for, which the noise leaves open as it does the rest."""
    own = getattr(draws, "total_of", None)
    return draws.total if own is None else float(own(i))


def size_of(frame: pd.DataFrame) -> tuple[float, int]:
    """The real records that a data set stands for, and its own, also of a part of it; its own of any other frame."""
    rows = int(frame.attrs.get(ROWS, len(frame)))
    return float(frame.attrs.get(TOTAL, rows)), rows


def _categorical(values: pa.ChunkedArray, texts: tuple[str, ...], ordered: bool) -> pd.Categorical:
    """Texts as codes of their level: each distinct text is looked up once."""
    coded = values.cast(pa.string()).combine_chunks().dictionary_encode()
    place = {text: i for i, text in enumerate(texts)}
    codes = np.array([*(place[t] for t in coded.dictionary.to_pylist()), -1], dtype=np.int64)
    at = pc.fill_null(coded.indices, len(codes) - 1).to_numpy(zero_copy_only=False)
    return pd.Categorical.from_codes(codes[at], categories=list(texts), ordered=ordered)


def _is_text(kind: pa.DataType) -> bool:
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_dictionary)
    return any(test(kind) for test in texts)


def settle(
    source: Any,
    m: int | None,
    *,
    n: float | None,
    rows: int | None,
    method: str,
    seed: int | None,
    progress: Progress | None = None,
) -> tuple[Draws, Frames]:
    """The data sets of a release, of a :class:`Draws`, or of tables, and the way from them to frames."""
    if isinstance(source, Source):
        if n is not None:
            raise InputError("A release knows its number of records: n is for tables.", remedy="Leave n out.")
        m = MANY if m is None else m
        if not is_whole(m, 2):
            raise InputError(f"{m!r} data sets cannot be combined.", remedy="Draw at least 2, better 100.")
        drawn = source.draws(m, rows=rows, method=method, seed=seed, progress=progress)
        return drawn, Frames.of_schema(source.schema)
    unused = {"m": m, "rows": rows, "seed": seed, "method": None if method == "auto" else method}
    if isinstance(source, Draws):
        _check_unused(unused)
        if n is not None:
            raise InputError("Draws know the number of real records: n is for tables.", remedy="Leave n out.")
        schema = getattr(source, "schema", None)
        return source, Frames.of_tables(source) if schema is None else Frames.of_schema(schema)
    if isinstance(source, Sequence) and not isinstance(source, str):
        _check_unused(unused)
        given = Tables.of(source, n)
        return given, Frames.of_tables(given)
    raise InputError(
        f"{type(source).__name__} is nothing that data sets can be drawn from.", remedy=_remedy_for(source)
    )


def _check_unused(given: Mapping[str, Any]) -> None:
    """Refuse what says how to draw, where all is drawn."""
    for name, value in given.items():
        if value is not None:
            raise InputError(
                f"{name} says how a release draws data sets, and these are drawn already.",
                remedy=f"Leave {name} out, or give the release.",
            )


def _remedy_for(source: Any) -> str:
    if isinstance(source, Conditional):
        return (
            "Give the release itself, and name the part in the analysis: Logistic(..., where={'region': 'N'})"
            " (--where). A function of your own chooses its records from the frame."
        )
    return "Give a release, its draws, or a list of tables."
