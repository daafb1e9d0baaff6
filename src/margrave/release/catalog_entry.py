"""The description of published synthetic tables in Croissant 1.0, the JSON-LD that catalogs of data sets read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from datetime import date
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from margrave._card import counted
from margrave.errors import InputError
from margrave.release.certificate import large_delta, several_rows
from margrave.release.drawable import check_drawable, unreadable
from margrave.release.opening import release_of
from margrave.release.release import Release
from margrave.schema import (
    Categorical,
    Coded,
    Column,
    ColumnSource,
    Elapsed,
    Ordinal,
    Schema,
)


def croissant(
    release: Release | str | Path,
    files: Sequence[str | Path],
    *,
    name: str,
    license: str,
    creator: str,
    url: str,
    description: str = "",
    cite: str = "",
    published: date | None = None,
) -> str:
    """Return a Croissant description of synthetic tables as JSON-LD.

    It has each file with its size and SHA-256, the columns with their types, the values of categories, and the promise
    of the release in words.

    Args:
        release: The release that the rows were drawn from, or its file.
        files: Tables drawn from it, in CSV or Parquet, without apostrophes before formulas. Describe only files that
            you publish: their hashes are in the result. A file with a value or a row that the release cannot draw is
            refused. This check does not find a real table whose rows all fit the schema of the release.
        name: The name of the data set.
        license: The address of the license, such as "https://creativecommons.org/licenses/by/4.0/".
        creator: The organization that publishes it.
        url: The page of the data set.
        description: Sentences on the data set; those on its privacy follow them.
        cite: The citation of the data set, such as a BibTeX entry.
        published: The day of publication; today by default.

    Raises:
        InputError: A text is empty, a file cannot be read or is of another format, two files have one name, or the
            columns, values or rows of a file are not those that the release can draw.
        ReleaseError: As ``Release.load``.

    Privacy:
        None spent. No file but the synthetic ones is read. An error names a column or constraint, and no value.

    References:
        MLCommons Croissant 1.0, http://mlcommons.org/croissant/1.0
    """
    texts = {"name": name, "license": license, "creator": creator, "url": url}
    for parameter, text in texts.items():
        if not text.strip():
            raise InputError(f"{parameter} is empty.", remedy="Catalogs need it: give a text.")
    release, paths = release_of(release), _paths(files)
    _check_files(paths, release.schema)
    found = {
        "@context": _context(),
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": name,
        "description": " ".join([*([description.strip()] if description.strip() else []), *_promise(release)]),
        "license": license,
        "url": url,
        "creator": {"@type": "sc:Organization", "name": creator},
        "datePublished": (published or date.today()).isoformat(),
        "version": "1.0.0",
        **({"citeAs": cite} if cite.strip() else {}),
        "distribution": [_file_object(n, path) for n, path in enumerate(paths, 1)],
        "recordSet": [
            *(
                _values(n, column, release.schema.source(column.name))
                for n, column in enumerate(release.schema.output_columns, 1)
                if _listed(column)
            ),
            *(_rows(n, path, release.schema) for n, path in enumerate(paths, 1)),
        ],
    }  # fmt: skip
    return json.dumps(found, indent=2, ensure_ascii=False)


def _paths(files: object) -> list[Path]:
    if not isinstance(files, Sequence) or isinstance(files, str):
        raise InputError(
            f"files is of type {type(files).__name__}, not a list of paths.",
            remedy='Save the rows first, and give such as ["rows.csv"].',
        )
    for file in files:
        if not isinstance(file, str | PathLike):
            raise InputError(
                f"files lists a {type(file).__name__}, which is not a file.",
                remedy="Save it first, as CSV or Parquet, and give its path.",
            )
    return [Path(file) for file in files]


def _check_files(paths: Sequence[Path], schema: Schema) -> None:
    names = [path.name for path in paths]
    if not names or len(set(names)) < len(names):
        raise InputError(
            "The files need names that differ, and one at least.", remedy="Name each file once."
        )
    expected = [column.name for column in schema.output_columns]
    for path in paths:
        if path.suffix.lower() not in _formats():
            raise InputError(
                f"{path} is not described: it is neither .csv nor .parquet.",
                remedy="Draw the rows again: margrave sample RELEASE -o rows.parquet.",
            )
        if _header(path) != expected:
            raise InputError(
                f"The columns of {path} are not those of the release.",
                remedy="Name a file that was drawn from it, with all columns in their order.",
            )
        check_drawable(path, schema)


def _header(path: Path) -> list[str]:
    try:
        if path.suffix.lower() == ".parquet":
            return list(pa.parquet.read_schema(path).names)
        with path.open("rb") as file, pa.csv.open_csv(file) as reader:
            return list(reader.schema.names)
    except (OSError, pa.ArrowInvalid):
        raise unreadable(path) from None


def _formats() -> dict[str, str]:
    return {".csv": "text/csv", ".parquet": "application/x-parquet"}


# An @id may not hold blanks, which names of files and columns may, so all are numbered.


def _file_object(number: int, path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "@type": "cr:FileObject",
        "@id": f"file{number}",
        "name": path.name,
        "contentUrl": path.name,
        "contentSize": f"{path.stat().st_size} B",
        "encodingFormat": _formats()[path.suffix.lower()],
        "sha256": sha256,
    }


def _rows(number: int, path: Path, schema: Schema) -> dict[str, Any]:
    return {
        "@type": "cr:RecordSet",
        "@id": f"rows{number}",
        "name": f"rows of {path.name}",
        "description": "Synthetic rows. None is a real record, and one may equal a real one by chance.",
        "field": [
            {
                "@type": "cr:Field",
                "@id": f"rows{number}/column{place}",
                "name": column.name,
                "description": _words(column, schema.source(column.name)),
                "dataType": _data_type(column),
                "source": {
                    "fileObject": {"@id": f"file{number}"},
                    "extract": {"column": column.name},
                },
            }
            for place, column in enumerate(schema.output_columns, 1)
        ],
    }


def _listed(column: Column) -> bool:
    return isinstance(column, Categorical | Ordinal | Coded)


def _values(number: int, column: Column, source: ColumnSource) -> dict[str, Any]:
    """Return the values of a column of categories, by their codes in the release."""
    place = f"values{number}"
    kinds = {"code": "sc:Integer", "label": "sc:Text"}
    kinds |= {"meaning": "sc:Text"} if source.labels else {}
    labels = column.labels()[: column.size - column.missing]
    return {
        "@type": "cr:RecordSet",
        "@id": place,
        "name": f"values of {column.name}",
        "description": f"The values of {column.name}, by their codes in the release.",
        "dataType": "sc:Enumeration",
        "key": {"@id": f"{place}/code"},
        "field": [
            {"@type": "cr:Field", "@id": f"{place}/{name}", "name": name, "dataType": kind}
            for name, kind in kinds.items()
        ],
        "data": [
            {f"{place}/{key}": value for key, value in zip(kinds, entry, strict=False)}
            for entry in ((code, t, source.labels.get(t, t)) for code, t in enumerate(labels))
        ],
    }


def _data_type(column: Column) -> str:
    if isinstance(column, Elapsed):
        return _data_type(column.moments)
    return {
        "boolean": "sc:Boolean",
        "integer": "sc:Integer",
        "coded": "sc:Integer",
        "real": "sc:Float",
        "date": "sc:Date",
        "timestamp": "sc:DateTime",
    }.get(column.kind, "sc:Text")


def _words(column: Column, source: ColumnSource) -> str:
    said = f"{source.title.rstrip('.')}. " if source.title else ""
    return said + _of_kind(column)


def _of_kind(column: Column) -> str:
    low, high = getattr(column, "low", None), getattr(column, "high", None)
    if isinstance(column, Elapsed):
        return f"A {column.moments.kind}: {low} to {high} ({column.unit}s) after {column.since}."
    said = [
        *([f"In {counted(column.size - column.missing, 'category')}"] if _listed(column) else []),
        *(["in order"] if isinstance(column, Ordinal) else []),
        *([f"from {low} to {high}"] if low is not None and high is not None else []),
        *(["values may be missing"] if column.missing else []),
    ]
    text = ", ".join([column.kind, *said])
    return f"{text[0].upper()}{text[1:]}."


def _promise(release: Release) -> Iterator[str]:
    """Yield sentences on what the release protects, and on what its rows are good for."""
    account = release.account
    yield (
        f"Synthetic rows, drawn from a model of noisy counts by margrave {release.versions['margrave']} (mechanism"
        f" {release.provenance.mechanism}). None is a real record, and one may equal a real one by chance."
    )
    if account.private:
        yield (
            f"The release satisfies differential privacy with epsilon = {account.epsilon:g} and delta ="
            f" {account.delta:g} for the unit: {account.unit}. It spent rho = {float(account.rho_spent):.6g} of"
            f" {float(account.rho_budget):.6g} (zero-concentrated differential privacy)."
        )
    else:
        yield "NOT PRIVATE: the noise came from a seeded source meant for tests. Do not publish this."
    weaknesses = (
        large_delta(account.delta, release.model.total),
        several_rows(release.schema, account),
    )
    yield from filter(None, (*weaknesses, account.left_out))
    yield (
        "Relations between columns that were not measured together carry no information. Standard errors and tests on"
        " the rows ignore the noise; the release has intervals that include it."
    )


def _context() -> dict[str, Any]:
    """Return the context of Croissant 1.0, as its specification has it."""
    own = (
        "citeAs", "column", "conformsTo:dct", "dataType:vocab", "dataBiases", "dataCollection", "examples:json",
        "extract", "field", "fileProperty", "fileObject", "fileSet", "format", "includes", "isLiveDataset", "jsonPath",
        "key", "md5", "parentField", "path", "personalSensitiveInformation", "recordSet", "references", "regex",
        "repeated", "replace", "separator", "source", "subField", "transform", "data:json",
        "equivalentProperty", "samplingRate",
    )  # fmt: skip
    found: dict[str, Any] = {
        "@language": "en",
        "@vocab": "https://schema.org/",
        "sc": "https://schema.org/",
        "cr": "http://mlcommons.org/croissant/",
        "rai": "http://mlcommons.org/croissant/RAI/",
        "dct": "http://purl.org/dc/terms/",
    }
    for word in own:
        term, _, kind = word.partition(":")
        found[term] = {
            "": f"cr:{term}",
            "dct": f"dct:{term}",
            "json": {"@id": f"cr:{term}", "@type": "@json"},
            "vocab": {"@id": f"cr:{term}", "@type": "@vocab"},
        }[kind]
    return found
