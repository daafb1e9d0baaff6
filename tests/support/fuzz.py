"""Fuzzing of all that is read from a file: schemas, tables as CSV and as Parquet, releases.

Files that were sound are damaged at random: bits flipped, pieces cut out, doubled, exchanged or replaced by awkward
words; half of the manifests of releases are damaged behind a sound checksum. Whatever comes of it is a success or a
``MargraveError``, in time, and no message holds a cell of the table. (A cell that damage has moved into a CSV's header,
beside known columns, is the name of a column then, and a message may name it.)

``python -m tests.support.fuzz csv --seconds 3600 --seed 7`` runs one of them for an hour of processor time.
"""

from __future__ import annotations

import argparse
import faulthandler
import io
import json
import random
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from margrave.accounting import AddRemoveRow, Budget, ReplaceRow, Unit
from margrave.data import read_table
from margrave.errors import CustodianWarning, MargraveError
from margrave.mechanisms import MST, NAPSUMQ, Independent, Mechanism
from margrave.models import MaxEntropyFit
from margrave.privacy import SeededRandomness, protect
from margrave.release import Release
from margrave.schema import Boolean, Categorical, Integer, Ordinal, Real, Schema
from margrave.workload import Workload

SECRET = "Kanarie7281828"
HANG = 60
"""Seconds after which a reader hangs: the process ends then, and says where it was."""

SCHEMA = Schema(
    (
        Categorical("job", ["clerk", "nurse", "a, b"], other=True),
        Integer("age", 0, 99, bins=10, outside="clip", missing=True),
        Real("income", 0.0, 1000.0, bins=5, missing=True),
        Boolean("smokes", missing=True),
        Ordinal("grade", ["low", "mid", "high"], missing=True),
    ),
    ignore=["name"],
)

WORDS = [
    b"", b"\x00", b"\xff\xfe", b"\n", b"\r", b'"', b"'", b",", b";", b"[[", b"]]", b"{", b"}", b"=", b"-1", b"1e999",
    b"NaN", b"inf", b"null", b"true", b"9" * 40, b"-" * 40, "é".encode(), "\U0001f426".encode(), b"\xed\xa0\x80",
    b"<i8", b"|O", b"(9999999999,)", b"../x", b"1/0", b"[" * 200, b"\\u0000", b"\\ud800", b"0x7fffffffffffffff",
]  # fmt: skip


def damaged(data: bytes, rng: random.Random) -> bytes:
    """The data after one to six blows."""
    for _ in range(rng.choice([1, 1, 1, 2, 3, 6])):
        at, length = rng.randrange(len(data) + 1), rng.choice([1, 1, 2, 4, 16, 100])
        piece, rest = data[at : at + length], data[at + length :]
        match rng.randrange(6):
            case 0:
                piece = bytes(b ^ (1 << rng.randrange(8)) for b in piece[:1]) + piece[1:]
            case 1:
                piece = b""
            case 2:
                piece *= 2
            case 3:
                piece = rng.choice(WORDS)
            case 4:
                piece += rng.choice(WORDS)
            case _:
                other = rng.randrange(len(data) + 1)
                piece = data[other : other + length]
        data = data[:at] + piece + rest
    return data


# What is read.


def _table() -> pa.Table:
    rows = [("clerk", i, 9.5 * i, i % 2 == 0, ("low", "mid", "high")[i % 3]) for i in range(40)]
    columns = list(zip(*rows, strict=True))
    named = dict(zip(("job", "age", "income", "smokes", "grade"), columns, strict=True))
    return pa.table(
        {**named, "job": [*["nurse"] * 39, SECRET], "name": [f"{SECRET}{i}" for i in range(40)]}
    )


def _csv() -> bytes:
    rows = _table().to_pylist()
    lines = [",".join(rows[0])]
    for i, row in enumerate(rows):
        lines.append(",".join(f'"{v}"' if i % 3 else str(v) for v in row.values()))
    return ("\n".join(lines) + "\n").encode()


def _parquet(rng: random.Random) -> bytes:
    sink = io.BytesIO()
    codec = rng.choice(["zstd", "snappy", "none", "gzip"])
    pyarrow.parquet.write_table(
        _table(), sink, compression=codec, use_dictionary=rng.random() < 0.5
    )
    return sink.getvalue()


def _release(rng: random.Random, folder: Path) -> bytes:
    unit, mechanism = rng.choice([(AddRemoveRow(), MST()), (ReplaceRow(), Independent())])
    return _released(unit, mechanism, rng, folder)


def _posterior(rng: random.Random, folder: Path) -> bytes:
    """A release with draws of a posterior; the first is kept, as compiling another takes seconds."""
    path = folder / "sound.margrave"
    if path.exists():
        return path.read_bytes()
    mechanism = NAPSUMQ(
        workload=Workload({("job", "smokes"): 1.0}), fit=MaxEntropyFit(sampler="laplace")
    )
    return _released(AddRemoveRow(), mechanism, rng, folder)


def _released(unit: Unit, mechanism: Mechanism, rng: random.Random, folder: Path) -> bytes:
    path = folder / "sound.margrave"
    budget, noise = Budget.approx(3.0, 1e-6), SeededRandomness(rng.randrange(2**32))
    with protect(
        read_table(_table(), SCHEMA), unit=unit, budget=budget, randomness=noise
    ) as private:
        mechanism.run(private, rng=np.random.default_rng(0)).save(path, overwrite=True)
    return path.read_bytes()


def _inside(data: bytes, rng: random.Random) -> bytes:
    """A release with one of its members damaged, in a zip that is sound."""
    sink = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(sink, "w") as out:
        hit = rng.choice(["manifest.json", *source.namelist()])
        for name in source.namelist():
            member = source.read(name)
            if name == hit:
                plain = name == "manifest.json" and rng.random() < 0.7
                member = _other_value(member, rng) if plain else damaged(member, rng)
            out.writestr(name, member)
    return sink.getvalue()


def _inside_or_out(data: bytes, rng: random.Random) -> bytes:
    return (_inside if rng.random() < 0.7 else damaged)(data, rng)


VALUES: list[Any] = [
    None, True, 0, -1, 1.5, 1e308, 2**70, "", "x", "1/0", "9" * 5000, [], {}, [[]], [None], {"": 0}, "000000",
]  # fmt: skip


def _other_value(manifest: bytes, rng: random.Random) -> bytes:
    """A manifest in which one value, somewhere, is another."""
    whole = json.loads(manifest)
    place, key = {"": whole}, ""
    while isinstance(value := place[key], dict | list) and value and rng.random() < 0.9:  # type: ignore[index]
        place, key = (
            value,
            rng.choice(list(value) if isinstance(value, dict) else range(len(value))),
        )  # type: ignore[assignment]
    place[key] = rng.choice(VALUES)
    return json.dumps(whole).encode()


@dataclass(frozen=True)
class Loader:
    """Something that reads a file: a sound file to begin with, how to damage it, and how it is read."""

    name: str
    sound: Callable[[random.Random, Path], bytes]
    read: Callable[[Path], object]
    damage: Callable[[bytes, random.Random], bytes] = damaged


def _loaded(path: Path) -> None:
    """A release, and what its holder does with it."""
    release = Release.load(path, verify=False)
    release.verify()
    release.certificate()
    for a in release.schema.domain.attributes[:2]:
        release.marginal((a,))
    if release.model.total < 1e6:
        release.sample(5, seed=0)
        if release.model.posterior() is not None:
            list(release.draws(2, rows=5, method="posterior", seed=0))


LOADERS = {
    loader.name: loader
    for loader in (
        Loader("schema", lambda _rng, _folder: SCHEMA.to_toml().encode(), Schema.load),
        Loader("csv", lambda _rng, _folder: _csv(), lambda path: read_table(path, SCHEMA)),
        Loader(
            "parquet", lambda rng, _folder: _parquet(rng), lambda path: read_table(path, SCHEMA)
        ),
        Loader("release", _release, _loaded, _inside_or_out),
        Loader("posterior", _posterior, _loaded, _inside_or_out),
    )
}


@dataclass
class Tally:
    """What became of the damaged files, and the first that did harm."""

    read: int = 0
    refused: int = 0
    slowest: float = 0.0
    harm: str = ""
    bytes: bytes = b""

    @property
    def tried(self) -> int:
        """How many files."""
        return self.read + self.refused


def fuzz(name: str, seconds: float, seed: int, most: int = 10**9) -> Tally:
    """Damage and read for so much processor time, or until something does harm."""
    rng, loader, tally = random.Random(seed), LOADERS[name], Tally()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        path = folder / ("it.toml" if name == "schema" else "it")
        sounds = [loader.sound(rng, folder) for _ in range(4)]
        end = time.process_time() + seconds
        while time.process_time() < end and tally.tried < most and not tally.harm:
            data = loader.damage(rng.choice(sounds), rng)
            path.write_bytes(data)
            _read(loader, path, tally)
            if tally.harm:
                tally.bytes = data
    return tally


def _read(loader: Loader, path: Path, tally: Tally) -> None:
    begin = time.monotonic()
    faulthandler.dump_traceback_later(HANG, exit=True)
    said: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", CustodianWarning)
            loader.read(path)
        tally.read += 1
    except MargraveError as error:
        tally.refused += 1
        told = "".join(traceback.format_exception(error)) + error.message + (error.remedy or "")
        header = path.read_bytes().partition(b"\n")[0] if loader.name == "csv" else b""
        if SECRET in told and SECRET.encode() not in header:
            tally.harm = f"a value of the table in an error: {told[-2000:]}"
    except Exception:
        tally.harm = traceback.format_exc()
    finally:
        if any(SECRET in str(warning.message) for warning in said):
            tally.harm = "a value of the table in a warning"
        faulthandler.cancel_dump_traceback_later()
    tally.slowest = max(tally.slowest, time.monotonic() - begin)


def main() -> int:
    """Fuzz one loader, and say what became of it in one line of JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("loader", choices=LOADERS)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    warnings.simplefilter("error")
    seed = random.SystemRandom().randrange(2**32) if options.seed is None else options.seed
    tally = fuzz(options.loader, options.seconds, seed)
    facts: dict[str, Any] = {
        "read": tally.read,
        "refused": tally.refused,
        "seconds": round(time.process_time(), 1),
    }
    facts |= {"slowest": round(tally.slowest, 3), "seed": seed}
    print(json.dumps({**facts, "harm": tally.harm, "bytes": tally.bytes.hex()[:1_000_000]}))
    return 1 if tally.harm else 0


if __name__ == "__main__":
    sys.exit(main())
