"""The configuration of a mixture's training: the one loop serves both fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from margrave.public_table import PublicTable

Kind = Literal["generator", "softmax", "box"]


@dataclass(frozen=True, kw_only=True)
class MixtureConfig:
    """The parameters of ``GeneratorFit`` and ``RelaxedFit`` together; those of the other mean nothing."""

    kind: Kind
    loss: Literal["absolute", "squared"]
    components: int
    rate: float
    steps: int
    cold_steps: int
    active_threshold: float
    error_ema: float
    weighted: bool
    public: PublicTable | None
    pretraining: int
    hidden: tuple[int, ...] = ()
    latent_dim: int = 1
    ema_decay: float = 0.0
    init_scale: float = 1.0
    resample: bool = False
    kl_weight: float = 0.0
