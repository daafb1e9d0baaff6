"""``margrave report`` and ``margrave certificate``: what a release says of itself."""

from __future__ import annotations

from typing import Any

import click

from margrave.cli.options import echo_json, json_option, overwrite_option, release_size_option
from margrave.cli.output import check_outputs, console, escape, facts_table
from margrave.cli.terminal import echo
from margrave.files import check_ending
from margrave.models.specs import spec_words
from margrave.release import Release
from margrave.report import write_report
from margrave.report.words import conditions


@click.command("report")
@click.argument("release_path", metavar="RELEASE")
@click.option("--output", "-o", required=True, metavar="FILE", help="Where to write the page, an HTML file.")
@overwrite_option
@release_size_option
@json_option
def report_command(
    release_path: str, output: str, overwrite: bool, max_release_mb: float, as_json: bool
) -> None:
    """Write the report of RELEASE as one HTML page. Nothing is spent."""
    check_outputs({"-o": output}, overwrite=overwrite, inputs={"RELEASE": release_path})
    check_ending(output, ".html", "-o")
    write_report(Release.load(release_path, max_mb=max_release_mb), output, overwrite=overwrite)
    if as_json:
        echo_json({"output": output})
    else:
        echo(f"Wrote the report to {output}.")


@click.command("certificate")
@click.argument("release_path", metavar="RELEASE")
@release_size_option
@json_option
def certificate_command(release_path: str, max_release_mb: float, as_json: bool) -> None:
    """Print what RELEASE promises, what was measured, and what was spent."""
    facts = Release.load(release_path, max_mb=max_release_mb).certificate()
    if as_json:
        echo_json(facts)
    else:
        show_certificate(facts)


def show_certificate(facts: dict[str, Any]) -> None:
    """The facts of a certificate, for a terminal."""
    out = console()
    if not facts["private"]:
        out.print(f"[bold red]{facts['warning']}[/]")
    if "no_model" in facts:
        out.print(f"[bold]No model: {escape(facts['no_model'])}.[/] margrave refit fits one at no cost.")
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
                ("schema sha256", facts["schema"]["sha256"]),
                ("sampler", facts["sampler"]),
                ("versions", ", ".join(f"{k} {v}" for k, v in facts["versions"].items())),
                (
                    "records",
                    f"{facts['size']:.0f}, {'public' if facts['size_is_public'] else 'estimated from noisy counts'}",
                ),
                *([("nothing asked of", ", ".join(facts["unasked"]))] if facts["unasked"] else []),
                ("measured together", _together(facts["together"])),
                *([("persons", facts["several_rows"])] if "several_rows" in facts else []),
                *([("delta", facts["large_delta"])] if "large_delta" in facts else []),
                *(("vouched for", words) for words in facts.get("vouched", [])),
                ("preconditions", conditions(facts["preconditions"], facts["schema"]["columns"])),
                ("public inputs", "; ".join(facts["public_inputs"])),
            ],
        )
    )
    out.print()
    out.print(facts_table("Transcript", [_line(i, entry) for i, entry in enumerate(facts["transcript"], 1)]))


def _together(found: dict[str, Any]) -> str:
    """How many pairs, and which columns are in none."""
    alone = f"; with no other column: {', '.join(found['alone'])}" if found["alone"] else ""
    return f"{found['measured']:,} of {found['pairs']:,} pairs of columns{alone}"


def _words(config: dict[str, Any]) -> str:
    """The configuration in one line; a workload of many marginals by their number."""
    shown = {k: f"of {len(v)} marginals" if isinstance(v, list) else v for k, v in config.items()}
    shown |= {k: spec_words(config[k]) for k in ("fit", "first_fit") if config.get(k) is not None}
    return ", ".join(f"{k} {v}" for k, v in shown.items())


def _line(number: int, entry: dict[str, Any]) -> tuple[str, str]:
    if "public_total" in entry:
        return str(number), f"{entry['public_total']} records, public"
    if "read" in entry:
        words = f"read {', '.join(entry['read'])} from the public table: {entry['cells']} cells"
        return str(number), f"{words}, trusted as if with noise {entry['scale']:.4g}"
    if "measured" in entry:
        words = f"measured {', '.join(entry['measured'])}: {entry['cells']} cells, noise {entry['scale']:.4g}"
    elif "asked" in entry:
        words = f"counted {entry['asked']}: noise {entry['scale']:.4g}"
    else:
        chosen = entry["selected"]
        named = chosen if isinstance(chosen, str) else ", ".join(chosen)
        named = f"the complement of {named}" if entry.get("sign") == -1 else named
        words = f"chose {named} of {entry['candidates']}, epsilon {entry['epsilon']:.4g}"
    return str(number), f"{words}, rho {entry['rho']:.4g}"
