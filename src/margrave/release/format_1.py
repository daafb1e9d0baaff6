"""Release files of format 1: their manifest as one of the present format."""

from __future__ import annotations

import re
from typing import Any

from margrave.errors import ReleaseError
from margrave.release.plain_values import as_table, as_text

Plain = dict[str, Any]


def upgraded(plain: Plain) -> Plain:
    """Return a manifest of format 1 as one of format 2, which its reader checks as it checks any other.

    Raises:
        ReleaseError: The manifest is not one of format 1.
    """
    account = as_table(plain["account"])
    others = {key: value for key, value in plain.items() if key != "config"}
    return {
        **others,
        "account": {**account, "unit": _unit(account["unit"])},
        "provenance": _provenance(as_table(plain["config"])),
    }


def _unit(words: object) -> str:
    """Return the name of a unit that is given in the words of a certificate."""
    unit = re.compile(
        r"(add or remove|replace) one (?:row|(person) of at most (?:1 row|([2-9]|[1-9][0-9]{1,6}) rows))"
    )
    match = unit.fullmatch(words) if isinstance(words, str) else None
    if match is None:
        raise ReleaseError(
            f"The unit of privacy is {words!r:.80}, which is not one of margrave's units."
        )
    change = "replace" if match[1] == "replace" else "add-remove"
    return f"{change}-person:{match[3] or 1}" if match[2] else f"{change}-row"


def _provenance(config: Plain) -> Plain:
    # Entries of a configuration that are not parameters of the mechanism.
    not_parameters = frozenset(
        ["name", "workload", "fit", "first_fit", "public", "refit", "refit_public", "stopped_early"]
    )
    public = _public(config.get("public"))
    refitted = "refit" in config
    again = _public(config.get("refit_public"))
    return {
        "name": config.get("name"),
        "parameters": {k: v for k, v in config.items() if k not in not_parameters},
        "workload": _workload(config.get("workload")),
        "fit": _fit(config.get("first_fit") if refitted else config.get("fit"), public),
        "public": public,
        "refit": _fit(config.get("fit"), again) if refitted else None,
        "stopped_early": config.get("stopped_early", False),
    }


def _workload(plain: object) -> Plain | None:
    if plain is None:
        return None
    if isinstance(plain, list):
        return {"marginals": plain}
    ways = re.fullmatch(r"all ([1-9])-way", as_text(plain))
    if ways is None:
        raise ReleaseError("The workload of the release is malformed.")
    return {"ways": int(ways[1])}


def _public(plain: object) -> Plain | None:
    return None if plain is None else {"notes": [], "same_records": False, **as_table(plain)}


def _parameters(spec: Plain) -> Plain:
    """Return the parameters of a fit; graphical fits left no codes out and raked no columns."""
    since = {"empty_below": 0.0, "rake": False} if spec.get("name") == "graphical" else {}
    return {**since, **as_table(spec.get("parameters", {}))}


def _fit(plain: object, public: Plain | None) -> Plain | None:
    """Return the spec of a fit. One with parameters that are not plain cannot be rebuilt, and has no name."""
    if plain is None:
        return None
    spec = as_table(plain)
    other = as_table(spec.get("other", {}))
    shown = {**as_table(spec.get("parameters", {})), **other}
    words = ", ".join(f"{k}={v}" for k, v in shown.items())
    return {
        "words": spec.get("words", f"{spec.get('name')}({words})"),
        "name": None if other else spec.get("name"),
        "parameters": {} if other else _parameters(spec),
        "public": public if "public" in other else None,
    }
