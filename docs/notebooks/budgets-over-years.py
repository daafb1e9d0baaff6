# %% [markdown]
# # A budget over years
#
# For custodians of a register that is released every year. The same persons are in the tables of several years, so
# what each release spends adds up for them. A ledger keeps the sum, and refuses a release that would exceed the cap.
#
# The register in this notebook is invented: visits to an outpatient clinic, with several visits of most patients.

# %%
import margrave as mg
import numpy as np
import pandas as pd


def visits(year):
    """Return the visits of a year; most patients come in several years."""
    rng = np.random.default_rng(year)
    patient = rng.integers(1, 15_001, 40_000)
    return pd.DataFrame(
        {
            "patient": patient,
            "month": rng.integers(1, 13, len(patient)),
            "age": np.clip(20 + patient % 70 + (year - 2023), 0, 99),
            "reason": rng.choice(
                ["check", "injury", "chronic", "other"], len(patient), p=[0.4, 0.2, 0.3, 0.1]
            ),
            "minutes": rng.gamma(4, 5, len(patient)).clip(1, 119).astype(int),
        }
    )


visits(2023).head(3)

# %% [markdown]
# ## Choose the promise first
#
# Two decisions come before the first release, and hold for all of them.
#
# - **The unit.** A promise about one visit protects a patient with ten visits little. The unit here is a person, with
#   at most three visits in each release. More visits of a person are left out at random.
# - **The cap.** Over all years together, epsilon is at most 3 for each patient.

# %%
schema = mg.Schema(
    [
        mg.schema.Integer("month", 1, 12, bins=12),
        mg.schema.Integer("age", 0, 99, bins=20),
        mg.schema.Categorical("reason", ["check", "injury", "chronic", "other"]),
        mg.schema.Integer("minutes", 0, 119, bins=24),
    ],
    person="patient",
)
unit = mg.AddRemovePerson(3)
ledger = mg.Ledger("visits.ledger")
state = ledger.init("visits", unit=unit, cap=mg.Budget.approx(3.0, 1e-9))

# %% [markdown]
# Runs add up in rho, not in epsilon. So three years at epsilon = 1.67 fit under a cap of 3, and not only three years
# at 1.

# %%
yearly = {
    "epsilon": 1.67,
    "delta": 1e-9,
    "unit": unit,
    "ledger": "visits.ledger",
    "dataset": "visits",
}
mg.plan(schema, **yearly, mechanism="mst", rows=40_000)

# %% [markdown]
# ## One release a year
#
# The run reserves its budget in the ledger before the first question, so a run that does not fit fails before it
# reads anything.

# %%
releases = {}
for year in (2023, 2024, 2025):
    releases[year] = mg.synthesize(visits(year), schema, mechanism="mst", **yearly)

(state,) = ledger.datasets()
print(f"cap     rho {float(state.cap.rho):.4f}")
print(f"charged rho {float(state.charged):.4f}")

# %% [markdown]
# ## The fourth year
#
# The cap is spent. The ledger refuses the run, and nothing is read.

# %%
try:
    mg.synthesize(visits(2026), schema, mechanism="mst", **yearly)
except mg.errors.BudgetError as error:
    print(error)

# %% [markdown]
# Only those who gave the promise can decide to weaken it. Until then releases of these patients end. A smaller
# epsilon from the start gives more years: ten years at epsilon = 0.89.
#
# ## Compare the years
#
# Each release has intervals, so a reader can separate a trend from noise.

# %%
rows = {}
for year, release in releases.items():
    numbers = release.numbers(details=True, as_="pandas").set_index(["column", "statistic"])
    rows[year] = numbers.loc[("minutes", "mean"), ["text", "interval", "reliable"]]
pd.DataFrame(rows).T

# %% [markdown]
# ## Show that the books are right
#
# Every certificate names the ledger, its number of lines, and their hash. So each published release is a witness of
# the ledger. `verify` of the ledger compares both; an empty result means that nothing contradicts it.

# %%
ledger.verify({str(year): release.account for year, release in releases.items()})

# %%
mg.verify(releases[2025])

# %% [markdown]
# Next: [the ledger](../ledger.md) in full, with policies and interrupted runs.
