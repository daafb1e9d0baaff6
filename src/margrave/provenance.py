"""The provenance of a release as data: the mechanism, its parameters, its fit and the public table.

Whatever comes after a run reads these fields. Texts in them are for people, and are never parsed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from margrave._card import counted
from margrave.domain import Domain
from margrave.errors import InputError, ReleaseError
from margrave.types import Attribute
from margrave.workload import AllKWay, Workload

Plain = dict[str, Any]


@dataclass(frozen=True)
class PublicFacts:
    """The published facts of a public table.

    Args:
        rows: Number of its records.
        columns: Its columns.
        sha256: Hash of its columns and records.
        attestation: Where the records come from and why they are public, in the words of whoever says so.
        notes: What became of values that the schema does not hold.
        same_records: Whether they are the private records themselves, of which these columns are public.
    """

    rows: int
    columns: tuple[Attribute, ...]
    sha256: str
    attestation: str
    notes: tuple[str, ...] = ()
    same_records: bool = False

    def to_dict(self) -> Plain:
        """Return plain data that fits in JSON."""
        return {**vars(self), "columns": list(self.columns), "notes": list(self.notes)}

    def describe(self) -> str:
        """Return one line for the list of public inputs."""
        if self.same_records:
            what = f"the columns {', '.join(self.columns)} of the {counted(self.rows, 'private record')}"
        else:
            what = f"a public table of {counted(self.rows, 'record')}"
        return f"{what}, sha256 {self.sha256}: {self.attestation}"


@dataclass(frozen=True)
class FitSpec:
    """A fit as data.

    Args:
        words: The fit as it is written in Python, for people.
        name: The name of a built-in fit that ``parameters`` describe completely; None for any other.
        parameters: The parameters of that fit: numbers, texts, and lists of them.
        public: The public table that the fit starts from.
    """

    words: str
    name: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    public: PublicFacts | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", plain_table(self.parameters))

    def to_dict(self) -> Plain:
        """Return plain data that fits in JSON."""
        return {
            "words": self.words,
            "name": self.name,
            "parameters": self.parameters,
            "public": None if self.public is None else self.public.to_dict(),
        }


@dataclass(frozen=True, eq=False)
class Provenance:
    """The origin of a release.

    Args:
        mechanism: Name of the mechanism.
        parameters: Its other parameters, and facts of the run: numbers, texts, lists and tables of them.
        workload: The marginals that the mechanism was to preserve; None if it chose them itself.
        fit: The fit that the mechanism used; None if it has none.
        public: The public table that the run used, through the mechanism or its fit.
        refit: The fit of the released model, if the release was refitted.
        stopped_early: Whether the run ended before it had asked all that it was to ask.

    Raises:
        ReleaseError: The name is not text, or the parameters are not plain data.

    Example:
        >>> Provenance("aim", {"rounds": 3}, AllKWay(2)).to_dict()["workload"]
        {'ways': 2}
    """

    mechanism: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    workload: Workload | AllKWay | None = None
    fit: FitSpec | None = None
    public: PublicFacts | None = None
    refit: FitSpec | None = None
    stopped_early: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, str):
            raise ReleaseError(
                f"The mechanism's name is of type {type(self.mechanism).__name__}.",
                remedy='Its config() returns the text under "name".',
            )
        object.__setattr__(self, "parameters", plain_table(self.parameters))

    @staticmethod
    def of(config: Mapping[str, Any]) -> Provenance:
        """Return the provenance of a run, from what its mechanism's ``config()`` returns.

        Args:
            config: The mechanism's ``name``; its ``workload``, ``fit`` and ``public`` table if it has them; every
                other entry is a parameter.

        Raises:
            InputError: One of the named entries is of another type.
            ReleaseError: The name is not text, or the parameters are not plain data.
        """
        rest = dict(config)
        name = rest.pop("name", None)
        workload, fit, public = (rest.pop(key, None) for key in ("workload", "fit", "public"))
        for value, kinds, remedy in (
            (workload, Workload | AllKWay | None, "a Workload"),
            (fit, FitSpec | None, "**fit_config(fit)"),
            (public, PublicFacts | None, "public.facts()"),
        ):
            if not isinstance(value, kinds):
                raise InputError(
                    f"The config() of the mechanism {name!r:.60} holds a {type(value).__name__}.",
                    remedy=f"Put {remedy} there.",
                )
        used = fit.public if public is None and fit is not None else public
        return Provenance(name, rest, workload, fit, used)

    @property
    def model_fit(self) -> FitSpec | None:
        """The fit of the released model."""
        return self.fit if self.refit is None else self.refit

    @property
    def started_from(self) -> tuple[Attribute, ...]:
        """The columns of the public table that the released model's fit started from; empty if there is none."""
        spec = self.model_fit
        return () if spec is None or spec.public is None else spec.public.columns

    @property
    def same_records(self) -> bool:
        """True if the run's public table has columns of the private records themselves."""
        return self.public is not None and self.public.same_records

    @property
    def public_tables(self) -> tuple[PublicFacts, ...]:
        """Every public table that the release rests on."""
        refit = None if self.refit is None else self.refit.public
        return tuple(table for table in (self.public, refit) if table is not None)

    def workload_on(self, domain: Domain) -> Workload | None:
        """Return the mechanism's workload on the columns of a domain; None if the mechanism has none.

        Raises:
            InputError: The workload names columns that the domain does not have, or has too many marginals.
        """
        if isinstance(self.workload, AllKWay):
            return Workload.all_kway(domain, self.workload.ways)
        return None if self.workload is None else Workload.of(domain, self.workload)

    def to_dict(self) -> Plain:
        """Return plain data that fits in JSON, for the certificate and the release file."""
        return {
            "name": self.mechanism,
            "parameters": self.parameters,
            "workload": None if self.workload is None else self.workload.to_dict(),
            "fit": None if self.fit is None else self.fit.to_dict(),
            "public": None if self.public is None else self.public.to_dict(),
            "refit": None if self.refit is None else self.refit.to_dict(),
            "stopped_early": self.stopped_early,
        }


def is_plain(value: object) -> bool:
    """Return whether JSON can hold a value, so that nothing that reaches rows can ride along."""
    if isinstance(value, Mapping):
        return all(isinstance(k, str) and is_plain(v) for k, v in value.items())
    if isinstance(value, list | tuple):
        return all(is_plain(v) for v in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, str | int)


def plain_table(parameters: Mapping[str, Any]) -> Plain:
    """Return parameters as JSON reads them back, with tables and lists in place of mappings and tuples.

    Raises:
        ReleaseError: They are not plain data.
    """
    if not isinstance(parameters, Mapping) or not is_plain(parameters):
        raise ReleaseError(
            "The parameters of a release are not plain data.",
            remedy="Give numbers, texts, lists and tables of them, by names in text.",
        )
    return {name: _listed(value) for name, value in parameters.items()}


def _listed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _listed(v) for name, v in value.items()}
    return [_listed(v) for v in value] if isinstance(value, list | tuple) else value
