"""How a mixture is trained: what the two fits say to the one loop that serves both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from margrave.public import Public

Kind = Literal["generator", "softmax", "box"]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The parameters of ``GeneratorFit`` and ``RelaxedFit`` together; those of the other mean nothing."""

    kind: Kind
    loss: Literal["absolute", "squared"]
    components: int
    rate: float
    steps: int
    cold: int
    threshold: float
    memory: float
    weighted: bool
    public: Public | None
    pretraining: int
    hidden: tuple[int, ...] = ()
    inputs: int = 1
    average: float = 0.0
    spread: float = 1.0
    resample: bool = False
    anchor: float = 0.0
