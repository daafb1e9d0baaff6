"""Objects that hold true rows or counts, which nobody may copy or pickle."""

from __future__ import annotations

from typing import NoReturn, SupportsIndex


class Unshareable:
    """A base class without a back door: ``copy``, ``deepcopy`` and ``pickle`` raise ``TypeError``."""

    __slots__ = ()

    def __copy__(self) -> NoReturn:
        raise TypeError("A table of sensitive rows cannot be copied.")

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise TypeError("A table of sensitive rows cannot be copied.")

    def __reduce__(self) -> NoReturn:
        raise TypeError("A table of sensitive rows cannot be pickled.")

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError("A table of sensitive rows cannot be pickled.")
