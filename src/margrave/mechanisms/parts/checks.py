"""Checks of a run that need no row. A run and its plan make the same."""

from __future__ import annotations

from typing import Any

from margrave._io import files_of
from margrave.accounting import Unit
from margrave.domain import Domain
from margrave.errors import ModelTooLargeError
from margrave.mechanisms.common import Mechanism
from margrave.mechanisms.parts.countable import check_counts
from margrave.mechanisms.parts.public import check_public_table, lacks_public, takes_public
from margrave.public_table import PublicTable


def check_run(
    domain: Domain, mechanism: Mechanism, unit: Unit, *, table: Any = None, ahead: bool = False
) -> None:
    """Raise whatever public inputs alone say against a run.

    ``table`` is what will be read, if that is known. ``ahead``: a public table that is needed may
    still be missing.

    **Privacy:** none spent: no row is read.
    """
    check_domain(domain)
    check_counts(domain, mechanism)
    if not (ahead and lacks_public(mechanism)):
        check_public(domain, mechanism, table)
    mechanism.check(domain, unit)


def check_domain(domain: Domain) -> None:
    """Refuse a domain that no model can hold, and name the column."""
    # Codes of the largest column: a model cannot be fitted to more.
    max_codes = 1 << 22
    largest = max(domain.attributes, key=domain.size, default=None)
    if largest is not None and domain.size(largest) > max_codes:
        raise ModelTooLargeError(
            f"Column {largest!r} has {domain.size(largest):,} codes, too many for any model.",
            remedy="Give it fewer bins or categories in the schema.",
        )


def check_public(domain: Domain, mechanism: Mechanism, table: Any = None) -> None:
    """Refuse a mechanism without the public table that it needs, or with another domain's.

    And one, of its fit too, that was read from the private ``table``'s own file.
    """
    if takes_public(mechanism):
        check_public_table(mechanism.public, domain, own_columns=mechanism.own_columns)
    private = files_of(table)
    for known in publics_of(mechanism):
        if known is not mechanism.public:
            check_public_table(known, domain)
        known.check_apart(private, domain)


def publics_of(mechanism: Mechanism) -> list[PublicTable]:
    """Return the public tables of the mechanism and its fit."""
    held = [mechanism.public, None if mechanism.fit is None else mechanism.fit.public]
    return [public for public in held if public is not None]
