"""``margrave refit``."""

from __future__ import annotations

import click

from margrave._io import check_ending
from margrave.cli.options import (
    echo_json,
    fit_option,
    json_option,
    overwrite_option,
    release_size_option,
)
from margrave.cli.output import check_outputs
from margrave.cli.terminal import echo
from margrave.errors import ModelTooLargeError
from margrave.models import fit_named
from margrave.release import Release
from margrave.release.refitting import check_refit


@click.command("refit")
@click.argument("release_path", metavar="RELEASE")
@fit_option("The kind of model.", default="graphical")
@click.option(
    "--release",
    "output",
    required=True,
    metavar="FILE",
    help="Where to write the release with the new model.",
)
@click.option(
    "--max-model-mb",
    type=float,
    default=2048.0,
    show_default=True,
    help="Size of the model at most, in MB.",
)
@click.option("--seed", type=int, default=None, help="Makes the fit repeatable.")
@overwrite_option
@release_size_option
@json_option
def refit_command(
    release_path: str,
    fit: str,
    output: str,
    max_model_mb: float,
    seed: int | None,
    overwrite: bool,
    max_release_mb: float,
    as_json: bool,
) -> None:
    """Fit another model to the noisy answers of RELEASE. Nothing is spent; RELEASE stays as it is.

    All that was measured is in the release, so what it cost buys any number of models: particles that keep the order
    of codes, a posterior for intervals, a table of rows found by search.
    """
    check_outputs({"--release": output}, overwrite=overwrite, inputs={"RELEASE": release_path})
    check_ending(output, ".margrave", "--release")
    model_fit = fit_named(fit)
    release = Release.load(release_path, max_mb=max_release_mb)
    try:
        check_refit(model_fit, release.model, release.transcript, max_model_mb)
    except ModelTooLargeError as error:
        remedy = "Give --fit particles or --fit genetic, which do not grow with the marginals, or raise --max-model-mb."
        raise ModelTooLargeError(error.message, remedy=remedy) from None
    cost = release.refit_cost(model_fit)
    echo(
        f"This takes about {cost.seconds:,.0f} s of processor time and {cost.mb:,.0f} MB of memory.",
        err=True,
    )
    refitted = release.refit(model_fit, seed=seed, max_model_mb=max_model_mb, progress=not as_json)
    refitted.save(output, overwrite=overwrite)
    if as_json:
        echo_json({"fit": fit, "release": output})
    else:
        echo(
            f"Wrote the release with a model by {type(model_fit).__name__} to {output}. Nothing was spent."
        )
