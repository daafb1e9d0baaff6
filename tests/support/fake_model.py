"""A model small enough to check by eye: one full table of counts. It lets releases be tested without an estimator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from margrave.account import Account, Debit
from margrave.accounting import AddRemoveRow, Budget, ReplaceRow
from margrave.domain import Codes, Domain
from margrave.errors import ReleaseError
from margrave.marginal import LinearMap, Marginal, project_array
from margrave.models import Family, SimpleFit
from margrave.models.entries import ALL
from margrave.models.protocol import Model, ModelState
from margrave.provenance import Provenance
from margrave.release import Release
from margrave.release.verification import SOUND_SAMPLER
from margrave.schema import Schema
from margrave.transcript import Answer, Measurement, PublicTotal, Selection, Transcript


@dataclass(frozen=True, eq=False)
class TableModel(Model):
    """Expected counts of every cell of the domain."""

    over: Domain
    counts: Any

    @property
    def domain(self) -> Domain:
        return self.over

    @property
    def total(self) -> float:
        return float(self.counts.sum())

    def project(self, clique: tuple[str, ...]) -> Marginal:
        return Marginal(clique, project_array(self.counts, self.domain.attributes, clique))

    def answer(self, cliques: Iterable[tuple[str, ...]], **_: Any) -> dict[tuple[str, ...], Any]:
        return {c: self.project(c).values for c in cliques}

    def sample(
        self,
        rows: int | None = None,
        *,
        rng: np.random.Generator,
        independent: bool = False,
        columns: Iterable[str] | None = None,
    ) -> Codes:
        size = round(self.total) if rows is None else rows
        p = self.counts.ravel() / self.total
        cells = np.sort(
            rng.choice(p.size, size=size, p=p)
        )  # sorted, so that the release's shuffling shows
        codes = Codes(
            self.domain,
            np.array(np.unravel_index(cells, self.counts.shape)).reshape(len(self.domain), size),
        )
        return codes if columns is None else codes.select(columns)

    def condition(self, evidence: Mapping[str, Sequence[int]]) -> Model:
        counts = self.counts.copy()
        for attribute, codes in evidence.items():
            axis = self.domain.index(attribute)
            others = np.setdiff1d(np.arange(self.domain.size(attribute)), codes)
            np.moveaxis(counts, axis, 0)[others] = 0.0
        return TableModel(self.domain, counts)

    def complete(self, rows: Codes, *, rng: np.random.Generator) -> Codes:
        raise NotImplementedError

    def state(self) -> ModelState:
        return ModelState("fake", {"cells": int(self.counts.size)}, {"counts": self.counts})


def load(domain: Domain, facts: Mapping[str, Any], arrays: Mapping[str, Any]) -> TableModel:
    """The loader of its family."""
    if (
        arrays["counts"].shape != domain.shape(domain.attributes)
        or facts["cells"] != arrays["counts"].size
    ):
        raise ReleaseError("The counts do not fit the domain.")
    return TableModel(domain, arrays["counts"])


FAMILY = Family(kind="fake", load=load)


class TableFit(SimpleFit):
    """A fit that answers with the same table always."""

    entries = ALL

    def __init__(self, counts: Any) -> None:
        self.counts = counts

    def estimate(
        self, domain: Domain, transcript: Transcript, *, rng: Any, warm: Any = None
    ) -> TableModel:
        return TableModel(domain, self.counts)

    def cells(self, domain: Domain, cliques: Any) -> int:
        return domain.cells()


SCHEMA = Schema.coded({"age": 5, "sex": 2, "job": 3})


def account_of(transcript: Transcript) -> Account:
    """The account of a transcript of noisy answers: a debit for each, and a budget of their sum."""
    paid = [e for e in transcript if isinstance(e, Measurement | Answer)]
    budget = Budget.zcdp(sum((e.rho for e in paid), Fraction(0)))
    debits = tuple(Debit(f"measure {number}", e.rho) for number, e in enumerate(paid))
    return Account(
        AddRemoveRow(),
        budget.rho,
        budget.epsilon,
        budget.delta,
        debits,
        True,
        SOUND_SAMPLER,
    )


def release(
    *, private: bool = True, schema: Schema = SCHEMA, public_total: bool = False
) -> Release:
    """A release of 300 records with every kind of transcript entry."""
    rng = np.random.default_rng(7)
    domain = schema.domain
    counts = rng.dirichlet(np.ones(domain.cells())).reshape(domain.shape(domain.attributes)) * 300
    a, b, c = domain.attributes
    groups = np.array([0, 0, *range(1, domain.size(c) - 1)], dtype=np.int64)
    grouped = LinearMap({c: groups})
    joined = grouped.apply((b, c), rng.integers(0, 90, domain.shape((b, c))))
    sides = 2 if public_total else 1  # replacing a row moves two cells
    entries: tuple[Any, ...] = (
        Measurement((a,), rng.integers(-3, 90, domain.size(a)), 4.5, sides * Fraction(2, 81)),
        Measurement((b, c), joined, 9.25, sides * Fraction(8, 1369), grouped),
        Selection(
            ((a,), (a, b)),
            (a, b),
            0.25,
            1.0,
            Fraction(1, 128),
            {"weights": np.array([1.0, 2.0])},
            vouched="a.Score",
        ),
        Measurement(
            (a, b), rng.integers(0, 90, domain.shape((a, b))), 6.0, sides * Fraction(1, 72)
        ),
    )
    if public_total:
        entries = (PublicTotal(300), *entries)
    asked = ("measure age", "measure sex × job", "choose one of 2 marginals", "measure age × sex")
    priced = (e for e in entries if not isinstance(e, PublicTotal))
    debits = tuple(Debit(what, e.rho) for what, e in zip(asked, priced, strict=True))
    unit = ReplaceRow() if public_total else AddRemoveRow()
    account = Account(unit, Fraction(1, 9), 3.0, 1e-9, debits, private, SOUND_SAMPLER)
    return Release(
        schema,
        TableModel(domain, counts),
        Transcript(entries),
        account,
        Provenance("fake", {"rounds": 3}),
    )
