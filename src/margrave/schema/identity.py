"""Which column says whose row it is, by its name and its values: for drafts and checks.

**Privacy:** NOT private: for the custodian alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from margrave.schema.evidence import FEW, Evidence
from margrave.schema.looks import date_format

SEVERAL = 0.1
"""Codes of which there are more than this share of the rows are identifiers; of long ones a fifth of that is enough."""

WHO = r"(patient(en)?|person(en)?|client|customer|member|subject|student|pupil|user|employee|household|kunden?)"
KEY = r"(id|nr|no|num|nummer|number|key|code|pseudonym)"
KEYS = re.compile(rf"(^|[^a-z])(({WHO}|pat)[^a-z]?{KEY}|mrn|ssn|pid)$")
NAMES = re.compile(rf"(^|[^a-z])(id|nr|uid|uuid|guid|pseudonym)($|[^a-z])|{WHO}[^a-z]?{KEY}?$|{KEYS.pattern}")


def names_persons(name: str) -> bool:
    """Whether a column's name says that it tells persons, or rows, apart.

    >>> [n for n in ("patient_id", "PatientID", "paid", "user", "users") if names_persons(n)]
    ['patient_id', 'PatientID', 'user']
    """
    return NAMES.search(_plain(name)) is not None


def names_a_key(name: str) -> bool:
    """Whether a column's name says that it is the identifier of persons.

    >>> [n for n in ("patient_id", "PatNr", "Patientennummer", "visit_id", "user") if names_a_key(n)]
    ['patient_id', 'PatNr', 'Patientennummer']
    """
    return KEYS.search(_plain(name)) is not None


def _plain(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def identifies(name: str, counts: Counter[str]) -> bool:
    """Whether a column looks as if it said whose row it is: codes of many values, most of them on few rows.

    Texts look so by themselves; whole numbers only under a name that says so, since incomes are as many. Under a name
    such as patient_id, persons may have any number of rows.

    >>> identifies("who", Counter({f"P{i:07d}": 3 for i in range(50)})), identifies("zip", Counter({"01234": 90}))
    (True, False)
    """
    if len(counts) <= FEW:
        return False
    share, named, key = len(counts) / counts.total(), names_persons(name), names_a_key(name)
    if all(re.fullmatch(r"(0|[1-9]\d*)(\.0+)?", t) for t in counts):
        return key or (named and share > SEVERAL / 2)
    codes = [t for t in counts if not re.search(r"\s", t) and (key or len(t) >= 5) and re.search(r"\d", t)]
    digits = [sum(map(str.isdigit, t)) for t in codes]
    coded = sum(key or d >= 4 or len(t) >= 8 for t, d in zip(codes, digits, strict=True))
    long = sum(d >= 6 or len(t) >= 12 for t, d in zip(codes, digits, strict=True))
    most = 0.9 * len(counts)
    return coded >= most and (key or named or share > SEVERAL or (long >= most and share > SEVERAL / 5))


def of_persons(evidence: Evidence) -> bool:
    """Whether a column looks like an identifier of persons of whom some have several rows."""
    texts = evidence.counts
    if not texts or date_format(texts) is not None:
        return False
    named = names_persons(evidence.name) and len(texts) > max(FEW, evidence.rows / 2)
    return evidence.rows > len(texts) and (named or identifies(evidence.name, texts))


def likeliest(found: Sequence[Evidence]) -> Evidence | None:
    """The column that most likely says whose row it is: by its name, then that of the fewest persons."""
    return min(
        found, key=lambda e: (not names_a_key(e.name), not names_persons(e.name), len(e.counts)), default=None
    )
