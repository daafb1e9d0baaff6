"""The certificate of a release: what was promised, what was spent, and what it rests on, as plain data."""

from __future__ import annotations

import functools
import platform
from collections.abc import Mapping
from fractions import Fraction
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from margrave import __version__
from margrave.release.preconditions import preconditions
from margrave.release.together import together_of, unasked
from margrave.schema import Schema
from margrave.schema.constraints import name_of
from margrave.schema.toml_constraints import write_constraint
from margrave.transcript import Account, PublicTotal, Transcript

NOT_PRIVATE = "NOT PRIVATE: the noise came from a seeded source meant for tests. Do not publish this."


def current_versions() -> dict[str, str]:
    """Versions of what a release's noise and numbers rest on."""
    return {
        "margrave": __version__,
        "python": platform.python_version(),
        "numpy": _installed("numpy"),
        "opendp": _installed("opendp"),
    }


@functools.cache  # looking through the installed packages takes as long as a small release
def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def build_certificate(
    schema: Schema,
    transcript: Transcript,
    account: Account,
    config: Mapping[str, Any],
    versions: Mapping[str, str],
    size: float,
    posterior: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The facts of a release in one table that fits in JSON.

    ``posterior`` is how the model's draws were made and how well they mix, where it has any.
    """
    facts: dict[str, Any] = {
        "private": account.private,
        "unit": account.unit,
        "epsilon": account.epsilon,
        "delta": account.delta,
        "rho": {"budget": _exact(account.rho_budget), "spent": _exact(account.rho_spent)},
        "mechanism": dict(config),
        "schema": {
            "sha256": schema.hash(),
            "columns": len(schema.columns),
            "cells": str(schema.domain.cells()),
            **({"files": [{"name": f.name, "sha256": f.sha256} for f in schema.files]} if schema.files else {}),
        },
        "constraints": _constraints(schema),
        "preconditions": preconditions(schema),
        "sampler": account.sampler,
        "versions": dict(versions),
        "size": size,
        "size_is_public": any(isinstance(e, PublicTotal) for e in transcript),
        "ledger": [{"what": d.what, "rho": _exact(d.rho)} for d in account.debits],
        "unasked": list(unasked(schema.domain, transcript, config)),
        "together": together_of(schema.domain, transcript, config).facts(),
        "transcript": [entry.facts() for entry in transcript],
        "public_inputs": _public_inputs(schema, transcript, config),
    }
    if account.left_out:
        facts["left_out"] = account.left_out
    if weak := large_delta(account.delta, size):
        facts["large_delta"] = weak
    if several := several_rows(schema, account):
        facts["several_rows"] = several
    if posterior is not None:
        facts["posterior"] = dict(posterior)
    if not account.private:
        facts["warning"] = NOT_PRIVATE
    return facts


def large_delta(delta: float, size: float) -> str:
    """Return what it means that delta is 1 in the estimated number of records or more; empty if it is not."""
    if delta * size < 1.0:
        return ""
    return (
        f"delta is {delta:g}, which is at least 1 in the {size:,.0f} records: it allows publishing one whole record."
        " Do not take this release for a private one."
    )


def several_rows(schema: Schema, account: Account) -> str:
    """What a promise about a row means for persons with several; empty where the unit or the schema knows of none."""
    if schema.person is None or account.left_out:
        return ""
    return (
        f"A person with several rows is protected less: the promise is for one row ({account.unit}), and the schema"
        f" has a column that says whose row it is ({schema.person}). For a person with k rows rho is k squared times"
        " as large."
    )


def _constraints(schema: Schema) -> list[dict[str, Any]]:
    """What was declared to be impossible: its kind and columns, how many combinations it rules out, and its hash."""
    return [
        {
            "what": name_of(constraint),
            "combinations": sum(int(z.possible.size) for z in zeros),
            "impossible": sum(int((~z.possible).sum()) for z in zeros),
            "sha256": sha256("\n".join(write_constraint(constraint)).encode()).hexdigest(),
        }
        for constraint, zeros in schema.declared
    ]


def _exact(rho: Fraction) -> dict[str, Any]:
    return {"exact": str(rho), "decimal": float(rho)}


def _public_words(public: Mapping[str, Any]) -> str:
    if public.get("same_records"):
        columns = ", ".join(map(str, public.get("columns", ())))
        return f"the columns {columns} of the {public.get('rows')} private records"
    return f"a public table of {public.get('rows')} records"


def _public_inputs(schema: Schema, transcript: Transcript, config: Mapping[str, Any]) -> list[str]:
    inputs = [f"the schema, sha256 {schema.hash()}"]
    inputs += [f"the file {f.name} that the schema was read from, sha256 {f.sha256}" for f in schema.files]
    inputs += [f"the constraint {c['what']}, sha256 {c['sha256']}" for c in _constraints(schema)]
    inputs += [
        f"the number of records, {entry.total}" for entry in transcript if isinstance(entry, PublicTotal)
    ]
    tables = [p for p in (config.get("public"), config.get("refit_public")) if isinstance(p, dict)]
    inputs += [f"{_public_words(p)}, sha256 {p.get('sha256')}: {p.get('attestation')}" for p in tables]
    return inputs
