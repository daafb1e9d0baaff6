"""The marginals of a public table, scaled to the private one, and how far each is to be believed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from margrave.errors import InputError
from margrave.marginal import project_array
from margrave.marginal.counting import count_cliques
from margrave.privacy.scores import on_grid
from margrave.public import Public
from margrave.schema.domain import Domain
from margrave.transcript import Measurement, PublicReading, Transcript
from margrave.typing import Clique, FloatArray

DOUBT = 2.0
"""How many standard deviations of a comparison must speak against public data before it is believed less."""


class Library:
    """The public marginals, scaled up, and how far each is to be believed: scale² = chance² + bias².

    Chance is what so many public records can be off by. Bias is what measurements speak for: each is compared with the
    public marginal p of the columns that both have. The mean square of y − p beyond the noise of y and the chance of p,
    by more than ``DOUBT`` standard deviations, is the square of a bias, and is taken relative to p's mean square. Of
    all that was measured the largest counts.
    """

    def __init__(self, public: Public, cliques: Iterable[Clique], total: float) -> None:
        self.publics = scaled(public, cliques, total)
        self.source, self.records = public.sha256, len(public.codes)
        self._chance = {r: chance_scale(p, self.records) for r, p in self.publics.items()}
        self._bias = dict.fromkeys(self.publics, 0.0)

    def compare(self, measured: Transcript) -> None:
        """Hold new measurements against all that is public."""
        for m in measured.measurements:
            shared: dict[Clique, float] = {}
            for r in self.publics:
                both = tuple(a for a in r if a in m.clique)
                if both:
                    if both not in shared:
                        shared[both] = self._off(both, m, r)
                    self._bias[r] = max(self._bias[r], shared[both])

    def _off(self, both: Clique, m: Measurement, clique: Clique) -> float:
        """The square of the bias on the columns of both, relative to the public marginal's mean square."""
        public = project_array(self.publics[clique], clique, both)
        private = project_array(m.values, m.clique, both)
        noise, chance = m.scale**2 * m.values.size / private.size, chance_scale(public, self.records) ** 2
        expected = (noise + chance) * (1 + DOUBT * np.sqrt(2 / public.size))
        beyond = float(((private - public) ** 2).mean()) - float(expected)
        return max(0.0, beyond / float((public**2).mean()))

    def scale(self, clique: Clique) -> float:
        """How far a public marginal is believed, as a standard deviation per cell."""
        bias = self._bias[clique] * float((self.publics[clique] ** 2).mean())
        return float(np.sqrt(self._chance[clique] ** 2 + bias))

    def error(self, clique: Clique) -> float:
        """The L1 error to expect of a public marginal: that of chance, as much larger as the scale is.

        It is on the grid of scores, so that what was measured before does not change how fine that is.
        """
        values = self.publics[clique]
        chance = sampling_error(values, float(values.sum()), self.records)
        return float(on_grid(np.asarray(chance * self.scale(clique) / self._chance[clique])))

    def closer_than(self, noise: Mapping[Clique, float]) -> dict[Clique, FloatArray]:
        """The public marginals that are expected to be closer to the truth than measurements of such errors."""
        return {r: self.publics[r] for r in noise if r in self.publics and self.error(r) < noise[r]}

    def readings(self, cliques: Iterable[Clique], at_most: float = np.inf) -> Transcript:
        """Public marginals as readings of the present scale, each once; those of more than ``at_most`` are left out.

        They would tell next to nothing, and an estimate from scales that are far apart is hard to find.
        """
        once = (r for r in dict.fromkeys(cliques) if self.scale(r) <= at_most)
        return Transcript(tuple(PublicReading(r, self.publics[r], self.scale(r), self.source) for r in once))


def given(public: Public | None, domain: Domain) -> Public:
    """The public table, if there is one that fits the domain."""
    if public is None:
        raise InputError(
            "This mechanism needs a public table.",
            remedy="Give one: public=margrave.read_public(file, schema, attestation=...), or --public FILE"
            " --attestation TEXT.",
        )
    public.check(domain)
    return public


def scaled(public: Public, cliques: Iterable[Clique], total: float) -> dict[Clique, FloatArray]:
    """The public marginals of the cliques whose columns are public, scaled to so many records."""
    known = [r for r in cliques if all(a in public.domain for a in r)]
    ordered = {r: public.domain.clique(r) for r in known}
    counts: Mapping[Clique, Any] = count_cliques(public.codes, ordered.values())
    factor = total / len(public.codes)
    return {
        r: np.asarray(np.transpose(counts[c], [c.index(a) for a in r]) * factor, dtype=np.float64)
        for r, c in ordered.items()
    }


def chance_scale(expected: FloatArray, records: int) -> float:
    """Root mean square over the cells of a marginal scaled up from so many records: total · sqrt(mean p (1 − p) / n').

    Shares are smoothed by half a record a cell, and the whole is half a public record at least, so that nothing seems
    certain.
    """
    total = float(expected.sum())
    shares = (expected / total * records + 0.5) / (records + 0.5 * expected.size)
    return total * max(float(np.sqrt((shares * (1 - shares)).mean() / records)), 0.5 / records)


def sampling_error(expected: FloatArray, total: float, records: int) -> float:
    """E‖·‖₁ of a marginal scaled up from so many records, from chance alone: Σ_x sqrt(2/pi) sd_x.

    sd_x = total · sqrt(p_x (1 − p_x) / records), with p_x as the public table has it.
    """
    shares = expected / expected.sum()
    return float(np.sqrt(2 / np.pi) * total * np.sqrt(shares * (1 - shares) / records).sum())
