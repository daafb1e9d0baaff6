# %% [markdown]
# # Long tails
#
# For custodians of costs, lengths of stay, incomes, delays: columns in which a few values are a hundred times larger
# than most. Their means depend on the largest values, and bins of equal width put nearly all rows into the first bin.
# This notebook shows the mistake, how the release reports it, and two remedies.
#
# The hospital in this notebook is invented. Its true mean can be shown beside the release for that reason only.

# %%
import margrave as mg
import numpy as np
import pandas as pd

rng = np.random.default_rng(7)
rows = 100_000
ward = rng.choice(["surgery", "medicine", "children", "intensive"], rows, p=[0.35, 0.4, 0.2, 0.05])
level = pd.Series({"surgery": 8.4, "medicine": 7.9, "children": 7.4, "intensive": 9.8})[
    ward
].to_numpy()
stays = pd.DataFrame(
    {"ward": ward, "cost": np.minimum(rng.lognormal(level, 0.9), 500_000).round(2)}
)
stays["cost"].describe(percentiles=[0.5, 0.95, 0.99]).round(0).to_frame()

# %% [markdown]
# ## The mistake: bins of equal width
#
# The tariff says that no stay costs more than 500,000, which is a public bound. Thirty-two bins of equal width are
# 15,625 wide, and most stays cost less than that.

# %%
wards = mg.schema.Categorical("ward", ["surgery", "medicine", "children", "intensive"])
equal = mg.Schema([wards, mg.schema.Real("cost", 0.0, 500_000.0, decimals=2)])
release_equal = mg.synthesize(stays, equal, epsilon=1.0, delta=1e-9)
release_equal.plot("cost")


# %%
def mean_of(release):
    """Return the mean of the cost with its interval."""
    numbers = release.numbers(details=True, as_="pandas")
    kept = numbers[(numbers["column"] == "cost") & numbers["statistic"].isin(["mean", "q50"])]
    return kept[["statistic", "text", "interval", "reliable", "synthetic"]]


mean_of(release_equal)

# %% [markdown]
# The interval of the mean is very wide, and `reliable` is False. The release cannot say more: within a bin, nobody
# knows where the values lie. In the synthetic rows they are spread evenly, so their mean (`synthetic`) is far too
# large. The true mean is:

# %%
round(stays["cost"].mean(), 2)

# %% [markdown]
# ## Remedy 1: edges in round steps
#
# Let the edges grow with the values: 100, 200, 500, 1,000 and so on. They are public, because they depend on nothing
# but the bound.

# %%
edges = [m * 10.0**k for k in range(2, 6) for m in (1, 1.5, 2, 3, 5, 7) if m * 10**k < 500_000]
growing = mg.Schema([wards, mg.schema.Real("cost", 0.0, 500_000.0, edges=edges, decimals=2)])
release_growing = mg.synthesize(stays, growing, epsilon=1.0, delta=1e-9)
mean_of(release_growing)

# %% [markdown]
# ## Remedy 2: learned bins
#
# A run can learn the bins, and the mean itself, under the same budget. It needs no public bound. It measures a tree
# of noisy counts, puts the edges where the rows are, and adds a clipped sum for the mean of a skewed column.

# %%
learned = mg.Schema([wards, mg.schema.Learn("cost", "real")])
release_learned = mg.synthesize(stays, learned, epsilon=1.0, delta=1e-9)
release_learned.plot("cost")

# %%
mean_of(release_learned)

# %% [markdown]
# All three releases cost the same. The learned bins give the shortest interval of the mean:

# %%
found = pd.concat(
    {
        "equal": mean_of(release_equal),
        "growing": mean_of(release_growing),
        "learned": mean_of(release_learned),
    }
)
found[found["statistic"] == "mean"]

# %% [markdown]
# ## Rules
#
# - Look at the mark before you use a mean. `reliable` is False where noise, wide bins or clipping leave too much
#   open.
# - Learn the bins if nobody knows the values. Give public bounds if there are any: values beyond are clipped.
# - A median needs fine bins only where the median lies, so it is more robust than a mean.
#
# Next: [analyses with intervals](analyses.md), or [the kinds of columns](../schema.md#kinds).
