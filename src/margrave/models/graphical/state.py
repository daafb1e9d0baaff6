"""The state of a graphical fit between rounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from margrave.domain import Domain
from margrave.models.graphical.model import GraphicalModel
from margrave.models.merged_codes import MergedCodesModel
from margrave.types import Attribute, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class GraphicalState:
    """The model after some rounds, None before the first, of all codes or of groups of them."""

    domain: Domain
    fitted: GraphicalModel | None = None
    groups: Mapping[Attribute, IntArray] = field(default_factory=dict)
    shares: Mapping[Attribute, FloatArray] = field(default_factory=dict)

    @property
    def estimate(self) -> GraphicalModel | MergedCodesModel | None:
        """The model of all codes."""
        if self.fitted is None or not self.groups:
            return self.fitted
        return MergedCodesModel(self.domain, self.fitted, self.groups, self.shares)

    def on(self, groups: Mapping[Attribute, IntArray]) -> GraphicalModel | None:
        """Return the model to go on from; None if it has other groups."""
        same = self.groups.keys() == groups.keys() and all(
            np.array_equal(self.groups[a], groups[a]) for a in groups
        )
        return self.fitted if same else None
