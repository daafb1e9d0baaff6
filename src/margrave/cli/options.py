"""Options that several commands share, and what their texts mean."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

from margrave._io import check_no_folder
from margrave.accounting import Budget
from margrave.accounting.strength import advised_delta, weaknesses
from margrave.cli.catalog import CatalogName
from margrave.cli.terminal import echo, json_text
from margrave.domain import Domain
from margrave.errors import InputError, SchemaError, did_you_mean
from margrave.models import FIT_CATALOG
from margrave.release.archive import MAX_MB
from margrave.schema import Schema
from margrave.workload import Workload

Command = TypeVar("Command", bound=Callable[..., Any])


def json_option(command: Command) -> Command:
    """Return ``--json``: the result as data on standard output, errors too."""
    return click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")(
        command
    )


def overwrite_option(command: Command) -> Command:
    """Return ``--overwrite``: replace outputs that exist."""
    return click.option("--overwrite", is_flag=True, help="Replace outputs that exist.")(command)


def heading_options(command: Command) -> Command:
    """Return ``--title`` and ``--office``: public words of a report."""
    for option, words in (
        ("--office", "Office that publishes the release."),
        ("--title", "Title of the page, in public words."),
    ):
        command = click.option(option, default="", metavar="TEXT", help=words)(command)
    return command


def release_size_option(command: Command) -> Command:
    """Add ``--max-release-mb``: the largest release that is read."""
    return click.option(
        "--max-release-mb",
        type=float,
        default=MAX_MB,
        show_default=True,
        help="Largest RELEASE that is read, in MB, decompressed.",
    )(command)


def fit_option(words: str, default: str | None = None) -> Callable[[Command], Command]:
    """Return ``--fit NAME``."""
    return click.option(
        "--fit", type=CatalogName(FIT_CATALOG), default=default, show_default=True, help=words
    )


def schema_option(command: Command) -> Command:
    """Return ``--schema FILE``."""
    return _schema_option(required=True)(command)


def schema_or_release_option(command: Command) -> Command:
    """Return ``--schema FILE``, which a release makes needless."""
    return _schema_option(required=False)(command)


def schema_or_draft_options(command: Command) -> Command:
    """Return ``--schema FILE`` and ``--accept-draft``, one of which is needed."""
    accept = click.option(
        "--accept-draft",
        is_flag=True,
        help="Without --schema: take as public what a draft does (names and kinds of columns, 0 and 1, true and"
        " false; it is printed), and learn the rest under the budget.",
    )
    return _schema_option(required=False)(accept(command))


def _schema_option(*, required: bool) -> Callable[[Command], Command]:
    return click.option(
        "--schema",
        "-s",
        "schema_path",
        required=required,
        metavar="FILE",
        help="The schema, a TOML file.",
    )


def workload_option(command: Command) -> Command:
    """Return ``--workload TEXT``."""
    default_workload = "all-3way"
    return click.option(
        "--workload",
        default=None,
        show_default=f"{default_workload}; a few mechanisms have another",
        help='"all-3way", "around:COLUMN" (or around:COLUMN:2), "skewed", "a,b;c,d", or a file with one marginal a'
        ' line ("a, b" or "a, b = WEIGHT").',
    )(command)


def budget_options(command: Command) -> Command:
    """Return ``--epsilon``, ``--delta``, ``--unit`` and ``--allow-large-delta``."""
    for option in (
        click.option(
            "--allow-large-delta",
            is_flag=True,
            help="Accept a delta above 1e-5, or of 1 in a public number of rows or more; 0.01 at most.",
        ),
        click.option(
            "--unit",
            default=None,
            show_default="add-remove-row; none where the schema names a person column",
            help="Unit of privacy: add-remove-row, replace-row, or add-remove-person:K, replace-person:K. K is the most"
            " rows of one person that count; further rows of that person are left out at random. Take K from public"
            " knowledge, such as five visits in five years: it is published. A larger K adds noise.",
        ),
        click.option(
            "--delta",
            type=float,
            default=None,
            help="The delta of (epsilon, delta), such as 1e-9. Without it, the error names the one that is advised.",
        ),
        click.option(
            "--epsilon",
            "-e",
            type=float,
            required=True,
            help="The epsilon of (epsilon, delta), such as 1.",
        ),
    ):
        command = option(command)
    return command


def stated_delta(delta: float | None, rows: int | None) -> float:
    """Return the delta, or raise ``InputError`` with the delta that is advised."""
    if delta is None:
        raise InputError("--delta is missing.", remedy=advised_delta(rows))
    return delta


def rules_options(command: Command) -> Command:
    """Return ``--ledger``, ``--dataset`` and ``--policy``."""
    for option in (
        click.option(
            "--policy", default=None, metavar="FILE", help="Rules for releases, a TOML file."
        ),
        click.option(
            "--dataset",
            default=None,
            metavar="ID",
            help="Name of the data set in the ledger, and in a report.",
        ),
        click.option(
            "--ledger",
            default=None,
            metavar="FILE",
            help="The ledger file, in which the data set has a cap.",
        ),
    ):
        command = option(command)
    return command


def books_options(command: Command) -> Command:
    """Return ``--ledger``, ``--dataset``, ``--policy``, ``--journal``, ``--resume`` and
    ``--same-table``.
    """
    for option in (
        click.option(
            "--same-table",
            is_flag=True,
            help="With --resume: FILE is the table that the run was begun on, though it was moved or written again.",
        ),
        click.option(
            "--resume",
            is_flag=True,
            help="Go on with a run that was interrupted, from its journal.",
        ),
        click.option(
            "--journal",
            default=None,
            metavar="FILE",
            help="Where the run's answers are kept until its outputs are written. Unless named it is FILE.journal, FILE"
            " being that of --release, else of -o, else of --report.",
        ),
    ):
        command = option(command)
    return rules_options(command)


def load_schema(path: str, *, confirmed: bool = True, table: str | None = None) -> Schema:
    """Return the schema of a file, which must not name the table. A draft is refused if a confirmed
    one is needed.
    """
    check_no_folder(path)
    if not os.path.isfile(path):
        raise SchemaError(
            f"There is no schema file {path}.",
            remedy="Draft one: margrave schema draft FILE -o SCHEMA.",
        )
    schema = Schema.load(path, table=table)
    if confirmed:
        schema.check_not_read()
    return schema


def warn_weak(budget: Budget) -> None:
    """Print a warning if the budget is allowed but promises little."""
    for words in weaknesses(budget):
        echo(f"Warning: {words}", err=True)


def purposes_option(command: Command) -> Command:
    """Return ``--for TEXT``, which may be given several times."""
    return click.option(
        "--for",
        "purposes",
        multiple=True,
        metavar="TEXT",
        help='A purpose of the release, such as "mean price by type", "ols price ~ area" or "effect of drug on'
        ' outcome given age". May be repeated.',
    )(command)


def parse_workload(text: str | None, domain: Domain) -> Workload:
    """Return the workload that ``--workload`` names (default: all-3way) on the columns of the
    domain.
    """
    if text is None:
        return Workload.all_kway(domain, 3)
    if match := re.fullmatch(r"all-(\d{1,2})way", text):
        _check_ways(text, int(match[1]), domain)
        return Workload.all_kway(domain, int(match[1]))
    if text == "skewed":
        return Workload.skewed(domain)
    if text.startswith("around:"):
        target, colon, k = text.removeprefix("around:").rpartition(":")
        if not (colon and re.fullmatch(r"[0-9]{1,4}", k) and target in domain):
            return Workload.around(domain, text.removeprefix("around:"))
        _check_ways(text, int(k), domain)
        return Workload.around(domain, target, int(k))
    if os.path.isfile(text):
        return Workload.load(domain, text)
    if all(
        part.strip() in domain
        for group in text.split(";")
        for part in group.split(",")
        if part.strip()
    ):
        return Workload.of_lines(domain, text.split(";"))
    unknown = next(
        p.strip()
        for g in text.split(";")
        for p in g.split(",")
        if p.strip() and p.strip() not in domain
    )
    if "=" in unknown and unknown.partition("=")[0].strip() in domain:
        raise InputError(
            f"--workload gives a weight in {unknown[:60]!r}, and only a file of marginals can.",
            remedy='Write a file with one marginal a line, such as "age, ill = 3", and name it.',
        )
    families = (f"all-{k}way" for k in range(1, len(domain) + 1))
    around = (f"around:{column}" for column in domain.attributes)
    alike = did_you_mean(
        _ways_in_digits(unknown), (*domain.attributes, *families, "skewed", *around)
    )
    raise InputError(
        f"--workload names {unknown[:60]!r}, which is not a column, a file or a family of workloads.",
        remedy=f"{alike}The families are all-3way (or another number), around:COLUMN and skewed. The columns are:"
        f" {', '.join(domain.attributes)}.",
    )


def _ways_in_digits(text: str) -> str:
    """Return the family of a text such as "all-three-way" or "all 3 ways" as margrave writes it; any other text.

    >>> _ways_in_digits("all-three-way"), _ways_in_digits("3-way"), _ways_in_digits("skewd")
    ('all-3way', 'all-3way', 'skewd')
    """
    words = ("one", "two", "three", "four", "five", "six")
    found = re.fullmatch(rf"(?:all)?[-_ ]*(\d+|{'|'.join(words)})[-_ ]*ways?", text.lower())
    if found is None:
        return text
    return f"all-{words.index(found[1]) + 1 if found[1] in words else found[1]}way"


def _check_ways(text: str, k: int, domain: Domain) -> None:
    if k > len(domain):
        raise InputError(
            f"--workload {text} asks for marginals of {k} columns, and the schema has {len(domain)}.",
            remedy=f"Ask for {len(domain)} at most; all columns at once are all-{len(domain)}way.",
        )


def echo_json(value: object) -> None:
    """Print plain data on standard output."""
    echo(json_text(value))
