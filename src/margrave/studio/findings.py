"""Answers about the rows, for the custodian: asked of a process of their own, and kept in memory only.

**Privacy:** NOT private. No file and no log gets them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from threading import Lock, Thread
from typing import Any

from margrave.error_sanitizer import failure_of

#: Called with a word and an order; returns what ``worker.answer`` returns.
Ask = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]


@dataclass
class Finding:
    """An answer: none yet, what was found, or the words of an error; and the files that it was asked of."""

    order: Mapping[str, Any]
    files: Hashable = ()
    found: dict[str, Any] | None = None
    error: Mapping[str, Any] | None = None

    @property
    def is_open(self) -> bool:
        """True while there is no answer."""
        return self.found is None and self.error is None


class Findings:
    """The answers of this process, one for each key.

    Args:
        ask: Asks a process; replaced in tests.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask, self._lock = ask, Lock()
        self._stored: dict[str, Finding] = {}

    def get(
        self, verb: str, order: Mapping[str, Any], files: Hashable = (), *, key: str = ""
    ) -> Finding:
        """Return the answer to an order, which is asked for unless it was before, of the same state of its files.

        Args:
            verb: The word for the process.
            order: Its order.
            files: The state of the files that the answer depends on.
            key: The key of the answer; by default the word, so that an order replaces an earlier one.
        """
        key = key or verb
        with self._lock:
            stored = self._stored.get(key)
            if stored is None or (stored.order, stored.files) != (order, files):
                stored = self._stored[key] = Finding(dict(order), files)
                Thread(target=self._fill, args=(verb, stored), daemon=True).start()
            return stored

    def forget(self, key: str) -> None:
        """Drop an answer, so that it is asked for anew."""
        with self._lock:
            self._stored.pop(key, None)

    def _fill(self, verb: str, finding: Finding) -> None:
        try:
            result = self._ask(verb, finding.order)
        except Exception as error:
            result = {
                "error": {"message": f"margrave failed ({failure_of(error).words}).", "remedy": ""}
            }
        if "found" in result:
            finding.found = dict(result["found"])
        else:
            finding.error = result["error"]


def ask_process(verb: str, order: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the answer of a process of its own, whose memory ends with it."""
    command = [sys.executable, "-m", "margrave.studio.worker", verb]
    done = subprocess.run(
        command, input=json.dumps(order).encode(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        result: Mapping[str, Any] = json.loads(done.stdout)
    except ValueError:
        words = "The process that was at work on the rows ended without an answer."
        return {"error": {"message": words, "remedy": "Is there enough memory?", "code": 70}}
    return result
