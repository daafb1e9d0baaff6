"""`check_fit`: what every fit is held to."""

from __future__ import annotations

import numpy as np

from margrave.accounting import AddRemoveRow, Budget
from margrave.domain import Domain
from margrave.errors import InputError, MargraveError, ReleaseError
from margrave.mechanisms import GaussianMechanism
from margrave.models import Fit, Needs
from margrave.models.entries import ALL, EntryKind
from margrave.privacy import SeededRandomness
from margrave.release import Release
from margrave.structural_zeros import StructuralZeros
from margrave.testing.entries import ONE_WAY, transcript_with
from margrave.testing.gate import run_on
from margrave.testing.runs import check_file
from margrave.testing.tables import SHAPES, SIZES, TinySchema, TinyTable, require, shaped, some_rows
from margrave.transcript import Transcript
from margrave.workload import Workload

ROWS = some_rows(SIZES, 60)


def check_fit(fit: Fit, *, seed: int = 0) -> None:
    """Check that a fit takes odd tables and the entries that it states, and gives models that save and load.

    The kinds of entries that it does not state are refused.
    Structural zeros are kept, or refused by ``fit.check`` before anything is spent.

    Args:
        fit: The fit.
        seed: Seed of the noise and of the fit.

    Raises:
        AssertionError: With one sentence, at the first check that fails.

    Privacy:
        None spent. The tables are made up, and the noise is seeded.

    Example:
        >>> from margrave.models import GraphicalFit
        >>> check_fit(GraphicalFit(steps=20))
    """
    for shape in SHAPES:
        _check_shape(fit, shape, seed)
    for kind in sorted(ALL - fit.entries):
        _check_refusal(fit, transcript_with(kind, _table(()), seed), kind, seed)
    for kind in sorted(fit.entries):
        transcript = transcript_with(kind, _table(()), seed)
        _check_model(fit, transcript, f"of {kind}", seed)
        _check_rounds(fit, transcript, f"of {kind}", seed)
    _check_zeros(fit, seed)


def _table(zeros: tuple[StructuralZeros, ...]) -> TinyTable:
    return TinyTable(TinySchema(Domain.of(SIZES, zeros=zeros)), ROWS)


def _accepts(fit: Fit, domain: Domain, workload: Workload) -> bool:
    try:
        fit.check(domain, Needs(cliques=workload.cliques))
    except MargraveError:
        return False
    return True


def _run(fit: Fit, table: TinyTable, seed: int) -> Release | None:
    """Return a release of all pairs, or None if the fit refuses them before anything is spent."""
    workload = Workload.all_kway(table.domain, min(2, len(table.domain)))
    if not _accepts(fit, table.domain, workload):
        return None
    mechanism = GaussianMechanism(workload=workload, fit=fit)
    randomness, budget = SeededRandomness(seed), Budget.zcdp(1)
    return run_on(mechanism, table, AddRemoveRow(), budget, randomness, seed=seed)


def _check_shape(fit: Fit, shape: str, seed: int) -> None:
    table, where = shaped(shape), f"on the table {shape!r}"
    empty = fit(table.domain, Transcript(), rng=np.random.default_rng(seed))
    require(empty.domain == table.domain, f"Without answers its model has another domain {where}.")
    if (release := _run(fit, table, seed)) is not None:
        require(bool(np.isfinite(release.model.total)), f"Its model's total is not finite {where}.")
        check_file(release, where)
        _check_repeats(fit, release, where, seed)


def _check_repeats(fit: Fit, release: Release, where: str, seed: int) -> None:
    domain, transcript = release.schema.domain, release.transcript
    one, other = (
        fit(domain, transcript, rng=np.random.default_rng(seed)).answer(transcript.cliques)
        for _ in range(2)
    )
    require(
        all(one[c].tobytes() == other[c].tobytes() for c in one),
        f"The same seed and the same answers give another model {where}.",
    )


def _check_model(fit: Fit, transcript: Transcript, where: str, seed: int) -> None:
    domain = Domain.of(SIZES)
    model = fit(domain, transcript, rng=np.random.default_rng(seed))
    for clique, values in model.answer(ONE_WAY).items():
        require(
            values.shape == domain.shape(clique) and bool(np.isfinite(values).all()),
            f"Its model of a transcript {where} has a marginal {clique} of a wrong shape, or not finite.",
        )


def _check_refusal(fit: Fit, transcript: Transcript, kind: EntryKind, seed: int) -> None:
    try:
        fit(Domain.of(SIZES), transcript, rng=np.random.default_rng(seed))
    except InputError:
        return
    require(False, f"It states no use for {kind}, and is fitted to them without an InputError.")


def _check_rounds(fit: Fit, transcript: Transcript, where: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    first = fit.update(fit.init(Domain.of(SIZES), rng=rng), transcript, rng=rng)
    before = fit.model(first).answer(ONE_WAY)
    fit.update(first, transcript + transcript, rng=rng)
    after = fit.model(first).answer(ONE_WAY)
    require(
        all(before[c].tobytes() == after[c].tobytes() for c in ONE_WAY),
        f"Its update() changes the state that it is given, for a transcript {where}.",
    )


def _check_zeros(fit: Fit, seed: int) -> None:
    possible = np.array([True, True, False, True])
    release = _run(fit, _table((StructuralZeros(("c",), possible),)), seed)
    if release is None:
        return
    try:
        model = release.model.distribution()
    except ReleaseError:
        return
    require(
        not model.project(("c",)).values[~possible].any(),
        "Its model gives impossible combinations a probability.",
    )
