"""A public table: records that anyone may see, beside the private ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import numpy as np

from margrave._card import counted
from margrave._io import files_of, same_file
from margrave.domain import Codes, Domain
from margrave.errors import InputError
from margrave.provenance import PublicFacts
from margrave.types import Attribute


@dataclass(frozen=True, eq=False)
class PublicTable:
    """Public records, with the statement that they are public.

    Args:
        codes: The records, with all columns of the private table's domain or some of them.
        attestation: Where the records come from and why they are public. The certificate quotes it
            beside their hash; margrave cannot check it. Records of the private table do not become
            public by it: a release that rests on them protects nobody among them.
        same_records: Whether they are the private records themselves, of which these columns are
            public. The other columns are then protected: replacing a record replaces those.
        source: The file that they were read from. No run accepts the private table's own file.
        notes: Counts of values that the schema does not hold, and what became of them.

    Raises:
        InputError: There are no codes, no records or no attestation.

    Privacy:
        Whatever is computed from it costs nothing, and is not protected.

    Example:
        >>> domain = Domain.of({"age": 3, "sex": 2})
        >>> codes = Codes.of(domain, {"age": np.array([0, 2]), "sex": np.array([1, 1])})
        >>> len(PublicTable(codes, "last year's published sample").codes)
        2
    """

    codes: Codes
    attestation: str
    same_records: bool = False
    source: str | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.codes, Codes):
            raise InputError(
                f"A public table is made of codes, and this is a {type(self.codes).__name__}.",
                remedy="Read a file or a frame by the schema: margrave.read_public(table, schema, attestation=...).",
            )
        if not isinstance(self.attestation, str) or not self.attestation.strip():
            raise InputError(
                "The public table comes without a word on why it is public.",
                remedy="Say in its attestation where the records come from and who published them.",
            )
        if not len(self.codes):
            raise InputError(
                "The public table has no records.", remedy="Leave it out, or name another."
            )

    @property
    def domain(self) -> Domain:
        """The domain of its columns."""
        return self.codes.domain

    @cached_property
    def sha256(self) -> str:
        """The hash of its columns, their numbers of codes, and its records in their order, in hex."""
        names = [f"{a}:{size}" for a, size in zip(self.domain, self.domain.sizes, strict=True)]
        records = np.ascontiguousarray(self.codes.values, dtype="<u4").tobytes()
        return sha256("\n".join(names).encode() + b"\0" + records).hexdigest()

    def check(self, domain: Domain) -> None:
        """Raise ``InputError`` unless its columns are columns of the domain with the same meaning."""
        for attribute in self.domain:
            if attribute not in domain:
                raise InputError(
                    f"The public table's column {attribute!r} is not the private table's.",
                    remedy="Encode both with one schema.",
                )
            if difference := domain.difference_in(attribute, self.domain):
                raise InputError(
                    f"The public table was read by another schema than the private one: {difference}.",
                    remedy="Read it by the private table's: margrave.read_public(table, schema, attestation=...).",
                )

    @cached_property
    def repeats(self) -> int:
        """The number of times that every record was repeated, as by weights; usually 1.

        It is the greatest common divisor of the counts of the distinct records. With fewer than
        ``MIN_COUNTS_FOR_REPEATS`` of them it is 1, because they can share a divisor by chance.
        """
        # Fewer numbers have a common divisor by chance more often than once in tens of millions
        # of times.
        min_counts_for_repeats = 25
        with np.errstate(over="ignore"):
            signs = np.random.default_rng(0).integers(1, 2**63, len(self.domain), dtype=np.uint64)
            marks = (self.codes.values.astype(np.uint64) * signs[:, None]).sum(
                axis=0, dtype=np.uint64
            )
        often = np.unique(marks, return_counts=True)[1]
        return int(np.gcd.reduce(often)) if len(often) >= min_counts_for_repeats else 1

    def needs(self, domain: Domain, what: str) -> None:
        """Raise ``InputError`` unless it covers every column of the domain, which ``what`` needs."""
        self.check(domain)
        lacking = [a for a in domain if a not in self.domain]
        if lacking:
            other = (
                "AIMPub" if domain.zeros else "GEM^Pub or AIMPub"
            )  # networks keep no constraints
            raise InputError(
                f"The public table has no column {lacking[0]!r}, and {what} needs all columns.",
                remedy=f"Use {other}, which takes public tables that lack columns, or leave the column out.",
            )

    def check_apart(self, files: Sequence[Path], domain: Domain) -> None:
        """Raise ``InputError`` if it was read from one of the private table's own files, by their places.

        With ``same_records`` its columns come from there, but they must not be all columns.
        """
        if self.same_records and all(a in self.domain for a in domain):
            raise InputError(
                "All columns of the private table are taken to be public: nothing would be protected.",
                remedy="Name those that are public: --public-columns (in Python columns=[...]).",
            )
        if (
            not self.same_records
            and self.source is not None
            and any(same_file(own, file) for own in files_of(self.source) for file in files)
        ):
            raise InputError(
                f"The public table and the private one are the same file, {self.source}: nobody in it would be"
                " protected.",
                remedy="Name a table of other records. Where some columns of the private records are public, name these"
                " with --public-columns, and say --same-records (in Python columns=[...], same_records=True).",
            )

    def select(self, attributes: Iterable[Attribute]) -> PublicTable:
        """Return the same records with some of their columns."""
        kept = self.domain.project(attributes)
        rows = [self.domain.index(a) for a in kept]
        return replace(self, codes=Codes(kept, self.codes.values[rows]))

    def facts(self) -> PublicFacts:
        """Return what a certificate shows of it."""
        return PublicFacts(
            rows=len(self.codes),
            columns=self.domain.attributes,
            sha256=self.sha256,
            attestation=self.attestation,
            notes=self.notes,
            same_records=self.same_records,
        )

    def __repr__(self) -> str:
        return f"Public({counted(len(self.codes), 'record')}, sha256 {self.sha256[:16]})"
