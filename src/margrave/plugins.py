"""Mechanisms, fits and tables of other distributions, by the names of their entry points.

Reading the names reads metadata of installed distributions; a module is imported only when its name is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from margrave._other_names import in_our_words
from margrave.errors import InputError, did_you_mean

T = TypeVar("T")

#: The entry-point groups.
MECHANISM_GROUP, FIT_GROUP, TABLE_GROUP = "margrave.mechanisms", "margrave.fits", "margrave.tables"


def distribution_of(kind: type) -> dict[str, str]:
    """Return the name and version of the distribution that offers a class; empty for margrave's own.

    Args:
        kind: A class. Its top-level package is compared with those of the entry points.
    """
    top = kind.__module__.partition(".")[0]
    if top == "margrave":
        return {}
    points = entry_points()
    return {
        point.dist.name: point.dist.version
        for group in (MECHANISM_GROUP, FIT_GROUP, TABLE_GROUP)
        for point in points.select(group=group)
        if point.dist is not None and point.module.partition(".")[0] == top
    }


@dataclass(frozen=True)
class Catalog(Generic[T]):
    """The built-in objects of one kind by name, and those that other distributions offer.

    Args:
        noun: What they are, such as "mechanism".
        group: The entry-point group, such as "margrave.mechanisms".
        built_in: The library's own, by name.
        fault: Returns what is wrong with an object that an entry point gave under a name; "" if nothing.
        example: An instance as it is written in Python, for error messages.

    Privacy:
        None spent. Importing a module of another distribution runs its code.
    """

    noun: str
    group: str
    built_in: Mapping[str, T]
    fault: Callable[[str, Any], str]
    example: str

    def names(self) -> list[str]:
        """Return every name that can be used, the built-in ones first. Imports nothing."""
        return [*self.built_in, *sorted(self._offers().keys() - self.built_in.keys())]

    def offers(self, name: str) -> bool:
        """Return whether another distribution offers a name that is not built in. Imports nothing."""
        return name not in self.built_in and name in self._offers()

    def collisions(self) -> str:
        """Return one sentence for each offered name that is refused because it is built in."""
        taken = {n: p for n, p in self._offers().items() if n in self.built_in}
        return " ".join(
            f"The {self.noun} {name!r} of {_words(points[0])} is refused: the name is built in."
            for name, points in taken.items()
        )

    def get(self, name: str) -> T:
        """Return the built-in object of a name, or import the one that a distribution offers.

        Raises:
            InputError: If the name is unknown or offered twice, or if the entry point fails to load.
        """
        if name in self.built_in:
            return self.built_in[name]
        points = self._offers().get(name, [])
        if not points:
            raise InputError(
                f"{name!r} is not a {self.noun}.",
                remedy=f"{did_you_mean(self.meant(name), self.names())}{self.advice()} {self.collisions()}".strip(),
            )
        if len(points) > 1:
            raise InputError(
                f"The {self.noun} {name!r} is offered by {' and by '.join(map(_words, points))}.",
                remedy="Uninstall all but one of them.",
            )
        return self._loaded(points[0])

    def meant(self, name: str) -> str:
        """Return the name of what other libraries call by this name; the name itself for others."""
        return (in_our_words("fit", name) if self.noun == "fit" else "") or name

    def advice(self) -> str:
        """Return the sentence that lists the names."""
        if not self.names():
            return f"No installed distribution offers one. Give {self.example}."
        return f"Give an instance, such as {self.example}, or one of the names {', '.join(self.names())}."

    def _offers(self) -> dict[str, list[EntryPoint]]:
        found: dict[str, list[EntryPoint]] = {}
        for point in entry_points(group=self.group):
            found.setdefault(point.name, []).append(point)
        return found

    def _loaded(self, point: EntryPoint) -> T:
        try:
            made = point.load()
        except Exception as error:
            raise InputError(
                f"The {self.noun} {point.name!r} of {_words(point)} cannot be loaded"
                f" ({type(error).__name__}: {error}).",
                remedy="Repair or uninstall that distribution, or choose another name.",
            ) from error
        if fault := self.fault(point.name, made):
            raise InputError(
                f"The {self.noun} {point.name!r} of {_words(point)} cannot be used: {fault}.",
                remedy="Report this to the authors of that distribution.",
            )
        found: T = made
        return found


def class_fault(base: type, value: Any) -> str:
    """Return what keeps an object from being a class of a kind; "" if nothing."""
    if isinstance(value, type) and issubclass(value, base):
        return ""
    return f"it is not a subclass of {base.__module__}.{base.__name__}"


def _words(point: EntryPoint) -> str:
    if point.dist is None:
        return f"the entry point {point.value}"
    return f"the distribution {point.dist.name} {point.dist.version}"
