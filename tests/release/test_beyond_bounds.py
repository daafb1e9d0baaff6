"""Rows that may lie beyond learned bounds: their share, and the sentences about them."""

from __future__ import annotations

from datetime import date

import pytest

from margrave.release.beyond_bounds import (
    beyond_bounds,
    hidden_share,
    learned_bounds_words,
    values_beyond_words,
)
from margrave.schema import ColumnSource, Date, Integer, Schema


def test_a_public_bound_far_from_the_values_does_not_change_their_hidden_share() -> None:
    """The interval of the mean was made with the range of the values, not with the public bound."""
    mean = (19_890.0, 19_880.0, 19_920.0)
    near = Date(
        "day", date(2024, 1, 1), date(2024, 12, 31), bins=1, mean=mean,
        leaf_edges=[19_723, 19_800, 20_089], leaf_weights=[0.5, 0.5],
    )  # fmt: skip
    far = Date(
        "day", date(1900, 1, 1), date(2024, 12, 31), bins=1, mean=mean,
        leaf_edges=[-25_567, 19_723, 19_800, 20_089], leaf_weights=[0, 0.5, 0.5],
    )  # fmt: skip
    assert hidden_share(near) == pytest.approx(20 / 366)
    assert beyond_bounds(far) == beyond_bounds(near)


def test_learned_bounds_state_what_the_noise_may_hide_and_public_ones_are_left_out() -> None:
    columns = [
        Integer("age", 0, 110, mean=[40, 39, 41]),
        Integer("stay", 0, 90, mean=[20, 18, 23]),
        Integer("visits", 5, 50, mean=[20, 18, 22]),
        Integer("year", 1990, 2020, mean=[2000, 1999, 2006]),
    ]
    public = {"age": ["high", "low"], "stay": ["low"], "visits": [], "year": ["high"]}
    sources = {name: ColumnSource(of="learned", public=keys) for name, keys in public.items()}
    (words,) = learned_bounds_words(Schema(columns, sources=sources))
    bounds, _, rest = words.partition(". ")
    assert bounds == (
        "Learned bounds: stay up to 90 (at most 1.1 % beyond); visits 5 to 50 (unknown share beyond);"
        " year from 1990 on (at most 16 % beyond)"
    )
    assert rest == values_beyond_words()
    assert not learned_bounds_words(Schema(columns[:1], sources={"age": sources["age"]}))
