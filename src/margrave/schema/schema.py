"""The schema: what is public about a table before anyone looks at it, and the map between its values and codes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from margrave import frames
from margrave._card import Card, Facts
from margrave._io import read_input, written_whole
from margrave.domain import Codes, Domain, code_dtype
from margrave.error_sanitizer import hide_rows
from margrave.errors import InputError, SchemaError
from margrave.schema import toml, validators
from margrave.schema.alarms import check_accepted_alarms
from margrave.schema.by_name import ByName
from margrave.schema.categorical import Categorical, Coded
from margrave.schema.code_labels import meaning_of
from margrave.schema.column import Column
from margrave.schema.column_check import ColumnCheck
from margrave.schema.constraint_zeros import check_possible, constraints_on_learned, declared_of
from margrave.schema.constraints import Constraint, check_constraints
from margrave.schema.content import SchemaContent
from margrave.schema.elapsed_values import (
    names_behind,
    names_to_read,
    with_elapsed,
    with_moments,
    with_settled_elapsed,
)
from margrave.schema.for_run import columns_for_run
from margrave.schema.kinds import checked_columns
from margrave.schema.learn import Learn, learned_sources
from margrave.schema.mismatches import count_causes
from margrave.schema.missing_codes import (
    codes_by_column,
    declared_sources,
    encode_with_missing_codes,
)
from margrave.schema.order_sampling import Drawn
from margrave.schema.parsing import chunks
from margrave.schema.part_sampling import decode_lines
from margrave.schema.parts import functions_of, parts_by_column, source_name, with_settled_parts
from margrave.schema.persons import check_accepted
from margrave.schema.reading_output import for_reading_output
from margrave.schema.references import References, check_apart
from margrave.schema.sources import ColumnSource, check_sources, code_words, learned_of, read_error
from margrave.schema.summary import facts_of
from margrave.schema.validation import ConstraintCheck, Preflight
from margrave.structural_zeros import StructuralZeros, joined
from margrave.types import Clique


@dataclass(frozen=True, repr=False)
class Schema(SchemaContent, ByName, Card):
    """The columns of a table, each with its public values: everything the codes mean.

    ``sources`` say where a column's values come from, if not from public knowledge alone; the gate refuses a schema
    with values read off the rows. ``person`` names the person ID column, which is never synthesized. ``ignore`` names
    columns of the table that are left out. ``constraints`` say which combinations of values cannot occur.
    ``person_accepts`` lists placeholders, such as "0", that identify persons in this table. ``remarks`` are comments
    for the file, by column ("" for its head), and ``files`` the files that values were read from, each with its hash.
    ``accepted`` lists alarms that the custodian has answered. ``from_draft`` says that ``draft_schema`` made the
    schema, so that the remarks on its columns are open questions. None of the four makes two schemas different.

    >>> schema = Schema.coded({"age": 32, "sex": 2})
    >>> schema.domain.cells()
    64
    >>> schema == Schema.from_toml(schema.to_toml())
    True
    """

    def __post_init__(self) -> None:
        settled = with_settled_parts(checked_columns(self.columns), self.person)
        object.__setattr__(self, "columns", with_settled_elapsed(settled))
        object.__setattr__(self, "files", tuple(self.files))
        object.__setattr__(
            self, "ignore", tuple(validators.name(n, "column to ignore") for n in self.ignore)
        )
        if not self.columns:
            raise SchemaError(
                "The schema has no columns.", remedy="Add a [[column]] table for each."
            )
        names = [c.name for c in self.columns]
        for position, name in enumerate(names):
            if name in names[:position]:
                raise SchemaError(f"Column {name!r} occurs twice.", remedy="Keep one of the two.")
        if self.person is not None and validators.name(self.person, "column of persons") in names:
            raise SchemaError(
                f"Column {self.person!r} identifies persons, so it is never synthesized.",
                remedy="Take its [[column]] table out, or name another person.",
            )
        object.__setattr__(self, "person_accepts", check_accepted(self.person_accepts, self.person))
        for name in self.ignore:
            if name in names or name == self.person:
                raise SchemaError(
                    f"Column {name!r} is ignored and used.", remedy="Take it out of ignore."
                )
        known = {*names, *self.ignore}
        object.__setattr__(self, "accepted", check_accepted_alarms(self.accepted, known))
        check_sources(self.sources, self.columns)
        given = {n: self.sources.get(n, ColumnSource()) for n in names}
        object.__setattr__(self, "sources", {n: s for n, s in given.items() if s != ColumnSource()})
        object.__setattr__(self, "constraints", tuple(self.constraints))
        check_constraints(self.constraints)
        check_possible(self.constraint_zeros, {c.name: c.size for c in self.columns}.__getitem__)

    def _facts(self) -> Facts:
        return facts_of(self)

    @property
    def table_names(self) -> tuple[str, ...]:
        """The names of the table's columns that are read. Parts are read from other columns."""
        return tuple(dict.fromkeys(map(source_name, self.columns)))

    @property
    def output_columns(self) -> tuple[Column, ...]:
        """The columns of synthetic tables: all but the parts of other columns of the schema."""
        parts = [p for own in parts_by_column(self.columns).values() for p in own]
        return tuple(c for c in self.columns if c not in parts)

    @property
    def to_learn(self) -> tuple[Learn, ...]:
        """The columns whose bounds or categories a run learns first."""
        return tuple(c for c in self.columns if isinstance(c, Learn))

    def check_declared(self) -> None:
        """Raise ``SchemaError`` if a column is still to be learned, where its codes are needed."""
        for column in self.to_learn:
            raise SchemaError(
                f"Column {column.name!r} is to be learned: its codes have no meaning yet.",
                remedy="Use the schema of a release that learned it, or declare the column.",
            )

    @staticmethod
    def coded(sizes: Mapping[str, int]) -> Schema:
        """Return a confirmed schema of columns that already hold the codes 0 … size − 1."""
        return Schema(tuple(Coded(name, int(size)) for name, size in sizes.items()))

    @staticmethod
    def load(path: str | Path, *, table: Any = None) -> Schema:
        """Return the schema in a TOML file. Raise ``SchemaError`` for every fault of it."""
        if not isinstance(path, str | PathLike) or (isinstance(path, str) and "\n" in path):
            raise validators.no_schema(path)
        try:
            written = read_input(path)
        except OSError as error:
            raise SchemaError(
                f"The schema {path} cannot be read: {error.strerror or 'no file of that name'}.",
                remedy="Ask its owner for permission."
                if isinstance(error, PermissionError)
                else "Check the path.",
            ) from None
        except ValueError:
            raise SchemaError("The path of the schema is not a path.") from None
        try:
            return Schema.from_toml(written.decode("utf-8"), folder=Path(path).parent, table=table)
        except UnicodeDecodeError:
            raise validators.no_text(Path(path), written) from None
        except SchemaError as error:
            raise SchemaError(f"{path}: {error.message}", remedy=error.remedy) from None

    @staticmethod
    def from_toml(text: str, *, folder: Path | None = None, table: Any = None) -> Schema:
        """Return a schema from TOML. Raise ``SchemaError``, and nothing else, for every faulty text."""
        head, columns, constraints = toml.parse(text, References(folder, table))
        return Schema(columns, constraints=constraints, **head)

    def to_toml(self) -> str:
        """Return the schema as TOML. Equal schemas have the same text up to remarks and files."""
        return toml.write(self)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the TOML file, whole or not at all."""
        with written_whole(path, overwrite=overwrite) as temporary:
            temporary.write_text(self.to_toml(), encoding="utf-8", newline="\n")

    def hash(self) -> str:
        """Return the SHA-256 of the TOML without remarks, accepted alarms and files: equal schemas have one."""
        text = replace(self, remarks={}, accepted=(), files=()).to_toml()
        return hashlib.sha256(text.encode("utf-8")).hexdigest()

    def for_run(self) -> Schema:
        """Return the schema without remarks, accepted alarms, and distributions that another run learned."""
        columns = columns_for_run(self.columns)
        return replace(self, columns=columns, remarks={}, accepted=(), from_draft=False)

    def check_apart(self, table: Any) -> None:
        """Raise ``SchemaError`` if a file that the schema was read from is the table, by any link or by its bytes.

        **Privacy:** none is given: who runs it learns that a file they named is the table. Frames are not compared.
        """
        check_apart(self.files, table)

    @property
    def draft(self) -> bool:
        """True if a value was read off the rows; the gate refuses such a schema."""
        return any(source.is_read for source in self.sources.values())

    def check_not_read(self) -> None:
        """Raise ``SchemaError``, key by key, if a value was read off the rows."""
        if self.draft:
            raise read_error(self.sources)

    def confirmed(self) -> Schema:
        """Return the schema with every value taken as public, without remarks. The caller vouches for it."""
        sources = {n: s.confirmed() for n, s in self.sources.items()}
        return replace(self, sources=sources, remarks={}, from_draft=False)

    def with_learned(self, columns: Iterable[Column]) -> Schema:
        """Return the schema in which declared columns replace those to learn, by name.

        Their source is "learned". Columns to learn that none of them replaces are ignored. Constraints are dropped
        if they name one of these, or if no row without missing values in their columns is possible with them.

        >>> from margrave.schema.numeric import Real
        >>> open_schema = Schema([Learn("price", "real"), Learn("rank", "integer")])
        >>> schema = open_schema.with_learned([Real("price", 0, 9, missing=True)])
        >>> schema.to_learn, schema.ignore, schema.sources["price"].of
        ((), ('rank',), 'learned')
        """
        learned = {c.name: c for c in columns}
        lost = {c.name for c in self.to_learn if c.name not in learned}
        hidden = tuple(c.name for c in self.columns if not lost.isdisjoint(names_behind(c)))
        learned = {n: c for n, c in learned.items() if n not in hidden}
        sources = learned_sources(self.sources, self.to_learn, learned)
        sources = {n: s for n, s in sources.items() if n not in hidden}
        declared = tuple(learned.get(c.name, c) for c in self.columns if c.name not in hidden)
        by_name = {c.name: c for c in declared}
        return replace(
            self,
            columns=declared,
            ignore=(*self.ignore, *hidden),
            sources=sources,
            constraints=constraints_on_learned(self.constraints, by_name, learned_of(sources)),
        )

    def declare(
        self, *columns: Column, missing_codes: Mapping[str, Sequence[str]] | None = None
    ) -> Schema:
        """Return the schema with these columns in place of those of the same names, such as those of a draft.

        Args:
            columns: Columns whose stated values are public, ``Learn(...)`` included. The schema has columns so named.
            missing_codes: Values that the table writes for a missing one, by column; the columns need not be among
                ``columns``. A new declaration keeps the codes that were stated before. An empty list removes them.

        Raises:
            InputError: The schema has no column of such a name.
            SchemaError: A constraint or missing-value code does not fit the columns.

        Privacy:
            None spent. You state that these values are public.

        Example:
            >>> draft = Schema([Learn("region", "categorical"), Learn("term", "integer")])
            >>> draft = draft.declare(Learn("region", "categorical", same=("case", {"Nroth": "North"})))
            >>> draft.declare(missing_codes={"term": ["-1"]}).sources["term"].missing_codes
            ('-1',)
        """
        codes = codes_by_column(missing_codes)
        declared = {c.name: c for c in checked_columns(columns)}
        answered = {**declared, **codes}
        for name in answered:
            self.domain.index(name)
        return replace(
            self,
            columns=tuple(declared.get(c.name, c) for c in self.columns),
            sources=declared_sources(self.sources, declared, codes),
            remarks={n: r for n, r in self.remarks.items() if n not in answered},
        )

    def select(self, names: Iterable[str]) -> Schema:
        """Return the schema of some of the columns, in its order, with the constraints on these alone.

        It names no person ID column. Raises ``InputError`` for a name that is not a column.

        >>> Schema.coded({"age": 32, "sex": 2}).select(["sex"]).domain.attributes
        ('sex',)
        """
        kept = set(self.domain.clique(names))
        return Schema(
            tuple(c for c in self.columns if c.name in kept),
            sources={n: s for n, s in self.sources.items() if n in kept},
            constraints=tuple(c for c in self.constraints if kept.issuperset(c.columns)),
            files=self.files,
        )

    def drop(self, *names: str) -> Schema:
        """Return the schema without some columns of the table, which it ignores.

        Args:
            names: Columns of the schema. Parts of a dropped column, and constraints on it, go too.

        Raises:
            InputError: A name is not a column of the schema.
            SchemaError: No column would be left.

        Privacy:
            None spent.

        Example:
            >>> schema = Schema.coded({"age": 32, "sex": 2, "zip": 9}).drop("zip")
            >>> schema.domain.attributes, schema.ignore
            (('age', 'sex'), ('zip',))
        """
        dropped = set(self.domain.clique(names))
        left = [c for c in self.columns if dropped.isdisjoint(names_behind(c))]
        gone = {c.name for c in self.columns}.difference(c.name for c in left)
        read = {*map(source_name, left), self.person}
        unread = [n for n in self.table_names if n not in read]
        return replace(
            self,
            columns=tuple(left),
            ignore=(*self.ignore, *unread),
            sources={n: s for n, s in self.sources.items() if n not in gone},
            constraints=tuple(c for c in self.constraints if gone.isdisjoint(c.columns)),
            remarks={n: r for n, r in self.remarks.items() if n not in gone},
        )

    def for_reading_output(self) -> Schema:
        """Return the schema for reading synthetic tables: dates are read as margrave writes them."""
        alone = {c.name for c in self.output_columns}
        read = tuple(for_reading_output(c, alone=c.name in alone) for c in self.columns)
        return replace(self, columns=read)

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of each column, by its name."""
        return {c.name: c.kind for c in self.columns}

    def code_words(self, name: str) -> list[str]:
        """Return what each code of a column means, categories with their labels: "1 (female)"."""
        return code_words(self.column(name), self.source(name))

    @cached_property
    def domain(self) -> Domain:
        """The columns with their numbers of codes and meanings, and the combinations that constraints rule out."""
        merged: dict[Clique, StructuralZeros] = {}
        plain = Domain.of({c.name: c.size for c in self.columns})
        for zeros in (z for _, declared in self.constraint_zeros for z in declared):
            clique = plain.clique(zeros.clique)
            both = [zeros, merged[clique]] if clique in merged else [zeros]
            merged[clique] = StructuralZeros(clique, joined(both, clique, plain.size))
        unordered = frozenset(
            c.name
            for c in self.columns
            if isinstance(c, Categorical) or (isinstance(c, Learn) and not c.is_number)
        )
        missing = frozenset(c.name for c in self.columns if c.missing)
        meanings = {c.name: meaning_of(c) for c in self.columns}
        functions = functions_of(self.columns)
        return Domain(
            plain.attributes, plain.sizes, tuple(merged.values()), unordered, missing, meanings,
            functions, tuple(self.ignore),
        )  # fmt: skip

    @cached_property
    def constraint_zeros(self) -> tuple[tuple[Constraint, tuple[StructuralZeros, ...]], ...]:
        """Each constraint with the combinations of codes that it rules out."""
        columns = {c.name: c for c in self.columns}
        learned, from_files = learned_of(self.sources), bool(self.files)
        return declared_of(self.constraints, columns, learned, from_files=from_files)

    def pieces_of(self, frame: Any, names: Iterable[str]) -> dict[str, list[pa.Array]]:
        """Return the values of some of the table's columns; of an elapsed column, the time since another."""
        read = frames.columns_of(frame, names_to_read(self.columns, names))
        return with_elapsed(read, self.columns, self.sources)

    @hide_rows
    def encode(self, frame: Any) -> Codes:
        """Return the codes of every row of a frame. No value raises an error."""
        return self.read(frame)[0]

    @hide_rows
    def read(self, frame: Any, *, causes: bool = False) -> tuple[Codes, Preflight]:
        """Return the codes and the counts for the custodian; with ``causes`` also guesses at lost values."""
        pieces = self.pieces_of(frame, self.table_names)
        rows = [sum(map(len, p)) for p in pieces.values()]
        parts = {c.name for c in self.columns}.difference(c.name for c in self.output_columns)
        values = np.empty((len(self.columns), rows[0]), dtype=code_dtype(self.domain.sizes))
        found = []
        for i, column in enumerate(self.columns):
            checks, at = list[ColumnCheck](), 0
            stated = self.source(source_name(column))
            for piece in pieces[source_name(column)] or [pa.nulls(0)]:
                encoded = encode_with_missing_codes(column, piece, stated.missing_codes)
                values[i, at : at + len(piece)] = encoded.codes
                seen = count_causes(column, piece, encoded, stated.labels) if causes else None
                checks.append(ColumnCheck.of(column, encoded, seen))
                at += len(piece)
            if column.name not in parts:  # a part is lost where its column is
                found.append(reduce(add, checks))
        codes = Codes(self.domain, values)
        to_learn = {c.name for c in self.to_learn}
        violated = tuple(
            ConstraintCheck.of(constraint, zeros, codes)
            for constraint, zeros in self.constraint_zeros
            if to_learn.isdisjoint(constraint.columns)
        )
        return codes, Preflight(
            rows[0], tuple(found), constraints=violated, accepted=tuple(self.accepted)
        )

    @hide_rows
    def preflight(self, frame: Any) -> Preflight:
        """Return the number of values outside the schema, by column. For the custodian only.

        **Privacy:** NOT private: true counts.
        """
        return self.read(frame, causes=True)[1]

    @hide_rows
    def check(self, frame: Any) -> Preflight:
        """Return ``preflight``. Raise ``DataError`` if a policy refuses the values."""
        return self.preflight(frame).require()

    def decode(
        self,
        codes: Codes,
        *,
        rng: np.random.Generator,
        known: Mapping[str, Drawn] | None = None,
        as_numbers: bool = False,
    ) -> pa.Table:
        """Return a table of values drawn for the codes, null for missing. Elapsed columns may stay numbers."""
        if difference := self.domain.difference(codes.domain):
            raise InputError(
                f"These codes are not of this schema: {difference}.",
                remedy="Decode with the schema that made them.",
            )
        whole = {c.name: codes.column(c.name).astype(np.int64) for c in self.columns}
        by_name = {c.name: c for c in self.columns}
        lines = decode_lines(self.constraints, by_name, whole, rng, known or {})
        drawn = [
            lines[c.name] if c.name in lines else c.decode(whole[c.name], rng)
            for c in self.output_columns
        ]
        fields = [pa.field(c.name, c.type, nullable=True) for c in self.output_columns]
        table = pa.Table.from_arrays([chunks(d)[0] for d in drawn], schema=pa.schema(fields))
        return table if as_numbers else with_moments(table, self.columns)
