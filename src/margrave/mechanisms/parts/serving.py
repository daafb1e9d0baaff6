"""A mechanism whose workload serves the purposes of a release."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from margrave.domain import Domain
from margrave.errors import InputError
from margrave.mechanisms.repeated import Repeated
from margrave.purposes import first_of, purposes_of, workload_for
from margrave.workload import Workload

if TYPE_CHECKING:
    from margrave.mechanisms.common import Mechanism


def serving(mechanism: Mechanism, texts: Iterable[str], domain: Domain) -> Mechanism:
    """Return the mechanism with a workload in which purposes weigh as much as all else together.

    A mechanism that must be given its workload, such as NAPSU-MQ, gets that of the purposes alone.

    Raises:
        InputError: A purpose is not understood, or the mechanism has no use for the weights of marginals.
    """
    if isinstance(mechanism, Repeated):
        return replace(mechanism, mechanism=serving(mechanism.mechanism, texts, domain))
    purposes = purposes_of(texts, domain)
    if not purposes:
        return mechanism
    has_workload = any(f.name == "workload" for f in fields(mechanism))  # type: ignore[arg-type]
    if not (has_workload and mechanism.weighs_marginals and mechanism.asks_marginals):
        raise InputError(
            f"The mechanism {mechanism.name} asks the same questions whatever the release is for.",
            remedy="Choose aim, the default, or napsu-mq; or leave --for (purposes) out.",
        )
    if mechanism.workload is None and not mechanism.default_ways:
        alone = {c: 1.0 for p in purposes for c in p.cliques}
        workload = Workload(alone, tuple(p.text for p in purposes), first_of(purposes))
    else:
        workload = workload_for(purposes, mechanism.workload_on(domain))
    return replace(mechanism, workload=workload)  # type: ignore[type-var]
