"""Remarks of a draft where no schema file is written by hand: with the answers to choose in place of its lines."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class HintWords:
    """The words of one place for the answers to the questions of a draft, each after "Then".

    Args:
        missing: States the codes that mean missing.
        apart: Learns a date or time as it is, and not as the time since another.
        classes: Learns whole numbers as categories.
        person: Answers the question whose rows they are.
        again: Drafts anew.
        file: Where a line of the schema file can be written after the answers; "" if nowhere.
    """

    missing: str
    apart: str
    classes: str
    person: str
    again: str
    file: str = ""

    def hint(self, remark: str) -> str:
        """Return a remark of a draft with the answers to choose, and without lines of a schema file.

        Sentences whose answer is neither offered here nor said in words are left out.

        Example:
            >>> words = HintWords("declare it", "choose apart", "choose classes", "a question asks", "start again")
            >>> words.hint('If they are classes or answers, write kind = "categorical".')
            'If they are classes or answers, choose classes.'
        """
        replaced = (
            (
                r"Then leave such fields[^?]*?; or write missing_codes = \[[^\]]*\] beside learn = true"
                r"(?:; or declare it: [^?]*? = \[[^\]]*\])?\.",
                self._missing,
            ),
            (
                r"Then write (?:kind|categories) = [^?]*? in place of learn = true: that is public",
                "Then state its categories, which is public",
            ),
            (r" \(low = 0\)", ""),
            (
                r"Is it not always later\? Then [^?]*Does it not follow\? Then [^.?]*\.",
                f"Is it not always later, or does it not follow? Then {self.apart}.",
            ),
            (r"take low out of ('[^']*'|\"[^\"]*\") if it may be earlier", self._earlier),
            (r'write kind = "categorical"\.', f"{self.classes}."),
            (r", and a run then needs a unit of persons.*ignore\.", f". {self.person}"),
            (r"draft anew", self.again),
        )
        for pattern, words in replaced:
            remark = re.sub(pattern, words.replace("\\", r"\\"), remark)
        sentences = re.split(r"(?<=[.?!])\s+(?=[A-Z])", remark)
        line = re.compile(r' = ("\w+")')
        if self.file:
            sentences = [line.sub(rf" = \1 {self.file}", s) for s in sentences]
        return " ".join(
            s
            for s in sentences
            if (self.file and line.search(s)) or not re.search(r" = |\[schema\]", s)
        )

    @property
    def _missing(self) -> str:
        return (
            f"If so, {self.missing}: learning would count it as a value. Or leave such fields empty in the table, and"
            f" {self.again}."
        )

    @property
    def _earlier(self) -> str:
        return f"{self.apart} if it may be earlier"
