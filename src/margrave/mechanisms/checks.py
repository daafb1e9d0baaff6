"""What can be known of a run before anything is read: a run and its dry run both ask here, and hear the same."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, cast

from margrave.errors import ModelTooLargeError
from margrave.files import path_of
from margrave.mechanisms.common import Mechanism
from margrave.mechanisms.library import given
from margrave.privacy import Unit
from margrave.public import Public
from margrave.schema.domain import Domain

MAX_CODES = 1 << 22
"""The most codes one column may have: more make even its own noisy marginal too large to fit a model to."""

MAX_COUNTED = 1 << 30
"""The most cells that are counted behind the gate, over all marginals of a run: 8 GiB of counts."""


def check_run(domain: Domain, mechanism: Mechanism, unit: Unit, *, table: Any = None, ahead: bool = False) -> None:
    """Raise whatever public inputs alone say against a run.

    ``table`` is what will be read, if that is known. ``ahead``: a public table that is needed may still be missing.

    **Privacy:** none spent: no row is read.
    """
    check_domain(domain)
    check_counts(domain, mechanism)
    if not (ahead and lacks_public(mechanism)):
        check_public(domain, mechanism, table)
    check = getattr(mechanism, "check", None)  # mechanisms of others may have none
    if check is not None:
        check(domain, unit)


def check_domain(domain: Domain) -> None:
    """Refuse a domain that no model can hold, and name the column."""
    largest = max(domain.attributes, key=domain.size, default=None)
    if largest is not None and domain.size(largest) > MAX_CODES:
        raise ModelTooLargeError(
            f"Column {largest!r} has {domain.size(largest):,} codes, too many for any model.",
            remedy="Give it fewer bins or categories in the schema.",
        )


def check_counts(domain: Domain, mechanism: Mechanism) -> None:
    """Refuse a run whose counts would not fit in memory, and name the column that weighs most."""
    reads = set(mechanism.reads(domain))
    total = sum(domain.cells(r) for r in reads)
    if total > MAX_COUNTED:
        weight = {a: sum(domain.cells(r) for r in reads if a in r) for a in domain}
        widest = max(domain, key=lambda a: (weight[a], domain.size(a)))
        raise ModelTooLargeError(
            f"The marginals of this workload have {total:,} cells, more than can be counted; column {widest!r} with"
            f" {domain.size(widest):,} codes is in the largest of them.",
            remedy="Give it fewer bins or categories, or name a workload without it.",
        )


def check_public(domain: Domain, mechanism: Mechanism, table: Any = None) -> None:
    """Refuse a mechanism without the public table that it needs, or with one of other columns or codes.

    And one, of its fit too, that was read from the private ``table``'s own file.
    """
    if takes_public(mechanism):
        public: Public | None = cast(Any, mechanism).public
        given(public, domain, own_columns=getattr(mechanism, "own_columns", False))
    private = path_of(table)
    taken = getattr(mechanism, "public", None)
    for known in publics_of(mechanism):
        if known is not taken:
            given(known, domain)
        known.check_apart(private, domain)


def takes_public(mechanism: Any) -> bool:
    """Whether a mechanism, or a kind of them, has a field for a public table; then it needs one."""
    return is_dataclass(mechanism) and any(f.name == "public" for f in fields(mechanism))


def lacks_public(mechanism: Any) -> bool:
    """Whether a mechanism needs a public table and has none yet."""
    return takes_public(mechanism) and mechanism.public is None


def publics_of(mechanism: Mechanism) -> list[Public]:
    """The public tables that it starts from: its own and its fit's."""
    held = [getattr(holder, "public", None) for holder in (mechanism, getattr(mechanism, "fit", None))]
    return [public for public in held if isinstance(public, Public)]
