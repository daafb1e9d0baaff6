"""Names of columns that suggest identifiers of persons."""

from __future__ import annotations

import re

WHO = r"(patient(en)?|person(en)?|client|customer|member|subject|student|pupil|user|employee|household|kunden?)"
KEY = r"(id|nr|no|num|nummer|number|key|code|pseudonym)"
KEYS = re.compile(rf"(^|[^a-z])(({WHO}|pat)[^a-z]?{KEY}|mrn|ssn|pid)$")


def names_persons(name: str) -> bool:
    """Return True if a column's name suggests an identifier of persons or rows.

    >>> [n for n in ("patient_id", "PatientID", "paid", "user", "users") if names_persons(n)]
    ['patient_id', 'PatientID', 'user']
    """
    names = re.compile(
        rf"(^|[^a-z])(id|nr|uid|uuid|guid|pseudonym)($|[^a-z])|{WHO}[^a-z]?{KEY}?$|{KEYS.pattern}"
    )
    return names.search(_plain(name)) is not None


def names_a_key(name: str) -> bool:
    """Return True if a column's name suggests an identifier of persons."""
    return KEYS.search(_plain(name)) is not None


def _plain(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def names_one_person(name: str) -> bool:
    """Return True if a column's name suggests a person, with or without the word for a key.

    >>> [n for n in ("patient", "PatientID", "id", "household_no", "paid") if names_one_person(n)]
    ['patient', 'PatientID', 'household_no']
    """
    return names_a_key(name) or re.search(rf"(^|[^a-z]){WHO}$", _plain(name)) is not None
