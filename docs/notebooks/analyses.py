# %% [markdown]
# # Analyses with intervals
#
# For analysts who have a release, and not the rows. This notebook estimates a mean by group and a regression, with
# intervals that include the noise of privacy, and shows how wrong an ordinary analysis of the synthetic rows can be.
#
# The register in this notebook is invented: patients, their age, sex and ward, and the days they stay. A day more for
# each ten years of age is true by construction.

# %%
import margrave as mg
import numpy as np
import pandas as pd

rng = np.random.default_rng(11)
rows = 12_000
patients = pd.DataFrame(
    {
        "age": np.clip(rng.normal(55, 20, rows), 0, 99).astype(int),
        "sex": rng.choice(["F", "M"], rows),
        "ward": rng.choice(["general", "heart", "hip"], rows, p=[0.5, 0.3, 0.2]),
    }
)
extra = patients["ward"].map({"general": 0.0, "heart": 2.0, "hip": 5.0})
days = 3 + 0.1 * patients["age"] + extra + rng.normal(0, 3, rows)
patients["stay"] = days.clip(0, 40).round(1)

# %% [markdown]
# ## The custodian's part
#
# The custodian asked what the release is for. `purposes` names the analyses, and the run measures what they rest on.

# %%
schema = mg.Schema(
    [
        mg.schema.Integer("age", 0, 99, bins=10),
        mg.schema.Categorical("sex", ["F", "M"]),
        mg.schema.Categorical("ward", ["general", "heart", "hip"]),
        mg.schema.Real("stay", 0.0, 40.0, bins=20, decimals=1),
    ]
)
release = mg.synthesize(
    patients,
    schema,
    epsilon=1.0,
    delta=1e-6,
    purposes=["mean stay by ward", "ols stay ~ age + C(sex) + C(ward)"],
)
release.save("patients.margrave")

# %% [markdown]
# ## The analyst's part
#
# From here on only the release is used. Look first at what it supports. Each purpose lists the marginals that were
# not measured; an empty list is good.

# %%
release = mg.Release.load("patients.margrave")
pd.DataFrame([purpose.to_dict() for purpose in release.purposes])

# %% [markdown]
# ## The wrong way
#
# Draw rows, and analyze them as if they were real. Draw ten times as many, and the interval shrinks. It ignores the
# noise of the release, so it promises too much.


# %%
def mean_with_interval(frame):
    """Return the mean of the stay with an ordinary interval."""
    stay = frame["stay"]
    half = 1.96 * stay.std() / len(stay) ** 0.5
    return pd.Series({"mean": stay.mean(), "low": stay.mean() - half, "high": stay.mean() + half})


synthetic = {
    n: release.sample(n, where={"ward": "hip"}, as_="pandas", seed=1)
    for n in (2_400, 24_000, 240_000)
}
intervals = {f"{n:,} rows": mean_with_interval(frame) for n, frame in synthetic.items()}
pd.DataFrame(intervals).T.round(3)

# %% [markdown]
# ## The right way
#
# `draws` gives many data sets, each from another distribution that the noisy answers allow. `analyze` runs the
# analysis on each and combines the results. The spread between data sets is the noise of privacy and the sampling of
# the real rows.

# %%
from margrave.inference import OLS, By, Mean

draws = release.draws(30, seed=1)
print(mg.analyze(draws, By(Mean("stay"), "ward")))

# %% [markdown]
# Compare the interval of the hip ward with the ordinary ones above.
#
# ## A regression
#
# Formulas are those of statsmodels. `fmi` is the share of information that was lost to privacy.

# %%
regression = mg.analyze(draws, OLS("stay ~ age + C(sex) + C(ward)"))
print(regression)

# %% [markdown]
# The same as a chart:

# %%
regression

# %% [markdown]
# A test of a whole term, and a difference of two wards with its own interval:

# %%
regression.test("C(ward)")

# %%
regression.contrast({"C(ward)[T.hip]": 1, "C(ward)[T.heart]": -1}).conf_int()

# %% [markdown]
# ## Questions that the release cannot answer
#
# The purposes name no interaction. `analyze` marks estimates that rest on relations that were not measured. Do not
# report a marked estimate: no interval shows how wrong it is.

# %%
interaction = mg.analyze(draws, OLS("stay ~ age * C(sex) * C(ward)"))
for note in interaction.notes[:1]:
    print(note)

# %% [markdown]
# Next: [draw conclusions](../inference.md) explains every note, and [for analysts](../analysts.md) has recipes for
# pandas and R.
