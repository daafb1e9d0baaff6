"""The steps that spend: the budget, what will be published, the run, its outputs, and the ledger."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from margrave.accounting.ledger_state import epsilon_or_zero
from margrave.accounting.strength import WEAK_DELTA, weaknesses
from margrave.errors import InputError, MargraveError
from margrave.learning_stage import rows_to_learn
from margrave.mechanisms.parts.checks import publics_of
from margrave.planning import Plan
from margrave.report.heading import Heading
from margrave.run import mechanism_of, settled_unit
from margrave.schema import ColumnSource, Date, Integer, Learn, Real, Timestamp
from margrave.schema.column import Column, abbreviate
from margrave.schema.sources import code_words
from margrave.studio.choices import MechanismChoice, mechanism_lines, policy_words
from margrave.studio.guard import Guard
from margrave.studio.job import JobFolder, JobStatus, row_files
from margrave.studio.rendering import Site, dataset_line, form_of, go, go_whole, number, whole
from margrave.unit import size_is_public


class SpendingPages:
    """The last three steps, and the ledger.

    Args:
        site: The pages of the project.
        stop: Stops the server.
    """

    def __init__(self, site: Site, stop: Callable[[], None]) -> None:
        self._site, self._project, self._stop = site, site.project, stop

    def routes(self) -> list[Route]:
        """Return the routes of these pages."""
        return [
            Route("/budget", self.budget),
            Route("/budget", self.settle_budget, methods=["POST"]),
            Route("/budget/plan", self.plan, methods=["POST"]),
            Route("/confirm", self.confirm),
            Route("/confirm/check", self.check),
            Route("/run", self.latest),
            Route("/run", self.begin, methods=["POST"]),
            Route("/run/{number:int}", self.run),
            Route("/run/{number:int}/progress", self.progress),
            Route("/run/{number:int}/refusal", self.refusal),
            Route("/run/{number:int}/resume", self.resume, methods=["POST"]),
            Route("/run/{number:int}/close", self.close, methods=["POST"]),
            Route("/run/{number:int}/compare", self.compare, methods=["POST"]),
            Route("/run/{number:int}/compare", self.compare),
            Route("/run/{number:int}/private.html", self.private_report),
            Route("/run/{number:int}/{name:str}", self.file),
            Route("/ledger", self.ledger),
            Route("/stop", self.stop, methods=["POST"]),
        ]

    # The budget.

    def budget(self, request: Request, error: MargraveError | None = None) -> Response:
        """Show the slider and the plan."""
        if closed := self._site.closed("budget"):
            return closed
        known, planned, kinds = self._project.account(), self._planned(), mechanism_lines()
        refusal = planned.pop("error", None)
        return self._site.page(
            "budget.html",
            "budget",
            error=error or refusal,
            fingerprint=self._project.fingerprint("budget"),
            epsilons=epsilons(),
            position=_position(self._site.settings.epsilon),
            account=dataset_line(known) if known is not None and known.runs else None,
            mechanisms=[
                ("Without a public table", [k for k in kinds if not k["public"]]),
                ("With a public table", [k for k in kinds if k["public"]]),
            ],
            public=self._public_as_named(),
            **planned,
        )

    def _public_as_named(self) -> str:
        """Return the public table as a person named it, from the folder of the listings."""
        named, root = self._site.settings.choice.public, f"{self._project.root}{os.sep}"
        return named.removeprefix(root)

    def plan(self, request: Request) -> Response:
        """Keep the budget of the form, and return the plan."""
        if self._site.closed("budget"):
            return go_whole("/")
        try:
            self._site.check_form(request, "budget")
            self._keep_budget(request)
        except MargraveError as error:
            return self._site.page("_plan.html", error=error, plan=None)
        return self._site.page("_plan.html", **self._planned())

    def settle_budget(self, request: Request) -> Response:
        """Keep the budget, and go on if a run with it would begin."""
        if closed := self._site.closed("budget"):
            return closed
        self._site.check_form(request, "budget")
        try:
            self._keep_budget(request)
            plan = self._project.plan()
            if plan.lacks_public:
                raise InputError(
                    f"The mechanism {plan.mechanism} needs a public table.",
                    remedy="Name its file under More choices, or choose another mechanism.",
                )
            self._project.check_room()
        except MargraveError as error:
            return self.budget(request, error)
        self._project.change(reached="confirm")
        return go("/confirm")

    def _keep_budget(self, request: Request) -> None:
        form, choices, cap = form_of(request), epsilons(), self._site.settings.cap_epsilon
        place = whole(form.get("epsilon", ""), "The place on the slider", 0, len(choices) - 1)
        self._project.change(
            epsilon=choices[place],
            rows=whole(form.get("rows", ""), "The number of rows", 1, 10**12),
            delta=number(form.get("delta", ""), "Delta", 1e-300, WEAK_DELTA),
            cap_epsilon=number(form.get("cap_epsilon", str(cap)), "The cap", 0.001, 1e4),
            choice=self._choice(form),
            reached="budget",
        )

    def _choice(self, form: dict[str, str]) -> MechanismChoice:
        public = form.get("public", "").strip()
        return MechanismChoice(
            name=form.get("mechanism", ""),
            public=self._project.path_of(public) if public else "",
            attestation=form.get("attestation", "").strip(),
            columns=form.get("public_columns", "").strip(),
            same_records="same_records" in form,
        )

    def _planned(self) -> dict[str, Any]:
        try:
            run, plan = self._project.planned(), self._project.plan()
        except MargraveError as error:
            return {"plan": None, "error": error}
        warnings = weaknesses(run.budget)
        unit = settled_unit(run.schema, run.unit)
        if hiding := rows_to_learn(run.schema, run.budget, unit, plan.rows):
            warnings.append(hiding)
        return {
            "plan": plan,
            "warnings": warnings,
            "public_table": publics_of(mechanism_of(run.mechanism)),
            "verdicts": [v for n in plan.noise if (v := n.verdict(plan.rows)) is not None],
            "picture": picture(plan),
        }

    # The facts that a run publishes.

    def confirm(self, request: Request, error: MargraveError | None = None) -> Response:
        """Show what a run publishes and what it costs."""
        if closed := self._site.closed("confirm"):
            return closed
        self._project.check_dataset()
        run, schema = self._project.planned(), self._project.schema()
        cap, left = self._project.room()
        account = self._project.account()
        after = max(left - run.budget.rho, left * 0)
        return self._site.page(
            "confirm.html",
            "confirm",
            error=error,
            fingerprint=self._project.fingerprint("confirm"),
            columns=[_published(c, schema.sources) for c in schema.columns],
            schema=schema,
            size_is_public=size_is_public(self._site.settings.unit),
            unit=str(run.unit),
            mechanism=type(run.mechanism).__name__,
            use=mechanism_of(run.mechanism).use,
            gives_records=mechanism_of(run.mechanism).gives_records,
            public_table=publics_of(mechanism_of(run.mechanism)),
            budget=run.budget,
            number=self._project.latest() + 1,
            cap=cap,
            left=left,
            left_epsilon=epsilon_or_zero(left, cap.conversion_delta),
            after=after,
            after_epsilon=epsilon_or_zero(after, cap.conversion_delta),
            earlier=len(account.runs) if account is not None else 0,
        )

    def check(self, request: Request) -> Response:
        """Return the check of the table against the schema, once there is one."""
        if self._site.closed("confirm"):
            return go_whole("/")
        finding = self._project.check()
        return self._site.page("_check.html", finding=finding, error=finding.error)

    def begin(self, request: Request) -> Response:
        """Begin the run that the page showed. A second press, or another tab, finds the same run."""
        form = form_of(request)
        wanted = whole(form.get("number", ""), "The number of the run", 1, 10**6)
        if wanted > self._project.latest():
            if closed := self._site.closed("confirm"):
                return closed
            words = {k: form.get(k, "").strip() for k in ("title", "office", "dataset")}
            try:
                Heading(title=words["title"], office=words["office"], dataset=words["dataset"])
            except MargraveError as error:
                return self.confirm(request, error)
            self._project.change(**words)
            if "agreed" not in form:
                unticked = InputError(
                    "The box is not ticked.", remedy="Tick it if all of the above may be published."
                )
                return self.confirm(request, unticked)
        try:
            self._project.begin(wanted, form.get("fingerprint", ""))
        except MargraveError as error:
            return self.confirm(request, error)
        self._project.change(reached="run")
        return go(f"/run/{wanted}")

    # The run.

    def latest(self, request: Request) -> Response:
        """Go to the latest run."""
        number = self._project.latest()
        return go(f"/run/{number}" if number else f"/{self._site.settings.reached}")

    def run(self, request: Request, error: MargraveError | None = None) -> Response:
        """Show the progress of a run, or its outputs."""
        job = self._job(request)
        if job is None:
            return go("/ledger")
        status = job.status()
        self._project.findings.forget("refusal")
        template = "result.html" if status.state == "released" else "run.html"
        return self._site.page(
            template,
            "run",
            error=error,
            number=int(request.path_params["number"]),
            status=status,
            order=job.order,
            can_drop=self._can_drop(job, status),
            has_begun=status.state in ("running", "released") or job.has_begun(),
            has_answers=(job.path / "answers.margrave").is_file(),
            row_files=row_files(),
            finding=self._project.refusal(job) if _is_refused(status) else None,
        )

    def refusal(self, request: Request) -> Response:
        """Return why the table of a run is refused, once it is read again."""
        job = self._job(request)
        if job is None or not _is_refused(job.status()):
            return go_whole("/ledger")
        number = int(request.path_params["number"])
        return self._site.page("_refusal.html", number=number, finding=self._project.refusal(job))

    @staticmethod
    def _can_drop(job: JobFolder, status: JobStatus) -> bool:
        """Return True if the run can go on without the columns that the noise hides."""
        hidden = status.outcome.get("hidden", ())
        return bool(hidden) and len(hidden) < len(job.schema().columns)

    def progress(self, request: Request) -> Response:
        """Return the progress of a run; once it ends, the way to its page."""
        job, number = self._job(request), int(request.path_params["number"])
        if job is None:
            return go_whole("/ledger")
        status = job.status()
        if status.state != "running":
            return go_whole(f"/run/{number}")
        return self._site.page("_progress.html", number=number, status=status)

    def resume(self, request: Request) -> Response:
        """Go on with a run."""
        number = int(request.path_params["number"])
        if self._job(request) is None:
            return go("/ledger")
        self._project.resume(number, form_of(request).get("unlearnable", "stop"))
        return go(f"/run/{number}")

    def close(self, request: Request) -> Response:
        """Close a run that ended early. Its answers are kept."""
        number = int(request.path_params["number"])
        if self._job(request) is None:
            return go("/ledger")
        self._project.close(number)
        return go(f"/run/{number}")

    def compare(self, request: Request) -> Response:
        """Return the comparison of the rows with a release, once there is one."""
        job = self._job(request)
        if job is None or job.status().state != "released":
            return go_whole("/ledger")
        finding = self._project.comparison(job)
        number = int(request.path_params["number"])
        return self._site.page("_compare.html", number=number, finding=finding, error=finding.error)

    def private_report(self, request: Request) -> Response:
        """Return the private report of a comparison that was made. It is in memory only."""
        job = self._job(request)
        if job is None or job.status().state != "released":
            return go("/ledger")
        found = self._project.comparison(job).found
        if found is None:
            return go(f"/run/{request.path_params['number']}")
        headers = {"content-security-policy": Guard.report_policy}
        return HTMLResponse(found["html"], headers=headers)

    async def file(self, request: Request) -> Response:
        """Return an output of a run. Its rows in another format are made when they are first requested."""
        job, name = self._job(request), request.path_params["name"]
        missing = PlainTextResponse("There is no such file.", 404)
        if job is None or name not in {*job.outputs, *row_files()}:
            return missing
        if job.can_make(name) and (error := (await self._project.make_rows(job, name)).error):
            number, form = int(request.path_params["number"]), row_files()[name]
            return self._site.page(
                "rows_refused.html", "run", error=error, code=422, number=number, format=form
            )
        if not (job.path / name).is_file():
            return missing
        if name == "report.html":
            policy = {"content-security-policy": Guard.report_policy}
            return FileResponse(job.path / name, media_type="text/html", headers=policy)
        stem = job.order.table_name.partition(".")[0] or "margrave"
        kind = job.outputs.get(name, "application/octet-stream")
        return FileResponse(job.path / name, media_type=kind, filename=f"{stem}-synthetic-{name}")

    def _job(self, request: Request) -> JobFolder | None:
        try:
            return self._project.job(int(request.path_params["number"]))
        except MargraveError:
            return None

    # The ledger, and the end.

    def ledger(self, request: Request) -> Response:
        """Show the ledger."""
        error = None
        try:
            self._project.check_ledger()
        except InputError as lacking:
            error = lacking
        return self._site.page(
            "ledger.html",
            error=error,
            datasets=[dataset_line(d) for d in self._project.datasets()],
            chosen=self._project.chosen_dataset(),
            orders=[(n, self._project.job(n).order) for n in reversed(self._project.runs())],
            file=self._project.ledger,
        )

    def stop(self, request: Request) -> Response:
        """Stop the server. A run goes on."""
        self._stop()
        return self._site.page("stopped.html")


def _is_refused(status: JobStatus) -> bool:
    return status.state == "failed" and bool(status.outcome.get("refused"))


def epsilons() -> tuple[float, ...]:
    """Return the places of the slider."""
    return (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0)


def _position(epsilon: float) -> int:
    choices = epsilons()
    return min(range(len(choices)), key=lambda i: abs(choices[i] - epsilon))


def picture(plan: Plan) -> dict[str, Any]:
    """Return an invented column with the noise of a plan.

    The counts are shares of the guess of rows, the same for every table. The noise of the picture is seeded: it shows
    the scale and protects nothing.
    """
    shares = np.array([0.27, 0.22, 0.17, 0.12, 0.09, 0.07, 0.04, 0.02])
    standard_deviations = 1.96
    scale = max((n.scale for n in plan.noise), default=0.0)
    counts = shares * plan.rows
    return {
        "labels": [f"group {chr(ord('A') + i)}" for i in range(len(shares))],
        "counts": counts,
        "noisy": counts + scale * np.random.default_rng(7).standard_normal(len(shares)),
        "error": standard_deviations * scale,
    }


def _published(column: Column, sources: Any) -> dict[str, str]:
    source = sources.get(column.name)
    if isinstance(column, Learn):
        return {
            "name": column.name,
            "kind": column.kind,
            "values": "learned under the budget",
            "outside": policy_words()[column.outside],
            "cite": "",
        }
    cite = source.cite if source is not None else ""
    values = abbreviate(code_words(column, source or ColumnSource()))
    if isinstance(column, Integer | Real | Date | Timestamp):
        values = f"{column.low} to {column.high}"
        if column.edges:
            values += f", bin edges {', '.join(map(str, column.edges))}"
        if column.missing:
            values += ", (missing)"
    if source is not None and source.missing_codes:
        values += f" for {', '.join(source.missing_codes)}"
    return {
        "name": column.name,
        "kind": column.kind,
        "values": values,
        "outside": policy_words()[column.outside],
        "cite": cite,
    }
