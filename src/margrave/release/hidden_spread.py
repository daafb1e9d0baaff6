"""Columns of numbers whose spread the noise hides, from the noisy answers alone."""

from __future__ import annotations

import numpy as np

from margrave.bounds.gls import Unbiased
from margrave.bounds.noisy_counts import NoisyCounts
from margrave.bounds.weighted_sums import summed_columns
from margrave.schema import Schema
from margrave.schema.constraint_values import NUMERIC_KINDS
from margrave.schema.numeric import Numeric
from margrave.schema.remedies import bins_remedy, bounds_remedy, learn_remedy
from margrave.transcript import Transcript
from margrave.types import Attribute


def hidden_spreads(schema: Schema, transcript: Transcript) -> tuple[Attribute, ...]:
    """Return the columns whose standard deviation the noise leaves open by more than a factor of 2.

    Noise in bins far from the mean is weighed by their squared distance. Counts cannot be negative, so a fit
    keeps the positive noise there: means and slopes of the synthetic rows are then noise for the most part.

    Args:
        schema: The public schema.
        transcript: The noisy answers.

    Returns:
        The names of these columns; columns that were not measured are not among them.

    Privacy:
        None spent.

    Example:
        >>> from margrave.schema import Real
        >>> hidden_spreads(Schema([Real("cost", 0, 9)]), Transcript())
        ()
    """
    unbiased = Unbiased(schema.domain, transcript)
    lines = [c for c in schema.columns if isinstance(c, NUMERIC_KINDS)]
    return tuple(c.name for c in lines if unbiased.supports((c.name,)) and _hides(c, unbiased))


def hidden_spread_words(schema: Schema, transcript: Transcript, name: Attribute) -> str:
    """Return the cause of a spread that noise hides, and what to do about it: nothing that was done already.

    Args:
        schema: The public schema.
        transcript: The noisy answers.
        name: The column.
    """
    cause = f"The noise in the bins of {name} far from its mean hides its spread."
    next_schema = _schema_remedy(schema, name)
    ways = [f"In the schema of the next release, {next_schema}"] if next_schema else []
    has_sum = any(summed_columns(m, schema.domain) == (name,) for m in transcript.measurements)
    own_sum = "" if has_sum else f'ask for a sum of its own (--for "mean {name}"), or '
    either = "Or " if ways else ""
    rest = f"{either}{own_sum}give the release a larger budget."
    return " ".join([cause, *ways, rest[0].upper() + rest[1:]])


def _schema_remedy(schema: Schema, name: Attribute) -> str:
    """Return what to change about a column in the schema; "" if nothing helps."""
    column, source = schema.column(name), schema.source(name)
    assert isinstance(column, NUMERIC_KINDS)
    if source.of == "learned":
        return bounds_remedy(source.open_bounds)
    least, greatest = column.cells.extremes
    if (greatest > least).any():
        return bins_remedy()
    return f"{learn_remedy()}." if column.cells.count > 2 else ""  # which merges codes


def _hides(column: Numeric, unbiased: Unbiased) -> bool:
    # Ratio of the ends of the interval of the standard deviation.
    max_ratio, level = 2.0, 0.95
    estimate = unbiased.estimate((column.name,))
    if estimate is None:
        return False
    noisy, cells = NoisyCounts(estimate, level), column.cells
    missing = np.zeros(column.size - cells.count)
    present = np.concatenate([np.ones(cells.count), missing])
    mean = noisy.mean(np.concatenate([cells.means, missing]), present).estimate
    if mean is None:
        return True
    squares = np.concatenate([(cells.means - mean) ** 2 + cells.variances, missing])
    variance = noisy.mean(squares, present)
    return variance.high > max_ratio**2 * variance.low
