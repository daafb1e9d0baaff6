"""Results on disk: noisy answers that all contenders share, and one JSON line for each contender and repeat."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.napsu.tasks import Task

from margrave import Release
from margrave.models import AnswersFit
from margrave.transcript import Account, Debit, Measurement, PublicTotal, Transcript

Facts = dict[str, Any]


def lines(path: Path) -> Iterator[Facts]:
    """What a file holds, if there is one."""
    if path.exists():
        yield from (json.loads(text) for text in path.read_text().splitlines())


def append(path: Path, line: Facts) -> None:
    """One line more, its numbers to nine digits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as stream:
        stream.write(json.dumps(rounded(line)) + "\n")


def rounded(value: Any) -> Any:
    """Plain data; the scale of the noise and delta stay whole."""
    if isinstance(value, dict):
        return {k: v if k in ("scale", "delta") else rounded(v) for k, v in value.items()}
    if isinstance(value, list):
        return [rounded(v) for v in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


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
