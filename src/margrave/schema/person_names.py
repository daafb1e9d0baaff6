"""Names of columns that suggest identifiers of persons."""

from __future__ import annotations

import re
import unicodedata

#: Persons, in several languages.
WHO = (
    r"(patient(en|e)?|person(en|a|ne)?|client|customer|member|subject|student|pupil|user|employee|household|"
    r"participant|respondent|proband(en)?|beneficiary|enrollee|subscriber|policyholder|donor|citizen|resident|"
    r"kunden?|versicherten?|mitglieds?|teilnehmer|mitarbeiter|schuler|haushalts?|"
    r"paciente|cliente|usuario|alumno|empleado|hogar|assure|adherent|eleve|etudiant|salarie|foyer|"
    r"persoon|klant|deelnemer|leerling|paziente|assistito)"
)


def _keys() -> str:
    """Return the pattern of a name that ends as that of a number of persons, or of what belongs to one."""
    number = r"(id|ident|identifier|nr|nbr|no|num|numb|nummer|numero|number|key|pseudonym)"
    key = rf"({number}|code|kennung|codigo|hash|ref)"
    matter = (
        r"(case|account|acct|chart|medical[^a-z]?record|insurance|policy|passport|"
        r"fall|konto|akte|caso|cuenta|dossier|compte)"
    )
    before = r"(id|nr|numero|ref|codigo)[^a-z](de[^a-z])?"
    return rf"(^|[^a-z])(({WHO}|pat|pt)[^a-z]?{key}|{matter}[^a-z]?{number}|{before}{WHO}|mrn|ssn|pid)[^a-z]*$"


KEYS = re.compile(_keys())


def names_persons(name: str) -> bool:
    """Return True if a column's name suggests an identifier of persons or rows.

    >>> [n for n in ("patient_id", "PatientID", "paid", "user", "users", "number_inpatient") if names_persons(n)]
    ['patient_id', 'PatientID', 'user']
    """
    names = re.compile(
        rf"(^|[^a-z])((id|nr|uid|uuid|guid|pseudonym)($|[^a-z])|{WHO}[^a-z]*$)|{KEYS.pattern}"
    )
    return names.search(plain_name(name)) is not None


def names_a_key(name: str) -> bool:
    """Return True if a column's name suggests an identifier of persons.

    >>> [n for n in ("patient_nbr", "CaseNo", "Número de paciente", "case_code", "num_members") if names_a_key(n)]
    ['patient_nbr', 'CaseNo', 'Número de paciente']
    """
    return KEYS.search(plain_name(name)) is not None


def plain_name(name: str) -> str:
    """Return a column's name in lower case, without accents and with its words apart."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", unicodedata.normalize("NFKD", name))
    return re.sub(r"[\u0300-\u036f]", "", apart).lower()


def names_no_person(name: str) -> bool:
    """Return True if a column's name suggests an amount, a time, a place or a thing.

    >>> [n for n in ("fnlwgt", "total_cost", "AnnualIncome", "patient_nbr", "insurer") if names_no_person(n)]
    ['fnlwgt', 'total_cost', 'AnnualIncome']
    """
    words = (
        r"(\w*wgt|weights?|age|year|date|time|datetime|timestamp|duration|days?|hours?|minutes?|seconds?|steps|counts?|"
        r"income|salary|wages?|pay|paid|payment|price|costs?|amount|amt|balance|bal|total|sum|charges?|fees?|bill|value|"
        r"revenue|turnover|sales|earnings|gain|loss|debt|loan|limit|credit|tax|rent|premium|principal|interest|"
        r"distance|area|size|length|height|width|depth|volume|population|capacity|dose|temperature|score|rate|lat|lon|"
        r"latitude|longitude|einkommen|gehalt|lohn|preis|kosten|betrag|saldo|summe|umsatz|gewicht|grosse|lange|dauer|"
        r"zeit|flache|miete|revenu|salaire|prix|cout|montant|solde|poids|duree|surface|loyer|ingresos?|salario|precio|"
        r"coste?|importe|peso|duracion|street|strasse|road|address|city|town|place|ort|village|ward|zip|postcode|plz|"
        r"title|job|occupation|beruf|diagnos[ei]s|drugs?|medication|product|item|model|flight|tail(num)?)"
    )
    return re.search(rf"(^|[^a-z]){words}($|[^a-z])", plain_name(name)) is not None


def names_one_person(name: str) -> bool:
    """Return True if a column's name suggests a person, with or without the word for a key.

    >>> [n for n in ("patient", "PatientID", "id", "household_no", "paid") if names_one_person(n)]
    ['patient', 'PatientID', 'household_no']
    """
    return names_a_key(name) or re.search(rf"(^|[^a-z]){WHO}$", plain_name(name)) is not None
