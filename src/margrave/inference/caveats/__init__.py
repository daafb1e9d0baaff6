"""Caveats: checks of an analysis. Each check yields records from the context."""

from __future__ import annotations

from dataclasses import replace

from margrave.inference.caveats import (
    beyond_learned,
    bins,
    clipping,
    hidden_spread,
    labels,
    measured,
    merged_codes,
    numbers,
    positions,
    small_cells,
    verdicts,
)
from margrave.inference.caveats.context import Context
from margrave.inference.estimate import Caveat, Estimate


def flagged(context: Context) -> tuple[Estimate, ...]:
    """Return the estimates with the columns whose relations, noise, bins or bounds they rest on."""
    pairs, wholes = context.once(measured.by_pair), context.once(measured.by_interaction)
    codes, ends = context.once(merged_codes.by_merged_codes), context.once(bins.ends_of)
    shifts, excesses = context.once(bins.shifts), context.once(clipping.excesses)
    small, wide = context.once(small_cells.below_noise), context.once(positions.coarse)
    noise, doubted = context.once(hidden_spread.mostly_noise), context.once(verdicts.unreliable)
    return tuple(
        replace(
            e,
            unmeasured=tuple(dict.fromkeys([*pairs[e.name], *wholes[e.name], *codes[e.name]])),
            below_noise=small[e.name],
            mostly_noise=noise[e.name],
            unreliable=doubted[e.name],
            coarse=wide[e.name],
            binned=tuple(s.name for s, names in shifts if e.name in names),
            ends=ends.get(e.name),
            clipped=tuple(
                dict.fromkeys(
                    [
                        *(x.column.name for x, n in excesses if e.name in n),
                        *beyond_learned.marked(context, e),
                    ]
                )
            ),
        )
        for e in context.estimates
    )


def caveats_of(context: Context) -> tuple[Caveat, ...]:
    """Return the caveats of all checks, the decisive ones first."""
    # The checks, in the order in which their caveats are printed; decisive ones come first.
    checks = (
        measured.check, numbers.bias, clipping.check, beyond_learned.check, small_cells.check,
        hidden_spread.check, merged_codes.check, positions.check, verdicts.check,
        labels.check, *numbers.OF_NUMBERS, bins.check, *numbers.OF_METHODS,
    )  # fmt: skip
    found = (caveat for check in checks for caveat in check(context))
    return tuple(sorted(found, key=lambda caveat: not caveat.decisive))
