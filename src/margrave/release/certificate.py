"""The certificate of a release: what was promised, what was spent, and what it rests on, as plain data."""

from __future__ import annotations

import functools
import platform
from collections.abc import Mapping
from fractions import Fraction
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from margrave._card import Card, Facts
from margrave._other_names import AnswersNames
from margrave._version import __version__
from margrave.account import Account
from margrave.errors import did_you_mean
from margrave.models import FittedAnswers
from margrave.provenance import Provenance
from margrave.release.coverage import coverage_of
from margrave.release.diagnostics import empty_words, unmeasured_columns
from margrave.release.numbers import numbers_of
from margrave.release.preconditions import preconditions
from margrave.release.purposes import supports_of
from margrave.schema import Schema
from margrave.schema.constraints import name_of
from margrave.schema.toml_constraints import write_constraint
from margrave.transcript import PublicTotal, Transcript


def current_versions() -> dict[str, str]:
    """Return the versions of the libraries that a release's noise and numbers rest on."""
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


class Certificate(AnswersNames, Card, dict[str, Any]):
    """The facts of a release as plain data, shown as a card."""

    def _hint(self, name: str) -> str:
        if name in self:
            return f"It is certificate[{name!r}]."
        if name in self["rho"]:
            return f"It is certificate['rho'][{name!r}]."
        return did_you_mean(name, self).strip()

    def _facts(self) -> Facts:
        private = "" if self["private"] else ", NOT PRIVATE"
        line = f"{self['mechanism']['name']}, epsilon={self['epsilon']:g}, delta={self['delta']:g}{private}"
        rho, schema = self["rho"], self["schema"]
        rows = [
            ("protected", self["unit"]),
            ("spent", f"rho {rho['spent']['decimal']:.6g} of {rho['budget']['decimal']:.6g}"),
            ("questions", str(len(self["transcript"]))),
            ("columns", str(schema["columns"])),
            ("sha256 of the schema", schema["sha256"]),
        ]
        warnings = [self[k] for k in ("warning", "large_delta", "several_rows") if k in self]
        return Facts(line, rows, [*warnings, "json.dumps(certificate) has all."])


def build_certificate(
    schema: Schema,
    transcript: Transcript,
    account: Account,
    provenance: Provenance,
    versions: Mapping[str, str],
    model: FittedAnswers,
) -> Certificate:
    """Return the facts of a release in one table that fits in JSON."""
    size, posterior = model.total, model.posterior()
    not_private = (
        "NOT PRIVATE: the noise came from a seeded source meant for tests. Do not publish this."
    )
    facts: dict[str, Any] = {
        "private": account.private,
        "unit": str(account.unit),
        "epsilon": account.epsilon,
        "delta": account.delta,
        **account.threshold_delta_to_dict(),
        "rho": {"budget": _exact(account.rho_budget), "spent": _exact(account.rho_spent)},
        "mechanism": provenance.to_dict(),
        "schema": {
            "sha256": schema.hash(),
            "columns": len(schema.columns),
            "cells": str(schema.domain.cells()),
            **(
                {"files": [{"name": f.name, "sha256": f.sha256} for f in schema.files]}
                if schema.files
                else {}
            ),
            **({"sources": _sources(schema)} if schema.sources else {}),
        },
        "constraints": _constraints(schema),
        "preconditions": preconditions(schema, account.preflight),
        "sampler": account.sampler,
        "versions": dict(versions),
        "size": size,
        "size_is_public": any(isinstance(e, PublicTotal) for e in transcript),
        "ledger": [
            {
                "what": d.what,
                "rho": _exact(d.rho),
                **({"delta": _exact(d.delta)} if d.delta else {}),
            }
            for d in account.debits
        ],
        "unmeasured_columns": list(unmeasured_columns(schema.domain, transcript, provenance)),
        "coverage": coverage_of(schema.domain, transcript, provenance).facts(),
        "transcript": [entry.facts() for entry in transcript],
        "public_inputs": _public_inputs(schema, transcript, provenance),
        "numbers": _numbers(schema, transcript, model),
    }
    if account.ledger is not None:
        facts["ledger_file"] = account.ledger.to_dict()
    if vouched := vouched_words(transcript):
        facts["vouched"] = vouched
    if purposes := supports_of(schema.domain, transcript, provenance):
        facts["purposes"] = [p.to_dict() for p in purposes]
    if empty := empty_words(schema, transcript, model):
        facts["empty_codes"] = empty
    if account.left_out:
        facts["left_out"] = account.left_out
    if weak := large_delta(account.delta, size):
        facts["large_delta"] = weak
    if several := several_rows(schema, account):
        facts["several_rows"] = several
    if posterior is not None:
        facts["posterior"] = dict(posterior.facts)
    if not account.private:
        facts["warning"] = not_private
    if model.absent:
        facts["no_model"] = model.absent
    return Certificate(facts)


def _sources(schema: Schema) -> dict[str, dict[str, str]]:
    """Return what is stated of each column's source, by column."""
    return {
        name: {"source": source.of, **({"cite": source.cite} if source.cite else {})}
        for name, source in schema.sources.items()
    }


def _numbers(schema: Schema, transcript: Transcript, model: FittedAnswers) -> dict[str, Any]:
    """Return the numbers of numeric columns and the shares of missing values, without categories."""
    level = 0.95
    found = numbers_of(schema, transcript, model, level)
    rows = [n.to_dict() for n in found if not n.is_of_category]
    return {"level": level, "rows": rows}


def large_delta(delta: float, size: float) -> str:
    """Return what it means that delta is 1 in the estimated number of records or more; empty if it is not."""
    if delta * size < 1.0:
        return ""
    return (
        f"delta is {delta:g}, which is at least 1 in the {size:,.0f} records: it allows publishing one whole record."
        " Do not take this release for a private one."
    )


def vouched_words(transcript: Transcript) -> list[str]:
    """Return a sentence for each score whose sensitivity was stated by code outside the library."""
    scores = dict.fromkeys(s.vouched for s in transcript.selections if s.vouched)
    return [
        f"The sensitivity of choices by {s} was vouched for by code outside the library."
        for s in scores
    ]


def several_rows(schema: Schema, account: Account) -> str:
    """Return what a promise about a row means for persons with several; empty if it does not apply."""
    if schema.person is None or account.left_out:
        return ""
    return (
        f"A person with several rows is protected less: the promise is for one row ({account.unit}), and the schema"
        f" has a column that says whose row it is ({schema.person}). For a person with k rows rho is k squared times"
        f" as large.{several_at_thresholds(account)}"
    )


def several_at_thresholds(account: Account) -> str:
    """Return what thresholds of learned categories mean for several rows or persons, after a sentence on rho."""
    if not account.delta_spent:
        return ""
    return (
        " The thresholds of learned categories are set for one such change. A value that only these k have reaches them"
        " more often than delta says, and is then published."
    )


def _constraints(schema: Schema) -> list[dict[str, Any]]:
    """Return each constraint by its kind, columns and hash, with the number of combinations that it excludes."""
    return [
        {
            "what": name_of(constraint),
            "combinations": sum(int(z.possible.size) for z in zeros),
            "impossible": sum(int((~z.possible).sum()) for z in zeros),
            "sha256": sha256("\n".join(write_constraint(constraint)).encode()).hexdigest(),
        }
        for constraint, zeros in schema.constraint_zeros
    ]


def _exact(amount: Fraction) -> dict[str, Any]:
    return {"exact": str(amount), "decimal": float(amount)}


def _public_inputs(schema: Schema, transcript: Transcript, provenance: Provenance) -> list[str]:
    inputs = [f"the schema, sha256 {schema.hash()}"]
    inputs += [
        f"the file {f.name} that the schema was read from, sha256 {f.sha256}" for f in schema.files
    ]
    inputs += [
        f"the values of column {name}, cited from {source.cite}"
        for name, source in schema.sources.items()
        if source.cite
    ]
    inputs += [f"the constraint {c['what']}, sha256 {c['sha256']}" for c in _constraints(schema)]
    inputs += [
        f"the number of records, {entry.total}"
        for entry in transcript
        if isinstance(entry, PublicTotal)
    ]
    return inputs + [table.describe() for table in provenance.public_tables]
