"""Noisy answers that all contenders share, as plain data and back."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from benchmarks.napsu.tasks import Task

from margrave import Release
from margrave.models import AnswersFit
from margrave.transcript import Account, Debit, Measurement, PublicTotal, Transcript

Facts = dict[str, Any]


def answers_of(release: Release) -> Facts:
    """A release's noisy answers as plain data."""
    account = release.account
    return {
        "unit": account.unit,
        "rho": str(account.rho_budget),
        "epsilon": account.epsilon,
        "delta": account.delta,
        "private": account.private,
        "sampler": account.sampler,
        "measured": [
            {"clique": list(m.clique), "scale": m.scale, "rho": str(m.rho), "values": m.values.tolist()}
            for m in release.transcript.measurements
        ],
    }


def release_of(task: Task, line: Facts) -> Release:
    """The release with those answers; its model is the answers themselves, until it is refitted."""
    measured = [
        Measurement(tuple(m["clique"]), np.array(m["values"], dtype=np.int64), m["scale"], Fraction(m["rho"]))
        for m in line["measured"]
    ]
    account = Account(
        line["unit"], Fraction(line["rho"]), line["epsilon"], line["delta"],
        tuple(Debit(", ".join(m.clique), m.rho) for m in measured), line["private"], line["sampler"],
    )  # fmt: skip
    transcript = Transcript((PublicTotal(task.n), *measured))
    model = AnswersFit()(task.schema.domain, transcript, rng=np.random.default_rng(0))
    return Release(task.schema, model, transcript, account, {"name": "napsu-mq"})
