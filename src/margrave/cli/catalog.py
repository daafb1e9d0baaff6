"""Names of a catalog as values of an option."""

from __future__ import annotations

from typing import Any

import click

from margrave.plugins import Catalog


class CatalogName(click.ParamType[str, str]):
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
        """Return the name; fail if nothing of that name is installed."""
        if value in self.catalog.built_in or self.catalog.offers(value):
            return value
        names = ", ".join(map(repr, self.catalog.names()))
        listed = (
            f"one of {names}" if names else f"a {self.catalog.noun} of an installed distribution"
        )
        words = f"{value!r} is not {listed}. {self.catalog.collisions()}"
        raise click.BadParameter(words.strip(), ctx, param)
