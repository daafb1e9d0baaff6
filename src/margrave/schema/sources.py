"""Sources of the values in a schema: public knowledge, learning under a budget, or the rows themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date
from typing import Any, ClassVar

from margrave._card import counted
from margrave.errors import SchemaError, did_you_mean
from margrave.schema.categorical import Lookup
from margrave.schema.column import Column, abbreviate, set_fields
from margrave.schema.parsing import DateReader, at_midnight, units_since
from margrave.schema.validators import column_error


@dataclass(frozen=True)
class ColumnSource:
    """Where the values of one column's declaration come from, and what its code book calls them.

    Args:
        of: The source of every key that ``read`` does not list: "public"; "learned", from noisy
            answers; or "read", off the rows of the table to protect.
        read: The keys whose values were read off the rows. The gate refuses such a schema.
        cite: Where the public values are written down, in words. Bounds with one are taken to be the whole range of
            legal values.
        missing_codes: Values that stand for a missing one in the table, such as "-9".
        public: The bounds of a learned column that were public before it was learned: "low", "high" or both.
        title: What the column is, in words, such as "Sex of the patient".
        labels: What its categories mean, such as {"1": "female"}.

    Raises:
        SchemaError: If an argument is not of its kind.

    Privacy:
        A statement by the custodian, which margrave cannot check. The certificate lists ``cite``; releases and
        reports show titles and labels.

    Example:
        >>> ColumnSource(read=["high"], cite="Codebook 2018, p. 12").is_read
        True
    """

    of: str = "public"
    read: Sequence[str] = ()
    cite: str = ""
    missing_codes: Sequence[str] = ()
    public: Sequence[str] = ()
    title: str = ""
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def open_bounds(self) -> tuple[str, ...]:
        """The bounds that were not public before the column was learned."""
        return tuple(key for key in ("low", "high") if key not in self.public)

    #: The sources of a value.
    kinds: ClassVar[tuple[str, ...]] = ("public", "learned", "read")
    #: The kinds of columns whose codes have labels.
    labelled: ClassVar[tuple[str, ...]] = ("categorical", "ordinal", "boolean", "coded")
    #: The keys of the file, with the fields that they set.
    keys: ClassVar[dict[str, str]] = {
        "source": "of", "read": "read", "cite": "cite", "missing_codes": "missing_codes",
        "public": "public", "title": "title", "labels": "labels",
    }  # fmt: skip

    def __post_init__(self) -> None:
        if self.of not in self.kinds:
            raise SchemaError(
                "source is unknown.", remedy=f"Choose one of: {', '.join(self.kinds)}."
            )
        listed = isinstance(self.read, Sequence) and not isinstance(self.read, str)
        if not listed or not all(isinstance(key, str) for key in self.read):
            raise SchemaError("read is not a list of keys.", remedy='Write read = ["high"], say.')
        if not isinstance(self.cite, str) or len(self.cite) > 1000:
            raise SchemaError(
                "cite is not a text of at most 1,000 characters.",
                remedy='Write cite = "Codebook 2018, p. 12", say.',
            )
        codes = self.missing_codes
        listed = isinstance(codes, Sequence) and not isinstance(codes, str)
        if not listed or not all(isinstance(c, str) and c.strip() for c in codes):
            raise SchemaError(
                "missing_codes is not a list of texts.", remedy='Write missing_codes = ["-9"], say.'
            )
        bounds = isinstance(self.public, Sequence) and not isinstance(self.public, str)
        if not bounds or not set(self.public) <= {"low", "high"}:
            raise SchemaError(
                "public is not a list of bounds.", remedy='Write public = ["low"], say.'
            )
        if self.public and self.of != "learned":
            raise SchemaError(
                "public lists bounds, and the column was not learned.",
                remedy="Take public out: all bounds of other columns are public.",
            )
        if not isinstance(self.title, str) or len(self.title) > 1000:
            raise SchemaError(
                "title is not a text of at most 1,000 characters.",
                remedy='Write title = "Sex of the patient", say.',
            )
        labels = self.labels
        if not isinstance(labels, Mapping) or not all(
            isinstance(text, str) and text.strip() and len(text) <= 1000
            for text in (*labels, *labels.values())
        ):
            raise SchemaError(
                "labels do not give each category a text of 1 to 1,000 characters.",
                remedy='Write labels = {"1" = "female", "2" = "male"}, say.',
            )
        set_fields(
            self, read=tuple(self.read), missing_codes=tuple(codes), public=tuple(self.public),
            labels=dict(labels),
        )  # fmt: skip

    @property
    def is_read(self) -> bool:
        """True if any value was read off the rows."""
        return self.of == "read" or bool(self.read)

    def confirmed(self) -> ColumnSource:
        """Return the source with every value taken as public, or learned as before."""
        return replace(self, of="public" if self.of == "read" else self.of, read=())

    @property
    def settings(self) -> Iterator[tuple[str, Any]]:
        """The keys of the file, with their values; None for those that say nothing."""
        yield "source", None if self.of == "public" else self.of
        yield "read", self.read
        yield "cite", self.cite or None
        yield "missing_codes", self.missing_codes
        yield "public", self.public
        yield "title", self.title or None
        yield "labels", self.labels or None

    @property
    def words(self) -> str:
        """The keys whose values were read off the rows."""
        return "all keys" if self.of == "read" else ", ".join(self.read)


def source_of(table: Mapping[str, Any], called: str) -> ColumnSource:
    """Return the source that a column's table in the file states."""
    stated = {field: table[key] for key, field in ColumnSource.keys.items() if key in table}
    try:
        return ColumnSource(**stated)
    except SchemaError as error:
        raise SchemaError(f"{called}: {error.message}", remedy=error.remedy) from None


def check_sources(sources: Mapping[str, ColumnSource], columns: Sequence[Column]) -> None:
    """Raise ``SchemaError`` for a source of no column, or of a key that its column does not have."""
    known = {c.name: c for c in columns}
    for name, source in sources.items():
        if not isinstance(source, ColumnSource) or name not in known:
            raise SchemaError(
                f"The sources name {name!r}, which is not a column with a ColumnSource.",
                remedy=f"The columns are: {', '.join(known)}.",
            )
        if source.missing_codes and not known[name].missing:
            raise column_error(
                name,
                "it has missing_codes, and no missing state.",
                "Write missing = true, or leave missing_codes out.",
            )
        for code in source.missing_codes:
            if code in getattr(known[name], "categories", ()):
                raise column_error(
                    name,
                    f"{code[:60]!r} is one of its categories, and one of its missing_codes.",
                    "Take it out of one of them: of missing_codes to keep such values, of categories to count them as"
                    " missing.",
                )
        check_bounds(known[name], source.missing_codes)
        _check_labels(known[name], source.labels)
        keys = ("kind", *(f.name for f in fields(known[name]) if f.name not in ("name", "of")))  # type: ignore[arg-type]
        for key in source.read:
            if key not in keys:
                raise column_error(
                    name,
                    f"read lists {key[:60]!r}, which is not one of its keys.",
                    f"Its keys are: {', '.join(keys)}.",
                )


def code_words(column: Column, source: ColumnSource) -> list[str]:
    """Return what each code of a column means, categories with their labels.

    >>> from margrave.schema import Categorical
    >>> code_words(Categorical("sex", ["1", "2"]), ColumnSource(labels={"1": "female"}))
    ['1 (female)', '2']
    """
    return with_labels(column.labels(), source)


def with_labels(texts: Sequence[str], source: ColumnSource) -> list[str]:
    """Return categories of a column, each with its label.

    >>> with_labels(["2", "1"], ColumnSource(labels={"1": "female"}))
    ['2', '1 (female)']
    """
    labels = source.labels
    return [f"{text} ({labels[text]})" if text in labels else text for text in texts]


def labels_left(labels: Mapping[str, str], column: Column) -> dict[str, str]:
    """Return the labels of texts that are categories of a column, or may be learned as such."""
    if getattr(column, "learn", False) and column.kind in ColumnSource.labelled:
        return dict(labels)
    known = column.labels() if column.kind in ColumnSource.labelled else []
    return {text: label for text, label in labels.items() if text in known}


def _check_labels(column: Column, labels: Mapping[str, str]) -> None:
    """Raise ``SchemaError`` if a label is of something other than a category of its column."""
    if not labels:
        return
    if column.kind not in ColumnSource.labelled:
        raise column_error(
            column.name,
            "it has labels, and no categories.",
            "Take labels out. Values that mean a missing one are missing_codes.",
        )
    if getattr(column, "learn", False):  # its categories are not known yet
        return
    known = column.labels()[: column.size - column.missing]
    for text in labels:
        if text not in known:
            raise column_error(
                column.name,
                f"labels name {text[:60]!r}, which is not one of its categories.",
                f"{did_you_mean(text, known)}Its categories are: {abbreviate(known)}.",
            )


def learned_of(sources: Mapping[str, ColumnSource]) -> frozenset[str]:
    """Return the columns whose values were learned from noisy answers."""
    return frozenset(name for name, source in sources.items() if source.of == "learned")


def read_error(sources: Mapping[str, ColumnSource]) -> SchemaError:
    """Return the refusal of a schema with values that were read off the rows, key by key."""
    # Columns that the error names.
    max_columns = 10
    found = [f"{name!r} ({source.words})" for name, source in sources.items() if source.is_read]
    others = len(found) - max_columns
    more = f" and {counted(others, 'more column')}" if others > 0 else ""
    return SchemaError(
        "The schema is a draft: values in it were read off the rows, so they are not public."
        f" Column {', '.join(found[:max_columns])}{more}.",
        remedy='For each key, write the public value and take the key out of read (or source = "read" out), or'
        " write learn = true in its place.",
    )


def check_bounds(column: Column, missing_codes: Sequence[str]) -> None:
    """Raise ``SchemaError`` if a bound of a column is also one of its missing-value codes.

    Example:
        >>> from margrave.schema import Integer
        >>> check_bounds(Integer("age", -9, 110, missing=True), ["-9"])
        Traceback (most recent call last):
        ...
        margrave.errors.SchemaError: Column 'age': its low is -9, which is one of its missing_codes. ...
    """
    stands_for_missing, spans = Lookup(tuple(missing_codes)), spans_of_codes(column, missing_codes)
    for key in ("low", "high"):
        bound = getattr(column, key, None)
        if bound is None or column.kind == "elapsed":
            continue
        at = units_since(at_midnight(bound), 1) if isinstance(bound, date) else None
        dated = at is not None and any(first <= at <= last for first, last in spans)
        if dated or stands_for_missing(str(bound)) is not None:
            raise column_error(
                column.name,
                f"its {key} is {bound}, which is one of its missing_codes.",
                f"Such rows are missing. Write the {'lowest' if key == 'low' else 'highest'} value that is not.",
            )


def spans_of_codes(column: Any, missing_codes: Sequence[str]) -> list[tuple[float, float]]:
    """Return the first and the last second since 1970 of each missing-value code of a column of dates or times.

    Codes are written in the column's format or in ISO 8601. A date is all of its day. Other columns have no such spans.

    Example:
        >>> from margrave.schema import Learn
        >>> spans_of_codes(Learn("seen", "timestamp"), ["1970-01-02", "1970-01-02 00:01", "unknown"])
        [(86400.0, 172799.0), (86460.0, 86460.0)]
    """
    if column.kind not in ("date", "timestamp", "hour", "weekday"):
        return []
    day, read = 86400, DateReader(column.format, output=True)
    spans = []
    for code in missing_codes:
        if (moment := read(code)) is not None:
            first = units_since(moment, 1)
            whole_day = column.kind == "date" or ":" not in code
            spans.append(
                (first // day * day, first // day * day + day - 1) if whole_day else (first, first)
            )
    return spans
