"""``margrave mechanisms``: every mechanism, and what it is for."""

from __future__ import annotations

from typing import Any

import click
from rich.table import Table

from margrave.cli.options import echo_json, json_option
from margrave.cli.output import console, escape
from margrave.cli.terminal import echo
from margrave.errors import InputError
from margrave.mechanisms import MECHANISM_CATALOG, Mechanism
from margrave.mechanisms.published import PUBLISHED_FORMS


@click.command("mechanisms")
@json_option
def mechanisms_command(as_json: bool) -> None:
    """List the mechanisms, and what each is for. With --json also the papers of their published forms."""
    found, faults = list[dict[str, Any]](), [MECHANISM_CATALOG.collisions()]
    for name in MECHANISM_CATALOG.names():
        try:
            found.append(_line(name, MECHANISM_CATALOG.get(name)))
        except InputError as error:
            faults.append(str(error))
    for fault in filter(None, faults):
        echo(f"Note: {fault}", err=True)
    if as_json:
        echo_json(found)
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("name", no_wrap=True)
    table.add_column("for", overflow="fold")
    for line in found:
        table.add_row(escape(line["name"]), escape(line["for"]))
    console().print(table)
    console().print(
        "Use one with --mechanism NAME; margrave plan shows what it would measure and cost."
    )


def _line(name: str, kind: type[Mechanism]) -> dict[str, Any]:
    forms = PUBLISHED_FORMS.get(name, ())
    first = (kind.__doc__ or "").strip().split("\n")[0]
    return {
        "name": name, "class": kind.__name__, "for": kind.use or first,
        "papers": [form.paper for form in forms],
        "needs_public_table": "public" in getattr(kind, "__dataclass_fields__", {}),
    }  # fmt: skip
