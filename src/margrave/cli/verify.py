"""``margrave verify``: recompute the account of a release."""

from __future__ import annotations

import click

from margrave._card import counted
from margrave.accounting.budget import thresholds_in_words
from margrave.cli.options import echo_json, json_option, release_size_option
from margrave.cli.terminal import echo
from margrave.errors import ReleaseError
from margrave.release import Release
from margrave.release.verification import brief


@click.command("verify")
@click.argument("release_path", metavar="RELEASE")
@release_size_option
@json_option
def verify_command(release_path: str, max_release_mb: float, as_json: bool) -> int:
    """Recompute every price in RELEASE, their sum, and epsilon, and list what contradicts its account.

    The check uses the unit, noise scales, queries and epsilons in the file alone. The exit code is 0 if the account
    holds and its noise was private, and 7 otherwise. Noisy counts and the model cannot be recomputed.
    """
    release = Release.load(release_path, max_mb=max_release_mb, verify=False)
    found, account = release.verify(), release.account
    if as_json:
        echo_json(found.to_dict())
    else:
        for finding in found.findings:
            echo(f"Contradiction: {finding}")
        for note in found.notes:
            echo(f"Note: {note}")
        echo(
            f"{release_path}: {counted(len(release.transcript), 'entry')}, rho {brief(account.rho_spent)} of"
            f" {brief(account.rho_budget)}, epsilon {account.epsilon:g}, delta {account.delta:g}"
            f"{thresholds_in_words(account.threshold_delta)}."
            f" The account {'holds' if found.holds else 'does not hold'}."
        )
    return 0 if found.holds else ReleaseError.exit_code
