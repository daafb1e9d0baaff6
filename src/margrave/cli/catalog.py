"""Names of a catalog as values of an option."""

from __future__ import annotations

from typing import Any

import click

from margrave.errors import InputError, did_you_mean
from margrave.plugins import Catalog


class CatalogName(click.ParamType):  # type: ignore[type-arg]  # takes arguments from click 8.5 on
    """A built-in name, or one that another distribution offers.

    Names of other distributions are looked up if help lists them or if a name is not built in.
    """

    name = "name"

    def __init__(self, catalog: Catalog[Any]) -> None:
        self.catalog = catalog

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Return the names that can be used."""
        return f"[{'|'.join(self.catalog.names())}]" if self.catalog.names() else "NAME"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name. Raise ``InputError`` if nothing of that name is installed."""
        if value in self.catalog.built_in or self.catalog.offers(value):
            return value
        names = self.catalog.names()
        listed = f"It is one of: {', '.join(names)}." if names else self.catalog.advice()
        flag = "" if param is None else f"{max(param.opts, key=len)}: "
        raise InputError(
            f"{flag}{value[:60]!r} is not a {self.catalog.noun}.",
            remedy=f"{did_you_mean(value, names)}{listed} {self.catalog.collisions()}".strip(),
        )
