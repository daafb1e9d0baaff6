"""Checks of sealed runs, which are for services whose callers are not the custodian."""

from __future__ import annotations

from pathlib import Path

from margrave.accounting import Ledger
from margrave.errors import InputError, MargraveError, SchemaError
from margrave.mechanisms import Mechanism
from margrave.mechanisms.parts.checks import publics_of
from margrave.schema import Schema, schema_of
from margrave.schema.constraints import name_of
from margrave.unit import Unit, size_is_public


def registered_schema(
    schema: Schema | str | Path, ledger: str | Path | None, dataset: str | None
) -> Schema:
    """Return the schema of a sealed run, or raise ``SchemaError`` if the custodian did not register it.

    A schema's file, and the files that it names, may be chosen by the caller, who must not learn what they hold: the
    error has one text for all of them.

    Args:
        schema: The schema, or its file.
        ledger: The ledger in which it is registered.
        dataset: The data set's name in the ledger.
    """
    if ledger is None or dataset is None:
        raise InputError(
            "A sealed run needs a ledger, in which its attempts are recorded.",
            remedy="Give ledger and dataset (--ledger FILE --dataset NAME).",
        )
    try:
        found = schema_of(schema)
    except (MargraveError, OSError):
        found = None
    if found is None or not Ledger(ledger).schema_is_registered(dataset, found.hash()):
        raise SchemaError(
            f"The schema is not registered for sealed runs on {dataset!r}.",
            remedy="The custodian registers it: margrave ledger register-schema LEDGER DATASET SCHEMA.toml.",
        )
    return found


def check_sealed(schema: Schema, unit: Unit, mechanism: Mechanism) -> None:
    """Raise an error if a sealed run could not leave the rows without a word of them.

    Raises:
        SchemaError: A policy of the schema refuses rows, or rows without a person would change a public row count.
        InputError: The public table has the private records, which must be compared.
    """
    check_refuses_nothing(schema)
    if size_is_public(unit) and schema.person is not None:
        raise SchemaError(
            "A sealed run leaves out rows without a person, and the number of the others would be public under the"
            " unit to replace a row.",
            remedy="Give --unit add-remove-row or a unit of persons, or name no person ID column in the schema.",
        )
    if any(public.same_records for public in publics_of(mechanism)):
        raise InputError(
            "A sealed run does not compare the public table with the rows, as same_records needs.",
            remedy="Run it with the custodian's preflight, or leave same_records out.",
        )


def check_refuses_nothing(schema: Schema) -> None:
    """Raise ``SchemaError`` if a policy of the schema refuses rows, which no sealed run may do."""
    refusing = [c.name for c in schema.columns if c.outside == "refuse"]
    refusing += [name_of(c) for c in schema.constraints if c.violating == "refuse"]
    if refusing:
        raise SchemaError(
            f"A sealed run refuses no values, and {refusing[0]!r} has the policy 'refuse'.",
            remedy="Give it another policy: clip, other or missing; keep for a constraint.",
        )
