# %% [markdown]
# # A schema from a code book
#
# For custodians whose table has a code book: a survey, a registry, a study in REDCap or Stata. The code book is
# public, and it has the bounds and categories of most columns. Read it instead of typing them. No row is read, and no
# budget is spent on facts that everybody can look up.
#
# The survey in this notebook is invented.

# %%
import json

import margrave as mg
import numpy as np
import pandas as pd

health_codes = {"1": "very good", "2": "good", "3": "fair", "4": "bad", "5": "very bad"}
code_book = {
    "fields": [
        {
            "name": "person",
            "title": "Person number",
            "type": "integer",
            "constraints": {"unique": True},
        },
        {
            "name": "age",
            "title": "Age in years",
            "type": "integer",
            "constraints": {"minimum": 16, "maximum": 104},
        },
        {"name": "sex", "title": "Sex", "type": "string", "categories": ["F", "M"]},
        {
            "name": "health",
            "title": "General health",
            "type": "integer",
            "categories": [{"value": code, "label": label} for code, label in health_codes.items()],
            "categoriesOrdered": True,
            "missingValues": ["-9"],
        },
        {"name": "smoker", "title": "Smokes now", "type": "boolean"},
        {
            "name": "visits",
            "title": "Visits to a doctor in twelve months",
            "type": "integer",
            "constraints": {"minimum": 0, "maximum": 365},
            "missingValues": ["-9"],
        },
        {"name": "income", "title": "Monthly income in euros", "type": "integer"},
    ]
}
with open("survey.json", "w") as file:
    json.dump(code_book, file)

# %% [markdown]
# This code book is a [Frictionless Table Schema](https://datapackage.org/standard/table-schema/). `read_code_book`
# also reads DDI-Codebook, CSV on the Web, SDV metadata, a REDCap data dictionary, and the labels in a file of Stata,
# SPSS or SAS. `cite` states where the values are written down. The certificate of each release repeats it.

# %%
schema = mg.read_code_book("survey.json", cite="Health Survey 2025, code book, pages 4 to 9")
schema

# %% [markdown]
# The code book has no bounds for `income`, so a run learns them, and the bins of `visits`. The person number was
# recognized: it is never synthesized.
#
# Every key has its source. Save the schema as a file to read and edit it.

# %%
schema.save("survey.toml")
print(schema.to_toml()[:1200])

# %% [markdown]
# ## Compare the table with the code book
#
# Tables rarely are as their code book says. The next cell invents the rows of the survey.

# %%
rng = np.random.default_rng(2025)
rows = 20_000
age = np.clip(rng.normal(48, 18, rows), 16, 104).astype(int)
health = np.clip(rng.normal(1.2 + age / 40, 0.9), 1, 5).round().astype(int)
survey = pd.DataFrame(
    {
        "person": rng.permutation(rows) + 100_000,
        "age": age,
        "sex": rng.choice(["1", "2"], rows),
        "health": np.where(rng.random(rows) < 0.03, -9, health),
        "smoker": rng.random(rows) < 0.35 - age / 400,
        "visits": np.where(rng.random(rows) < 0.02, -9, rng.poisson(health**1.5)),
        "income": rng.lognormal(7.6, 0.5, rows).round(-1).astype(int),
    }
)
survey.head(3)

# %%
mg.check_table(survey, schema)

# %% [markdown]
# The check counts what does not match, for you alone. It finds the mistake in `sex`: the table has codes, and the
# code book has letters. The table is refused. Recode it, and check again.

# %%
survey["sex"] = survey["sex"].map({"1": "M", "2": "F"})
mg.check_table(survey, schema)

# %% [markdown]
# It passes, with a few questions. The missing values in `health` and `visits` are `-9`, the code book's mark for a
# missing value. F and M are in the code book, so nobody read them off the rows.
#
# ## Bins for a purpose
#
# The code book allows 0 to 365 visits. Equal bins of twelve visits each would hide nearly everything, so a run
# would learn the bins. To choose them costs nothing. Choose them from knowledge of the subject, not from the rows.

# %%
schema = schema.declare(
    mg.schema.Integer(
        "visits",
        0,
        365,
        edges=[1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 50],
        missing=True,
        outside="missing",
    )
)
schema

# %% [markdown]
# ## Release
#
# The schema names a person ID column, so the unit of privacy is a person. Each has one row here.

# %%
release = mg.synthesize(
    survey,
    schema,
    epsilon=1.0,
    delta=1e-6,
    unit="add-remove-person:1",
    purposes=["mean visits by health"],
)
release

# %%
release.plot("visits")

# %%
release.plot("health", "visits")

# %% [markdown]
# The certificate lists the public inputs, with the citation of each column that has the code book's values.

# %%
release.certificate()["public_inputs"]

# %% [markdown]
# Next: [columns with long tails](long-tails.md), such as `income`, or [the schema file](../schema.md) in full.
