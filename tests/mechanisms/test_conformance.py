"""Every mechanism of the library: what its release holds and recovers, and what it refuses before anything is spent."""

from __future__ import annotations

import gc
import io
import json
import logging
import re
import types
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import fields, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import margrave.api
import margrave.run
from margrave.accounting import AddRemoveRow, Budget, ReplaceRow, Unit
from margrave.data import MemoryTable
from margrave.domain import Domain
from margrave.errors import InputError, MargraveError, ModelTooLargeError, ReleaseError
from margrave.marginal import HalfSpace, closure
from margrave.mechanisms import (
    AIM,
    MECHANISMS,
    MWEM,
    MWEMPGM,
    NAPSUMQ,
    PEP,
    GaussianMechanism,
    Mechanism,
    PEPPub,
    PMWPub,
)
from margrave.mechanisms.common import build_release
from margrave.mechanisms.parts.selection_log import SelectionLog
from margrave.models import CELLS_PER_MB, EntropyProjectionFit, Fit, GraphicalFit
from margrave.privacy import Private, SeededRandomness, protect
from margrave.release import Release
from margrave.report import render
from margrave.schema import Schema
from margrave.structural_zeros import StructuralZeros
from margrave.testing.runs import check_codes, check_file, counted_run
from margrave.transcript import Measurement, Selection
from margrave.types import Clique
from margrave.workload import Workload
from tests.support.conformance import (
    CASES,
    FEW_PARTICLES,
    NO_RECORDS,
    OWN_COLUMNS,
    QUICK,
    SHAPES,
    SIZES,
    SpyTable,
    codes_of,
    keeps_zeros,
    measures,
    memory_table,
    needed_by,
    pairs,
    plain,
    run_on,
    shaped,
    some_rows,
    tiny,
)
from tests.support.first_cases import FIRST_CASES
from tests.support.tiny_table import TinySchema, TinyTable

FIRST = pytest.mark.parametrize("case", FIRST_CASES)
ODD = Budget.approx(1.0, 1e-9)  # its rho is an odd binary fraction


def mechanism_of(case: str, domain: Domain) -> Mechanism:
    return CASES[case](domain)


def made(
    case: str,
    table: Any,
    unit: Unit | None = None,
    budget: Budget = ODD,
    seed: int = 0,
    **more: Any,
) -> Release:
    mechanism = mechanism_of(case, table.domain)
    return run_on(mechanism, table, unit or AddRemoveRow(), budget, SeededRandomness(seed), **more)


def has_records(case: str) -> bool:
    return case not in NO_RECORDS


# What the release holds.


def reachable(start: object) -> list[object]:
    """Everything that can be reached from an object, not through modules and types, nor a function's globals."""
    seen: dict[int, object] = {}
    queue = [start]
    while queue:
        value = queue.pop()
        if id(value) in seen or isinstance(value, types.ModuleType | type):
            continue
        seen[id(value)] = value
        if isinstance(value, types.FunctionType):
            queue += [value.__closure__, value.__defaults__, value.__kwdefaults__, value.__dict__]
        else:
            queue += gc.get_referents(value)
    return list(seen.values())


DISTINCT = {"a": 2, "b": 3, "c": 4}


def distinct_table() -> MemoryTable:
    """24 cells with counts that nobody else has: about 120,000 rows."""
    rng = np.random.default_rng(8)
    cells = [(i, j, k) for i in range(2) for j in range(3) for k in range(4)]
    rows = np.repeat(np.array(cells), rng.integers(1001, 9999, size=len(cells)), axis=0)
    schema = Schema.coded(DISTINCT)
    return MemoryTable(schema, codes_of(schema.domain, [tuple(r) for r in rows.tolist()]))


TRUTH = distinct_table()
COUNTS = TRUTH.count(closure([tuple(DISTINCT)]))


def secrets_in(start: object) -> list[object]:
    """Gates, tables, and arrays or lists that are a true marginal, in any order of axes."""
    truths = {tuple(sorted(c.ravel().tolist())) for c in COUNTS.values()}
    found = []
    for value in reachable(start):
        size_told = isinstance(value, int | float) and value == TRUTH.rows()
        if size_told or isinstance(value, Private | MemoryTable | TinyTable | SpyTable):
            found.append(value)
        numbers = value.ravel().tolist() if isinstance(value, np.ndarray) else value
        if isinstance(numbers, list | tuple) and all(isinstance(n, int | float) for n in numbers):
            found += [value] * (tuple(sorted(numbers)) in truths)
    return found


@FIRST
def test_nothing_that_reaches_rows_is_left_on_a_release(case: str) -> None:
    assert secrets_in(made(case, TRUTH, seed=5)) == []


def test_the_scan_sees_what_is_left() -> None:
    """Behind attributes, closures, bound methods and in model state."""
    release = made("independent", TRUTH)
    kept = COUNTS["a", "b"].astype(float)

    def closed() -> object:
        return kept

    for planted in (
        TRUTH,
        [TRUTH],
        kept,
        kept.T.copy(),
        kept[:, ::-1],
        closed,
        TRUTH.count,
        TRUTH.rows(),
    ):
        object.__setattr__(release, "planted", planted)
        assert secrets_in(release) != []


def numbers_in(text: str) -> set[float]:
    """Every number in a text, thousands set off by commas or not."""
    found = re.findall(r"\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?", text)
    return {float(n.replace(",", "")) for n in found}


@FIRST
def test_no_true_count_is_in_anything_that_is_shown(
    case: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Logs, output, progress, the certificate, the page and the manifest hold no count of any true marginal.

    Numbers that follow from noisy answers may hit a truth by chance, in one run. A count that is shown is in all.
    """
    found = true_counts_shown(case, 5, capfd)
    for seed in (6, 7, 8):
        if found:
            found &= true_counts_shown(case, seed, capfd)
    assert not found


def true_counts_shown(case: str, seed: int, capfd: pytest.CaptureFixture[str]) -> set[float]:
    """The true counts in what a run shows, but for those that its answers and its model have too."""
    heard: list[tuple[str, float]] = []
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    handler.addFilter(lambda record: record.name.partition(".")[0] != "jax")  # what it compiles
    root, level = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(logging.NOTSET)
    try:
        with redirect_stdout(log), redirect_stderr(log):
            release = made(
                case, TRUTH, seed=seed, progress=lambda stage, done: heard.append((stage, done))
            )
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    out, err = capfd.readouterr()
    assert (log.getvalue(), out, err) == ("", "", "")
    truths = {int(n) for counts in COUNTS.values() for n in counts.ravel()} | {TRUTH.rows()}
    noisy = {int(n) for m in release.transcript.measurements for n in m.values.ravel()}
    fitted = {round(float(n)) for c in COUNTS for n in np.ravel(release.marginal(c).values)}
    published = noisy | fitted | {round(release.model.total)}
    shown = [json.dumps(release.certificate()), render(release), repr(release), repr(heard)]
    assert truths - published, "most true counts are never published, even by chance"
    return {n for text in shown for n in numbers_in(text)} & (truths - published)


# Error bounds.


def passed_over(release: Release) -> set[Clique]:
    """Candidates in no measurement, of choices by weights and penalties that measuring the chosen one followed."""
    found: set[Clique] = set()
    for entry, following in pairwise(release.transcript.entries):
        if isinstance(entry, Selection) and isinstance(following, Measurement):
            told = following.clique == entry.chosen and following.query.is_identity
            found.update(
                entry.candidates if told and {"weight", "penalty"} <= entry.terms.keys() else ()
            )
    return found - set(closure(release.transcript.cliques))


def without_a_bound(release: Release) -> set[Clique]:
    """Those of them that the release says nothing about: the mechanism has not kept what it chose by (``Memory``)."""
    asked = sorted(passed_over(release))
    bounds = release.bounds(asked) if asked else ()
    return {b.clique for b in bounds if b.records is None or not np.isfinite(b.records)}


@FIRST
def test_what_choices_passed_over_has_a_bound(case: str) -> None:
    table = shaped("five columns")
    release = made(case, table)
    # the estimates of one run say nothing about the mean of all
    assert without_a_bound(release) == set() or case == "repeated aim"
    steps = mechanism_of(case, table.domain).steps(table.domain, ODD.rho, AddRemoveRow())
    chooses_marginals = any(s.adaptive and not s.single for s in steps)
    # one selects by noisy scores, and others measure all their candidates
    chooses_marginals &= case not in {"privmrf paper", "privmrf small", "rap-plus"}
    assert bool(passed_over(release)) == chooses_marginals


def without_memory(self: Mechanism, private: Any, model: Any, memory: Any) -> Release:
    """The release of a mechanism that forgets what its choices were scored with."""
    assert memory is not None
    return build_release(private, model, self.config())


@pytest.mark.parametrize("case", ["aim", "mwem-pgm", "mwem", "pep", "pmw-pub", "pep-pub"])
@pytest.mark.parametrize("forgotten", ["the memory at the end", "a round"])
def test_a_mechanism_that_forgets_is_seen(
    case: str, forgotten: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if forgotten == "the memory at the end":
        monkeypatch.setattr(Mechanism, "release", without_memory)
    else:
        monkeypatch.setattr(SelectionLog, "note", lambda *_: None)
    assert without_a_bound(made(case, shaped("five columns"))) != set()


# Structural zeros.


ZEROS = Domain.of(SIZES, zeros=[StructuralZeros(("c",), np.array([True, True, False, True]))])


@pytest.mark.parametrize("case", [c for c in CASES if keeps_zeros(c)])
def test_structural_zeros_are_not_refused(case: str) -> None:
    """`check_mechanism` holds that none is drawn then."""
    made(case, TinyTable(TinySchema(ZEROS), [(0, 0, 0)]))


@pytest.mark.parametrize("case", [c for c in CASES if not keeps_zeros(c)])
def test_structural_zeros_that_a_model_cannot_keep_cost_nothing(case: str) -> None:
    refused(
        mechanism_of(case, ZEROS),
        TinyTable(TinySchema(ZEROS), [(0, 0, 0)]),
        InputError,
        "impossible",
    )


# Accuracy where noise is nothing.


def chain_rows(count: int = 900) -> list[tuple[int, ...]]:
    """Rows of a Markov chain a → b → c: a tree describes them."""
    rng = np.random.default_rng(4)
    a = rng.integers(2, size=count)
    b = np.where(rng.random(count) < 0.8, a, 2)
    c = np.where(rng.random(count) < 0.7, b, 3)
    return list(zip(a.tolist(), b.tolist(), c.tolist(), strict=True))


# What each case can know: a chain is known from its two pairs, and a small model has room for one.
RECOVERED: dict[str, list[Clique]] = {
    "aim": [("a", "b", "c")],
    "aim pairs": [("a", "b"), ("a", "c"), ("b", "c")],
    "aim few rows": [("a", "b", "c")],
    "aim generalized": [("a", "b"), ("a", "c"), ("b", "c")],
    "aim uneven": [("a", "b"), ("a", "c"), ("b", "c")],
    "aim full": [("a", "b"), ("a", "c"), ("b", "c")],
    "aim shortlist": [("a", "b", "c")],
    "aim purposes": [("a", "b"), ("a", "c"), ("b", "c")],
    "aim small": [("a",), ("b", "c")],
    "mst": [("a", "b"), ("b", "c")],
    "mst unmerged": [("a", "b"), ("b", "c")],
    "forests": [("a", "b"), ("b", "c")],
    "forests small": [("a",), ("b",), ("c",)],
    "privbayes": [("a", "b"), ("b", "c")],
    "privbayes network": [("a", "b"), ("b", "c")],
    "privbayes paper": [("a", "b", "c")],
    "mwem-pgm": [("a", "b", "c")],
    "mwem-pgm pairs": [("a",), ("b", "c")],
    "mwem-pgm paper": [("a", "b"), ("b", "c")],
    "privmrf": [("a", "b"), ("b", "c")],
    "privmrf paper": [("a", "b"), ("b", "c")],
    "privmrf small": [("a",), ("b",), ("c",)],
    "independent": [("a",), ("b",), ("c",)],
    "gaussian": [("a", "b", "c")],
    "gaussian uneven": [("a", "b"), ("a", "c"), ("b", "c")],
    "residual-planner": [("a", "b", "c")],
    "hdmm": [("a", "b", "c")],
    "hdmm small": [("a",), ("b", "c")],
    "napsu-mq": [("a", "b"), ("b", "c")],
    "napsu-mq pair": [("a", "b"), ("b", "c")],
    "napsu-mq apart": [("a", "b"), ("c",)],
    "repeated": [("a", "b"), ("b", "c")],
    "repeated aim": [("a", "b"), ("b", "c")],
    "mwem": [("a",)],
    "mwem uneven": [("a",)],
    "mwem graphical": [],
    "mwem queries": [],
    "mwem paper": [],
    "mwem at once": [],
    "pep": [("a", "b", "c")],
    "pep queries": [],
    "pep prefixes": [],
    "pmw-pub": [("a",)],
    "pmw-pub queries": [],
    "pmw-pub paper": [("a",)],
    "pep-pub": [("a", "b", "c")],
    "aim-pub": [("a", "b", "c")],
    "aim-pub pairs": [("a",), ("b", "c")],
    "jam-pgm": [("a",)],
    "jam-pgm surviving": [("a",)],
    "jam-pgm paper": [("a",)],
    "pep-pub queries": [],
    "pep-pub paper": [("a",)],
    "private-gsd": [("a", "b"), ("a", "c"), ("b", "c")],
    "private-gsd rounds": [("a", "b", "c")],
    "private-gsd queries": [],
}

# What small networks, or a few records, come near to in few rounds, and how near: 2 would be no overlap at all.
NEARLY: dict[str, tuple[float, list[Clique]]] = {
    "private-gsd paper": (0.1, [("a", "b"), ("b", "c")]),
    "privsyn": (0.05, [("a", "b"), ("b", "c")]),
    "privsyn joined": (0.05, [("a", "b"), ("b", "c")]),
    "privsyn graphical": (0.05, [("a",), ("b",), ("c",)]),
    "privlcm": (0.1, [("a",), ("b", "c")]),
    "privpgd": (0.1, [("a", "b"), ("b", "c")]),
    "privpgd uneven": (0.1, [("a", "b"), ("b", "c")]),
    "privpgd constraints": (0.1, [("a", "b"), ("b", "c")]),
    "aim particles": (0.1, [("a", "b"), ("b", "c")]),
    "mst particles": (0.1, [("a", "b"), ("b", "c")]),
    "mwem-pgm particles": (0.1, [("a",), ("b", "c")]),
    "gem": (0.1, [("a", "b"), ("b", "c")]),
    "gem pairs": (0.2, [("a", "b")]),
    "gem marginals": (0.15, [("a", "b", "c")]),
    "gem-pub": (0.15, [("a", "b"), ("b", "c")]),
    "gem-pub queries": (0.2, [("a", "b")]),
    "aim-mixture": (0.1, [("a", "b"), ("b", "c")]),
    "aim-mixture network": (0.1, [("a",), ("b",), ("c",)]),
    "rap": (0.15, [("a", "b", "c")]),
    "rap box": (0.05, [("a",)]),
    "rap-plus": (0.1, [("a",)]),
    "rap marginals": (0.1, [("a", "b"), ("b", "c")]),
    "dual-query": (0.1, [("a",)]),
    "dual-query exact": (0.2, [("a",)]),
    "dual-query ruled": (0.05, [("a", "b")]),
    "fem": (0.1, [("a",)]),
    "fem exact": (0.3, [("a",)]),
}


@pytest.mark.parametrize(
    ("unit", "case"),
    [(AddRemoveRow(), c) for c in CASES]
    + [pytest.param(ReplaceRow(), c, marks=[pytest.mark.slow] * (" " in c)) for c in CASES],
    ids=str,
)
def test_a_large_budget_recovers_the_workload(case: str, unit: Unit) -> None:
    table = memory_table(SIZES, chain_rows())
    release = made(case, table, unit, Budget.zcdp(10**6))
    off, cliques = NEARLY.get(case) or (0.01, RECOVERED[case])
    truth = table.count(cliques) if cliques else {}
    for clique, counts in truth.items():
        assert np.abs(release.marginal(clique).values - counts).sum() < off * table.rows()
    assert release.model.total == pytest.approx(table.rows(), rel=0.001)


# Where columns of the rows are public.


@pytest.mark.parametrize("case", OWN_COLUMNS)
@pytest.mark.parametrize(
    "shape", [s for s, (sizes, rows) in SHAPES.items() if len(sizes) > 1 and rows]
)
def test_odd_tables_with_public_columns(case: str, shape: str) -> None:
    """The books are exact, the file is whole, rows are counted as announced, and of the last column alone is asked."""
    table = shaped(shape)
    domain, mechanism = table.domain, OWN_COLUMNS[case](table.domain, table.data)
    release = counted_run(mechanism, table, ReplaceRow(), ODD, 0, shape)
    assert release.provenance.mechanism == case.split()[0]
    assert release.account.rho_spent == release.account.rho_budget == ODD.rho
    known = release.transcript
    asked = [*known.cliques, *(clique for s in known.selections for clique in s.candidates)]
    assert asked
    assert all(domain.attributes[-1] in clique for clique in asked)
    assert known.readings
    assert all(domain.attributes[-1] not in r.clique for r in known.readings)
    check_codes(release, shape)
    check_file(release, shape)


@pytest.mark.parametrize("case", OWN_COLUMNS)
def test_a_large_budget_recovers_what_is_not_public(case: str) -> None:
    table = memory_table(SIZES, chain_rows())
    mechanism = OWN_COLUMNS[case](table.domain, chain_rows())
    release = run_on(mechanism, table, ReplaceRow(), Budget.zcdp(10**6), SeededRandomness(0))
    for clique, counts in table.count([("a", "b"), ("b", "c")]).items():
        assert np.abs(release.marginal(clique).values - counts).sum() < 0.01 * table.rows()


# Refused at no cost.

WITH_WORKLOAD = [
    name for name, kind in MECHANISMS.items() if "workload" in {f.name for f in fields(kind)}
]  # type: ignore[arg-type]
WITH_SIZE = [
    name for name, kind in MECHANISMS.items() if "max_model_mb" in {f.name for f in fields(kind)}
]  # type: ignore[arg-type]


def refused(mechanism: Mechanism, table: Any, error: type[Exception], match: str) -> None:
    """The run ends in an error, with nothing spent."""
    with protect(table, unit=AddRemoveRow(), budget=ODD, randomness=SeededRandomness(1)) as private:
        with pytest.raises(error, match=match):
            mechanism.run(private, rng=np.random.default_rng(0))
        assert private.account().debits == ()
        assert private.remaining == ODD.rho


def test_who_takes_a_workload_or_a_size() -> None:
    assert set(WITH_WORKLOAD) >= {"aim", "mwem-pgm", "gaussian"}
    assert set(WITH_SIZE) >= {"aim", "mst", "mwem-pgm"}


@pytest.mark.parametrize("name", WITH_WORKLOAD)
def test_an_unknown_column_in_the_workload(name: str) -> None:
    mechanism: Any = MECHANISMS[name]
    table = shaped("one row")
    workload = Workload({("a", "nope"): 1.0})
    refused(
        mechanism(workload=workload, **needed_by(name, table.domain)), table, InputError, "nope"
    )


@pytest.mark.parametrize("name", WITH_WORKLOAD)
def test_columns_of_the_workload_in_another_order(name: str) -> None:
    """The order in which a clique's columns are named changes nothing."""
    mechanism: Any = MECHANISMS[name]
    table = tiny(SIZES, some_rows(SIZES, 20))
    plain, other = (
        run_on(
            mechanism(workload=Workload(w), **needed_by(name, table.domain), **QUICK.get(name, {})),
            table,
            AddRemoveRow(),
            ODD,
            SeededRandomness(2),
        )
        for w in ({("a", "c"): 1.0, ("b",): 2.0}, {("c", "a"): 0.5, ("b",): 2.0, ("a", "c"): 0.5})
    )
    for clique in [("a", "c"), ("b",)]:
        assert plain.marginal(clique).values.tobytes() == other.marginal(clique).values.tobytes()


@pytest.mark.parametrize("name", WITH_SIZE)
def test_a_model_above_the_size_allowed_names_its_column(name: str) -> None:
    mechanism: Any = MECHANISMS[name]
    table = tiny({"a": 2, "huge": 3000, "c": 4}, [(0, 0, 0)])
    needed = needed_by(name, table.domain)
    refused(mechanism(max_model_mb=1e-5, **needed), table, ModelTooLargeError, "'huge'")


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_domain_too_large_for_anything_names_its_column(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the main job, before the gate is even made."""
    monkeypatch.setattr(
        margrave.run, "protect", lambda *_, **__: pytest.fail("the gate was reached")
    )
    schema = Schema.coded({"a": 2, "huge": 1 << 23, "c": 4})
    mechanism: Any = MECHANISMS[name]
    with pytest.raises(ModelTooLargeError, match="'huge'"):
        margrave.api.synthesize(
            pa.table({"a": [0], "huge": [0], "c": [0]}),
            schema,
            epsilon=1.0,
            delta=1e-9,
            mechanism=mechanism(),
        )


@pytest.mark.parametrize("name", [n for n in MECHANISMS if n not in {"independent", "privbayes"}])
def test_marginals_too_large_to_count_cost_nothing(name: str) -> None:
    """Straight at the gate too, where only the count fails: each column is fine, the pair is not."""
    wide = Domain.of({"a": 60_000, "b": 60_000})
    mechanism = plain(name, wide)
    table = MemoryTable(Schema.coded({"a": 60_000, "b": 60_000}), codes_of(wide, [(0, 0)]))
    refused(mechanism, table, MargraveError, "cells")


BAD: list[Callable[[], object]] = [
    lambda: AIM(alpha=Fraction(0)),
    lambda: AIM(alpha=Fraction(1)),
    lambda: AIM(alpha=float("nan")),  # type: ignore[arg-type]
    lambda: AIM(alpha=1e-9),  # type: ignore[arg-type]
    lambda: AIM(rounds=0),
    lambda: MWEMPGM(rounds=-1),
    *(
        lambda kind=kind, options=options: kind(**options)  # type: ignore[misc]
        for kind in (MWEM, PEP, PMWPub, PEPPub)
        for options in (
            {"rounds": 0},
            {"alpha": Fraction(0)},
            {"alpha": float("nan")},
            {"alpha": 1.0},
            {"granularity": "cell"},
        )
    ),
    *(lambda passes=passes: MWEM(passes=passes) for passes in (-1,)),
    *(lambda gamma=gamma: PEP(gamma=gamma) for gamma in (-1.0, float("nan"))),
    lambda: PEP(max_iterations=0),
    lambda: NAPSUMQ(select_fraction=Fraction(0)),
    lambda: NAPSUMQ(select_fraction=Fraction(1)),
    lambda: NAPSUMQ(select_fraction=float("nan")),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("make", BAD)
def test_parameters_out_of_range_are_refused_at_once(make: Callable[[], object]) -> None:
    with pytest.raises(InputError):
        make()


@pytest.mark.parametrize("limit", [0.0, -1.0, float("nan")])
@pytest.mark.parametrize("name", WITH_SIZE)
def test_no_size_at_all_costs_nothing(name: str, limit: float) -> None:
    table = shaped("one row")
    mechanism: Any = plain(name, table.domain)
    with pytest.raises(InputError, match="max_model_mb is"):
        replace(mechanism, max_model_mb=limit)
    refused(replace(mechanism, max_model_mb=1e-9), table, ModelTooLargeError, "above")


WHOLE = Domain.of(SIZES)


class HoldsNothing(GraphicalFit):
    """A fit whose models are all too large."""

    def cells(self, domain: Domain, cliques: Any) -> int:
        return 10**15

    def sizes_with(self, domain: Domain, cliques: Any, others: Any) -> list[int]:
        return [10**15 for _ in others]


FITTED = [
    case
    for case, make in CASES.items()
    if isinstance(getattr(make(WHOLE), "fit", None), GraphicalFit)
]


@pytest.mark.parametrize("case", FITTED)
def test_a_fit_that_can_hold_nothing_costs_nothing(case: str) -> None:
    """Whoever forgets ``check_fit`` spends the budget, and has no memory for the model then."""
    table = tiny(SIZES, some_rows(SIZES, 60))
    mechanism: Any = CASES[case](table.domain)
    refused(replace(mechanism, fit=HoldsNothing()), table, ModelTooLargeError, "above")


def test_a_model_that_nothing_can_hold_costs_nothing() -> None:
    """All pairs of fourteen columns make one clique of them all: of 10^14 cells and more."""
    many = {f"c{i:02}": 12 for i in range(14)}
    table = tiny(many, [tuple([0] * 14)])
    mechanism = GaussianMechanism(workload=pairs(table.domain), fit=GraphicalFit())
    refused(mechanism, table, ModelTooLargeError, "name a smaller workload")


@pytest.mark.parametrize("start", [True, False])
def test_without_a_size_no_choice_makes_a_model_that_cannot_be_estimated(
    start: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be estimated is no candidate; where nothing can, nothing is spent."""
    table = tiny(SIZES, some_rows(SIZES, 60))
    mechanism = MWEMPGM(
        workload=pairs(table.domain), rounds=6, measure_one_way=start, max_model_mb=None
    )

    def largest(cells: int) -> None:
        for module in ("models.protocol", "mechanisms.parts.capacity"):
            monkeypatch.setattr(f"margrave.{module}.MAX_MODEL_MB", cells / CELLS_PER_MB)

    def made_of() -> Release:
        return run_on(mechanism, table, AddRemoveRow(), ODD, SeededRandomness(3))

    free = made_of().transcript.cliques
    assert GraphicalFit().cells(table.domain, free) == 24, "all pairs of three columns join them"
    largest(20)
    bound = made_of().transcript.cliques
    assert GraphicalFit().cells(table.domain, bound) <= 20
    assert {c for c in bound if len(c) == 2}
    largest(5)
    refused(mechanism, table, ModelTooLargeError, "above")


# Repeatable, but for the noise.


def noisy_values(release: Release) -> list[Any]:
    """Every noisy answer, in order."""
    known = release.transcript
    return [*(m.values.tolist() for m in known.measurements), *(a.value for a in known.answers)]


@FIRST
def test_the_system_s_noise_does_not_repeat(case: str) -> None:
    table = tiny(SIZES, some_rows(SIZES, 30))
    rows = pa.table({a: [row[i] for row in table.data] for i, a in enumerate(table.domain)})

    def once() -> list[Any]:
        release = margrave.api.synthesize(
            rows,
            Schema.coded(SIZES),
            epsilon=1.0,
            delta=1e-9,
            mechanism=mechanism_of(case, table.domain),
            seed=0,
        )
        assert release.account.private
        return noisy_values(release)

    first = once()
    others = (once() for _ in range(3))  # few choices among few candidates may be the same twice
    assert any(m != n for other in others for m, n in zip(first, other, strict=False))


def refitting(release: Release) -> Fit:
    """A fit that can take all answers of a release."""
    answers = release.transcript.answers
    if any(isinstance(a.query, HalfSpace) for a in answers):
        return FEW_PARTICLES
    return GraphicalFit() if all(a.query.is_cell for a in answers) else EntropyProjectionFit()


@FIRST
def test_the_release_can_be_fitted_anew(case: str) -> None:
    """The transcript alone makes the same model again, and another one."""
    release = made(case, tiny(SIZES, some_rows(SIZES, 30)))
    if not measures(case):
        with pytest.raises(ReleaseError, match="only selected"):
            release.refit(GraphicalFit(), seed=0)
        with pytest.raises(InputError, match="only selected"):
            release.draws(2, seed=0)
        return
    again = release.refit(refitting(release), seed=0)
    assert again.transcript is release.transcript
    assert again.account == release.account
    assert again.sample(5, seed=0).num_rows == 5
