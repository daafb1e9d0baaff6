"""The mechanism's protocol, its parameters as data, and the assembly of a release."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from itertools import combinations
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from margrave._fields import check_fields
from margrave.accounting import Unit
from margrave.domain import Domain
from margrave.errors import InputError
from margrave.marginal import QueryFamily
from margrave.mechanisms.parts.countable import countable
from margrave.mechanisms.parts.public import check_public_table, takes_public
from margrave.mechanisms.parts.selection_log import SelectionLog
from margrave.mechanisms.published import PUBLISHED_FORMS, PublishedForm
from margrave.models import Fit, FittedAnswers, Needs
from margrave.models.entries import EntryKind, fits_for, not_taken
from margrave.models.specs import fit_spec
from margrave.privacy import Gaussian, Private
from margrave.provenance import Provenance
from margrave.public_table import PublicTable
from margrave.release import Release
from margrave.transcript import Transcript
from margrave.types import Clique, Generator
from margrave.workload import AllKWay, Workload

T = TypeVar("T")

#: A callback ``(stage, fraction)``. Both depend on public values only.
Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class PlannedMeasurement:
    """Some marginals that will be measured with the same noise: ``marginals`` of ``cliques``.

    ``adaptive``: an estimate follows each, to choose the next. ``at_most``: there may be fewer,
    with less noise. ``single``: they are single counts from these marginals. ``sums``: they are weighted
    sums of their cells. ``weight``: the number that one record adds to an answer at most.
    """

    what: str
    cliques: Sequence[Clique]
    marginals: int
    scale: float
    adaptive: bool = False
    at_most: bool = False
    single: bool = False
    sums: bool = False
    weight: int = 1

    @classmethod
    def of(
        cls, what: str, cliques: Sequence[Clique], rho_each: Fraction, unit: Unit
    ) -> PlannedMeasurement:
        """Return the plan to measure all of these cliques, each for its share of the budget."""
        return cls(what, cliques, len(cliques), Gaussian.scale_for(rho_each, unit))

    @classmethod
    def columns(cls, domain: Domain, rho: Fraction, unit: Unit) -> PlannedMeasurement:
        """Return the plan to measure every column, which share ``rho`` equally."""
        return cls.of("every column", one_way(domain), rho / len(domain), unit)

    @classmethod
    def rounds(
        cls, cliques: Sequence[Clique], count: int, scale: float, *, at_most: bool = True
    ) -> PlannedMeasurement:
        """Return the plan of rounds that each select and measure one of these cliques."""
        return cls("chosen marginals", cliques, count, scale, adaptive=True, at_most=at_most)


@dataclass(frozen=True, kw_only=True)
class SelectionLoad:
    """The number of private selections of a run, and their candidates.

    Attributes:
        rounds: The number of rounds.
        queries: Single queries are the candidates, not whole marginals.
        per_round: The number of selections in a round; 0 if nothing is selected privately.
        codes_tried: Codes of records tried to answer the selections; None if unknown.
        candidates: The number of candidates of a selection; None if all that a step names are.
    """

    rounds: int = 0
    queries: bool = False
    per_round: int = 1
    codes_tried: int | None = 0
    candidates: int | None = None


class Mechanism(ABC):
    """A frozen keyword-only dataclass with a plain ``run`` that reads like its paper's pseudo-code.

    Its fields are its parameters: they are checked when it is made, and ``config`` states them.
    """

    #: The name in certificates and on the command line.
    name: ClassVar[str]

    #: The purpose of the mechanism, in a line of at most 62 characters.
    use: ClassVar[str] = ""

    #: True if columns of the private records themselves may be public: known, and not measured.
    own_columns: ClassVar[bool] = False

    #: False if it treats all marginals of a workload alike, whatever their weights.
    weighs_marginals: ClassVar[bool] = True

    #: The number of columns of the marginals in the default workload; None if it has none.
    default_ways: ClassVar[int | None] = 3

    #: The fit given, the public table, the workload, and the queries in its place.
    fit: Fit | None = None
    public: PublicTable | None = None
    workload: Workload | None = None
    queries: QueryFamily | None = None

    #: The size of the model at most, in MB; None for no limit but what can be estimated at all.
    max_model_mb: float | None = None

    def __post_init__(self) -> None:
        check_fields(self)

    @classmethod
    def as_published(cls, paper: str = "", **parameters: Any) -> Self:
        """Return the mechanism in the form of a paper.

        Args:
            paper: Text in the paper's authors and year that is in one form's alone. The first form is
                the default.
            parameters: Parameters that the paper leaves open, such as a workload or a public table.

        Raises:
            InputError: No paper has a form of this mechanism, or none or several have that text.

        Privacy:
            None spent.

        Example:
            >>> from margrave.mechanisms import AIM
            >>> AIM.as_published().penalty
            'full'
        """
        return cls(**{**cls.published_form(paper).parameters, **parameters})

    @classmethod
    def published_form(cls, paper: str = "") -> PublishedForm:
        """Return the form of a paper; the text picks it as in ``as_published``, with the same errors."""
        forms = PUBLISHED_FORMS.get(cls.name, ())
        exact = [form for form in forms if paper == form.paper]
        fitting = exact or [form for form in forms if paper in form.paper]
        if not forms:
            raise InputError(f"{cls.__name__} is of no paper.", remedy=f"Use {cls.__name__}().")
        if not fitting or (paper and len(fitting) > 1):
            many = "several published forms with" if fitting else "no published form with"
            known = "; ".join(form.paper for form in forms)
            raise InputError(f"{cls.__name__} has {many} {paper!r}.", remedy=f"Its forms: {known}.")
        return fitting[0]

    def form_in_use(self) -> PublishedForm | None:
        """Return the paper's form that these parameters are, but for open ones; None if there is none.

        Of several it is the one with the fewest open parameters.
        """
        if not type(self).__module__.startswith("margrave.mechanisms."):
            return None  # of another distribution, whatever its name
        forms = [f for f in PUBLISHED_FORMS.get(self.name, ()) if self._has_form(f)]
        return min(forms, key=lambda form: len(form.open_parameters), default=None)

    def _has_form(self, form: PublishedForm) -> bool:
        values = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        free = {name: v for name, v in values.items() if name in form.open_parameters}
        published = self.as_published(form.paper, **free)
        return all(getattr(published, name) == v for name, v in values.items() if name not in free)

    def reads(self, domain: Domain) -> Collection[Clique]:
        """Return every marginal it may ask for: by default the downward closure of the workload."""
        return self.workload_on(domain).closure()

    def counted_first(self, domain: Domain) -> Collection[Clique]:
        """Return what is counted when a run begins: by default all that it may ask for, in one scan."""
        return self.reads(domain)

    def counted_cells(self, domain: Domain) -> int | None:
        """Return how many cells a run counts at most; None if it counts all that it may ask for."""
        return None

    @abstractmethod
    def steps(self, domain: Domain, rho: Fraction, unit: Unit) -> list[PlannedMeasurement]:
        """Return how ``run`` will spend rho on measurements, in its order: what a plan shows."""

    @abstractmethod
    def run(
        self, private: Private, *, rng: Generator | None = None, progress: Progress | None = None
    ) -> Release:
        """Ask the gate, fit, and return the release. ``rng`` touches post-processing only."""

    def begin(
        self, private: Private, rng: Generator | None, progress: Progress | None
    ) -> tuple[Domain, Generator, Progress]:
        """Make every public check, count marginals in one scan, and fill in the defaults.

        **Privacy:** none spent.
        """
        if takes_public(self):
            check_public_table(self.public, private.domain, own_columns=self.own_columns)
        self.check(private.domain, private.unit)
        private.prepare(self.counted_first(private.domain))
        return (
            private.domain,
            np.random.default_rng() if rng is None else rng,
            progress or no_progress,
        )

    def check_fit(
        self,
        domain: Domain,
        cliques: Collection[Clique],
        *,
        adaptive: bool = False,
        kinds: Collection[EntryKind] = (),
    ) -> None:
        """Raise `InputError` if its fit cannot serve a run (`Needs`), before anything is spent."""
        # The parameters that keep a mechanism from measuring a kind of entry.
        otherwise = {
            EntryKind.MERGED: "rare_threshold=0 (--rare-threshold 0)",
            EntryKind.CELL: 'granularity="marginal" (--granularity marginal)',
            EntryKind.SET: 'granularity="marginal" and a workload instead of queries',
        }
        if (fit := self.estimator()) is None:
            return
        if lacking := not_taken(fit, kinds):
            other = next(iter(fits_for(kinds).values())).__name__
            ways = [otherwise[kind] for kind in lacking if kind in otherwise]
            raise InputError(
                f"{type(fit).__name__} cannot be fitted to {' or '.join(lacking)}, which this run may measure.",
                remedy=f"Give it another fit, such as {other}(){''.join(f', or say {way}' for way in ways)}.",
            )
        needs = Needs(
            cliques=cliques,
            max_model_mb=self.max_model_mb,
            adaptive=adaptive,
            kinds=frozenset(kinds),
        )
        fit.check(domain, needs)

    def release(
        self,
        private: Private,
        model: FittedAnswers,
        memory: SelectionLog | None = None,
        *,
        readings: Transcript | None = None,
        **facts: Any,
    ) -> Release:
        """Return the release of a run (`build_release`), with more ``facts`` in its provenance."""
        return build_release(private, model, {**self.config(), **facts}, memory, readings)

    def release_columns(self, private: Private, rng: Generator, progress: Progress) -> Release:
        """Measure the columns alone, and return their release: of a domain without pairs.

        **Privacy:** all that remains.
        """
        assert self.fit is not None
        private.measure(one_way(private.domain), Gaussian(rho=private.remaining))
        progress("fitting", 1.0)
        return self.release(private, self.fit(private.domain, private.transcript, rng=rng))

    def config(self) -> dict[str, Any]:
        """Return its ``name``, its fields as plain data (`Provenance.of`), and the paper of its form."""
        config: dict[str, Any] = {"name": self.name}
        if (form := self.form_in_use()) is not None:
            config["published_form"] = form.paper
        for parameter in (f.name for f in fields(self) if f.name not in self.idle()):  # type: ignore[arg-type]
            value = getattr(self, parameter)
            config[parameter] = float(value) if type(value) is Fraction else value
        fit = self.estimator()
        stated = {
            "workload": self._stated_workload(),
            "queries": "all cells" if self.queries is None else self.queries.facts(),
            "fit": None if fit is None else fit_spec(fit),
            "public": None if self.public is None else self.public.facts(),
        }
        return config | {name: value for name, value in stated.items() if name in config}

    def idle(self) -> Collection[str]:
        """Return the fields that are not stated: those of a default fit that another replaces."""
        replaced = self.fit is not None
        return {f.name for f in fields(self) if replaced and f.metadata.get("of_fit")}  # type: ignore[arg-type]

    def check(self, domain: Domain, unit: Unit) -> None:
        """Raise `InputError` if the run cannot succeed. Reads no data.

        The public table is checked by ``check_run``.
        """
        return

    def on_learned(self, domain: Domain) -> Self:
        """Return the mechanism for a learned domain, which may lack columns that could not be learned.

        By default the workload loses the marginals of these columns, and the largest ones if all together have too
        many cells to be counted. The fit loses its penalties on these columns. Override it if another parameter
        names columns.
        """
        own: Any = self
        names = {f.name for f in fields(own)}
        if "fit" in names and own.fit is not None:
            own = replace(own, fit=own.fit.on_learned(domain))
        if "workload" in names:
            own = (
                own if own.workload is None else replace(own, workload=own.workload.within(domain))
            )
            own = countable(domain, own)
        learned: Self = own
        return learned

    @property
    def gives_records(self) -> bool:
        """False if its releases have no records to draw: its fit keeps the answers alone."""
        fit = self.estimator()
        return fit is None or fit.gives_records

    def estimator(self) -> Fit | None:
        """Return the fit that it uses, or None if it fits nothing."""
        return self.fit

    def workload_on(self, domain: Domain) -> Workload:
        """Return the workload on a domain: by default all marginals of ``default_ways`` columns."""
        if self.workload is None:
            return Workload.all_kway(domain, self.default_ways or 1)
        return Workload.of(domain, self.workload)

    @property
    def asks_marginals(self) -> bool:
        """False if it asks for single queries, not for the marginals of a workload."""
        return self.queries is None

    def selection(self, domain: Domain, rho: Fraction, records: int, unit: Unit) -> SelectionLoad:
        """Return how often it selects: by default as often as it may measure adaptively."""
        adaptive = [s for s in self.steps(domain, rho, unit) if s.adaptive]
        rounds = sum(s.marginals for s in adaptive)
        return SelectionLoad(rounds=rounds, queries=any(s.single for s in adaptive))

    def expected(self, domain: Domain, rho: Fraction, records: int, unit: Unit) -> int | None:
        """Return how many marginals or queries would be measured; None if that is not known."""
        return None

    def _stated_workload(self) -> Workload | AllKWay | None:
        if self.queries is not None:
            return Workload(dict.fromkeys(self.queries.cliques, 1.0))
        return (
            AllKWay(self.default_ways)
            if self.workload is None and self.default_ways
            else self.workload
        )


def option(
    default: T,
    words: str,
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    choices: Sequence[str] = (),
    share: bool = False,
    of_fit: bool = False,
) -> T:
    """Return a field of a mechanism that the command line offers as an option.

    Its type is ``int``, ``float``, ``Fraction``, ``str`` or ``bool``, or one of them or None.

    Args:
        default: Its value by default.
        words: The help of the option.
        above: A number that it is above.
        least: A number that it is at least.
        below: A number that it is below.
        choices: The texts that it may be.
        share: Whether it is a share, above 0 and below 1.
        of_fit: Whether it is a parameter of the default fit, and plays no part with another.
    """
    if share:
        above, below = 0, 1
    bounds = {"above": above, "least": least, "below": below, "choices": tuple(choices)}
    return field(default=default, metadata={"words": words, "of_fit": of_fit, **bounds})


def no_progress(stage: str, fraction: float) -> None:
    """Do nothing."""


def one_way(domain: Domain) -> list[Clique]:
    """Return each attribute on its own."""
    return [(a,) for a in domain]


def two_way(domain: Domain) -> list[Clique]:
    """Return all pairs of attributes."""
    return list(combinations(domain.attributes, 2))


def build_release(
    private: Private,
    model: FittedAnswers,
    config: Mapping[str, Any],
    memory: SelectionLog | None = None,
    readings: Transcript | None = None,
) -> Release:
    """Return the release: the model, the transcript, the account, and estimates for error bounds.

    ``readings`` of public data follow the gate's own entries.
    """
    hindsight = () if memory is None else memory.against(model, private.transcript)
    known = private.transcript + (readings or Transcript())
    provenance = Provenance.of(config)
    return Release(private.schema, model, known, private.account(), provenance, hindsight=hindsight)
