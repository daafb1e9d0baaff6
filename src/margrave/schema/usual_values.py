"""Bounds and categories that everybody knows: a schema that has them says nothing of the rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from margrave.schema.categorical import Categorical, Ordinal
from margrave.schema.column import Column
from margrave.schema.person_names import plain_name


def are_usual_categories(categories: Sequence[str]) -> bool:
    """Return True for categories that everybody knows, such as yes and no, or the days of the week.

    >>> [are_usual_categories(c) for c in (["Nein", "Ja"], ["York", "Hull"])]
    [True, False]
    """
    lists = (
        "0 1", "yes no", "y n", "true false", "t f", "ja nein", "j n", "oui non", "o n", "si no", "sí no",
        "female male", "f m", "weiblich männlich", "w m", "frau mann", "femme homme",
        "mon tue wed thu fri sat sun", "mo di mi do fr sa so",
        "monday tuesday wednesday thursday friday saturday sunday",
        "montag dienstag mittwoch donnerstag freitag samstag sonntag",
        "lundi mardi mercredi jeudi vendredi samedi dimanche",
        "1 2 3 4 5 6 7", "0 1 2 3 4 5 6", "1 2 3 4 5 6 7 8 9 10 11 12",
        "jan feb mar apr may jun jul aug sep oct nov dec",
        "january february march april may june july august september october november december",
        "januar februar märz april mai juni juli august september oktober november dezember",
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    )  # fmt: skip
    return {text.strip().casefold() for text in categories} in [set(s.split()) for s in lists]


def is_usual_range(name: str, low: object, high: object) -> bool:
    """Return True for the bounds of a common scale, or those that the calendar gives to a column of this name.

    >>> is_usual_range("score", 0, 100), is_usual_range("birth_month", 1, 12), is_usual_range("visits", 1, 12)
    (True, True, False)
    """
    scales = {(0, 1), (0, 10), (0, 100), (0, 110), (0, 120)}
    by_word = (
        ("day|days|mday|dom|tag|jour|dia", {(1, 31), (0, 6), (1, 7), (1, 366)}),
        ("weekday|dow|wday|dayofweek|wochentag", {(0, 6), (1, 7)}),
        ("dayofyear|doy|yday", {(1, 366), (0, 366), (1, 365)}),
        ("week|weeks|woche|semaine|semana", {(1, 52), (1, 53), (0, 53)}),
        ("month|months|mon|mo|monat|mois|mes", {(1, 12), (0, 11)}),
        ("quarter|quartal|trimestre|qtr", {(1, 4)}),
        ("hour|hours|hr|stunde|heure|hora", {(0, 23), (0, 24), (1, 24), (1, 12)}),
        ("minute|minutes|min|second|seconds|sec", {(0, 59), (0, 60)}),
        ("lat|latitude", {(-90, 90)}),
        ("lon|lng|long|longitude", {(-180, 180)}),
        ("degrees|direction|bearing|heading|angle", {(0, 359), (0, 360)}),
    )
    if (low, high) in scales:
        return True
    words = set(re.split("[^a-z]+", plain_name(name)))
    return any((low, high) in ranges and words & set(of.split("|")) for of, ranges in by_word)


def listed_columns(columns: Iterable[Column]) -> list[Categorical | Ordinal]:
    """Return the columns with lists of categories that are not usual ones."""
    return [
        c
        for c in columns
        if isinstance(c, Categorical | Ordinal) and not are_usual_categories(c.categories)
    ]
