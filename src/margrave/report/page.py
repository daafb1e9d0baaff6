"""The page: one HTML text with everything inside, no script and no link to anything outside."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from margrave.account import Debit
from margrave.bounds import Bound
from margrave.content_policy import CONTENT_POLICY
from margrave.ratios import percent, quotient
from margrave.release import ColumnNumber, Release
from margrave.release.numbers import numbers_of
from margrave.report.charts import bars, heat
from margrave.report.css import STYLE
from margrave.report.views import (
    LEVEL,
    bound_views,
    column_views,
    pair_views,
    posterior_view,
    price_view,
)
from margrave.report.wording import (
    conditions,
    contradicted,
    guarantee,
    limits,
    nothing_asked,
    public_words,
    related,
    uncertain,
)
from margrave.transcript import (
    Entry,
)

_MAX_ROWS = 2000


def render(release: Release) -> str:
    """Return the page of a release.

    **Privacy:** none spent: a function of the transcript, the model and public facts.
    """
    facts = release.certificate()
    body = [
        _head(release, facts),
        _section(
            "The promise",
            [_paragraph(p) for p in guarantee(release.account)] + [_limits(release, facts)],
        ),
        _public(facts),
        _purposes(release),
        _section("Measurements", [_steps(release)]),
        _section(
            "Columns",
            [
                _key(),
                _left_out(release),
                _ignored(release),
                _unasked(release),
                _contradicted(release),
                _paragraph(facts["empty_codes"]) if "empty_codes" in facts else "",
                _columns(release),
            ],
        ),
        _pairs(release),
        _bounds(release),
        _posterior(release),
        _section("The ledger", [_ledger(release)]),
        _section("The certificate", [_certificate(facts)]),
    ]
    title = f"Release report: {facts['mechanism'].get('name', 'margrave')}"
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n{CONTENT_POLICY}\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(b for b in body if b)
        + f"\n<footer>Written by margrave {escape(str(facts['versions'].get('margrave', '?')))} from the release alone."
        " Nothing here was computed from the rows.</footer>\n</main>\n</body>\n</html>\n"
    )


def _head(release: Release, facts: dict[str, Any]) -> str:
    rho = facts["rho"]
    share = quotient(rho["spent"]["decimal"], rho["budget"]["decimal"])
    tiles = [
        ("epsilon", f"{facts['epsilon']:.4g}"),
        ("delta", f"{facts['delta']:.3g}"),
        (f"rho spent, {percent(share, '.4g')} of the budget", f"{rho['spent']['decimal']:.4g}"),
        ("records" if facts["size_is_public"] else "records, estimated", f"{facts['size']:,.0f}"),
        ("columns", str(facts["schema"]["columns"])),
        ("noisy marginals", str(len(release.transcript.measurements))),
        ("noisy single counts", str(len(release.transcript.answers))),
        (
            "private selections",
            str(len(release.transcript.selections) + len(release.transcript.query_selections)),
        ),
        ("numbers in the model", f"{sum(a.size for a in release.model.state().arrays.values()):,}"),
    ]
    badge = '<span class="badge">differentially private</span>' if facts["private"] else ""
    alarm = (
        ""
        if facts["private"]
        else f'<div class="alarm" role="alert">{escape(facts["warning"])}</div>'
    )
    name = escape(facts["mechanism"]["name"])
    return (
        f"<header><h1>A synthetic table, and what it cost</h1>{badge}"
        f'<p class="soft">Mechanism: {name}. Protected: {escape(facts["unit"])}.</p>{alarm}'
        '<div class="tiles">'
        + "".join(
            f'<div class="tile"><b>{escape(v)}</b><span>{escape(k)}</span></div>' for k, v in tiles
        )
        + "</div></header>"
    )


def _section(title: str, parts: list[str]) -> str:
    return f"<section><h2>{escape(title)}</h2>{''.join(parts)}</section>"


def _paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>"


def _limits(release: Release, facts: dict[str, Any]) -> str:
    several = [facts[key] for key in ("large_delta", "several_rows") if key in facts]
    passed = conditions(facts["preconditions"], len(release.schema.columns))
    cited = public_words(facts["schema"].get("sources", {}))
    own = (*several, *facts.get("vouched", []), passed, *cited, *limits(release.account))
    points = "".join(f"<li>{escape(p)}</li>" for p in own)
    return f'<p>What it does not cover:</p><ul class="limits">{points}</ul>'


def _public(facts: dict[str, Any]) -> str:
    public = facts["mechanism"]["public"]
    if public is None:
        return ""
    names = ", ".join(public["columns"])
    own = "They are the private records, whose other columns alone are protected: these are"
    whose = own if public["same_records"] else "They are"
    return _section(
        "Public records",
        [
            _paragraph(
                f"The release rests on a public table too: {public['rows']} records of {names}. {whose} not"
                " protected. That they are public is the word of whoever made the release:"
            ),
            f"<blockquote>{escape(public['attestation'])}</blockquote>",
            f'<p class="soft">Its sha256: {escape(public["sha256"])}</p>',
        ],
    )


def _purposes(release: Release) -> str:
    found = release.purposes
    if not found:
        return ""
    points = "".join(f"<li>{escape(p.words)}</li>" for p in found)
    intro = _paragraph(
        "The release was made to serve these. Marginals by assumption were not measured together: the model fills"
        " them in by way of other columns."
    )
    return _section("Made for", [intro, f'<ul class="limits">{points}</ul>'])


def _steps(release: Release) -> str:
    entries = release.transcript.entries
    largest = float(max((e.describe().rho for e in entries), default=0))
    budget = float(release.account.rho_budget)
    rows = [_step(entry, largest, budget) for entry in entries[:_MAX_ROWS]]
    head = (
        '<table><thead><tr><th>Question</th><th class="n">cells or candidates</th><th class="n">noise</th>'
        '<th class="n">of the budget</th><th style="min-width:90px"></th></tr></thead>'
    )
    return (
        "<p>Every question that was put to the rows, in order. A count has one number per cell, each with"
        " independent noise of the standard deviation given, in records; a choice picks one marginal, or one"
        " single count, out of several, with random noise too.</p>"
        + _folded(head, rows, len(entries) - len(rows))
    )


def _step(entry: Entry, largest: float, budget: float) -> str:
    found = entry.describe()
    rho = float(found.rho)
    width = 100 * rho / largest if largest else 0.0
    return (
        f'<tr><td>{escape(found.what)}</td><td class="n">{found.size}</td><td class="n">{found.noise}</td>'
        f'<td class="n">{percent(quotient(rho, budget))}</td>'
        f'<td><span class="share" style="width:{width:.1f}%"></span></td></tr>'
    )


def _folded(head: str, rows: list[str], left_out: int) -> str:
    seen_rows = 16
    shown = f'<div class="scroll">{head}<tbody>{"".join(rows[:seen_rows])}</tbody></table></div>'
    if len(rows) > seen_rows:
        rest = f'<div class="scroll">{head}<tbody>{"".join(rows[seen_rows:])}</tbody></table></div>'
        shown += f"<details><summary>The other {len(rows) - seen_rows}</summary>{rest}</details>"
    if left_out > 0:
        shown += f'<p class="soft">And {left_out} more, in the release.</p>'
    return shown


def _key() -> str:
    return (
        '<div class="key"><span><i></i>the model, which the synthetic rows follow</span>'
        '<span><i class="n"></i>the noisy count, and its interval</span></div>'
        f"<p>The real count lies in its interval with probability {LEVEL:g}, each on its own.</p>"
    )


def _left_out(release: Release) -> str:
    return _paragraph(release.account.left_out) if release.account.left_out else ""


def _ignored(release: Release) -> str:
    names = ", ".join(release.schema.ignore)
    return (
        _paragraph(f"Columns of the table that are not in the release: {names}.") if names else ""
    )


def _unasked(release: Release) -> str:
    if not release.unmeasured_columns:
        return ""
    return (
        f'<div class="alarm" role="alert">{escape(nothing_asked(release.unmeasured_columns))}</div>'
    )


def _contradicted(release: Release) -> str:
    if release.no_model:
        words = f"This release has no model: {release.no_model}. margrave refit fits one to its answers at no cost."
        return f'<div class="alarm" role="alert">{escape(words)}</div>'
    misfits = release.misfit
    return (
        f'<div class="alarm" role="alert">{escape(contradicted(misfits))}</div>' if misfits else ""
    )


def _columns(release: Release) -> str:
    cards, unasked = [], release.unmeasured_columns
    numbers: dict[str, list[ColumnNumber]] = {}
    for n in numbers_of(release.schema, release.transcript, release.model, LEVEL):
        numbers.setdefault(n.column, []).append(n)
    for view in column_views(release):
        note = "nothing was asked of it" if view.name in unasked else "not measured by itself"
        if view.measured is not None:
            note = f"the real counts within \N{PLUS-MINUS SIGN}{view.error:.3g} of the noisy ones"
        cards.append(
            f'<div class="card"><h3>{escape(view.name)}</h3>{bars(view)}'
            f'<p class="soft">{len(view.labels)} codes, {note}</p>'
            f"{_numbers(numbers[view.name])}</div>"
        )
    return f'<div class="cards">{"".join(cards)}</div>'


def _numbers(numbers: list[ColumnNumber]) -> str:
    mean = next((n for n in numbers if n.statistic == "mean" and n.low is not None), None)
    shown = "" if mean is None else f'<p class="soft">Mean {escape(mean.words)}</p>'
    words = "".join(f'<p class="doubt">{escape(w)}</p>' for w in uncertain(numbers))
    return shown + words


def _pairs(release: Release) -> str:
    views, found = pair_views(release), release.coverage
    if not found.pairs:
        return ""
    unmeasured = [
        f'<div class="alarm" role="alert">{escape(words)}</div>' for words in related(found)
    ]
    texts = unmeasured or [_paragraph("All pairs of columns were measured together.")]
    cards = "".join(
        f'<div class="card"><h3>{escape(v.names[0])} by {escape(v.names[1])}</h3>{heat(v)}'
        f'<p class="soft">{escape(v.names[1])} runs across; {v.information:.3g} bits in common</p></div>'
        for v in views
    )
    intro = _paragraph(
        "The measured pairs with the largest mutual information, by the model. The stronger the color,"
        " the more records."
    )
    return _section(
        "Pairs", [*texts, *([intro, f'<div class="cards">{cards}</div>'] if views else [])]
    )


def _bounds(release: Release) -> str:
    views = bound_views(release)
    if not views:
        return ""
    intro = _paragraph(
        "The distance of the model's marginals from the real ones: the sum over all cells of the difference in counts"
        f" is at most this with probability {LEVEL:g}, each on its own. As a share of all records it is between 0"
        " (equal) and 2 (no overlap). Marginals inside a measured one are bounded by its noise; the others by not"
        " having been selected, which is a weaker bound. The list of measured marginals is taken as given."
    )
    head = (
        '<table><thead><tr><th>Marginal</th><th class="n">records</th><th class="n">of all</th>'
        "<th>how</th></tr></thead>"
    )
    informative = [b for b in views if b.tells]
    rows = [_bound(b) for b in informative[:_MAX_ROWS]]
    listed = _folded(head, rows, len(informative) - len(rows)) if rows else ""
    verdict = _paragraph(
        f"Of the {len(views):,} marginals of the workload, and of fewer columns, {len(informative):,} have a bound"
        " below 2."
        + (
            " No useful bound exists for the other marginals."
            if 0 < len(informative) < len(views)
            else ""
        )
        + (f" The first of them: {views[0].how}." if not informative else "")
    )
    return _section("Error bounds", [intro, _left_out(release), verdict, listed, _price(release)])


def _price(release: Release) -> str:
    price = price_view(release)
    if price is None or price.rows is None or price.share is None:
        return ""
    without = (
        f", {price.unbounded} of which have no bound and count as 2," if price.unbounded else ""
    )
    return "<h3>The price of privacy</h3>" + _paragraph(
        f"With probability {price.level:g} the mean error of the workload's {price.marginals:,} marginals{without} is"
        f" at most {price.error:.3g} (0 to 2). That is what {price.rows:,} real records drawn at random,"
        f" {percent(price.share)} of all, would be off by if they were published as they are, without any privacy."
        " Bounds are several times larger than errors, so the release is usually worth many times as many records."
    )


def _bound(bound: Bound) -> str:
    records, share = bound.words
    return (
        f'<tr><td>{escape(", ".join(bound.clique))}</td><td class="n">{records}</td><td class="n">{share}</td>'
        f"<td>{escape(bound.how)}</td></tr>"
    )


def _posterior(release: Release) -> str:
    view = posterior_view(release)
    if view is None:
        return ""
    intro = _paragraph(
        "The release holds many distributions that the noisy answers leave possible: draws from a posterior. Data sets"
        " drawn from them give intervals for the population that the records come from."
    )
    rows = "".join(
        f'<tr><td>{escape(words)}</td><td class="n">{escape(value)}</td></tr>'
        for words, value in view.diagnostics
    )
    alarm = f'<div class="alarm" role="alert">{escape(view.warning)}</div>' if view.warning else ""
    table = f'<div class="scroll"><table><tbody>{rows}</tbody></table></div>' if rows else ""
    return _section("The posterior", [intro, _paragraph(f"Method: {view.method}."), alarm, table])


def _ledger(release: Release) -> str:
    account = release.account
    left = account.rho_budget - account.rho_spent
    sums = [
        f'<tr><td><b>Spent</b></td><td class="n"><b>{float(account.rho_spent):.6g}</b></td></tr>',
        f'<tr><td>Left unspent</td><td class="n">{float(left):.6g}</td></tr>',
    ]
    debits = [
        f'<tr><td>{escape(d.what)}</td><td class="n">{float(d.rho):.6g}{_delta(d)}</td></tr>'
        for d in account.debits[:_MAX_ROWS]
    ]
    head = '<table><thead><tr><th>Debit</th><th class="n">rho</th></tr></thead>'
    return (
        "<p>Written before each answer was drawn, in exact fractions (shown here rounded).</p>"
        + _folded(head, sums + debits, len(account.debits) - len(debits))
    )


def _delta(debit: Debit) -> str:
    return f", delta {float(debit.delta):.6g}" if debit.delta else ""


def _certificate(facts: dict[str, Any]) -> str:
    text = json.dumps(facts, indent=2, ensure_ascii=False)
    return f"<details><summary>All the facts, as data</summary><pre>{escape(text)}</pre></details>"
