"""The public page of a release: one HTML text with everything inside, no script and no link to anything outside."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import NormalDist
from typing import Any

from margrave._card import counted
from margrave.account import Debit
from margrave.attack_risk import attack_risk
from margrave.ratios import percent, quotient
from margrave.release import ColumnNumber, Release
from margrave.release.beyond_bounds import (
    beyond_bounds_words,
    bounds_of_another_run_words,
    learned_bounds,
    values_beyond_words,
)
from margrave.release.coverage import pair_evidence
from margrave.release.diagnostics import merged_together, merged_words
from margrave.release.draws import MERGED
from margrave.release.numbers import clipping_remedy, headlines, numbers_of, open_ends_words
from margrave.report.charts import bars, heat, pair_map, risk
from margrave.report.heading import Heading
from margrave.report.templating import environment
from margrave.report.verdict import verdict
from margrave.report.views import (
    LEVEL,
    ColumnView,
    bound_views,
    column_views,
    doubtful_categories,
    has_rows,
    pair_views,
    posterior_view,
    price_view,
)
from margrave.report.wording import (
    all_measured,
    conditions,
    contradicted,
    guarantee,
    limits,
    named,
    nothing_asked,
    public_words,
    related,
    uncertain,
)
from margrave.schema.constraints import name_of
from margrave.transcript import Entry, PublicReading, PublicTotal

_MAX_ROWS = 2000
_PUBLIC_ENTRIES = PublicReading, PublicTotal


def render(release: Release, heading: Heading | None = None) -> str:
    """Return the page of a release.

    Args:
        release: The release.
        heading: Its title and where it comes from, in public words.

    Privacy:
        None spent: a function of the transcript, the model and public facts.
    """
    heading = Heading() if heading is None else heading
    facts, views = release.certificate(), column_views(release)
    numbers = numbers_of(release.schema, release.transcript, release.model, LEVEL)
    entries, debits = release.transcript.entries, release.account.debits
    account, found = release.account, verdict(release, numbers, views)
    return str(
        environment()
        .get_template("release.html")
        .render(
            heading=heading,
            facts_of_heading=_heading(heading, facts),
            facts=facts,
            weaknesses=[
                facts[key]
                for key in ("large_delta", "several_rows")
                if key in facts and facts[key] not in found.sentences
            ],
            level=LEVEL,
            verdict=found,
            alarms=_alarms(release, found.sentences),
            main_numbers=headlines(numbers),
            column_notes=_column_notes(release),
            model_words=_model_words(release),
            empty_codes=facts.get("empty_codes", ""),
            columns=_columns(release, views, numbers),
            pairs=_pairs(release, numbers),
            promise=guarantee(account, has_public_records=_public(facts) is not None),
            risk=risk(attack_risk(account.rho_budget, threshold_delta=account.threshold_delta)),
            limits=_limits(release, facts),
            public=_public(facts),
            tiles=_tiles(release, facts),
            steps=_steps(release),
            steps_left_out=max(len(entries) - _MAX_ROWS, 0),
            questions=counted(sum(not isinstance(e, _PUBLIC_ENTRIES) for e in entries), "question"),
            has_public_steps=any(isinstance(e, _PUBLIC_ENTRIES) for e in entries),
            left_out=account.left_out,
            bounds=_bounds(release),
            posterior=posterior_view(release),
            ledger={
                "spent": f"{float(account.rho_spent):.6g}",
                "left": f"{float(account.rho_budget - account.rho_spent):.6g}",
                "debits": [(d.what, _amount(d)) for d in debits[:_MAX_ROWS]],
                "left_out": max(len(debits) - _MAX_ROWS, 0),
            },
            certificate=json.dumps(facts, indent=2, ensure_ascii=False),
        )
    )


def _heading(heading: Heading, facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    stated = [
        ("Data set", heading.dataset),
        ("Office", heading.office),
        ("Date", heading.date),
        ("Mechanism", facts["mechanism"]["name"]),
        ("Privacy unit", facts["unit"]),
    ]
    return [(name, value) for name, value in stated if value]


def _alarms(release: Release, sentences: Sequence[str]) -> list[str]:
    if release.no_model:
        return []
    found = []
    if release.unmeasured_columns:
        found.append(nothing_asked(release.unmeasured_columns))
    if misfits := release.misfit:
        found.append(contradicted(misfits))
    return [text for text in found if text not in sentences]


def _model_words(release: Release) -> str:
    """Return what the bars of the model are, in words; empty without a model."""
    if release.no_model:
        return ""
    if has_rows(release):
        return "the model, which the synthetic rows follow"
    return "the model, from which no rows can be drawn"


def _column_notes(release: Release) -> list[str]:
    names = ", ".join(release.schema.ignore)
    ignored = f"Columns of the table that are not in the release: {names}." if names else ""
    learned = learned_bounds(release.schema)
    beyond = f"The bounds of some columns were learned. {values_beyond_words()}" if learned else ""
    to_learn = [c.name for c in release.schema.to_learn]
    unlearned = (
        f"No values were learned of {named(to_learn)}. The release has no numbers of"
        f" {'it' if len(to_learn) == 1 else 'them'}."
        if to_learn
        else ""
    )
    moved = [c.name for c in release.schema.columns if c.missing and c.outside == "missing"]
    as_missing = (
        f"Values outside the schema count as missing: {named(moved)}. The share of missing values includes them, and"
        " means and quantiles leave them out."
        if moved
        else ""
    )
    constraints = [name_of(c) for c, _ in release.schema.constraint_zeros]
    ruled_out = (
        f"The schema rules out combinations of values, and no synthetic row has one: {', '.join(constraints)}."
        if constraints and has_rows(release)
        else ""
    )
    return [note for note in (ignored, unlearned, as_missing, ruled_out, beyond) if note]


def _columns(
    release: Release, views: Sequence[ColumnView], numbers: Sequence[ColumnNumber]
) -> list[dict[str, Any]]:
    by_column: dict[str, list[ColumnNumber]] = {}
    for n in numbers:
        by_column.setdefault(n.column, []).append(n)
    learned = learned_bounds(release.schema)
    found = []
    for view in views:
        own = by_column[view.name]
        mean = next((n for n in own if n.statistic == "mean" and n.low is not None), None)
        remedy = (
            [clipping_remedy(release.schema, release.transcript, view.name)]
            if any(n.clipping for n in own)
            else []
        )
        found.append(
            {
                "name": view.name,
                "title": release.schema.source(view.name).title,
                "chart": bars(view),
                "note": f"{counted(len(view.labels), 'value')}, {_note(release, view)}",
                "mean": "" if mean is None else mean.words,
                "learned": learned.get(view.name, ""),
                "hidden": [
                    *beyond_bounds_words(release.schema, own, LEVEL),
                    *bounds_of_another_run_words(release.schema, [view.name]),
                    *open_ends_words(own),
                ],
                "doubts": [*uncertain(own), *remedy],
                "numbers": [n for n in own if n.low is not None and not n.is_of_category],
                "counts": _counts(view),
                "values": len(view.labels),
            }
        )
    return found


def _note(release: Release, view: ColumnView) -> str:
    if view.measured is not None:
        counts = "counts of the rows that were kept" if release.account.left_out else "real counts"
        return f"the {counts} within \N{PLUS-MINUS SIGN}{view.error:.3g} of the noisy ones"
    if view.name in release.unmeasured_columns:
        return "nothing was asked of it"
    return "not measured by itself"


def _counts(view: ColumnView) -> list[tuple[str, str, str]]:
    model, measured = (
        ["-"] * len(view.labels) if values is None else [f"{v:z,.0f}" for v in values]
        for values in (view.model, view.measured)
    )
    return list(zip(view.labels, model, measured, strict=True))[:_MAX_ROWS]


def _pairs(release: Release, numbers: Sequence[ColumnNumber]) -> dict[str, Any] | None:
    max_columns = 120  # of a map that a reader can still follow
    if not release.coverage.pairs:
        return None
    names = list(release.schema.domain)
    evidence = pair_evidence(release.schema.domain, release.transcript, release.provenance).kinds()
    together: dict[str, list[str]] = {name: [] for name in names}
    for one, other in combinations(names, 2):
        if evidence.get((one, other)) == "measured":
            together[one].append(other)
            together[other].append(one)
    merged = merged_together(release.schema.domain, release.transcript)
    rare = f"{MERGED}: {merged_words(release.schema, merged)}. No synthetic row shows how they differ in other columns."
    return {
        "notices": [*(related(release.coverage) or [all_measured()]), rare]
        if merged
        else related(release.coverage),
        "map": pair_map(names, evidence) if len(names) <= max_columns else "",
        "listed": [(name, ", ".join(others) or "none") for name, others in together.items()],
        "cards": [
            {
                "names": v.names,
                "chart": heat(v),
                "information": v.information,
            }
            for v in pair_views(release, doubtful_categories(numbers))
        ],
    }


def _limits(release: Release, facts: Mapping[str, Any]) -> list[str]:
    passed = conditions(facts["preconditions"], len(release.schema.columns))
    cited = public_words(facts["schema"].get("sources", {}))
    return [*facts.get("vouched", []), passed, *cited, *limits(release.account)]


def _public(facts: Mapping[str, Any]) -> dict[str, str] | None:
    public = facts["mechanism"]["public"]
    if public is None:
        return None
    own = "They are the private records, whose other columns alone are protected: these are"
    whose = own if public["same_records"] else "They are"
    words = (
        f"The release rests on a public table too: {public['rows']} records of {', '.join(public['columns'])}."
        f" {whose} not protected. That they are public is the word of whoever made the release:"
    )
    return {"words": words, "attestation": public["attestation"], "sha256": public["sha256"]}


def _tiles(release: Release, facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    rho, transcript = facts["rho"], release.transcript
    share = quotient(rho["spent"]["decimal"], rho["budget"]["decimal"])
    choices = len(transcript.selections) + len(transcript.query_selections)
    deviation = transcript.total_deviation()
    records = "records" if facts["size_is_public"] else "records, estimated"
    size = "unknown" if math.isinf(deviation) else f"{facts['size']:,.0f}"
    if 0.0 < deviation < math.inf:
        records += f", with a {percent(LEVEL, 'g')} interval"
        size += f" ± {math.ceil(NormalDist().inv_cdf((1.0 + LEVEL) / 2.0) * deviation):,}"
    return [
        ("epsilon", f"{facts['epsilon']:.4g}"),
        ("delta", f"{facts['delta']:.3g}"),
        (f"rho spent, {percent(share, '.4g')} of the budget", f"{rho['spent']['decimal']:.4g}"),
        (records, size),
        ("columns", str(facts["schema"]["columns"])),
        ("noisy marginals", str(len(transcript.measurements))),
        ("noisy single counts", str(len(transcript.answers))),
        ("private selections", str(choices)),
        ("numbers in the model", f"{sum(a.size for a in release.model.state().arrays.values()):,}"),
    ]


def _steps(release: Release) -> list[dict[str, Any]]:
    entries = release.transcript.entries
    largest = float(max((e.describe().rho for e in entries), default=0))
    budget = float(release.account.rho_budget)
    return [_step(entry, largest, budget) for entry in entries[:_MAX_ROWS]]


def _step(entry: Entry, largest: float, budget: float) -> dict[str, Any]:
    found = entry.describe()
    rho = float(found.rho)
    return {
        "what": found.what,
        "size": found.size,
        "noise": found.noise,
        "of_budget": percent(quotient(rho, budget)),
        "width": f"{100 * rho / largest if largest else 0.0:.1f}",
    }


def _bounds(release: Release) -> dict[str, Any] | None:
    views = bound_views(release)
    if not views:
        return None
    informative = [b for b in views if b.tells]
    words = (
        f"Of the {counted(len(views), 'marginal')} of the workload, and of fewer columns,"
        f" {f'{len(informative):,}' if informative else 'none'}"
        f" {'have' if len(informative) > 1 else 'has'} a bound below 2."
    )
    if 0 < len(informative) < len(views):
        others = "marginal" if len(views) - len(informative) == 1 else "marginals"
        words += f" No useful bound exists for the other {others}."
    if views[0].share is None:
        words += f" The first of them: {views[0].how}."
    return {
        "words": words,
        "rows": informative[:_MAX_ROWS],
        "rows_left_out": max(len(informative) - _MAX_ROWS, 0),
        "price": _price(release),
    }


def _price(release: Release) -> str:
    price = price_view(release)
    if price is None or price.rows is None or price.share is None:
        return ""
    without = (
        f", {price.unbounded} of which have no bound and count as 2," if price.unbounded else ""
    )
    return (
        f"With probability {price.level:g} the mean error of the workload's"
        f" {counted(price.marginals, 'marginal')}{without} is at most {price.error:.3g} (0 to 2)."
        f" That is what {counted(price.rows, 'real record')} drawn at random,"
        f" {percent(price.share)} of all, would be off by if they were published as they are, without any privacy."
        " Bounds are several times larger than errors, so the release is usually worth many times as many records."
    )


def _amount(debit: Debit) -> str:
    delta = f", delta {float(debit.delta):.6g}" if debit.delta else ""
    return f"{float(debit.rho):.6g}{delta}"
