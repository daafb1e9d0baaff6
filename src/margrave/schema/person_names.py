"""Names of columns that suggest identifiers of persons."""

from __future__ import annotations

import re
import unicodedata

#: Persons, in several languages.
WHO = (
    r"(patient(en|e)?|person(en|a|ne)?|client|customer|member|subject|student|pupil|user|employee|household|"
    r"participant|respondent|proband(en)?|beneficiary|enrollee|subscriber|policyholder|donor|citizen|resident|"
    r"kunden?|versicherten?|mitglieds?|teilnehmer|mitarbeiter|schuler|haushalts?|befragten?|versuchsperson(en)?|"
    r"paciente|cliente|usuario|alumno|empleado|hogar|assure|adherent|eleve|etudiant|salarie|foyer|"
    r"persoon|klant|deelnemer|leerling|paziente|assistito)"
)


def _keys() -> str:
    """Return the pattern of a name that ends as that of a number of persons, or of what belongs to one."""
    number = r"(id|ident|identifier|nr|nbr|no|num|numb|nummer|numero|number|key|pseudonym)"
    key = rf"({number}|code|kennung|codigo|hash|ref)"
    matter = (
        r"(case|account|acct|chart|medical[^a-z]?record|insurance|policy|passport|hh|resp|"
        r"fall|konto|akte|steuer|personal|caso|cuenta|dossier|compte)"
    )
    before = r"(id|identifier|nr|nummer|numero|ref|codigo)[^a-z]+((de|des|du|der|of|the)[^a-z]+)*"
    named = rf"({WHO}|pat|pt|pers|vp)(['’]s)?[^a-z]?{key}|{matter}[^a-z]?{number}|{before}{WHO}"
    return rf"(^|[^a-z])({named}|mrn|ssn|pid|pnr)[^a-z]*$|{_serial()}"


def _serial() -> str:
    """Return the pattern of a number of rows or persons."""
    return r"^(lfd|(fort)?laufende|id|ident|kenn)[^a-z]{0,2}(nr|no|nummer|number)[^a-z]*$"


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


def names_a_serial_number(name: str) -> bool:
    """Return True if a column's name suggests a number of rows, of persons, or of both.

    >>> [n for n in ("lfdnr", "Lfd. Nr.", "IDNr", "persnr") if names_a_serial_number(n)]
    ['lfdnr', 'Lfd. Nr.', 'IDNr']
    """
    return re.search(_serial(), plain_name(name)) is not None


def names_an_identity(name: str) -> bool:
    """Return True if a column's name suggests texts that differ between persons: names, mail addresses, pseudonyms.

    >>> [n for n in ("Name", "Vorname", "user_name", "E-Mail", "uuid", "city_name") if names_an_identity(n)]
    ['Name', 'Vorname', 'user_name', 'E-Mail', 'uuid']
    """
    of = rf"(first|last|middle|full|family|given|sur|vor|nach|familien|geburts|{WHO})"
    names = rf"({of}[^a-z]*)?names?|apellidos?|nombre|nom|prenom"
    reach = r"e[^a-z]?mail([^a-z]*(address|adresse))?|(tele)?(fon|phone)[^a-z]*(nr|nummer|number)?"
    texts = rf"{reach}|id|uid|uuid|guid|pseudonym"
    return re.fullmatch(rf"({names}|{texts})[^a-z]*", plain_name(name)) is not None


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
