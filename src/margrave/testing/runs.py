"""Whole runs of a mechanism: on odd tables, with every budget, with structural zeros, twice."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from margrave._card import counted
from margrave.accounting import AddRemoveRow, Budget, Unit
from margrave.accounting.budget import MAX_RHO, MIN_RHO
from margrave.domain import Domain
from margrave.errors import MargraveError, ReleaseError
from margrave.marginal import closure
from margrave.mechanisms import Mechanism
from margrave.privacy import SeededRandomness, protect
from margrave.release import Release
from margrave.structural_zeros import StructuralZeros
from margrave.testing.gate import MakeMechanism, SpyTable, WatchedGate, run_on
from margrave.testing.tables import (
    SIZES,
    TinySchema,
    TinyTable,
    require,
    shaped,
    some_rows,
    tiny,
)
from margrave.transcript import Answer, Measurement
from margrave.types import Clique

#: A budget whose fraction no float can hold.
BUDGET = Budget.zcdp(Fraction(7, 11))

#: From the smallest to the largest.
BUDGETS = [
    Budget.zcdp(MIN_RHO),
    Budget.zcdp(1e-6),
    Budget.zcdp(Fraction(10**9 + 7, 3 * 10**9 + 1)),
    BUDGET,
    Budget.zcdp(0.1),
    Budget.zcdp(10**6),
    Budget.zcdp(MAX_RHO),
]


def check_shape(make: MakeMechanism, shape: str, unit: Unit, seed: int) -> None:
    """Check one run on a table of ``SHAPES``: its account, plan, counts, progress, codes and file."""
    table = shaped(shape)
    mechanism = make(table.domain)
    mechanism.check(table.domain, unit)
    where = f"on the table {shape!r} {unit}"
    release = counted_run(mechanism, table, unit, BUDGET, seed, where)
    _check_account(release, BUDGET, where)
    check_plan(mechanism, release, unit, BUDGET, where)
    check_codes(release, where)
    check_file(release, where)


def check_budgets(make: MakeMechanism, unit: Unit, seed: int) -> None:
    """Check that every budget is spent to the last fraction, and never more."""
    for i, budget in enumerate(BUDGETS):
        table = tiny(SIZES, some_rows(SIZES, 12))
        mechanism = make(table.domain)
        release = run_on(mechanism, table, unit, budget, SeededRandomness(seed + i))
        where = f"with rho {float(budget.rho):.3g} {unit}"
        _check_account(release, budget, where)
        check_plan(mechanism, release, unit, budget, where)


def check_seed(make: MakeMechanism, seed: int) -> None:
    """Check that the same seeds give the same answers and the same model."""
    table = tiny(SIZES, some_rows(SIZES, 30))
    one, two = (
        run_on(make(table.domain), table, AddRemoveRow(), BUDGET, SeededRandomness(seed), seed=seed)
        for _ in range(2)
    )
    for clique in _answered(one):
        before, after = (r.marginal(clique).values for r in (one, two))
        require(
            before.tobytes() == after.tobytes(),
            f"The same seeds give another marginal {clique} the second time.",
        )


def _check_account(release: Release, budget: Budget, where: str) -> None:
    account = release.account
    require(
        account.rho_spent == budget.rho,
        f"It spent rho {account.rho_spent} of {budget.rho} {where}.",
    )
    require(
        all(debit.rho > 0 for debit in account.debits), f"A question was charged nothing {where}."
    )


def check_plan(
    mechanism: Mechanism, release: Release, unit: Unit, budget: Budget, where: str
) -> None:
    """Check that ``steps`` foretells the measurements of a run in their order, and their scales."""
    domain = release.schema.domain
    measured = [e for e in release.transcript if isinstance(e, Measurement | Answer)]
    steps = mechanism.steps(domain, budget.rho, unit)
    for i, step in enumerate(steps):
        later = steps[i + 1 :]
        if step.at_most and later and len(measured) < sum(s.marginals for s in steps[i:]):
            sure = sum(s.marginals for s in later if not s.at_most)
            require(
                len(measured) >= sure,
                f"Its later steps plan {counted(sure, 'measurement')} {where}.",
            )
            return  # it measured fewer, and where the next step begins is not known
        mine, measured = measured[: step.marginals], measured[step.marginals :]
        require(
            all(isinstance(m, Answer) is step.single for m in mine),
            f"Its step {step.what!r} is not of the kind that it measured {where}.",
        )
        strangers = {_clique_of(m, domain) for m in mine} - set(closure(step.cliques))
        require(
            not strangers,
            f"Its step {step.what!r} does not name {sorted(strangers)[:1]}, which it measured, {where}.",
        )
        require(
            step.at_most or len(mine) == step.marginals,
            f"Its step {step.what!r} plans {counted(step.marginals, 'measurement')}, and it made {len(mine)} {where}.",
        )
        most, least = step.scale * (1 + 1e-12), 0.0 if step.at_most else step.scale * (1 - 1e-12)
        for scale in map(_records_of_noise, mine):
            require(
                least <= scale <= most,
                f"Its step {step.what!r} plans a noise scale of {'at most ' * step.at_most}{step.scale:.6g} records,"
                f" and it measured with {scale:.6g} {where}.",
            )
    require(
        not measured,
        f"It made {counted(len(measured), 'measurement')} more than it planned {where}.",
    )


def _records_of_noise(entry: Measurement | Answer) -> float:
    contribution = entry.query.max_contribution if isinstance(entry, Answer) else 1
    return entry.scale / contribution


def _clique_of(entry: Measurement | Answer, domain: Domain) -> Clique:
    return entry.query.counting_clique(domain) if isinstance(entry, Answer) else entry.clique


def counted_run(
    mechanism: Mechanism, table: Any, unit: Unit, budget: Budget, seed: int, where: str
) -> Release:
    """Return the release of a run that counts its table as it should.

    The table is counted once, at the gate, and for the marginals of ``reads`` only. The progress rises to 1.
    """
    spy, progress = SpyTable(table), list[tuple[str, float]]()
    with protect(spy, unit=unit, budget=budget, randomness=SeededRandomness(seed)) as private:
        gate: Any = WatchedGate(private)
        spy.gate = gate
        release = mechanism.run(
            gate,
            rng=np.random.default_rng(0),
            progress=lambda stage, done: progress.append((stage, done)),
        )
    others = spy.counted - set(mechanism.reads(table.domain))
    require(not others, f"It counted {sorted(others)[:1]}, which reads() does not list, {where}.")
    require(spy.scans == 1, f"It scanned the table {spy.scans} times instead of once {where}.")
    _check_progress(progress, where)
    return release


def _check_progress(progress: Sequence[tuple[str, float]], where: str) -> None:
    shares = [done for _, done in progress]
    require(bool(shares), f"It reports no progress {where}.")
    require(shares == sorted(shares) and shares[0] >= 0.0, f"Its progress falls {where}.")
    require(shares[-1] == 1.0, f"Its progress ends at {shares[-1]:.4g}, not at 1, {where}.")
    named = [stage for stage, _ in progress if any(c.isdigit() for c in stage)]
    require(not named, f"Its stage {named[:1]} has a digit in its name {where}.")


def has_records(release: Release) -> bool:
    """Return whether a release has a distribution to draw records from."""
    try:
        release.model.distribution()
    except ReleaseError:
        return False
    return True


def check_codes(release: Release, where: str) -> None:
    """Check that records can be drawn and that their codes are the domain's."""
    if not has_records(release):
        return
    domain = release.schema.domain
    codes = release.model.distribution().sample(50, rng=np.random.default_rng(0))
    require(len(codes) == 50, f"Of 50 records, {len(codes)} are drawn {where}.")
    require(codes.domain == domain, f"Its records have another domain {where}.")
    some = domain.project(domain.attributes[:2])
    codes = release.model.distribution().sample(
        50, rng=np.random.default_rng(0), columns=some.attributes
    )
    require(
        len(codes) == 50 and codes.domain == some,
        f"Records of two columns have another domain or number {where}.",
    )


def _answered(release: Release) -> list[Clique]:
    whole = [release.schema.domain.attributes[:3]]
    return list(closure(whole if has_records(release) else release.transcript.cliques))


def check_file(release: Release, where: str) -> None:
    """Check that a release survives its file: answers, certificate, records, and the bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path, second = Path(folder) / "saved.margrave", Path(folder) / "second.margrave"
        release.save(path)
        again = Release.load(path)
        again.save(second)
        require(
            second.read_bytes() == path.read_bytes(),
            f"Saving a loaded release writes other bytes {where}.",
        )
    require(
        not again.model.absent,
        f"A loaded release has no model ({again.model.absent}) {where}."
        " Offer its fit by an entry point.",
    )
    require(
        again.certificate() == release.certificate(),
        f"The certificate of a loaded release differs {where}.",
    )
    for clique in _answered(release):
        before, after = (r.marginal(clique).values for r in (release, again))
        right = before.shape == release.schema.domain.shape(clique) and np.isfinite(before).all()
        require(bool(right), f"Its marginal {clique} has a wrong shape or is not finite {where}.")
        require(
            before.tobytes() == after.tobytes(),
            f"A loaded model answers {clique} otherwise {where}.",
        )
    if has_records(release):
        before_rows, after_rows = (r.sample(20, seed=3) for r in (release, again))
        require(after_rows.equals(before_rows), f"A loaded release draws other records {where}.")


def check_zeros(make: MakeMechanism, seed: int) -> None:
    """Check that impossible combinations are refused before anything is spent, or never drawn."""
    possible, other = np.ones((2, 3), dtype=bool), np.array([True, True, False, True])
    possible[1, 2] = possible[0, 0] = False
    zeros = [StructuralZeros(("a", "b"), possible), StructuralZeros(("c",), other)]
    domain = Domain.of(SIZES, zeros=zeros)
    # the gate takes rows of impossible combinations: reading refuses them
    rows = [*some_rows(SIZES, 60), (1, 2, 2), (0, 0, 1)]
    for table in (TinyTable(TinySchema(domain), some) for some in ([], rows)):
        release = _release_or_refusal(make(domain), table, seed)
        if release is None or not has_records(release):
            continue
        model = release.model.distribution()
        impossible = model.project(("a", "b")).values[~possible]
        require(not impossible.any(), "Its model gives impossible combinations a probability.")
        codes = model.sample(400, rng=np.random.default_rng(seed))
        a, b, c = (codes.column(name).astype(int) for name in "abc")
        require(bool(possible[a, b].all() and other[c].all()), "It draws impossible combinations.")


def _release_or_refusal(mechanism: Mechanism, table: TinyTable, seed: int) -> Release | None:
    randomness, budget = SeededRandomness(seed), Budget.zcdp(2)
    with protect(table, unit=AddRemoveRow(), budget=budget, randomness=randomness) as private:
        try:
            return mechanism.run(private, rng=np.random.default_rng(seed))
        except MargraveError as error:
            require(
                private.remaining == budget.rho,
                f"It refuses structural zeros after it spent budget: {error.message}",
            )
            return None
