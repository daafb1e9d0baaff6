"""`check_mechanism`: what every mechanism is held to."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial

from margrave.accounting import AddRemoveRow
from margrave.mechanisms import MECHANISMS
from margrave.provenance import Provenance
from margrave.testing.gate import MakeMechanism
from margrave.testing.loss import DOMAIN, check_loss
from margrave.testing.noninterference import check_same_answers
from margrave.testing.runs import check_budgets, check_seed, check_shape, check_zeros
from margrave.testing.tables import SHAPES, UNITS, require


def check_mechanism(make: MakeMechanism, *, seed: int = 0) -> None:
    """Check that a mechanism keeps what the gate, a plan and a release promise of it.

    It runs on odd tables (empty, one row, one column, columns of one code) and on neighbors.
    The checks are of tables of up to five columns: a mechanism that passes can
    still have faults.

    Args:
        make: Returns the mechanism for a domain.
        seed: Seed of the tables and of the noise.

    Raises:
        AssertionError: With one sentence, at the first check that fails.

    Privacy:
        None spent. The tables are made up, and the noise is seeded.

    Example:
        >>> from margrave.mechanisms import Independent
        >>> check_mechanism(lambda domain: Independent())
    """
    for check in mechanism_checks(make, seed=seed).values():
        check()


def mechanism_checks(make: MakeMechanism, *, seed: int = 0) -> Mapping[str, Callable[[], None]]:
    """Return the checks of `check_mechanism` by name, to run each as a test of its own.

    Args:
        make: Returns the mechanism for a domain.
        seed: Seed of the tables and of the noise.

    Returns:
        Functions without arguments. Each raises an `AssertionError` with one sentence if its
        check fails.

    Privacy:
        None spent. The tables are made up, and the noise is seeded.

    Example:
        >>> from margrave.mechanisms import Independent
        >>> checks = mechanism_checks(lambda domain: Independent())
        >>> checks["loss, replace one row"]()
    """
    checks = {"description": partial(_check_description, make)}
    for i, shape in enumerate(SHAPES):
        checks[f"table: {shape}"] = partial(check_shape, make, shape, UNITS[i % len(UNITS)], seed)
    checks["structural zeros"] = partial(check_zeros, make, seed)
    checks["seed"] = partial(check_seed, make, seed)
    for unit in UNITS:
        checks[f"budgets, {unit}"] = partial(check_budgets, make, unit, seed)
        checks[f"loss, {unit}"] = partial(check_loss, make, unit, seed)
        checks[f"same answers, {unit}"] = partial(check_same_answers, make, unit, seed)
    return checks


def _check_description(make: MakeMechanism) -> None:
    mechanism = make(DOMAIN)
    config, name = mechanism.config(), mechanism.name
    require(
        config["name"] == name, f"Its config() states the name {config['name']!r}, not {name!r}."
    )
    require(
        name not in MECHANISMS or isinstance(mechanism, MECHANISMS[name]),
        f"Its name {name!r} is that of a built-in mechanism.",
    )
    facts = Provenance.of(config).to_dict()
    require(json.loads(json.dumps(facts)) == facts, "JSON does not keep its config().")
    require(
        set(mechanism.reads(DOMAIN)) <= {DOMAIN.clique(c) for c in mechanism.reads(DOMAIN)},
        "Its reads() lists columns in another order than the domain's.",
    )
    mechanism.check(DOMAIN, AddRemoveRow())
