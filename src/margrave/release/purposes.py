"""Purposes that a release was made for, and whether the marginals that they rest on were measured."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from margrave._card import Card, Facts
from margrave.domain import Domain
from margrave.errors import InputError
from margrave.marginal import covers
from margrave.provenance import Provenance
from margrave.purposes import Purpose
from margrave.release.diagnostics import known_together, summed_together
from margrave.transcript import Transcript
from margrave.types import Clique
from margrave.workload import Workload


@dataclass(frozen=True, repr=False)
class PurposeSupport(Card):
    """A purpose, and those of its marginals that no measurement contains.

    Attributes:
        purpose: Its words.
        unmeasured: Marginals that were not measured together, which the model fills in.
        marginals: The number of its marginals; 0 if a column of it was left out of the release.
    """

    purpose: str
    unmeasured: tuple[Clique, ...]
    marginals: int

    def _facts(self) -> Facts:
        return Facts(self.words)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that fits in JSON."""
        return {
            "purpose": self.purpose,
            "marginals": self.marginals,
            "unmeasured": [list(c) for c in self.unmeasured],
        }

    @property
    def measured(self) -> bool:
        """True if the release has all its columns, and all its marginals were measured."""
        return bool(self.marginals) and not self.unmeasured

    @property
    def words(self) -> str:
        """The support in a sentence."""
        if not self.marginals:
            return f"{self.purpose}: not supported, because a column of it was left out"
        left = len(self.unmeasured)
        if self.marginals == 1:
            found = "its marginal was not measured" if left else "its marginal was measured"
        else:
            some = f"{self.marginals - left} of" if left else "all"
            found = f"{some} {self.marginals} marginals were measured"
        if not left:
            return f"{self.purpose}: {found}"
        listed = "; ".join(", ".join(c) for c in self.unmeasured[:5])
        more = f" and {left - 5} more" if left > 5 else ""
        return f"{self.purpose}: {found}. By assumption: {listed}{more}"


def supports_of(
    domain: Domain, transcript: Transcript, provenance: Provenance
) -> tuple[PurposeSupport, ...]:
    """Return the purposes that a release was made for, with what was measured of each."""
    workload = provenance.workload
    if not isinstance(workload, Workload) or not workload.purposes:
        return ()
    whole, sums = known_together(domain, transcript), summed_together(domain, transcript)
    found = []
    for text in workload.purposes:
        cliques: tuple[Clique, ...] = ()
        known = whole
        with suppress(InputError):
            purpose = Purpose.of(text, domain)
            cliques = purpose.cliques
            known = (*whole, *sums) if purpose.takes_sums else whole
        unmeasured = tuple(c for c in cliques if not covers(known, c))
        found.append(PurposeSupport(text, unmeasured, len(cliques)))
    return tuple(found)
