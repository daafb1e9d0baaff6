"""The settings of each contender: the library's defaults, and the grids of the paper's Tables 1 to 3.

A setting is a mechanism's parameters by name; the empty one is the library's defaults, whose number of rounds follows
from public values alone. Grids are for "tuned": the best of a grid, chosen by the true error, as the paper reports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Setting = Mapping[str, Any]

DEFAULT: Setting = {}

PEP = (20, 30, 40, 50, 75, 100, 125, 150, 175, 200)
MWEM = (50, 75, 100, 150, 200, 250, 300)
MWEM_FORGETFUL = (100, 150, 200, 250, 300, 400, 500, 750, 1000)
GEM = {
    "acs": (100, 150, 200, 250, 300, 400, 500, 750, 1000),
    "acs_reduced": (50, 75, 100, 125, 150, 200, 250, 300),
    "acs_reduced_us": (50, 75, 100, 125, 150, 200, 250, 300),
    "other": (30, 40, 50, 60, 70, 80, 90, 100, 125, 150, 175, 200),
}
RAP_ROUNDS, RAP_EACH = (2, 5, 10, 25, 50, 75, 100), (5, 10, 25, 50, 100)
DUAL_ETA, DUAL_SAMPLES = (2.0, 3.0, 4.0, 5.0), (25, 50, 100, 250, 500)
MARGINALS = (5, 10, 15, 20, 30, 40, 60, 80, 100)
"""Not the paper's, which chooses single queries only."""

PLAIN = (100,)
"""The plain implementation, and ours with the paper's network, are there for their speed at equal T."""


def rounds(*numbers: int) -> list[Setting]:
    """A setting for each T."""
    return [{"rounds": t} for t in numbers]


def grid(contender: str, task: str) -> list[Setting]:
    """The paper's grid for a contender; nothing for one that has none."""
    gem = rounds(*GEM.get(task, GEM["other"]))
    rap: list[Setting] = [{"rounds": t, "each": k} for k in RAP_EACH for t in RAP_ROUNDS]
    grids: dict[str, list[Setting]] = {
        "pep": rounds(*PEP),
        "pep-pub": rounds(*PEP),
        "mwem": rounds(*MWEM),
        "mwem-paper": rounds(*MWEM),
        "pmw-pub": rounds(*MWEM),  # the paper's tables do not name it: it is MWEM with past queries
        "mwem-forgetful": rounds(*MWEM_FORGETFUL),
        "gem": gem,
        "gem-pub": gem,
        "gem-paper": rounds(*PLAIN),
        "gem-plain": rounds(*PLAIN),
        "rap": rap,
        "rap-softmax": rap,
        "rap-softmax-paper": rap,
        "dual-query": [{"eta": e, "samples": s} for e in DUAL_ETA for s in DUAL_SAMPLES],
        "gem-marginals": rounds(*MARGINALS),
        "mwem-marginals": rounds(*MARGINALS),
        "pep-marginals": rounds(*MARGINALS),
    }
    return grids.get(family(contender), [])


def family(contender: str) -> str:
    """A contender without the name of its public table: gem-pub-ca is a gem-pub."""
    return next((f for f in ("gem-pub", "pmw-pub", "pep-pub") if contender.startswith(f"{f}-")), contender)


def settings(contender: str, task: str) -> list[Setting]:
    """The defaults, and the grid. The plain implementation has no defaults of the library."""
    return ([] if contender == "gem-plain" else [DEFAULT]) + grid(contender, task)


def coarse(options: Sequence[Setting]) -> list[Setting]:
    """Every third of a grid, beginning with the second: what to run before the rest."""
    return [s for i, s in enumerate(options) if i % 3 == 1 or len(options) < 3]


def label(setting: Setting) -> str:
    """A setting in a few words."""
    words = {"rounds": "T = {}", "each": "K = {}", "eta": "η = {:g}", "samples": "{} samples"}
    return ", ".join(words[k].format(v) for k, v in setting.items()) or "default"
