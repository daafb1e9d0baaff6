"""``--mechanism`` and its options: a name and some values to a mechanism."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass, fields
from fractions import Fraction
from types import NoneType
from typing import Any, TypeVar, cast, get_args, get_type_hints

import click

from margrave.api import read_public
from margrave.cli.terminal import echo
from margrave.errors import InputError
from margrave.mechanisms import MECHANISMS, Mechanism
from margrave.mechanisms.checks import takes_public
from margrave.parameters import check_range
from margrave.public import Public
from margrave.schema import Schema
from margrave.workload import Workload

Command = TypeVar("Command", bound=Callable[..., Any])


OF_MECHANISMS = "Options of single mechanisms, with their defaults"
SECTIONS = {
    "Books and rules": ("ledger", "dataset", "policy", "journal", "resume", "same_table"),
    "Public table": ("public", "attestation", "public_columns", "same_records"),
}
"""Sections of a command's help, and the options in each."""


def fraction(text: str) -> Fraction:
    """An exact fraction: 0.9 or 9/10."""
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise ValueError("It divides by zero.") from None


@dataclass(frozen=True)
class Parameter:
    """A parameter of one mechanism that is an option of the command line."""

    mechanism: str
    field: Field[Any]
    kind: type

    @property
    def flag(self) -> str:
        """The option's name."""
        return "--" + self.field.name.replace("_", "-")

    @property
    def named(self) -> str:
        """The mechanism, and its default where there is one."""
        default = self.field.default
        if default is None:
            return self.mechanism
        shown = str(default).lower() if isinstance(default, bool) else default
        return f"{self.mechanism}: {shown:g}" if isinstance(shown, float) else f"{self.mechanism}: {shown}"

    def check(self, value: Any) -> None:
        """Refuse a number out of range."""
        check_range(f"{self.flag} is {value}.", value, self.field.metadata)


def parameters_of(name: str) -> dict[str, Parameter]:
    """The fields of a mechanism that were made with ``margrave.mechanisms.common.parameter``."""
    made = cast(Any, MECHANISMS[name])
    hints = get_type_hints(made)
    found = {}
    for f in fields(made):
        if "words" in f.metadata:
            (kind,) = (t for t in get_args(hints[f.name]) or (hints[f.name],) if t is not NoneType)
            found[f.name] = Parameter(name, f, kind)
    return found


def _options() -> Iterator[Callable[[Command], Command]]:
    """One option per name, for all mechanisms that have such a parameter; none given means each one's default."""
    shared: dict[str, list[Parameter]] = {}
    for name in MECHANISMS:
        for field, parameter in parameters_of(name).items():
            shared.setdefault(field, []).append(parameter)
    for field, uses in shared.items():
        said: dict[str, list[str]] = {}
        for use in uses:
            said.setdefault(use.field.metadata["words"], []).append(use.named)
        words = " ".join(f"{text} [{', '.join(names)}]" for text, names in said.items())
        flag = uses[0].flag
        declared = f"{flag}/--no-{flag[2:]}" if uses[0].kind is bool else flag
        kind: Callable[[str], Any] = fraction if uses[0].kind is Fraction else uses[0].kind
        yield click.option(declared, field, type=kind, default=None, help=words)


class Sectioned(click.Command):
    """A command whose help has the basic options first; books, public tables and mechanisms have their sections."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options, section by section."""
        of = {name: title for title, names in SECTIONS.items() for name in names}
        of |= {field: OF_MECHANISMS for name in MECHANISMS for field in parameters_of(name)}
        sections: dict[str, list[tuple[str, str]]] = {t: [] for t in ("Options", *SECTIONS, OF_MECHANISMS)}
        for option in self.get_params(ctx):
            if isinstance(option, click.Option) and (record := option.get_help_record(ctx)) is not None:
                sections[of.get(option.name or "", "Options")].append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def mechanism_options(command: Command) -> Command:
    """``--mechanism``, and one option for every parameter of a mechanism."""
    for option in reversed(list(_options())):
        command = option(command)
    return click.option(
        "--mechanism",
        "-m",
        type=click.Choice(list(MECHANISMS)),
        default="aim",
        show_default=True,
        help="How to choose what to measure.",
    )(command)


def public_options(command: Command) -> Command:
    """``--public``, ``--attestation``, ``--public-columns`` and ``--same-records``."""
    for option in (
        click.option(
            "--same-records",
            is_flag=True,
            help="The records of --public are the private ones, of which those columns are public.",
        ),
        click.option(
            "--public-columns",
            default=None,
            metavar="COLUMNS",
            help="Which of its columns to read, such as sex,age; by default all that the schema has.",
        ),
        click.option(
            "--attestation",
            default=None,
            metavar="TEXT",
            help="Where the records of --public come from, and why they are public; the certificate quotes it.",
        ),
        click.option(
            "--public",
            default=None,
            metavar="FILE",
            help="A public table of the schema's columns, or of some of them, for mechanisms that take one. It is not"
            " protected.",
        ),
    ):
        command = option(command)
    return command


def public_of(
    name: str,
    schema: Schema,
    public: str | None,
    attestation: str | None,
    public_columns: str | None,
    same_records: bool,
) -> Public | None:
    """The public table that ``--public`` names, for a mechanism that takes one. What it lost is told on the way."""
    if public is None:
        about = {"same-records": same_records or None, "attestation": attestation, "public-columns": public_columns}
        for option in (o for o, value in about.items() if value is not None):
            raise InputError(f"--{option} is about a public table, and --public names none.", remedy="Name it.")
        return None
    if not takes_public(MECHANISMS[name]):
        others = ", ".join(n for n, made in MECHANISMS.items() if takes_public(made))
        raise InputError(
            f"--public means nothing to {name}.",
            remedy=f"Leave it out{f', or choose a --mechanism that takes it: {others}' if others else ''}.",
        )
    if attestation is None:
        raise InputError(
            "--public comes without a word on why the table is public.",
            remedy="Say with --attestation where the records come from and who published them.",
        )
    columns = None if public_columns is None else [c.strip() for c in public_columns.split(",")]
    known = read_public(public, schema, attestation=attestation, columns=columns, same_records=same_records)
    for note in known.notes:
        echo(f"Note: {note}", err=True)
    return known


def build_mechanism(
    name: str, workload: Workload | None, given: Mapping[str, Any], public: Public | None = None
) -> Mechanism:
    """The mechanism of that name; no workload, and None for a parameter, mean its default. It must know the others."""
    known = parameters_of(name)
    options: dict[str, Any] = {}
    for option, value in given.items():
        if value is None:
            continue
        if option not in known:
            raise InputError(f"--{option.replace('_', '-')} means nothing to {name}.", remedy="Leave it out.")
        known[option].check(value)
        options[option] = value
    if "workload" in {f.name for f in fields(cast(Any, MECHANISMS[name]))}:
        options["workload"] = workload
    if public is not None:
        options["public"] = public
    mechanism: Mechanism = MECHANISMS[name](**options)
    return mechanism
