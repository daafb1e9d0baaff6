"""Public tables of mechanisms: which serve a run, and their marginals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from margrave.accounting import Unit, size_is_public
from margrave.domain import Domain
from margrave.errors import InputError
from margrave.marginal.counting import count_cliques
from margrave.privacy import Private
from margrave.public_table import PublicTable
from margrave.structural_zeros import StructuralZeros, joined, projected, violating
from margrave.types import Clique, FloatArray


def takes_public(mechanism: Any) -> bool:
    """Return whether a mechanism, or a class of them, has a field for a public table."""
    return is_dataclass(mechanism) and any(f.name == "public" for f in fields(mechanism))


def lacks_public(mechanism: Any) -> bool:
    """Return whether a mechanism needs a public table and has none yet."""
    return takes_public(mechanism) and mechanism.public is None


def check_public_table(
    public: PublicTable | None, domain: Domain, *, own_columns: bool = False
) -> PublicTable:
    """Return the public table; raise `InputError` if it is missing or does not fit the domain.

    ``own_columns``: the mechanism knows what to do with columns of the private records themselves.
    To others they would be a sample of somebody else's, and what is known would be paid for and
    blurred.
    """
    if public is None:
        raise InputError(
            "This mechanism needs a public table.",
            remedy="Give one: public=margrave.read_public(file, schema, attestation=...), or --public FILE"
            " --attestation TEXT.",
        )
    if public.same_records and not own_columns:
        raise InputError(
            "The public table holds columns of the private records themselves, which this mechanism makes no use of.",
            remedy="Choose AIMPub (--mechanism aim-pub), which asks nothing of them.",
        )
    public.check(domain)
    check_possible(public, domain)
    return public


def not_public(
    public: PublicTable, cliques: Iterable[Clique], private: Private
) -> tuple[Clique, ...]:
    """Return the marginals that are not public: all, unless the records are the private ones."""
    found = still_private(public, cliques, private.unit)
    if public.same_records and len(public.codes) != private.transcript.total():
        raise InputError(
            f"The public columns have {len(public.codes)} records, and the private table has another number of them.",
            remedy="Give the columns of the same records, or leave same_records (--same-records) out.",
        )
    return found


def still_private(public: PublicTable, cliques: Iterable[Clique], unit: Unit) -> tuple[Clique, ...]:
    """Return the marginals that are not public, without a check of the number of records."""
    if not public.same_records:
        return tuple(cliques)
    if not size_is_public(unit):
        raise InputError(
            "Columns of the private records are public, and so is their number, which this unit of privacy protects.",
            remedy="Choose a unit that replaces: ReplaceRow(), or --unit replace-row. Columns of persons cannot be.",
        )
    found = tuple(r for r in cliques if any(a not in public.domain for a in r))
    if not found:
        raise InputError(
            "Every column that the workload names is public: there is nothing to measure.",
            remedy="Name the private columns in the workload, or publish the table itself.",
        )
    return found


def zeros_of(public: PublicTable, domain: Domain) -> Sequence[StructuralZeros]:
    """Return the domain's constraints on public columns; none if they are the private records'."""
    return (
        ()
        if public.same_records
        else projected(domain.zeros, public.domain.attributes, domain.size) or ()
    )


def check_possible(public: PublicTable, domain: Domain) -> None:
    """Raise ``InputError`` where the constraints call every public record impossible."""
    if violating(zeros_of(public, domain), public.codes.column, len(public.codes)).all():
        raise InputError(
            "Every record of the public table has a combination that the schema declares impossible.",
            remedy="Give another public table, or mend the schema's constraints.",
        )


def counted(
    public: PublicTable, domain: Domain, cliques: Iterable[Clique]
) -> dict[Clique, FloatArray]:
    """Return the public records in each cell of the cliques whose columns are public.

    A survey may call children married that the private table cannot. Read as they stand, its
    marginals of age and marital status would say that there are no others, and so no children. Of
    age alone it is right about them.
    """
    ordered = {r: public.domain.clique(r) for r in cliques if all(a in public.domain for a in r)}
    counts: Mapping[Clique, Any] = count_cliques(public.codes, ordered.values())
    found = {
        r: np.asarray(np.transpose(counts[c], [c.index(a) for a in r]), dtype=np.float64)
        for r, c in ordered.items()
    }
    zeros = zeros_of(public, domain)
    for r in found if zeros else ():
        found[r] *= joined([z for z in zeros if set(z.clique) <= set(r)], r, domain.size)
    return found


def scaled(
    public: PublicTable, domain: Domain, cliques: Iterable[Clique], total: float
) -> dict[Clique, FloatArray]:
    """Return the public marginals of the cliques whose columns are public, scaled to a total."""
    found = counted(public, domain, cliques)
    return {r: values * (total / values.sum()) for r, values in found.items() if values.any()}
