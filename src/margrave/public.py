"""A public table: records that anyone may see, as an input beside the private ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from os import PathLike
from typing import Any

import numpy as np

from margrave.errors import InputError
from margrave.files import same_file
from margrave.schema.domain import Codes, Domain
from margrave.typing import Attribute

TELLING = 25
"""So many numbers have a common divisor by chance once in tens of millions of times."""


@dataclass(frozen=True, eq=False)
class Public:
    """Records that are public, and the word of whoever says so.

    ``codes`` covers all columns of the private table's domain, or some of them, with the same codes. ``attestation``
    says where the records come from and why they are public: it stands in the certificate beside their hash. margrave
    cannot check it. Records taken from the private table are not public because someone says so: a release that rests
    on them protects nobody among them.

    ``same_records``: they are the private records themselves, of which these columns are public and the others are not.
    What is protected then is the other columns: replacing a record replaces those.

    ``source`` is the file that they were read from, if any: no run takes the private table's own for a public one.
    ``notes`` say what became of values that the schema does not hold, as counts: of public records these are public.

    **Privacy:** whatever is computed from it costs nothing, and is not protected.

    >>> domain = Domain.of({"age": 3, "sex": 2})
    >>> codes = Codes.of(domain, {"age": np.array([0, 2]), "sex": np.array([1, 1])})
    >>> len(Public(codes, "last year's published sample").codes)
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
            raise InputError("The public table has no records.", remedy="Leave it out, or name another.")
        tops = self.codes.values.max(axis=1)
        for attribute, size, top in zip(self.domain, self.domain.sizes, tops, strict=True):
            if top >= size:
                raise InputError(f"The public table's column {attribute!r} holds codes outside 0 to {size - 1}.")

    @property
    def domain(self) -> Domain:
        """The columns it covers."""
        return self.codes.domain

    @cached_property
    def sha256(self) -> str:
        """The hash of its columns, their numbers of codes, and its records in their order."""
        names = [f"{a}:{size}" for a, size in zip(self.domain, self.domain.sizes, strict=True)]
        records = np.ascontiguousarray(self.codes.values, dtype="<u4").tobytes()
        return sha256("\n".join(names).encode() + b"\0" + records).hexdigest()

    def check(self, domain: Domain) -> None:
        """Raise ``InputError`` unless its columns are columns of the domain, whose codes mean the same."""
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
        """How many times every record stands in it: 1, unless it was expanded, by weights say.

        The greatest common divisor of how often each does. Of fewer than ``TELLING`` different ones it may be above 1
        by chance, and 1 is taken.
        """
        with np.errstate(over="ignore"):
            signs = np.random.default_rng(0).integers(1, 2**63, len(self.domain), dtype=np.uint64)
            marks = (self.codes.values.astype(np.uint64) * signs[:, None]).sum(axis=0, dtype=np.uint64)
        often = np.unique(marks, return_counts=True)[1]
        return int(np.gcd.reduce(often)) if len(often) >= TELLING else 1

    def needs(self, domain: Domain, what: str) -> None:
        """Raise ``InputError`` unless it covers every column of the domain, as ``what`` needs."""
        self.check(domain)
        lacking = [a for a in domain if a not in self.domain]
        if lacking:
            other = "JAM" if domain.zeros else "GEM^Pub or JAM"  # networks keep no constraints
            raise InputError(
                f"The public table has no column {lacking[0]!r}, and {what} needs all columns.",
                remedy=f"Use {other}, which takes public tables that lack columns, or leave the column out.",
            )

    def check_apart(self, table: str | PathLike[str] | None, domain: Domain) -> None:
        """Raise ``InputError`` if it was read from the private table's own file; by its place, not by what it holds.

        Some columns of the private records may be public, and then come from there (``same_records``); not all.
        """
        if self.same_records and all(a in self.domain for a in domain):
            raise InputError(
                "All columns of the private table are taken to be public: nothing would be protected.",
                remedy="Name those that are public: --public-columns (in Python columns=[...]).",
            )
        if not self.same_records and None not in (self.source, table) and same_file(str(self.source), str(table)):
            raise InputError(
                f"The public table and the private one are the same file, {self.source}: nobody in it would be"
                " protected.",
                remedy="Name a table of other records. Where some columns of the private records are public, name these"
                " with --public-columns, and say --same-records (in Python columns=[...], same_records=True).",
            )

    def only(self, attributes: Iterable[Attribute]) -> Public:
        """The same records with some of their columns."""
        kept = self.domain.project(attributes)
        rows = [self.domain.index(a) for a in kept]
        return replace(self, codes=Codes(kept, self.codes.values[rows]))

    def facts(self) -> dict[str, Any]:
        """What the certificate says of it."""
        return {
            "rows": len(self.codes),
            "columns": list(self.domain),
            "sha256": self.sha256,
            "attestation": self.attestation,
            **({"notes": list(self.notes)} if self.notes else {}),
            **({"same_records": True} if self.same_records else {}),
        }

    def __repr__(self) -> str:
        return f"Public({len(self.codes)} records, sha256 {self.sha256[:16]})"
