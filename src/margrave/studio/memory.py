"""The results that the process keeps, so that a page does not compute them anew."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import RLock
from typing import Any, TypeVar

T = TypeVar("T")


class Memory:
    """The last result of each computation, which holds as long as its key does. Errors are not kept."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._stored: dict[str, tuple[Hashable, Any]] = {}

    def get(self, name: str, key: Hashable, make: Callable[[], T]) -> T:
        """Return the result under a name, computed unless the last one has the same key."""
        with self._lock:
            stored = self._stored.get(name)
            if stored is None or stored[0] != key:
                stored = self._stored[name] = key, make()
            result: T = stored[1]
            return result
