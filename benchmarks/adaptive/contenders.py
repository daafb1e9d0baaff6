"""Who takes part. A mechanism that this version of margrave does not have is left out, and said to be missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
from benchmarks.adaptive.grids import Setting
from benchmarks.adaptive.tasks import Task

from margrave import Budget, MemoryTable, Release, ReplaceRow, protect
from margrave.mechanisms.common import Memory, release_of


@dataclass(frozen=True)
class Contender:
    """A mechanism by its name in ``margrave.mechanisms``, and its parameters.

    ``public`` names the task's public table that it is given; ``fit`` is its fit, by its name in ``margrave.models``,
    with the parameters ``fitting``; ``told``: whether it takes a workload. ``relaxed``: answers are those of the last
    round's model, as the paper takes RAP's, and not of the distribution that is released.
    """

    mechanism: str
    options: Mapping[str, Any] = field(default_factory=dict)
    public: str | None = None
    fit: str | None = None
    fitting: Mapping[str, Any] = field(default_factory=dict)
    told: bool = True
    relaxed: bool = False

    def make(self, task: Task, setting: Setting) -> Any:
        """The mechanism for a task. A ``Missing`` where this version does not have it."""
        options: dict[str, Any] = {**self.options, **setting}
        if self.told:
            options["workload"] = task.workload
        if self.public is not None:
            options["public"] = task.publics[self.public]
        if self.fit is not None:
            options["fit"] = found("margrave.models", self.fit)(**self.fitting)
        return found("margrave.mechanisms", self.mechanism)(**options)


class Missing(Exception):
    """This version of margrave has no such mechanism."""


def found(module: str, name: str) -> Callable[..., Any]:
    """A name of a module, if both are there."""
    try:
        made: Callable[..., Any] = getattr(import_module(module), name)
    except (ModuleNotFoundError, AttributeError) as error:
        raise Missing(f"{module}.{name}") from error
    return made


WHOLE = {"granularity": "marginal"}
SINGLE = {"granularity": "query"}
"""The papers' form; the library's default is whole marginals."""
FAITHFUL = {
    "PEPPub": {**SINGLE, "shrink": False, "anneal": False},
    "PMWPub": {**SINGLE, "shrink": False, "anneal": False, "at_once": True},
}
"""As in the papers: every answer is met, and T is kept."""
AS_PUBLISHED = {"hidden": (512, 1024, 1024), "rate": 1e-4, "threshold": 0.5, "resample": True, "anchor": 0.0}
"""The paper's network and its training, where the library's defaults differ."""


def public(table: str) -> dict[str, Contender]:
    """Those that start from a public table, named for it."""
    return {
        f"gem-pub-{table}": Contender("GEMPub", SINGLE, public=table),
        f"pmw-pub-{table}": Contender("PMWPub", SINGLE, public=table),
        f"pep-pub-{table}": Contender("PEPPub", SINGLE, public=table),
    }


def weighing(table: str) -> dict[str, Contender]:
    """More forms of those that weigh the public records: the papers', and the library's default."""
    kinds = {"pmw-pub": "PMWPub", "pep-pub": "PEPPub"}
    return {
        f"{name}-{table}-{form}": Contender(kind, options, public=table)
        for name, kind in kinds.items()
        for form, options in (("paper", FAITHFUL[kind]), ("marginals", WHOLE))
    }


CONTENDERS: dict[str, Contender] = {
    "independent": Contender("Independent", told=False),
    "mst": Contender("MST", told=False),
    "aim": Contender("AIM"),
    "mwem-pgm": Contender("MWEMPGM"),
    "mwem": Contender("MWEM", SINGLE),
    "mwem-forgetful": Contender("MWEM", {"passes": 0, **SINGLE}),
    "mwem-paper": Contender("MWEM", {"at_once": True, **SINGLE}),
    "mwem-marginals": Contender("MWEM", WHOLE),
    "pep": Contender("PEP", SINGLE),
    "pep-marginals": Contender("PEP", WHOLE),
    "rap-softmax": Contender("RAP", SINGLE),
    "rap-softmax-paper": Contender("RAP", SINGLE, fit="RelaxedFit", fitting={"threshold": 0.0, "steps": 1000}),
    "rap": Contender("RAP", SINGLE, fit="RelaxedFit", fitting={"box": True}, relaxed=True),
    "rap-released": Contender("RAP", SINGLE, fit="RelaxedFit", fitting={"box": True}),
    "gem": Contender("GEM", SINGLE),
    "gem-marginals": Contender("GEM", WHOLE),
    "gem-aim": Contender("GEMAIM"),
    "dual-query": Contender("DualQuery"),
    "fem": Contender("FEM"),
    **public("tenth"),
    **weighing("tenth"),
    "gem-pub-reduced": Contender("GEMPub", SINGLE, public="reduced"),
    **public("us"),
    **public("ca"),
    **weighing("ca"),
    **public("oh"),
    "gem-paper": Contender("GEM", SINGLE, fit="GeneratorFit", fitting=AS_PUBLISHED),
}
"""Cheap ones first: this is the order in which they run."""

PLAIN = "gem-plain"
"""GEM as written down in PyTorch (plain_gem.py), in an environment of its own."""

REFERENCES = ("independent", "mst", "aim", "mwem-pgm")
RAPS = ("rap-softmax", "rap", "rap-released")
SMALL = (*REFERENCES, "mwem", "mwem-forgetful", "mwem-paper", "mwem-marginals", "pep", "pep-marginals", *RAPS, "gem",
         "gem-marginals", "dual-query", "fem")  # fmt: skip
LARGE = ("independent", "mst", "aim", *RAPS, "gem", "gem-marginals", "dual-query", "fem")

BY_TASK: dict[str, tuple[str, ...]] = {
    "adult_reduced": (*SMALL, "rap-softmax-paper", "pmw-pub-tenth", "pep-pub-tenth", *weighing("tenth")),
    "acs_reduced": (*SMALL, "rap-softmax-paper"),
    "acs_reduced_us": ("mwem-paper", "pep", "rap-softmax", "rap-softmax-paper", "gem"),
    "adult": (*LARGE, *public("tenth"), *weighing("tenth"), "gem-pub-reduced", "gem-paper", PLAIN),
    "acs": (*LARGE, *public("us"), *public("ca"), *weighing("ca"), *public("oh")),
    "adult_star": LARGE,
    "wide": ("independent", "mst", "gem", "gem-aim", "aim"),
}
"""MWEM and PEP hold every cell of the domain: they run where it is small. The last column of a line is the dearest."""


def run(task: Task, name: str, setting: Setting, epsilon: float, repeat: int) -> Release:
    """One private run: noise from the operating system; ``repeat`` seeds the fitting alone."""
    mechanism = CONTENDERS[name].make(task, setting)
    table = MemoryTable(task.schema, task.codes)
    with protect(table, unit=ReplaceRow(), budget=Budget.approx(epsilon, task.delta)) as private:
        rng = np.random.default_rng(repeat)
        if not CONTENDERS[name].relaxed:
            release: Release = mechanism.run(private, rng=rng)
            return release
        for _, model in mechanism.adapt(private, Memory(), rng, None):
            last = model
        return release_of(private, last, mechanism.config())
