"""``margrave certificate``."""

from __future__ import annotations

from typing import Any

import click

from margrave._card import counted
from margrave.cli.options import echo_json, json_option, release_size_option
from margrave.cli.output import console, escape, facts_table
from margrave.release import Release
from margrave.release.coverage import Coverage
from margrave.report.wording import conditions, hidden_words


@click.command("certificate")
@click.argument("release_path", metavar="RELEASE")
@release_size_option
@json_option
def certificate_command(release_path: str, max_release_mb: float, as_json: bool) -> None:
    """Print what RELEASE promises, what was measured, and what was spent."""
    release = Release.load(release_path, max_mb=max_release_mb)
    facts = release.certificate()
    if as_json:
        echo_json(facts)
        return
    _show(facts, release)
    lines = [(str(i), entry.describe().line()) for i, entry in enumerate(release.transcript, 1)]
    console().print(facts_table("Transcript", lines))


def _show(facts: dict[str, Any], release: Release) -> None:
    """Print the facts of a certificate."""
    out = console()
    if not facts["private"]:
        out.print(f"[bold red]{facts['warning']}[/]")
    if "no_model" in facts:
        out.print(f"[bold]No model: {escape(facts['no_model'])}.[/] {escape(release.model.remedy)}")
    rho = facts["rho"]
    out.print(
        facts_table(
            "Certificate",
            [
                ("mechanism", _words(facts["mechanism"])),
                ("unit", facts["unit"]),
                ("epsilon, delta", f"{facts['epsilon']:.6g}, {facts['delta']:.3g}"),
                ("rho spent", f"{rho['spent']['decimal']:.6g} of {rho['budget']['decimal']:.6g}"),
                ("exactly", rho["spent"]["exact"]),
                *([("ledger", _ledger(facts["ledger_file"]))] if "ledger_file" in facts else []),
                ("schema sha256", facts["schema"]["sha256"]),
                ("sampler", facts["sampler"]),
                ("versions", ", ".join(f"{k} {v}" for k, v in facts["versions"].items())),
                (
                    "records",
                    f"{facts['size']:.0f}, {'public' if facts['size_is_public'] else 'estimated from noisy counts'}",
                ),
                *(("nothing asked of", ", ".join(a)) for a in [facts["unmeasured_columns"]] if a),
                ("measured together", _together(release.coverage)),
                *(("persons", facts[key]) for key in ("several_rows", "left_out") if key in facts),
                *([("delta", facts["large_delta"])] if "large_delta" in facts else []),
                *(("vouched for", words) for words in facts.get("vouched", [])),
                ("preconditions", conditions(facts["preconditions"], facts["schema"]["columns"])),
                ("public inputs", "; ".join(facts["public_inputs"])),
            ],
        )
    )
    out.print()


def _ledger(facts: dict[str, Any]) -> str:
    return f"{facts['id']}, {facts['dataset']}, line {facts['lines']:,}: {facts['head']}"


def _together(found: Coverage) -> str:
    alone = f"; with no other column: {', '.join(found.alone)}" if found.alone else ""
    hidden = f". {hidden_words(found)}" if found.hidden else ""
    return f"{found.measured:,} of {counted(found.pairs, 'pair')} of columns{alone}{hidden}"


def _words(mechanism: dict[str, Any]) -> str:
    """Return the mechanism in one line; a workload of many marginals by their number."""
    shown = {"name": mechanism["name"], "workload": _workload(mechanism["workload"])}
    shown |= mechanism["parameters"]
    shown |= {k: mechanism[k] and mechanism[k]["words"] for k in ("fit", "refit")}
    shown |= {"public table": mechanism["public"] and mechanism["public"]["sha256"]}
    shown |= {"stopped early": mechanism["stopped_early"] or None}
    return ", ".join(f"{k} {v}" for k, v in shown.items() if v is not None)


def _workload(workload: dict[str, Any] | None) -> str | None:
    if workload is None:
        return None
    marginals = workload.get("marginals")
    return (
        f"all {workload['ways']}-way"
        if marginals is None
        else f"of {counted(len(marginals), 'marginal')}"
    )
