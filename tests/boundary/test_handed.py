"""Mechanisms, scores, queries and randomness from elsewhere: none of them sees true counts or keeps the books."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import margrave
from margrave.accounting import AddRemovePerson, AddRemoveRow, Budget, Policy, ReplaceRow
from margrave.domain import Codes, Domain
from margrave.errors import InputError, PolicyError, ReleaseError, UnfinishedError
from margrave.marginal import HalfSpace, LinearMap, LinearQuery, QueryFamily
from margrave.mechanisms import Independent
from margrave.privacy import (
    Gaussian,
    GridScores,
    Improvement,
    MarginalGap,
    Private,
    QueryGap,
    SeededRandomness,
    SystemRandomness,
    protect,
)
from margrave.privacy.copies import is_exactly
from margrave.release import Release
from margrave.report.page import render
from margrave.schema import Schema
from margrave.transcript import Measurement, PublicReading, Transcript
from margrave.types import Clique, IntArray
from tests.support.conformance import memory_table, some_rows

SIZES = {"a": 2, "b": 3}
ROWS = some_rows(SIZES, 50)
A, B = ("a",), ("b",)
TABLE = memory_table(SIZES, ROWS)
DOMAIN = TABLE.schema.domain
BUDGET = Budget.zcdp(Fraction(2))


def opened(**more: Any) -> Private:
    return protect(
        TABLE, unit=AddRemoveRow(), budget=BUDGET, **{"randomness": SeededRandomness(1), **more}
    )


# The books of a release.


class Forging(Independent):
    """A mechanism that returns something else than what the gate knows."""

    change: Callable[[Release], object] = staticmethod(lambda made: made)

    def run(self, private: Private, **more: Any) -> Release:
        return type(self).change(super().run(private, **more))  # type: ignore[return-value]


class Grand(Release):
    """A release that certifies what it likes."""

    def certificate(self) -> dict[str, Any]:
        return {"epsilon": 0.0}


def cheaper(made: Release) -> Release:
    first = made.transcript.measurements[0]
    object.__setattr__(first, "rho", first.rho / 1000)  # the gate's own entry
    return made


CHANGES: dict[str, tuple[Callable[[Release], object], str]] = {
    "account": (
        lambda r: replace(r, account=replace(r.account, epsilon=0.01, debits=())), "whose account differs",
    ),
    "delta": (lambda r: replace(r, account=replace(r.account, delta=1e-12)), "whose account differs"),
    "an entry less": (lambda r: replace(r, transcript=Transcript(r.transcript.entries[:-1])), "whose transcript"),
    "an entry more": (
        lambda r: replace(r, transcript=r.transcript + Transcript((r.transcript.entries[0],))), "whose transcript",
    ),
    "an entry copied": (
        lambda r: replace(r, transcript=Transcript(tuple(replace(e, scale=9.0) for e in r.transcript.measurements))),
        "whose transcript",
    ),
    "schema": (lambda r: replace(r, schema=Schema.coded(SIZES)), "whose schema differs"),
    "a reading": (
        lambda r: replace(r, transcript=r.transcript + Transcript((PublicReading(A, np.ones(2), np.ones(2), "f"),))),
        "does not verify",
    ),
    "the gate's own entry": (cheaper, "does not verify"),
    "a subclass": (
        lambda r: Grand(r.schema, r.model, r.transcript, r.account, r.provenance),
        "returned a Grand instead of a Release",
    ),
    "nothing": (lambda r: None, "returned a NoneType"),
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGES)
def test_a_mechanism_whose_release_differs_from_the_gate_is_refused_and_nothing_is_lost(
    what: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    change, words = CHANGES[what]
    monkeypatch.setattr(Forging, "change", staticmethod(change))
    with pytest.raises(UnfinishedError, match="The mechanism Forging") as caught:
        margrave.synthesize(
            TABLE, TABLE.schema, epsilon=5.0, delta=1e-9, mechanism=Forging(), seed=1
        )
    assert words in str(caught.value)
    kept: Release = caught.value.release
    assert (kept.account.epsilon, kept.account.delta) == (5.0, 1e-9)
    assert len(kept.transcript.measurements) == 2
    if what != "the gate's own entry":
        assert kept.verify().holds
        kept.save(tmp_path / "kept.margrave")
        assert Release.load(tmp_path / "kept.margrave").account == kept.account


def test_a_mechanism_from_elsewhere_that_changes_nothing_is_fine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        Forging, "change", staticmethod(lambda made: replace(made, versions={"margrave": "99"}))
    )
    made = margrave.synthesize(
        TABLE, TABLE.schema, epsilon=5.0, delta=1e-9, mechanism=Forging(), seed=1
    )
    assert made.verify().holds
    assert made.versions["margrave"] == margrave.__version__


# Randomness.


class Boastful:
    """A source without noise that calls itself private."""

    is_private = True

    def describe(self) -> str:
        return SystemRandomness().describe()

    def gaussian(self, counts: IntArray, scale: float) -> IntArray:
        return counts

    def choose(self, scores: Sequence[int] | IntArray, temperature: Fraction) -> int:
        return 0


def test_only_the_exact_type_of_the_systems_randomness_is_private() -> None:
    with opened(randomness=Boastful()) as private:
        private.measure([A], Gaussian(scale=5.0))
        assert private.account().private is False
    with opened(randomness=None) as private:
        assert private.account().private is True
    with pytest.raises(PolicyError, match="not the operating system's"):
        opened(randomness=Boastful(), policy=Policy(units=("add-remove-row",)))
    with pytest.raises(AttributeError):
        SystemRandomness().gaussian = Boastful().gaussian  # type: ignore[method-assign]


# Queries, noise, units and budgets of other types.


class Louder(LinearQuery):
    def count(self, values: Any) -> int | float:
        return 1000 * super().count(values)


class Half(HalfSpace):
    @property
    def most(self) -> int:
        return 1


class Merging(LinearMap):
    def apply(self, clique: Clique, values: Any) -> Any:
        return 1000 * values


class Free(Gaussian):
    def price(self, moved: Any, marginals: int) -> Any:
        return super().price(moved, marginals)._replace(rho_each=Fraction(1, 10**9))


class Sets(QueryFamily):
    def answer(self, clique: Clique, values: Any) -> Any:
        return 1000 * values


class Steeper(QueryGap):
    pass


class Gap(MarginalGap):
    lipschitz = 1e-9  # type: ignore[assignment]


class Better(Improvement):
    pass


ZEROS = {A: np.zeros(2), B: np.zeros(3)}
CELLS = QueryFamily.cells(DOMAIN, [A, B])
ONES = dict.fromkeys([A, B], 1.0)
SUBCLASSES: dict[str, Callable[[Private], object]] = {
    "linear query": lambda p: p.measure_queries([Louder(A, ((0,),))], Gaussian(scale=5.0)),
    "half-space": lambda p: p.measure_queries(
        [Half(A, (1.0,), (2,), 0.5, 9.0)], Gaussian(scale=5.0)
    ),
    "query": lambda p: p.measure([A], Gaussian(scale=5.0), query=Merging()),
    "noise": lambda p: p.measure([A], Free(scale=5.0)),
    "noise of counts": lambda p: p.measure_queries([LinearQuery(A, ((0,),))], Free(scale=5.0)),
    "queries": lambda p: p.select_query(Sets(DOMAIN, (A, B)), QueryGap(ZEROS), rho=Fraction(1)),
    "query gap": lambda p: p.select_query(CELLS, Steeper(ZEROS), rho=Fraction(1)),
    "gap": lambda p: p.select([A, B], Gap(ZEROS, ONES, ONES), rho=Fraction(1)),
    "improvement": lambda p: p.select([A, B], Better(ZEROS, {}, ONES, ONES), rho=Fraction(1)),
    "query of a gap": lambda p: p.select(
        [A, B], MarginalGap(ZEROS, ONES, ONES, Merging()), rho=Fraction(1)
    ),
}


@pytest.mark.parametrize("what", SUBCLASSES)
def test_a_subclass_is_refused_before_anything_is_counted(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scans: list[object] = []
    monkeypatch.setattr(type(TABLE), "count", lambda self, cliques: scans.append(cliques))
    with opened() as private, pytest.raises(InputError, match=r"(shown? true counts|The noise is)"):
        SUBCLASSES[what](private)
    assert private.account().debits == ()
    assert scans == []


def test_units_and_budgets_are_of_exact_types() -> None:
    class Lesser(AddRemovePerson):
        pass

    class Generous(Budget):
        pass

    class Three(int):
        pass

    with pytest.raises(InputError, match="unit of privacy is"):
        protect(TABLE, unit=Lesser(3), budget=BUDGET)
    with pytest.raises(InputError, match="not a Budget"):
        protect(
            TABLE, unit=AddRemoveRow(), budget=Generous(BUDGET.rho, BUDGET.epsilon, BUDGET.delta)
        )
    with pytest.raises(InputError, match="max_rows"):
        AddRemovePerson(Three(3))


# Objects of the right type that hold something of a wrong one.

SEEN: list[Any] = []


class Spying(np.ndarray):
    """An array that remembers all arrays that it meets."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **more: Any) -> Any:
        SEEN.extend(inputs)
        plain = [np.asarray(i) if isinstance(i, Spying) else i for i in inputs]
        more.pop("out", None)
        return getattr(ufunc, method)(*plain, **more)

    def __array_function__(self, func: Any, types: Any, args: Any, more: Any) -> Any:
        SEEN.extend(args)
        return np.zeros(3).view(Spying)


class Number:
    """A number that remembers what it is subtracted from, in arrays of objects."""

    def __float__(self) -> float:
        return 0.0

    def __mul__(self, other: Any) -> Number:
        return self

    def rint(self) -> Number:
        return self

    def __sub__(self, other: Any) -> float:
        SEEN.append(other)
        return 0.0

    __abs__ = __neg__ = __rsub__ = __rmul__ = __mul__


def spying(values: Any) -> Any:
    return np.asarray(values).view(Spying)


def shadowed(thing: Any, **attributes: Any) -> Any:
    for name, value in attributes.items():
        object.__setattr__(thing, name, value)
    return thing


def told(values: Any) -> Any:
    SEEN.append(values)
    return 0


class Fickle(dict[Any, Any]):
    """A mapping that has another value each time that it is asked."""

    def __init__(self, values: Sequence[Any]) -> None:
        super().__init__({"b": values[0]})
        self.values_left = list(values)

    def __getitem__(self, key: Any) -> Any:
        return self.values_left.pop(0) if len(self.values_left) > 1 else self.values_left[0]


GROUPS = np.array([0, 1, 1])
OBJECTS = {
    A: np.array([Number(), Number()], dtype=object),
    B: np.array([Number()] * 3, dtype=object),
}
SPIES = {A: spying(np.zeros(2)), B: spying(np.zeros(3))}
SMUGGLED: dict[str, Callable[[Private], object]] = {
    "groups": lambda p: p.measure([B], Gaussian(scale=5.0), query=LinearMap({"b": spying(GROUPS)})),
    "codes": lambda p: p.measure_queries([LinearQuery(B, (spying([0, 1]),))], Gaussian(scale=5.0)),  # type: ignore[arg-type]
    "threshold": lambda p: p.measure_queries(
        [HalfSpace(B, (1.0,), (3,), spying(0.5), 2.0)], Gaussian(scale=5e6)
    ),
    "estimates": lambda p: p.select([A, B], MarginalGap(SPIES, ONES, ONES), rho=Fraction(1)),
    "objects": lambda p: p.select([A, B], MarginalGap(OBJECTS, ONES, ONES), rho=Fraction(1)),
    "publics": lambda p: p.select([A, B], Improvement(ZEROS, SPIES, ONES, ONES), rho=Fraction(1)),
    "estimates of queries": lambda p: p.select_query(CELLS, QueryGap(SPIES), rho=Fraction(1)),
    "sets": lambda p: p.select_query(
        QueryFamily(DOMAIN, (A, B), {"b": spying(np.tri(3, dtype=bool))}), QueryGap(ZEROS), rho=Fraction(1)
    ),
    "a method of a query": lambda p: p.measure_queries(
        [shadowed(LinearQuery(A, ((0,),)), count=told)], Gaussian(scale=5.0)
    ),
    "a method of groups": lambda p: p.measure(
        [B], Gaussian(scale=5.0), query=shadowed(LinearMap(), apply=lambda c, v: told(v) or v)
    ),
    "a method of queries": lambda p: p.select_query(
        shadowed(QueryFamily.cells(DOMAIN, [A, B]), answer=lambda c, v: told(v) or v), QueryGap(ZEROS), rho=Fraction(1)
    ),
    "a method of a score": lambda p: p.select(
        [A, B], shadowed(MarginalGap(ZEROS, ONES, ONES), gaps=lambda r, c: told(c) or [0, 0]), rho=Fraction(1)
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", SMUGGLED)
def test_nothing_that_a_question_holds_meets_true_counts(what: str) -> None:
    """The question is answered from the gate's own copy, and the spy has seen public numbers at most."""
    with opened() as private:
        SEEN.clear()
        SMUGGLED[what](private)
        assert len(private.transcript) == 1
    seen = [x for x in SEEN if not isinstance(x, Spying)]
    assert [x for x in seen if isinstance(x, np.ndarray | Mapping)] == []
    assert 50 not in [x for x in seen if isinstance(x, int | np.integer)]
    for entry in private.transcript:
        held = (
            [entry.values, *entry.query.groups.values()] if isinstance(entry, Measurement) else []
        )
        assert all(type(x) is np.ndarray for x in held)


def test_what_was_checked_is_what_is_used() -> None:
    """A mapping that answers otherwise later, and arrays that are changed later."""
    later = Fickle([GROUPS, np.array([0, 10**6, 0]), np.array([0, 0, 0])])
    with opened() as private:
        private.measure([B], Gaussian(scale=5.0), query=LinearMap(later))
        groups = GROUPS.copy()
        private.measure([B], Gaussian(scale=5.0), query=LinearMap({"b": groups}))
        groups[:] = 0
        sets = {"b": np.tri(3, dtype=bool)}
        queries = QueryFamily(DOMAIN, (A, B), sets)
        (first,) = private.select_query(
            queries, QueryGap({A: np.zeros(2), B: np.zeros(3)}), rho=Fraction(1, 9)
        )
        (again,) = private.select_query(queries, QueryGap(ZEROS), rho=Fraction(1, 9))
        sets["b"][0] = [False, True, True]
        (third,) = private.select_query(queries, QueryGap(ZEROS), rho=Fraction(1, 9))
    one, two = private.transcript.measurements
    assert one.query.groups["b"].tolist() == two.query.groups["b"].tolist() == [0, 1, 1]
    assert first.queries is again.queries, "written to a file once"
    assert first.queries is not queries
    assert first.queries.sets["b"].tolist() == np.tri(3, dtype=bool).tolist()
    assert third.queries.sets["b"][0].tolist() == [False, True, True]


def test_only_weights_of_candidates_count() -> None:
    score = MarginalGap(ZEROS, {A: 1.0, B: 100.0}, ONES)
    with opened() as private:
        private.select([A], score, rho=Fraction(1))
    assert private.transcript.selections[0].sensitivity == 1.0


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (
            lambda p: p.select([A], MarginalGap({A: "ab"}, ONES, ONES), rho=Fraction(1)),
            "not an array of numbers",
        ),
        (
            lambda p: p.select([A], MarginalGap(ZEROS, {A: "x"}, ONES), rho=Fraction(1)),
            "where a number",
        ),
        (
            lambda p: p.measure_queries([LinearQuery(A, ((0.5,),))], Gaussian(scale=5.0)),
            "where a whole number",
        ),  # type: ignore[arg-type]
        (
            lambda p: p.measure([B], Gaussian(scale=5.0), query=LinearMap({"b": GROUPS / 2})),
            "not one number",
        ),
        (
            lambda p: p.select_query(CELLS, QueryGap(ZEROS), rho=Fraction(1), times=1.5),
            "times of 1 or more",
        ),
        (
            lambda p: p.select_query(CELLS, QueryGap(ZEROS), rho=Fraction(1), times=0),
            "times of 1 or more",
        ),
    ],
)
def test_numbers_of_a_wrong_kind_are_refused_at_no_cost(
    question: Callable[[Any], object], words: str
) -> None:
    with opened() as private, pytest.raises(InputError, match=words):
        question(private)
    assert private.account().debits == ()


# Scores that were vouched for.


class Frequency:
    """A score of another library: how many rows a marginal's first cell has."""

    lipschitz = 1.0

    def check(self, domain: Domain, candidates: Sequence[Clique]) -> None:
        """Nothing to check."""

    def terms(self, candidates: Sequence[Clique]) -> dict[str, Any]:
        return {"share": [1.0] * len(candidates)}

    def readable(self, candidates: Sequence[Clique]) -> tuple[Clique, ...]:
        return ()

    def __call__(
        self, candidates: Sequence[Clique], counts: Mapping[Clique, IntArray]
    ) -> GridScores:
        return GridScores(tuple(int(counts[c].reshape(-1)[0]) for c in candidates), Fraction(1))


class Choosy(Independent):
    """A mechanism that chooses by it first."""

    def run(self, private: Private, **more: Any) -> Release:
        from margrave.mechanisms.common import build_release, one_way

        private.select(one_way(private.domain), Frequency(), rho=private.rho / 2)
        private.measure(one_way(private.domain), Gaussian(rho=private.remaining))
        model = self.fit(private.domain, private.transcript, rng=np.random.default_rng(0))
        return build_release(private, model, self.config())


def test_a_score_from_elsewhere_needs_a_voucher_and_is_named_wherever_the_release_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (
        opened() as private,
        pytest.raises(InputError, match=r"vouch for it: protect\(..., vouched=\[Frequency\]"),
    ):
        private.select([A, B], Frequency(), rho=Fraction(1))
    assert private.account().debits == ()
    run = {"epsilon": 5.0, "delta": 1e-9, "mechanism": Choosy(), "seed": 1}
    with pytest.raises(InputError, match="does not show true counts"):
        margrave.synthesize(TABLE, TABLE.schema, **run)
    made = margrave.synthesize(TABLE, TABLE.schema, vouched=[Frequency], **run)
    name = f"{__name__}.Frequency"
    made.save(tmp_path / "r.margrave")
    back = Release.load(tmp_path / "r.margrave")
    assert back.transcript.selections[0].vouched == name
    found = back.verify()
    assert found.holds
    assert name in found.notes[0]
    facts = back.certificate()
    assert facts["vouched"] == [
        f"The sensitivity of choices by {name} was vouched for by code outside the library."
    ]
    assert name in json.dumps(facts["transcript"])
    assert facts["vouched"][0] in render(back)
    from margrave.cli.main import run as command

    assert command(["certificate", str(tmp_path / "r.margrave")]) == 0
    assert "Frequency was vouched for" in " ".join(capsys.readouterr().out.split())
    plain = margrave.synthesize(
        TABLE, TABLE.schema, epsilon=5.0, delta=1e-9, vouched=[Frequency], seed=1
    )
    assert "vouched" not in plain.certificate()


def test_a_voucher_is_for_exactly_one_class() -> None:
    class Like(Frequency):
        pass

    class Gapped(Frequency):
        def terms(self, candidates: Sequence[Clique]) -> dict[str, Any]:
            return {"gap": np.ones(len(candidates) + 1)}

    class Reading(Frequency):
        def readable(self, candidates: Sequence[Clique]) -> tuple[Clique, ...]:
            return (("c",),)

    with opened(vouched=[Frequency, Gapped, Reading]) as private:
        with pytest.raises(InputError, match="true counts"):
            private.select([A, B], Like(), rho=Fraction(1))
        with pytest.raises(InputError, match="one number per candidate"):
            private.select([A, B], Gapped(), rho=Fraction(1))
        with pytest.raises(InputError, match="reads marginals that are not candidates"):
            private.select([A, B], Reading(), rho=Fraction(1))
        assert private.account().debits == ()
    with pytest.raises(InputError, match="Give the classes"):
        opened(vouched=[Frequency()])


def test_a_run_is_resumed_with_the_score_that_it_was_begun_with(tmp_path: Path) -> None:
    class Other(Frequency):
        pass

    where = {"journal": tmp_path / "j", "vouched": [Frequency, Other]}

    def begun() -> None:
        with opened(**where) as private:
            private.select([A, B], Frequency(), rho=Fraction(1))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        begun()
    with (
        pytest.raises(margrave.errors.LedgerError, match="vouched differs"),
        opened(**where, resume=True) as private,
    ):
        private.select([A, B], Other(), rho=Fraction(1))
    with opened(**where, resume=True) as private:
        private.select([A, B], Frequency(), rho=Fraction(1))


def test_codes_and_replaced_rows_still_work() -> None:
    """The exact types themselves are answered under every unit."""
    made = margrave.synthesize(
        TABLE, TABLE.schema, epsilon=5.0, delta=1e-9, unit=ReplaceRow(), seed=1
    )
    assert made.verify().holds
    assert isinstance(made.codes(5, seed=0), Codes)
    assert ReleaseError.exit_code == 7


def test_a_noisy_answer_cannot_be_changed_in_place() -> None:
    table = memory_table({"a": 2}, [(0,), (1,), (1,)])
    with protect(
        table, unit=AddRemoveRow(), budget=Budget.zcdp(1.0), randomness=SeededRandomness(1)
    ) as private:
        (entry,) = private.measure([("a",)], Gaussian(rho=Fraction(1, 2)))
        with pytest.raises(ValueError, match="read-only"):
            entry.values[0] = 7777


def test_a_class_that_claims_to_equal_another_is_not_taken_for_it() -> None:
    class Equal(type):
        def __eq__(cls, other: object) -> bool:
            return True

        def __hash__(cls) -> int:
            return 0

    class Spy(metaclass=Equal):
        pass

    assert Spy in (MarginalGap,)
    assert not is_exactly(Spy(), (MarginalGap,))
