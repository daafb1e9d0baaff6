"""The steps that describe a table: the table, its columns, the unit of privacy, the purposes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from margrave._io import files_of
from margrave.accounting.ledger_checks import similar_name
from margrave.errors import InputError, MargraveError
from margrave.formula.nodes import ColumnName, written
from margrave.profiling.answers import DraftAnswer, answered, doubts_header, ways_of
from margrave.purpose_analyses import checked_purposes
from margrave.schema import Learn, Schema
from margrave.schema.column import Column
from margrave.schema.sources import with_labels
from margrave.studio.choices import policy_words
from margrave.studio.findings import Finding
from margrave.studio.project import key_of, questions_of
from margrave.studio.rendering import (
    Site,
    dataset_line,
    form_of,
    go,
    go_whole,
    remark_on_page,
    whole,
)


class DescribingPages:
    """The first four steps.

    Args:
        site: The pages of the project.
    """

    def __init__(self, site: Site) -> None:
        self._site, self._project = site, site.project

    def routes(self) -> list[Route]:
        """Return the routes of these pages."""
        return [
            Route("/table", self.table),
            Route("/table", self.choose, methods=["POST"]),
            Route("/columns", self.columns),
            Route("/columns", self.settle_columns, methods=["POST"]),
            Route("/columns/save", self.save_columns, methods=["POST"]),
            Route("/columns/wait", self.wait),
            Route("/unit", self.unit),
            Route("/unit", self.settle_unit, methods=["POST"]),
            Route("/purposes", self.purposes),
            Route("/purposes", self.change_purposes, methods=["POST"]),
        ]

    # The table.

    def table(self, request: Request, error: MargraveError | None = None) -> Response:
        """Show the path and a listing."""
        root, max_listed = self._project.root, 500
        at = self._inside(request.query_params.get("at", ""))
        try:
            entries = sorted(at.iterdir(), key=lambda p: (p.is_file(), p.name.lower()))
        except OSError:
            entries = []
            error = error or InputError(
                f"The folder {at} cannot be listed.", remedy="Pick another, or write a path."
            )
        hidden = {self._project.folder, *(p for p in entries if not _is_listed(p.name))}
        shown = [p for p in entries if p not in hidden]
        return self._site.page(
            "table.html",
            "table",
            error=error,
            at=str(at.relative_to(root)) if at != root else "",
            root=root.name,
            up=str(at.parent.relative_to(root)) if at != root else None,
            folders=[(p.name, str(p.relative_to(root))) for p in shown if p.is_dir()][:max_listed],
            files=[(p.name, str(p.relative_to(root))) for p in shown if p.is_file()][:max_listed],
        )

    def _inside(self, at: str) -> Path:
        root = self._project.root
        try:
            found = (root / at).resolve()
            inside = found.is_relative_to(root.resolve()) and found.is_dir()
        except (OSError, ValueError):
            inside = False
        return root / found.relative_to(root.resolve()) if inside else root

    def choose(self, request: Request) -> Response:
        """Take a table, and begin to read it."""
        text = form_of(request).get("table", "").strip()
        try:
            named = self._project.path_of(text)
            self._check_there(named)
        except MargraveError as error:
            return self.table(request, error)
        self._project.save(self._site.settings.of_table(named))
        self._project.findings.forget("read")
        self._project.reading()
        return go("/columns")

    def _check_there(self, named: str) -> None:
        try:
            there = any(map(os.path.exists, files_of(named)))
        except OSError:
            there = False
        if not there:
            what = "file in the folder" if os.path.isdir(named) else "file"
            raise InputError(
                f"There is no {what} {named}.",
                remedy="Look at its spelling, or pick one below. Your answers are as they were.",
            )

    # The columns.

    def columns(self, request: Request, error: MargraveError | None = None) -> Response:
        """Show a card for each column, once the table is read."""
        if closed := self._site.closed("columns"):
            return closed
        finding = self._project.reading()
        if finding.found is None:
            return self._waiting(finding, "columns")
        drafted = self._project.draft(finding.found)
        remarks = drafted.remarks.get("", "").splitlines()
        return self._site.page(
            "columns.html",
            "columns",
            error=error,
            fingerprint=self._project.fingerprint("columns"),
            found=finding.found,
            cards=[self._card(i, drafted, finding.found) for i in range(len(drafted.columns))],
            notes=[note for line in remarks[1:] if (note := remark_on_page(line))],
            doubts_header=doubts_header(drafted),
            questions=[
                (q, self._site.settings.relations.get(key_of(q), ""))
                for q in questions_of(finding.found)
            ],
        )

    def _waiting(self, finding: Finding, step: str) -> Response:
        if finding.error is None:
            return self._site.page("waiting.html", step)
        self._project.findings.forget("read")
        return self._site.page("failed.html", "columns", error=finding.error, code=422)

    def wait(self, request: Request) -> Response:
        """Return nothing while the table is read, then the way to the page that waits."""
        if self._project.reading().is_open:
            return Response(status_code=204)
        return go_whole("/unit" if request.query_params.get("step") == "unit" else "/columns")

    def _card(self, i: int, drafted: Schema, found: dict[str, Any]) -> dict[str, Any]:
        column = drafted.columns[i]
        ways = ways_of(column)
        answer = self._site.settings.answers.get(column.name, DraftAnswer(way=ways[0]))
        remark = remark_on_page(drafted.remarks.get(column.name, ""))
        histogram, source = found["histograms"][column.name], drafted.source(column.name)
        return {
            "number": i,
            "name": column.name,
            "kind": column.kind,
            "is_number": not isinstance(column, Learn) or column.is_number,
            "remark": remark,
            "ways": ways,
            "answer": answer,
            "policies": policies_of(column),
            "more": bool(answer.edges or answer.outside),
            "has_codes": bool(answer.missing_codes or "codes that mean missing" in remark),
            "title": source.title,
            "labels": found["labels"].get(column.name, []),
            "histogram": {**histogram, "labels": with_labels(histogram["labels"], source)},
        }

    def save_columns(self, request: Request) -> Response:
        """Keep the answers, and return what is wrong with one of them."""
        finding = self._project.reading()
        if finding.found is None:
            return go_whole("/columns")
        try:
            self._site.check_form(request, "columns")
        except MargraveError as older:
            return self._site.page("_status.html", error=older, lacking="")
        self._keep_columns(form_of(request), finding.found)
        drafted = self._project.draft(finding.found)
        field = request.query_params.get("column", "")
        if not field.isdecimal() or int(field) >= len(drafted.columns):
            return self._site.page("_status.html", lacking="")
        column = drafted.columns[int(field)]
        if lacking := self._site.settings.answers[column.name].lacks(column):
            return self._site.page("_status.html", lacking=lacking)
        error = None
        try:
            answered(column, self._site.settings.answers[column.name])
        except MargraveError as wrong:
            error = wrong
        return self._site.page("_status.html", error=error, lacking="")

    def settle_columns(self, request: Request) -> Response:
        """Keep the answers, and go on if they make a schema."""
        if closed := self._site.closed("columns"):
            return closed
        finding = self._project.reading()
        if finding.found is None:
            return go("/columns")
        self._site.check_form(request, "columns")
        self._keep_columns(form_of(request), finding.found)
        try:
            self._project.schema_of_answers(finding.found)
        except MargraveError as error:
            return self.columns(request, error)
        self._project.change(reached="unit")
        return go("/unit")

    def _keep_columns(self, form: dict[str, str], found: dict[str, Any]) -> None:
        drafted = self._project.draft(found)
        answers = {
            c.name: DraftAnswer(
                way=form.get(f"{i}.way", ways_of(c)[0]),
                low=form.get(f"{i}.low", "").strip(),
                high=form.get(f"{i}.high", "").strip(),
                categories=form.get(f"{i}.categories", "").strip(),
                other=f"{i}.other" in form,
                missing=f"{i}.missing" in form,
                cite=form.get(f"{i}.cite", "").strip(),
                missing_codes=form.get(f"{i}.missing_codes", "").strip(),
                edges=form.get(f"{i}.edges", "").strip(),
                outside=form.get(f"{i}.outside", ""),
            )
            for i, c in enumerate(drafted.columns)
        }
        fields = {
            key_of(q): form.get(f"relation.{i}", "").strip()
            for i, q in enumerate(questions_of(found))
        }
        relations = {q: answer for q, answer in fields.items() if answer}  # a question is a fact
        has_header = not doubts_header(drafted) or "header" in form
        self._project.change(
            answers=answers, relations=relations, has_header=has_header, reached="columns"
        )

    # The unit of privacy.

    def unit(self, request: Request, error: MargraveError | None = None) -> Response:
        """Show the choice between rows and persons."""
        if closed := self._site.closed("unit"):
            return closed
        finding = self._project.reading()
        if finding.found is None:
            return self._waiting(finding, "unit")
        drafted, settings = self._project.draft(finding.found), self._site.settings
        names = [n for n in drafted.table_names if n != drafted.person] + list(drafted.ignore)
        if drafted.person is not None:
            names.insert(0, drafted.person)
        form = form_of(request)
        return self._site.page(
            "unit.html",
            "unit",
            error=error,
            fingerprint=self._project.fingerprint("unit"),
            datasets=[dataset_line(d) for d in self._project.datasets()],
            chosen=form.get("ledger_dataset", self._project.chosen_dataset()),
            new_dataset=form.get("new_dataset", self._new_name()),
            drafted_person=drafted.person,
            protects=settings.protects or ("rows" if drafted.person is None else "persons"),
            person=settings.person or drafted.person or "",
            names=names,
            persons=finding.found["persons"],
        )

    def _new_name(self) -> str:
        """Return a name for a new data set of the ledger; "" if the ledger has it already."""
        name = self._site.settings.ledger_dataset or self._site.settings.table_name
        return "" if similar_name(name, [d.dataset for d in self._project.datasets()]) else name

    def settle_unit(self, request: Request) -> Response:
        """Keep the unit of privacy, write the schema, and go on."""
        if closed := self._site.closed("unit"):
            return closed
        finding, form = self._project.reading(), form_of(request)
        if finding.found is None:
            return go("/unit")
        self._site.check_form(request, "unit")
        persons = form.get("protects") == "persons"
        try:
            if persons and not form.get("person"):
                raise InputError(
                    "No person ID column is named.", remedy="Choose the column, or protect rows."
                )
            rows = self._site.settings.max_rows
            if persons:
                rows = whole(form.get("max_rows", "5"), "The number of rows per person", 1, 10**6)
            self._project.change(
                protects="persons" if persons else "rows",
                person=form.get("person", "") if persons else "",
                max_rows=rows,
                replaces=form.get("count") == "public",
                reached="unit",
            )
            name = form.get("new_dataset", self._site.settings.table_name).strip()
            self._project.choose_dataset(form.get("ledger_dataset"), name)
            self._project.check_dataset()
            made = self._project.schema_of_answers(finding.found)
            made.save(self._project.schema_file, overwrite=True)
        except MargraveError as error:
            return self.unit(request, error)
        self._project.change(reached="purposes")
        return go("/purposes")

    # The purposes.

    def purposes(self, request: Request, error: MargraveError | None = None) -> Response:
        """Show the purposes, and a form for another."""
        if closed := self._site.closed("purposes"):
            return closed
        schema = self._project.schema()
        return self._site.page(
            "purposes.html",
            "purposes",
            error=error,
            fingerprint=self._project.fingerprint("purposes"),
            lacking=_lacking(self._site.settings.purposes, schema),
            names=[c.name for c in schema.columns],
            example=_example(schema),
            form=form_of(request),
        )

    def change_purposes(self, request: Request) -> Response:
        """Add or remove a purpose, or go on."""
        if closed := self._site.closed("purposes"):
            return closed
        self._site.check_form(request, "purposes")
        form, kept = form_of(request), self._site.settings.purposes
        if form.get("remove", "").isdecimal():
            i = int(form["remove"])
            self._project.change(purposes=kept[:i] + kept[i + 1 :], reached="purposes")
            return go("/purposes")
        schema = self._project.schema()
        try:
            text = form.get("text", "").strip() or _purpose(form)
            if text:
                checked_purposes([text], schema)
            elif "add" in form:
                raise InputError(
                    "No purpose is chosen.", remedy="Choose a statistic, or write one in words."
                )
            if "add" not in form and (lacking := _lacking(kept, schema)):
                raise InputError(
                    f"The purpose {next(iter(lacking))!r} does not fit the columns.",
                    remedy="Remove the purpose, or change its columns on the page Columns.",
                )
        except MargraveError as error:
            return self.purposes(request, error)
        if text and text not in kept:
            self._project.change(purposes=(*kept, text), reached="purposes")
        if "add" in form:
            return go("/purposes")
        self._project.change(reached="budget")
        return go("/budget")


def _is_listed(name: str) -> bool:
    """Return True if a file is not hidden, and its name can be sent to a browser."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return not name.startswith(".")


def policies_of(column: Column) -> list[tuple[str, str]]:
    """Return the out-of-range policies of stated values in words, the usual one first."""
    words, others = policy_words(), ["missing", "refuse"]
    usual = words["clip"].capitalize()
    if isinstance(column, Learn) and not column.is_number:
        usual, others = "As the boxes say", ["other", *others]
    return [("", usual), *((name, words[name].capitalize()) for name in others)]


def _example(schema: Schema) -> str:
    """Return a purpose of these columns: a regression of a number, or a share."""
    names = [written(ColumnName(c.name)) for c in schema.columns]
    for name, column in zip(names, schema.columns, strict=True):
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            others = [other for other in names if other != name]
            return f"ols {name} ~ {others[-1]}" if others else f"mean {name}"
    return f"share {names[0]}"


def _lacking(purposes: tuple[str, ...], schema: Schema) -> dict[str, str]:
    """Return the purposes that the columns of a schema cannot serve, each with the reason."""
    found = {}
    for text in purposes:
        try:
            checked_purposes([text], schema)
        except MargraveError as error:
            found[text] = error.message
    return found


def _purpose(form: dict[str, str]) -> str:
    kind, outcome, by = (form.get(k, "") for k in ("kind", "outcome", "by"))
    if not kind:
        return ""
    if kind in ("ols", "logistic", "correlation") and by in ("", outcome):
        raise InputError(
            f"A regression or correlation of {outcome!r} needs a second column.",
            remedy="Choose one under “By, or with”.",
        )
    if kind in ("ols", "logistic"):
        return f"{kind} {written(ColumnName(outcome))} ~ {written(ColumnName(by))}"
    if kind == "correlation":
        return f"correlation {outcome}, {by}"
    if kind == "count":
        return f"count by {outcome}" + (f", {by}" if by else "")
    return f"{kind} {outcome}" + (f" by {by}" if by else "")
