"""The decorator of compiled loops, and the cache that keeps them between processes.

A loop is compiled for the types of its first call. The result is stored beside its module, or in the user's
cache folder if that folder is read-only. Without any writable folder each process compiles again.

Much of the time is spent before there is machine code. It grows with the statements of a loop, and each of
NumPy's functions or slices adds many. So loops index numbers, and their callers allocate arrays. A literal such as
0 is a type of its own as an argument of another compiled function: ``np.int64(0)`` avoids a second compilation.

A few calls on small tables take less time in the interpreter than the compiler, or loading what it made:
``run_or_compile`` is for those.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import cache, wraps
from types import FunctionType
from typing import Any, ClassVar

import numba
import numpy as np
from numba.core.caching import FunctionCache
from numba.core.dispatcher import Dispatcher

from margrave._compiling import announce


class _Cache(FunctionCache):
    """Numba's cache, except that its failures cost time only."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return what is stored; None if it must be compiled."""
        found = None
        with suppress(Exception):  # a damaged file raises anything
            found = super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        if found is None:
            announce(self._py_func.__module__)
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store what was compiled, if possible."""
        with suppress(Exception):  # a full disk, or a damaged index
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]


def _without_collecting(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with garbage collection off while it runs: a compiler makes many objects that last."""

    @wraps(call)
    def quick(*arguments: Any) -> Any:
        enabled = gc.isenabled()
        gc.disable()
        try:
            return call(*arguments)
        finally:
            if enabled:
                gc.enable()

    return quick


def kernel(function: Any = None, *, fast: bool = False, **options: Any) -> Any:
    """Compile a function at its first call, to run without the interpreter's lock.

    Args:
        function: Loops over arrays and numbers, in the part of Python that Numba knows.
        fast: Sums may be reordered and products fused, so that loops become vector code.
        options: Further options of ``numba.njit``: ``forceinline=True`` for small functions called in inner loops.

    Returns:
        The compiled function, or a decorator if no function was given.
    """
    if function is None:
        return lambda later: kernel(later, fast=fast, **options)
    if fast:
        options["fastmath"] = {"reassoc", "contract"}
    compile_later: Any = numba.njit
    compiled = compile_later(nogil=True, no_cfunc_wrapper=True, **options)(function)
    compiled.compile = _without_collecting(compiled.compile)
    with suppress(RuntimeError, OSError):  # no folder is writable
        cache: Any = _Cache
        compiled._cache = cache(function)
    return compiled


class _Interpreted:
    """The steps that each loop has taken in the interpreter, in this process."""

    #: A tenth of a second, about: less than it takes to compile a short loop.
    MAX: ClassVar[int] = 200_000

    taken: ClassVar[Counter[Any]] = Counter()


@cache
def _plain(loop: Any) -> Callable[..., Any]:
    """Return a loop as a function of the interpreter, which calls other loops in the interpreter too."""
    scope = dict(loop.py_func.__globals__)
    for name in loop.py_func.__code__.co_names:
        if isinstance(scope.get(name), Dispatcher):
            scope[name] = _plain(scope[name])
    return FunctionType(loop.py_func.__code__, scope)


def run_or_compile(loop: Any, steps: int, *arguments: Any) -> Any:
    """Call a loop, in the interpreter as long as its calls in this process take few steps together.

    Both ways give the same result to the last bit: the loop is not ``fast``, and takes functions such as the
    exponential from ``math``.

    Args:
        loop: A function that was decorated with ``kernel``, without default arguments.
        steps: About how many half microseconds the call takes in the interpreter.
        arguments: Arguments of the loop.
    """
    if _Interpreted.taken[loop] + steps > _Interpreted.MAX:
        return loop(*arguments)
    _Interpreted.taken[loop] += steps
    with np.errstate(over="ignore"):  # of products modulo 2^64
        return _plain(loop)(*arguments)
