# %% [markdown]
# # Public data
#
# For custodians who have a public table beside the private one: last year's published sample, or the table of another
# region. It costs no budget, and can replace questions about the private table. This notebook compares a release with
# and without it, and shows what happens if the public table is a poor one.
#
# Both tables are invented. The private one is a small household survey, the public one a larger sample of five years
# before.

# %%
import margrave as mg
import numpy as np
import pandas as pd


def households(rows, year, seed):
    """Return households of a year; shares drift from year to year."""
    rng = np.random.default_rng(seed)
    drift = (year - 2020) / 10
    size = 1 + rng.poisson(1.2 - drift / 4, rows).clip(0, 7)
    tenure = np.where(
        rng.random(rows) < 0.35 + 0.08 * size.clip(0, 4) - drift / 5, "owned", "rented"
    )
    rooms = (
        np.clip(rng.normal(1.8 + 0.7 * size + (tenure == "owned"), 1.0), 1, 10).round().astype(int)
    )
    heating = np.where(
        rng.random(rows) < 0.25 + drift, "electric", rng.choice(["gas", "oil", "district"], rows)
    )
    cars = rng.binomial(3, np.clip(0.15 + 0.1 * size + 0.1 * (tenure == "owned"), 0, 0.9))
    columns = {"size": size, "tenure": tenure, "rooms": rooms, "heating": heating, "cars": cars}
    return pd.DataFrame(columns)


private, earlier = households(3_000, 2025, seed=1), households(10_000, 2020, seed=2)
schema = mg.Schema(
    [
        mg.schema.Integer("size", 1, 8, bins=8),
        mg.schema.Categorical("tenure", ["owned", "rented"]),
        mg.schema.Integer("rooms", 1, 10, bins=10),
        mg.schema.Categorical("heating", ["electric", "gas", "oil", "district"]),
        mg.schema.Integer("cars", 0, 3, bins=4),
    ]
)

# %% [markdown]
# ## Read the public table
#
# It is read with the schema of the private table. The attestation states where it comes from and why it is public.
# margrave cannot check that, and quotes it in the certificate. **The records of the public table are not protected.**

# %%
public = mg.read_public(
    earlier, schema, attestation="the open sample of 2020, published by the statistical office"
)
public.notes

# %% [markdown]
# ## With and without
#
# The budget is small: epsilon is 0.2 for 3,000 households. The same budget buys both releases, one without the public
# table (AIM) and one with it (AIMPub).

# %%
budget = {"epsilon": 0.2, "delta": 1e-6}
alone = mg.synthesize(private, schema, mechanism="aim", **budget)
helped = mg.synthesize(private, schema, mechanism=mg.mechanisms.AIMPub(public=public), **budget)
helped

# %% [markdown]
# How far is each from the real table? This comparison is **not private**. It is possible here, because the households
# are invented. With a real table, do not choose between two releases in this way: no budget covers that choice, and
# both releases count against the budget.


# %%
def errors(**releases):
    """Return the mean total variation of each release, from 0 (equal) to 1."""
    found = {name: mg.evaluate(private, release, seed=1) for name, release in releases.items()}
    rows = {
        name: {"one column": e.mean_one_way, "pairs": e.mean_two_way} for name, e in found.items()
    }
    return pd.DataFrame(rows).T.round(4)


errors(alone=alone, helped=helped)

# %% [markdown]
# The public table has the relations between columns, which have changed little in five years. The noisy answers
# correct the shares, which have changed more. So the pairs usually gain most. The errors are random: each run of this
# notebook gives others.
#
# ## A poor public table
#
# Now a public table in which the columns have nothing to do with each other: every column is shuffled.

# %%
rng = np.random.default_rng(3)
shuffled = earlier.apply(lambda column: rng.permutation(column.to_numpy()))
poor = mg.read_public(shuffled, schema, attestation="shuffled columns of the open sample of 2020")
misled = mg.synthesize(private, schema, mechanism=mg.mechanisms.AIMPub(public=poor), **budget)
errors(alone=alone, helped=helped, misled=misled)

# %% [markdown]
# AIMPub weights each public cell by how well the measurements confirm it. Where a measurement contradicts the public
# table, the measurement counts. A poor table helps less, and can harm where nothing was measured. If you doubt the
# public table, do not use it.
#
# ## The certificate
#
# It names the public table by its hash, with the attestation.

# %%
helped.certificate()["public_inputs"]

# %% [markdown]
# Next: [a budget over years](budgets-over-years.md), or [public data](../public.md) with all mechanisms that take it.
