"""Resuming: stored answers are given again to the same questions, and to nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import margrave
from margrave.accounting import AddRemoveRow, Budget, Ledger, ReplaceRow
from margrave.accounting.journal import Journal
from margrave.errors import InputError, LedgerError, MargraveError
from margrave.marginal import LinearMap
from margrave.mechanisms import MECHANISMS, Independent
from margrave.privacy import Gaussian, MarginalGap, Private, SeededRandomness, protect
from margrave.transcript import Transcript
from margrave.types import IntArray
from tests.support.chained import events, put, rows
from tests.support.conformance import CASES, SIZES, memory_table, some_rows

A, B, AB = ("a",), ("b",), ("a", "b")
BUDGET = Budget.zcdp(Fraction(1))
TABLE = memory_table(SIZES, some_rows(SIZES, 40))
CAP = Budget.zcdp(Fraction(3, 2))


class Interrupted:
    """A source of noise by number, so that a resumed run draws what one without a break would have drawn.

    It fails in the place of draw ``fails``, counted from ``start``.
    """

    def __init__(
        self, start: int = 0, fails: int | None = None, error: type[BaseException] = MemoryError
    ) -> None:
        self.drawn, self.fails, self.error = start, fails, error

    def describe(self) -> str:
        return "by number"

    def _next(self) -> SeededRandomness:
        if self.drawn == self.fails:
            raise self.error()
        self.drawn += 1
        return SeededRandomness(self.drawn)

    def gaussian(self, counts: IntArray, scale: float) -> IntArray:
        return self._next().gaussian(counts, scale)

    def choose(self, scores: Sequence[int], temperature: Fraction) -> int:
        return self._next().choose(scores, temperature)


def gate(path: Path, source: Any = None, table: Any = TABLE, **changed: Any) -> Private:
    settings: dict[str, Any] = {
        "unit": AddRemoveRow(),
        "budget": BUDGET,
        "journal": path,
        "facts": {"seed": 1},
    }
    settings |= {"randomness": source or Interrupted(), **changed}
    return protect(table, **settings)


def public(path: Path) -> list[dict[str, Any]]:
    """The lines, without random names."""
    return [{k: v for k, v in line.items() if k != "run"} for line in events(path)]


def answers(transcript: Transcript) -> list[Any]:
    return [e.values.tolist() for e in transcript.measurements] + [
        s.chosen for s in transcript.selections
    ]


def gap(private: Private, *cliques: tuple[str, ...]) -> MarginalGap:
    zeros = {c: np.zeros(private.domain.shape(c)) for c in cliques}
    return MarginalGap(zeros, dict.fromkeys(cliques, 1.0), dict.fromkeys(cliques, 0.0))


def ask(private: Private) -> None:
    """Three questions, of which the second follows from the first."""
    private.measure([A, B], Gaussian(rho=Fraction(1, 4)))
    chosen = private.select([A, AB], gap(private, A, AB), rho=Fraction(1, 4))
    private.measure([chosen], Gaussian(rho=Fraction(1, 4)))


def broken(path: Path, fails: int, **changed: Any) -> list[Any]:
    """A run that fails in the place of a draw; what was answered before."""
    with (  # noqa: PT012
        pytest.raises(MargraveError, match="Resume the run from"),
        gate(path, Interrupted(fails=fails), **changed) as private,
    ):
        try:
            ask(private)
        finally:
            told = answers(private.transcript)
    return told


def test_the_question_names_the_groups_of_all_columns(tmp_path: Path) -> None:
    """Journals are compared word for word: what an answer keeps of its question is another matter."""
    both = LinearMap({"a": np.array([0, 0]), "b": np.arange(SIZES["b"]) // 2})
    for resume in (False, True):
        with gate(tmp_path / "journal", Interrupted(), resume=resume) as private:
            private.measure([A, AB], Gaussian(rho=Fraction(1, 4)), query=both)
    (question,) = [
        e["question"] for e in events(tmp_path / "journal") if e.get("event") == "question"
    ]
    assert question["query"] == {a: groups.tolist() for a, groups in both.groups.items()}
    assert [list(m.query.groups) for m in private.transcript.measurements] == [["a"], ["a", "b"]]


@pytest.mark.parametrize("fails", range(4))
def test_a_resumed_run_is_the_run_without_a_break(tmp_path: Path, fails: int) -> None:
    with gate(tmp_path / "whole") as whole:
        ask(whole)
    broken(tmp_path / "journal", fails)
    done = {0: 0, 1: 0, 2: 2, 3: 3}[
        fails
    ]  # draws whose answers were stored: two marginals are one answer
    source = Interrupted(start=done)
    with gate(tmp_path / "journal", source, resume=True) as resumed:
        ask(resumed)
    assert source.drawn == 4, "something was drawn again"
    assert answers(resumed.transcript) == answers(whole.transcript)
    assert resumed.account() == whole.account()
    assert public(tmp_path / "journal") == public(tmp_path / "whole")


def test_stored_answers_need_no_rows(tmp_path: Path) -> None:
    with gate(tmp_path / "journal") as private:
        ask(private)

    class Unreadable:
        schema, domain = TABLE.schema, TABLE.domain

        def count(self, cliques: object) -> Any:
            raise AssertionError("the rows were read")

    with gate(tmp_path / "journal", Interrupted(fails=0), Unreadable(), resume=True) as again:
        ask(again)
        with pytest.raises(LedgerError, match="finished run"):
            again.measure([A], Gaussian(rho=Fraction(1, 9)))
    assert answers(again.transcript) == answers(private.transcript)


GROUPS = LinearMap({"b": np.array([0, 0, 1])})
OTHER: list[tuple[Callable[[Private], object], str]] = [
    (lambda p: p.select([A, B], gap(p, A, B), rho=Fraction(1, 4)), "kind"),
    (lambda p: p.measure([B, A], Gaussian(rho=Fraction(1, 4))), "cliques"),
    (lambda p: p.measure([A], Gaussian(rho=Fraction(1, 4))), "cliques"),
    (lambda p: p.measure([A, B], Gaussian(rho=Fraction(1, 5))), "scale"),
    (lambda p: p.measure([A, B], Gaussian(scale=2.0 + 1e-12)), "scale"),
    (
        lambda p: p.measure([A, B], Gaussian(rho=Fraction(1, 4) + Fraction(1, 10**30))),
        "rho",
    ),  # of the same scale
    (lambda p: p.measure([A, B], Gaussian(rho=Fraction(1, 4)), query=GROUPS), "query"),
]


@pytest.mark.parametrize(("question", "differs"), OTHER, ids=[d for _, d in OTHER])
@pytest.mark.parametrize("fails", [1, 2])
def test_another_question_is_refused_and_spends_nothing(
    tmp_path: Path, question: Callable[[Private], object], differs: str, fails: int
) -> None:
    """Both where the stored question was answered, and where it was only charged."""
    path, ledger = tmp_path / "journal", tmp_path / "ledger"
    Ledger(ledger).init("d", unit=AddRemoveRow(), cap=CAP)
    where = {"ledger": ledger, "dataset": "d"}
    with pytest.raises(MargraveError), gate(path, Interrupted(fails=fails), **where) as private:  # noqa: PT012
        private.measure([A, B], Gaussian(rho=Fraction(1, 4)))
        private.measure([AB], Gaussian(rho=Fraction(1, 4)))
    before = path.read_bytes(), ledger.read_bytes()
    source = Interrupted()
    with gate(path, source, resume=True, **where) as again:
        with pytest.raises(
            LedgerError, match=rf"Question 1 differs.*its {differs} differs.*Nothing was spent"
        ):
            question(again)
        assert again.account().debits == ()
        assert source.drawn == 0
        assert (path.read_bytes(), ledger.read_bytes()) == before
        again.measure([A, B], Gaussian(rho=Fraction(1, 4)))  # the right one is still answered
        again.measure([AB], Gaussian(rho=Fraction(1, 4)))


@pytest.mark.parametrize("part", ["candidates", "terms", "rho"])
def test_another_choice_is_refused(tmp_path: Path, part: str) -> None:
    path = tmp_path / "journal"
    with pytest.raises(MargraveError), gate(path, Interrupted(fails=1)) as private:  # noqa: PT012
        private.select([A, B], gap(private, A, B), rho=Fraction(1, 4))
        private.measure([A], Gaussian(rho=Fraction(1, 4)))
    with gate(path, resume=True) as again:
        score = gap(again, A, B, AB)
        if part == "terms":
            score = replace(score, penalties={**score.penalties, B: 1e-9})
        candidates = [A, AB] if part == "candidates" else [A, B]
        differs = "epsilon|rho" if part == "rho" else part
        with pytest.raises(LedgerError, match=f"its ({differs}) differs"):
            again.select(candidates, score, rho=Fraction(1, 5) if part == "rho" else Fraction(1, 4))
        again.select([A, B], gap(again, A, B), rho=Fraction(1, 4))
        again.measure([A], Gaussian(rho=Fraction(1, 4)))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"table": memory_table({"a": 2, "b": 3, "c": 5}, [])}, "its schema differs|its schema is"),
        ({"unit": ReplaceRow()}, "its unit is add-remove-row, not replace-row"),
        ({"budget": Budget.zcdp(Fraction(2))}, r"its epsilon is [\d.]+, not [\d.]+"),
        ({"budget": Budget.zcdp(Fraction(1), 1e-6)}, "its epsilon|its delta"),
        ({"facts": {"seed": 2}}, "its seed is 1, not 2"),
        ({"facts": {"seed": 1, "mechanism": {"name": "mst"}}}, "its mechanism"),
        ({"source": SeededRandomness(1)}, "its sampler"),
        ({"ledger": "ledger", "dataset": "d"}, "its dataset"),
    ],
)
def test_a_run_of_something_else_is_refused(
    tmp_path: Path, changed: dict[str, Any], words: str
) -> None:
    path = tmp_path / "journal"
    broken(path, 2)
    before = path.read_bytes()
    if "ledger" in changed:
        changed = {**changed, "ledger": tmp_path / "ledger"}
        Ledger(changed["ledger"]).init("d", unit=AddRemoveRow(), cap=CAP)
    with pytest.raises(LedgerError, match=f"another run: ({words}).*Nothing was spent"):
        gate(path, resume=True, **changed)
    assert path.read_bytes() == before


def test_another_workload_is_named_by_its_options(tmp_path: Path) -> None:
    facts = [{"mechanism": {"workload": {"ways": k}}} for k in (3, [["a", "b"]])]
    broken(tmp_path / "journal", 2, facts=facts[0])
    words = r"it serves another workload or other purposes \(--workload and --for\)\. Resume"
    with pytest.raises(LedgerError, match=words):
        gate(tmp_path / "journal", resume=True, facts=facts[1])


def test_a_run_must_be_asked_to_go_on(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with pytest.raises(LedgerError, match="to resume from does not exist"):
        gate(path, resume=True)
    with pytest.raises(InputError, match="nothing to resume"):
        protect(TABLE, unit=AddRemoveRow(), budget=BUDGET, resume=True)
    assert not path.exists()
    broken(path, 2)
    with pytest.raises(LedgerError, match=r"unfinished run .* 1 question is answered.*--resume"):
        gate(path)
    with gate(path, resume=True) as private:
        ask(private)
    with pytest.raises(LedgerError, match=r"finished run .* no cost"):
        gate(path)


def test_a_run_that_asked_nothing_leaves_nothing(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    Ledger(ledger).init("d", unit=AddRemoveRow(), cap=CAP)

    def fails() -> None:
        with gate(tmp_path / "journal", ledger=ledger, dataset="d"):
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    assert not (tmp_path / "journal").exists()
    assert Ledger(ledger).datasets()[0].charged == 0
    with pytest.raises(MargraveError, match="remains"):
        gate(tmp_path / "journal", ledger=ledger, dataset="d", budget=Budget.zcdp(Fraction(2)))
    assert not (tmp_path / "journal").exists()


def test_one_run_cannot_be_open_twice(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    broken(path, 2)
    first = gate(path, resume=True)
    with pytest.raises(LedgerError, match="in use"):
        gate(path, resume=True)
    code = f"""
from pathlib import Path
from tests.accounting.test_journal import gate
from margrave.errors import LedgerError
try:
    gate(Path({str(path)!r}), resume=True)
except LedgerError as error:
    raise SystemExit(42 if "in use" in str(error) else 1)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=False)
    assert done.returncode == 42
    ask(first)
    first.close()


def test_an_older_copy_of_either_file_is_refused(tmp_path: Path) -> None:
    path, ledger = tmp_path / "journal", tmp_path / "ledger"
    Ledger(ledger).init("d", unit=AddRemoveRow(), cap=CAP)
    where = {"ledger": ledger, "dataset": "d"}
    states = []
    empty = ledger.read_bytes()
    broken(path, 2, **where)
    for start, fails in ((2, 3), (3, 9)):
        states.append((path.read_bytes(), ledger.read_bytes()))
        try:
            with gate(path, Interrupted(start, fails), resume=True, **where) as private:
                ask(private)
        except MargraveError:
            pass
    newest = path.read_bytes(), ledger.read_bytes()
    ledger.write_bytes(states[0][1])
    with pytest.raises(LedgerError, match="ledger was put back"):
        gate(path, resume=True, **where)
    ledger.write_bytes(empty)
    with pytest.raises(LedgerError, match="does not know the run"):
        gate(path, resume=True, **where)
    ledger.write_bytes(newest[1])
    path.write_bytes(states[0][0])
    with pytest.raises(LedgerError, match="journal was put back"):
        gate(path, resume=True, **where)


def test_two_copies_that_go_on_together_do_not_share_a_debit(tmp_path: Path) -> None:
    path, copy, ledger = tmp_path / "journal", tmp_path / "copy", tmp_path / "ledger"
    Ledger(ledger).init("d", unit=AddRemoveRow(), cap=CAP)
    where = {"ledger": ledger, "dataset": "d"}
    broken(path, 2, **where)
    copy.write_bytes(path.read_bytes())
    first, second = (gate(p, Interrupted(2), resume=True, **where) for p in (path, copy))
    ask(first)
    with pytest.raises(LedgerError, match="written while this one was under way"):
        ask(second)
    first.close()
    assert Ledger(ledger).datasets()[0].charged == Fraction(3, 4)


class FailsToStore(Interrupted):
    """Draws its answer, and cannot give it."""

    def __init__(self, start: int, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(start)
        self.patch = monkeypatch

    def gaussian(self, counts: IntArray, scale: float) -> IntArray:
        self.patch.setattr(Journal, "store", lambda *_: (_ for _ in ()).throw(MemoryError()))
        return super().gaussian(counts, scale)


def test_a_copied_journal_never_gives_a_second_answer_under_one_debit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between debit and answer, copied, answered, killed again: then the copy is resumed."""
    path, copy, ledger = tmp_path / "journal", tmp_path / "copy", tmp_path / "ledger"
    Ledger(ledger).init("d", unit=AddRemoveRow(), cap=CAP)
    where = {"ledger": ledger, "dataset": "d"}
    with (
        monkeypatch.context() as patch,
        pytest.raises(MargraveError),
        gate(path, FailsToStore(0, patch), **where) as private,
    ):
        private.measure([A], Gaussian(rho=Fraction(1, 4)))
    shutil.copy(path, copy)
    with suppress(KeyboardInterrupt), gate(path, resume=True, **where) as private:
        private.measure([A], Gaussian(rho=Fraction(1, 4)))
        raise KeyboardInterrupt
    with pytest.raises(LedgerError, match=r"gave answers that .*copy does not hold.*put back"):
        gate(copy, Interrupted(50), resume=True, **where)
    (run,) = Ledger(ledger).datasets()[0].runs
    assert len(run.debits) == len(run.answers) == 1


def test_two_copies_that_draw_one_answer_together_give_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, copy, ledger = tmp_path / "journal", tmp_path / "copy", tmp_path / "ledger"
    Ledger(ledger).init("d", unit=AddRemoveRow(), cap=CAP)
    where = {"ledger": ledger, "dataset": "d"}
    with (
        monkeypatch.context() as patch,
        pytest.raises(MargraveError),
        gate(path, FailsToStore(0, patch), **where) as private,
    ):
        private.measure([A], Gaussian(rho=Fraction(1, 4)))
    shutil.copy(path, copy)
    first, second = (
        gate(p, Interrupted(start), resume=True, **where) for p, start in ((path, 0), (copy, 50))
    )
    first.measure([A], Gaussian(rho=Fraction(1, 4)))
    with pytest.raises(MargraveError, match="failed after its charge"):
        second.measure([A], Gaussian(rho=Fraction(1, 4)))
    assert len(second.transcript) == 0
    first.close()
    with pytest.raises(LedgerError, match=r"gave answers that .*copy does not hold"):
        gate(copy, resume=True, **where)  # its own answer is another
    assert Ledger(ledger).datasets()[0].charged == Fraction(1, 4)


def test_an_interrupt_between_charge_and_draw_leaves_a_run_that_can_be_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    path, ledger = tmp_path / "journal", tmp_path / "ledger"
    Ledger(ledger).init("d", unit=AddRemoveRow(), cap=CAP)
    where = {"ledger": ledger, "dataset": "d"}
    with gate(path, **where) as private:
        monkeypatch.setattr(Private, "_answer", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ask(private)
        monkeypatch.undo()
        with pytest.raises(MargraveError, match="The gate is closed"):
            ask(private)
    with gate(path, resume=True, **where) as private:
        ask(private)
    (run,) = Ledger(ledger).datasets()[0].runs
    assert run.debited == Fraction(3, 4)
    assert len(run.debits) == len(run.answers) == 3


def test_whoever_comes_second_to_a_new_journal_leaves_it_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "journal"
    first = gate(path)
    exists = Path.exists
    monkeypatch.setattr(
        Path, "exists", lambda p: p != path and exists(p)
    )  # it looked a moment before
    with pytest.raises(LedgerError, match="in use"):
        gate(path)
    monkeypatch.undo()
    assert path.exists()
    first.measure([A], Gaussian(rho=Fraction(1, 4)))
    first.close()


def test_a_finished_run_names_the_same_line_of_the_ledger_again(tmp_path: Path) -> None:
    path, ledger = tmp_path / "journal", tmp_path / "ledger"
    Ledger(ledger).init("d", unit=AddRemoveRow(), cap=CAP)
    where = {"ledger": ledger, "dataset": "d"}
    with gate(path, **where) as private:
        ask(private)
    with gate(tmp_path / "other", budget=Budget.zcdp(Fraction(1, 4)), **where) as other:
        other.measure([A], Gaussian(rho=Fraction(1, 4)))
    before = ledger.read_bytes()
    with gate(path, resume=True, **where) as again:
        ask(again)
    assert again.account() == private.account()
    assert Ledger(ledger).verify({"a": again.account(), "b": other.account()}) == {}
    assert ledger.read_bytes() == before


def test_a_run_closed_by_the_custodian_does_not_go_on(tmp_path: Path) -> None:
    path, ledger = tmp_path / "journal", tmp_path / "ledger"
    Ledger(ledger).init("d", unit=AddRemoveRow(), cap=CAP)
    where = {"ledger": ledger, "dataset": "d"}
    broken(path, 2, **where)
    (run,) = Ledger(ledger).datasets()[0].unfinished
    assert run.journal == str(path)
    assert Ledger(ledger).close(run.run).charged == Fraction(
        1, 2
    )  # the choice was charged, and never answered
    with pytest.raises(LedgerError, match=r"closed in .* before it had ended"):
        gate(path, resume=True, **where)


def test_the_public_size_is_that_of_the_beginning(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    broken(path, 2, unit=ReplaceRow())
    fewer = memory_table(SIZES, some_rows(SIZES, 39))
    with pytest.raises(LedgerError, match="40 rows, and this one has 39"):
        gate(path, table=fewer, unit=ReplaceRow(), resume=True)
    with gate(path, Interrupted(2), unit=ReplaceRow(), resume=True) as private:
        ask(private)
    assert private.transcript.total() == 40


def test_a_run_that_ends_before_its_stored_questions_is_another(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    broken(path, 3)
    private = gate(path, resume=True)
    private.measure([A, B], Gaussian(rho=Fraction(1, 4)))
    with pytest.raises(LedgerError, match="ended after 1 question,"):
        private.close()


def test_a_journal_that_was_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    broken(path, 3)
    sound = rows(path)
    for i, (number, text, head) in enumerate(sound[:-1]):
        for bad in (
            sound[:i] + sound[i + 1 :],
            sound[: i + 1] + sound[i:],
            [*sound[:i], (number, text.replace("a", "b", 1), head), *sound[i + 1 :]],
        ):
            put(path, [(n, *line[1:]) for n, line in enumerate(bad, 1)])
            before = path.read_bytes()
            with pytest.raises(LedgerError):
                gate(path, resume=True)
            assert path.read_bytes() == before


@pytest.mark.parametrize("size", [0, 600, 4096])
def test_a_truncated_journal_is_not_a_new_run(tmp_path: Path, size: int) -> None:
    path = tmp_path / "journal"
    broken(path, 3)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(LedgerError):
        gate(path, resume=True)
    assert path.stat().st_size == size


def test_the_width_of_an_answer_does_not_depend_on_the_noise(tmp_path: Path) -> None:
    sizes = []
    for name, value in (("small", 0), ("large", 2**62)):

        class Fixed(Interrupted):
            def gaussian(self, counts: IntArray, scale: float, value: int = value) -> IntArray:
                return np.full(counts.shape, value, dtype=np.int64)

            def choose(
                self, scores: Sequence[int], temperature: Fraction, value: int = value
            ) -> int:
                return 1 if value else 0

        path = tmp_path / name
        with gate(path, Fixed()) as private:
            private.measure([A, B], Gaussian(rho=Fraction(1, 4)))
            private.select([A, AB], gap(private, A, AB), rho=Fraction(1, 4))
        sizes.append(path.stat().st_size)
        with gate(path, resume=True) as again:
            again.measure([A, B], Gaussian(rho=Fraction(1, 4)))
            again.select([A, AB], gap(again, A, AB), rho=Fraction(1, 4))
        assert answers(again.transcript) == answers(private.transcript)
    assert sizes[0] == sizes[1]


def test_only_public_things_are_in_the_journal(tmp_path: Path) -> None:
    """The same answers from another table leave the same bytes, but for random names."""

    class Same(Interrupted):
        def gaussian(self, counts: IntArray, scale: float) -> IntArray:
            return 0 * counts

        def choose(self, scores: Sequence[int], temperature: Fraction) -> int:
            return 0

    texts = []
    for name, records in (("itself", some_rows(SIZES, 40)), ("empty", [])):
        with gate(tmp_path / name, Same(), memory_table(SIZES, records)) as private:
            ask(private)
        texts.append(public(tmp_path / name))
    assert texts[0] == texts[1]


# Whole mechanisms.


def stopped(path: Path, mechanism: Any, fails: int, start: int, resume: bool) -> Any:
    with gate(path, Interrupted(start, fails), resume=resume) as private:
        return mechanism.run(private, rng=np.random.default_rng(5))


def kept(path: Path) -> int:
    """How many draws have their answers in the journal."""
    return sum(len(line["values"]) for line in events(path) if line.get("event") == "answer")


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            c,
            marks=[pytest.mark.slow]
            * (c in ("privpgd", "private-gsd", "aim", "rap-plus", "gem-pub", "aim-mixture")),
        )
        for c in CASES
        if c in MECHANISMS or c == "aim uneven"
    ],
)
def test_a_mechanism_killed_again_and_again_makes_the_release_of_one_that_was_not(
    tmp_path: Path, case: str
) -> None:
    mechanism = CASES[case](TABLE.domain)
    with gate(tmp_path / "whole") as private:
        whole = mechanism.run(private, rng=np.random.default_rng(5))
    draws = kept(tmp_path / "whole")
    path, start = tmp_path / "journal", 0
    for fails in range(0, draws, max(1, draws // 4)):
        with pytest.raises(MargraveError, match="failed after its charge"):
            stopped(path, mechanism, fails, start, resume=path.exists())
        start = kept(path)
    release = stopped(path, mechanism, -1, start, resume=True)
    whole.save(tmp_path / "whole.margrave")
    release.save(tmp_path / "resumed.margrave")
    assert (tmp_path / "whole.margrave").read_bytes() == (
        tmp_path / "resumed.margrave"
    ).read_bytes()


def test_synthesize_goes_on_with_the_stored_seed(tmp_path: Path) -> None:
    ledger, journal = tmp_path / "ledger", tmp_path / "journal"
    Ledger(ledger).init("d", unit=AddRemoveRow(), cap=Budget.approx(3.0, 1e-9))
    frame = pa.table(dict(zip(SIZES, zip(*some_rows(SIZES, 40), strict=True), strict=True)))
    calls = []

    class Stops(Independent):
        def run(self, private: Private, **more: Any) -> Any:
            calls.append(more["rng"].integers(2**60))
            release = super().run(private, **more)
            if len(calls) == 1:
                raise KeyboardInterrupt
            return release

    def go(**more: Any) -> Any:
        where: dict[str, Any] = {"ledger": ledger, "dataset": "d", "journal": journal, **more}
        return margrave.synthesize(
            frame, TABLE.schema, epsilon=1.0, delta=1e-9, mechanism=Stops(), **where
        )

    with pytest.raises(KeyboardInterrupt):
        go()
    with pytest.raises(LedgerError, match="unfinished run"):
        go()
    with pytest.raises(LedgerError, match="its seed"):
        go(resume=True, seed=4)
    release = go(resume=True)
    assert calls[0] == calls[-1]
    assert len(calls) == 2
    (dataset,) = Ledger(ledger).datasets()
    assert dataset.charged == release.account.rho_spent == Budget.approx(1.0, 1e-9).rho
    assert answers(go(resume=True).transcript) == answers(release.transcript)
    assert Ledger(ledger).datasets()[0].charged == dataset.charged
