"""A fit that cannot use what a run may measure is refused before the run spends anything."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from margrave.api import synthesize
from margrave.domain import Domain
from margrave.errors import InputError, MargraveError, UnfinishedError
from margrave.marginal import IDENTITY, TOTAL, HalfSpace, LinearMap, LinearQuery, QueryFamily
from margrave.mechanisms import MECHANISMS, MST, MWEM, PrivateGSD, ResidualPlanner
from margrave.models import (
    FITS,
    AnswersFit,
    EntropyProjectionFit,
    Fit,
    GraphicalFit,
    MaxEntropyFit,
    Model,
    MultiplicativeWeightsFit,
    SimpleFit,
)
from margrave.models.entries import EntryKind, check_kinds, kinds_asked, kinds_of, not_taken
from margrave.models.graphical.state import GraphicalState
from margrave.models.progress import ShareProgress, no_progress
from margrave.release import Release
from margrave.schema import Schema
from margrave.transcript import Answer, Entry, Measurement, PublicReading, Transcript
from margrave.types import Clique
from tests.support.conformance import (
    FEW_PARTICLES,
    FEW_RECORDS,
    FEW_SWEEPS,
    QUICK_RECORDS,
    SMALL,
    SMALL_TABLE,
    needed_by,
    pairs,
)

SIZES = {"a": 3, "b": 4, "c": 2}
SCHEMA = Schema.coded(SIZES)
DOMAIN: Domain = SCHEMA.domain


@dataclass(frozen=True, kw_only=True)
class Posed(MaxEntropyFit):
    """A posterior's problem is posed, and estimated instead of sampled, which would take seconds each time."""

    def finish(
        self,
        state: GraphicalState,
        transcript: Transcript,
        *,
        rng: np.random.Generator,
        progress: ShareProgress = no_progress,
    ) -> Model:
        if transcript.counts_something:
            self._problem(state.domain, transcript)
        return GraphicalFit().finish(state, transcript, rng=rng)


BUILT_IN: dict[str, Fit] = {
    "graphical": GraphicalFit(),
    "answers": AnswersFit(),
    "weights": MultiplicativeWeightsFit(),
    "projection": EntropyProjectionFit(),
    "projection, shrunk": EntropyProjectionFit(shrink=True),
    "particles": FEW_PARTICLES,
    "genetic": FEW_RECORDS,
    "gum": QUICK_RECORDS,
    "latent-classes": FEW_SWEEPS,
    "generator": SMALL,
    "relaxed": SMALL_TABLE,
    "max-entropy": Posed(),
}


def measured(*clique: str, query: LinearMap = IDENTITY) -> Measurement:
    shape = query.domain(DOMAIN.project(clique)).shape(clique)
    return Measurement(
        clique, np.full(shape, 120 // np.prod(shape), dtype=np.int64), 2.0, Fraction(1, 8), query
    )


def answered(query: Any) -> Answer:
    return Answer(query, 30, 2.0, Fraction(1, 8))


RHO = LinearMap({"b": np.array([0, 2, 1, 2])})
HELD: dict[EntryKind, list[Entry]] = {
    EntryKind.MERGED: [measured("a", "b", query=RHO), measured("b", "c", query=RHO)],
    EntryKind.CELL: [answered(LinearQuery(("a", "b"), ((1,), (2,))))],
    EntryKind.SET: [answered(LinearQuery(("a", "b"), ((0, 1), (2, 3))))],
    EntryKind.HALF_SPACE: [answered(HalfSpace(("a", "b"), (1.0, 1.0), (3, 4), 1.0))],
    EntryKind.COUNT_MAP: [measured("a", "b", query=LinearMap.prefixes(DOMAIN, ["b"]))],
    EntryKind.WEIGHTED_MAP: [measured("a", "b", query=LinearMap.residual(DOMAIN, ("a", "b")))],
    EntryKind.READING: [
        PublicReading(("a", "b"), np.full((3, 4), 10.0), np.full((3, 4), 3.0), "sha")
    ],
}


@pytest.mark.parametrize("kind", EntryKind)
@pytest.mark.parametrize("name", BUILT_IN)
def test_a_fit_uses_what_it_says_and_refuses_the_rest(name: str, kind: EntryKind) -> None:
    fit = BUILT_IN[name]
    transcript = Transcript((*(measured(x) for x in SIZES), answered(TOTAL), *HELD[kind]))
    assert kinds_of(transcript) == {kind}
    if kind in not_taken(fit, EntryKind):
        with pytest.raises(InputError):
            fit(DOMAIN, transcript, rng=np.random.default_rng(0))
    else:
        assert fit(DOMAIN, transcript, rng=np.random.default_rng(0)).domain == DOMAIN


@pytest.mark.parametrize("kinds", [*({kind} for kind in EntryKind), frozenset(EntryKind)])
def test_a_refused_refit_names_a_fit_that_takes_it(kinds: Collection[EntryKind]) -> None:
    transcript = Transcript((measured("a"), *(entry for kind in kinds for entry in HELD[kind])))
    for fit in FITS.values():
        if not_taken(fit, kinds):
            with pytest.raises(InputError, match=r"Fit \w+\(\) \(margrave refit --fit") as caught:
                check_kinds(fit(), transcript)
            name = str(caught.value).split("--fit ")[1].removesuffix(").")
            check_kinds(FITS[name](), transcript)


def test_queries_are_cells_if_every_set_has_one_code() -> None:
    one, some = np.eye(4, dtype=np.bool_), np.tri(4, dtype=np.bool_)
    assert kinds_asked(QueryFamily(DOMAIN, (("a", "b"),), {})) == {EntryKind.CELL}
    assert kinds_asked(QueryFamily(DOMAIN, (("a", "b"),), {"b": one})) == {EntryKind.CELL}
    assert kinds_asked(QueryFamily(DOMAIN, (("a", "b"),), {"b": some})) == {EntryKind.SET}


# No built-in mechanism with any built-in fit spends and then fails.

FORMS: dict[str, dict[str, Any]] = {
    "marginals": {},
    "cells": {"granularity": "query"},
    "sets": {
        "granularity": "query",
        "queries": QueryFamily.ranges(DOMAIN, (("a", "b"), ("b", "c")), ("a", "b")),
    },
}
FITTED = {
    name: found
    for name, kind in MECHANISMS.items()
    if "fit" in (found := {f.name for f in fields(kind)})
}
RUNS = [
    (name, form)
    for name, known in FITTED.items()
    for form, asked in FORMS.items()
    if set(asked) <= known
]


def rows() -> pa.Table:
    rng = np.random.default_rng(1)
    return pa.table({name: rng.integers(0, min(k, 3), 60) for name, k in SIZES.items()})


def tried(name: str, form: str, fit: Fit) -> Release | MargraveError:
    """A run of a mechanism; what refuses it, if nothing was spent."""
    known = FITTED[name]
    asked = {k: v for k, v in {**FORMS[form], "rounds": 2}.items() if k in known}
    if "workload" in known and "queries" not in asked:
        asked["workload"] = pairs(DOMAIN)
    if "adaptive" in known and form != "marginals":
        asked["adaptive"] = True
    try:
        mechanism = MECHANISMS[name](**needed_by(name, DOMAIN), **asked, fit=fit)
        return synthesize(rows(), SCHEMA, epsilon=1.0, delta=1e-6, mechanism=mechanism, seed=0)
    except UnfinishedError:
        raise
    except MargraveError as error:
        return error


#: Fits that compile a program for every model.
TRAINED = ("generator", "relaxed", "annealed")


@pytest.mark.parametrize(("name", "form"), RUNS)
@pytest.mark.parametrize(
    "fit", [pytest.param(f, marks=[pytest.mark.slow] * (f in TRAINED)) for f in BUILT_IN]
)
def test_no_mechanism_spends_for_a_fit_that_then_fails(name: str, form: str, fit: str) -> None:
    tried(name, form, BUILT_IN[fit])


def test_the_table_above_has_runs_and_refusals() -> None:
    assert isinstance(tried("mwem", "cells", GraphicalFit()), Release)
    refused = tried("mwem", "sets", GraphicalFit())
    assert isinstance(refused, InputError)
    assert "GraphicalFit cannot be fitted to counts of sets of codes" in str(refused)
    assert "such as EntropyProjectionFit()" in str(refused)
    assert isinstance(tried("mst", "marginals", EntropyProjectionFit()), Release)


# A fit of one's own that cannot take merged codes.


@dataclass(frozen=True)
class Plain(SimpleFit):
    """A fit of one's own that takes whole marginals alone."""

    def estimate(
        self, domain: Domain, transcript: Transcript, *, rng: np.random.Generator, warm: Any = None
    ) -> Model:
        if kinds_of(transcript):
            raise InputError("I take whole marginals.")
        return GraphicalFit()(domain, transcript, rng=rng).distribution()

    def cells(self, domain: Domain, cliques: Collection[Clique]) -> int:
        return GraphicalFit().cells(domain, cliques)


def test_merged_codes_are_refused_before_anything_is_spent() -> None:
    with pytest.raises(
        InputError,
        match=r"Plain cannot be fitted to marginals with merged codes.*rare_threshold=0 \(--rare-threshold 0\)",
    ):
        synthesize(rows(), SCHEMA, epsilon=1.0, delta=1e-6, mechanism=MST(fit=Plain()))


def test_a_mechanism_that_merges_nothing_takes_it() -> None:
    MST(fit=Plain(), rare_threshold=0.0).check(DOMAIN, None)  # type: ignore[arg-type]
    release = synthesize(rows(), SCHEMA, epsilon=1.0, delta=1e-6, mechanism="independent")
    assert release.provenance.mechanism == "independent"


class Careless(Plain):
    """A fit that reads every answer as counts of a marginal."""

    def estimate(
        self, domain: Domain, transcript: Transcript, *, rng: np.random.Generator, warm: Any = None
    ) -> Model:
        entries = (replace(m, query=IDENTITY) for m in transcript.measurements)
        return GraphicalFit()(domain, Transcript(tuple(entries)), rng=rng).distribution()


def test_a_refit_does_not_read_weighted_sums_as_counts() -> None:
    release = synthesize(
        rows(), SCHEMA, epsilon=1.0, delta=1e-6, mechanism=ResidualPlanner(), seed=0
    )
    with pytest.raises(
        InputError, match=r"Careless cannot be fitted to linear maps with other"
    ) as e:
        release.refit(Careless())
    assert "Fit GraphicalFit() (margrave refit --fit graphical)." in str(e.value)


@pytest.mark.parametrize(
    "mechanism",
    [
        MWEM(granularity="query", fit=Plain()),
        PrivateGSD(adaptive=True, granularity="query", fit=Plain()),
    ],
)
def test_single_cells_too(mechanism: Any) -> None:
    with pytest.raises(InputError, match="Plain cannot be fitted to single cells"):
        synthesize(rows(), SCHEMA, epsilon=1.0, delta=1e-6, mechanism=mechanism)
    replaced = replace(mechanism, granularity="marginal", rounds=2)
    assert synthesize(
        rows(), SCHEMA, epsilon=1.0, delta=1e-6, mechanism=replaced, seed=0
    ).transcript.measurements
