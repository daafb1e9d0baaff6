"""``--mechanism`` and its options: a name and some values to a mechanism."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, fields
from fractions import Fraction
from itertools import pairwise
from types import NoneType
from typing import Any, TypeVar, cast, get_args, get_type_hints

import click

from margrave._fields import check_range
from margrave.api import read_public
from margrave.cli.catalog import CatalogName
from margrave.cli.options import fit_option
from margrave.cli.terminal import echo
from margrave.domain import Domain
from margrave.errors import InputError
from margrave.mechanisms import (
    AIM,
    MECHANISM_CATALOG,
    Mechanism,
    default_mechanism,
)
from margrave.mechanisms.parts.public import takes_public
from margrave.mechanisms.published import PUBLISHED_FORMS
from margrave.models import fit_named
from margrave.public_table import PublicTable
from margrave.schema import Schema
from margrave.workload import Workload

Command = TypeVar("Command", bound=Callable[..., Any])


#: Sections of a command's help with their options.
SECTIONS = {
    "Budget": ("epsilon", "delta", "unit", "allow_large_delta"),
    "Mechanism and workload": ("mechanism", "as_published", "fit", "workload", "purposes"),
    "Rows and outputs": (
        "rows",
        "output",
        "excel_safe",
        "title",
        "office",
        "release_path",
        "report_path",
        "overwrite",
        "as_json",
    ),
    "Books and rules": ("ledger", "dataset", "policy", "journal", "resume", "same_table"),
    "Public table": ("public", "attestation", "public_columns", "same_records"),
}


def fraction(text: str) -> Fraction:
    """Return an exact fraction: 0.9 or 9/10."""
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise click.BadParameter(f"{text!r} is not a number.") from None


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
        return (
            f"{self.mechanism}: {shown:g}"
            if isinstance(shown, float)
            else f"{self.mechanism}: {shown}"
        )

    def check(self, value: Any) -> None:
        """Refuse a number out of range."""
        check_range(f"{self.flag} is {value}.", value, self.field.metadata)


def parameters_of(name: str) -> dict[str, Parameter]:
    """Return the fields of a mechanism that were made with ``margrave.mechanisms.common.option``."""
    made = cast(Any, MECHANISM_CATALOG.get(name))
    hints = get_type_hints(made)
    found = {}
    for f in fields(made):
        if "words" in f.metadata:
            (kind,) = (t for t in get_args(hints[f.name]) or (hints[f.name],) if t is not NoneType)
            found[f.name] = Parameter(name, f, kind)
    return found


def _options(names: Iterable[str]) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
    """Yield the names and facts of one option per parameter, shared by all mechanisms that have it."""
    shared: dict[str, list[Parameter]] = {}
    for name in names:
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
        yield (declared, field), {"type": kind, "default": None, "help": words}


def _plugin_options(arguments: Sequence[str], command: click.Command) -> list[click.Option]:
    """Return the options that only a mechanism of another distribution has, if the arguments name one."""
    named = [b for a, b in pairwise(arguments) if a in ("--mechanism", "-m")]
    named += [a.removeprefix("--mechanism=") for a in arguments if a.startswith("--mechanism=")]
    own = {flag: option for option in command.params for flag in option.opts}
    shared = {p.flag: p for n in MECHANISM_CATALOG.built_in for p in parameters_of(n).values()}
    found = []
    for name in filter(MECHANISM_CATALOG.offers, named[-1:]):
        known = parameters_of(name)
        for names, facts in _options([name]):
            option = click.Option(names, **facts)
            parameter = known[str(option.name)]
            if parameter.flag not in own:
                found.append(option)
            elif parameter.flag not in shared or shared[parameter.flag].kind is not parameter.kind:
                raise InputError(
                    f"The mechanism {name!r} has a parameter {option.name!r}, and {parameter.flag}"
                    " is another option of this command.",
                    remedy="Use this mechanism from Python, or report it to its authors.",
                )
    return found


class Sectioned(click.Command):
    """A command whose help has the basic options first; books, public tables and mechanisms have their sections.

    If the arguments name a mechanism of another distribution, it has that mechanism's options too.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments, with the options of the mechanism that they name."""
        ctx.meta[__name__] = _plugin_options(args, self)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, and those of the named mechanism."""
        return [*super().get_params(ctx), *ctx.meta.get(__name__, [])]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, section by section."""
        of_mechanisms = "Options of single mechanisms, with their defaults"
        of = {name: title for title, names in SECTIONS.items() for name in names}
        names = MECHANISM_CATALOG.built_in
        of |= {field: of_mechanisms for name in names for field in parameters_of(name)}
        of |= {option.name: of_mechanisms for option in ctx.meta.get(__name__, [])}
        sections: dict[str, list[tuple[str, str]]] = {
            t: [] for t in ("Options", *SECTIONS, of_mechanisms)
        }
        for option in self.get_params(ctx):
            if (
                isinstance(option, click.Option)
                and (record := option.get_help_record(ctx)) is not None
            ):
                sections[of.get(option.name or "", "Options")].append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)
        if collisions := MECHANISM_CATALOG.collisions():
            formatter.write_paragraph()
            formatter.write_text(collisions)


def mechanism_options(command: Command) -> Command:
    """Add ``--mechanism``, and one option for every parameter of a mechanism."""
    for names, facts in reversed(list(_options(MECHANISM_CATALOG.built_in))):
        command = click.option(*names, **facts)(command)
    command = fit_option("The kind of model, with a mechanism that lets it be chosen.")(command)
    command = click.option(
        "--as-published",
        is_flag=False,
        flag_value="",
        default=None,
        metavar="[PAPER]",
        help="The mechanism in the form of its paper. PAPER is a part of the paper's name, if several have a form:"
        " --as-published=PAPER.",
    )(command)
    return click.option(
        "--mechanism",
        "-m",
        type=CatalogName(MECHANISM_CATALOG),
        default=None,
        show_default="aim; forests for wide tables without a workload",
        help="The algorithm that selects the measurements.",
    )(command)


def public_options(command: Command) -> Command:
    """Return ``--public``, ``--attestation``, ``--public-columns`` and ``--same-records``."""
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
) -> PublicTable | None:
    """Return the public table of ``--public``, for a mechanism that takes one, and print what it
    lost.
    """
    if public is None:
        about = {
            "same-records": same_records or None,
            "attestation": attestation,
            "public-columns": public_columns,
        }
        for option in (o for o, value in about.items() if value is not None):
            raise InputError(
                f"--{option} is about a public table, and --public names none.", remedy="Name it."
            )
        return None
    if not takes_public(MECHANISM_CATALOG.get(name)):
        built_in = MECHANISM_CATALOG.built_in
        others = ", ".join(n for n, made in built_in.items() if takes_public(made))
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
    known = read_public(
        public, schema, attestation=attestation, columns=columns, same_records=same_records
    )
    for note in known.notes:
        echo(f"Note: {note}", err=True)
    return known


def name_or_default(name: str | None, domain: Domain, *, serves: bool) -> str:
    """Return the name, or that of the default: AIM if the run ``serves`` a workload or purposes."""
    return name or (AIM if serves else default_mechanism(domain)).name


def build_mechanism(
    name: str,
    workload: Workload | None,
    parameters: Mapping[str, Any],
    public: PublicTable | None = None,
) -> Mechanism:
    """Return the mechanism of that name. A workload or parameter that is None takes its default.

    ``parameters`` are the options of ``mechanism_options``: those of single mechanisms, ``fit`` and
    ``as_published``.
    """
    made = cast(Any, MECHANISM_CATALOG.get(name))
    given = {option: value for option, value in parameters.items() if value is not None}
    paper = given.pop("as_published", None)
    fields_of = {f.name for f in fields(made)}
    known = parameters_of(name)
    options: dict[str, Any] = {}
    for option, value in given.items():
        if option not in known and not (option == "fit" and "fit" in fields_of):
            users = ", ".join(n for n in MECHANISM_CATALOG.built_in if option in parameters_of(n))
            other = f", or choose a --mechanism that takes it: {users}" if users else ""
            raise InputError(
                f"{_flag(option)} means nothing to {name}.", remedy=f"Leave it out{other}."
            )
        if option in known:
            known[option].check(value)
        options[option] = fit_named(value) if option == "fit" else value
    if "fit" in options:
        _check_of_fit(options, known, "--fit")
    if "workload" in fields_of:
        options["workload"] = workload
    elif workload is not None:
        raise InputError(
            f"{name} has no workload: it measures the same marginals whatever it is.",
            remedy="Leave --workload out, or use a mechanism with one, such as aim.",
        )
    if public is not None:
        options["public"] = public
    mechanism: Mechanism = made(**options) if paper is None else _published(made, paper, options)
    return mechanism


def _flag(option: str) -> str:
    return "--" + option.replace("_", "-")


def _check_of_fit(
    options: Mapping[str, Any], known: Mapping[str, Parameter], replaced_by: str
) -> None:
    """Raise ``InputError`` if an option is a parameter of the default fit, which another replaces."""
    for option in options:
        if option in known and known[option].field.metadata["of_fit"]:
            raise _contradiction(replaced_by, option, "the second is of the default fit")


def _published(kind: type[Mechanism], paper: str, options: Mapping[str, Any]) -> Mechanism:
    """Return the form of a paper. Raise ``InputError`` if an option has another value than the form."""
    if kind.name not in PUBLISHED_FORMS:
        raise InputError(f"No paper has a form of {kind.name}.", remedy="Leave --as-published out.")
    form = kind.published_form(paper)
    if "workload" in form.needs and options["workload"] is None:
        raise InputError(
            f"The form of {form.paper} has no workload of its own.", remedy="Give --workload."
        )
    free = {option: v for option, v in options.items() if option in form.open_parameters}
    if "fit" in form.parameters:
        _check_of_fit(options, parameters_of(kind.name), "--as-published")
    published = kind.as_published(paper, **free)
    for option, value in options.items():
        if option not in free and getattr(published, option) != value:
            raise _contradiction(
                "--as-published", option, f"the form of {form.paper} sets another value"
            )
    return published


def _contradiction(cause: str, option: str, why: str) -> InputError:
    return InputError(
        f"{cause} and {_flag(option)} contradict each other: {why}.",
        remedy="Leave one of them out.",
    )
