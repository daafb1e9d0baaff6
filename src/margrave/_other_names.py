"""Names of other libraries, and what margrave calls the same: the one table of them, for error messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

Owner = Literal["margrave", "Schema", "Release", "argument", "analysis", "fit"]


def in_our_words(owner: Owner, name: str) -> str:
    """Return what margrave has in the place of a name of other libraries; "" for an unknown one.

    For the owners "argument", "analysis" and "fit" it is a name; for the others a sentence.

    >>> in_our_words("argument", "random_state"), in_our_words("fit", "gem"), in_our_words("Release", "age")
    ('seed', 'generator', '')
    """
    drafts = "margrave.draft_schema(frame) drafts a schema."
    pages = "print(release) shows it in short, and release.report() in full."
    names: dict[Owner, dict[str, str]] = {
        "margrave": {
            "list_mechanisms": "margrave.mechanisms.MECHANISMS lists them.",
            "load": "margrave.Release.load(path) reads a release.",
            "fit": "margrave.synthesize(table, schema, epsilon=..., delta=...) makes a release.",
            **dict.fromkeys(("sample", "generate"), "release.sample(n) draws rows of a release."),
            **dict.fromkeys(
                ("read_csv", "read_parquet", "read_file"),
                "margrave.read_table(path, schema) reads a table; synthesize takes its path.",
            ),
        },
        "Schema": {
            **dict.fromkeys(("from_dataframe", "from_frame", "detect_from_dataframe", "infer", "fit"), drafts),
            "to_dict": "schema.to_toml() is all of it as text, and schema.columns has the columns.",
            "names": "schema.domain.attributes has the names.",
        },
        "Release": {
            **dict.fromkeys(("summary", "describe", "info"), pages),
            "evaluate": "It is margrave.evaluate, or release.compare(real).",
            "analyze": "It is margrave.analyze.",
            "write_report": "It is margrave.write_report.",
            **dict.fromkeys(
                ("rho", "budget", "spent", "privacy_budget"),
                "release.account.rho_budget is the budget, of which release.account.rho_spent was spent.",
            ),
            "generate": "release.sample(n) draws rows.",
            "sample_from_conditions": "release.sample(n, where={...}) draws rows of a part.",
            "sample_remaining_columns": "release.complete(rows) adds the other columns.",
            **dict.fromkeys(("to_pandas", "to_frame", "to_df"), 'release.sample(as_="pandas") draws rows.'),
            **dict.fromkeys(("get_params", "set_params"), "release.certificate() states every parameter."),
        },
        "argument": {
            "eps": "epsilon",
            **dict.fromkeys(("random_state", "rng", "random_seed"), "seed"),
            **dict.fromkeys(("num_rows", "n_rows", "n_samples", "size"), "n"),
            **dict.fromkeys(("conditions", "condition", "filter"), "where"),
            "model": "fit",
            "draws": "m",
            **dict.fromkeys(("min", "minimum", "lower"), "low"),
            **dict.fromkeys(("max", "maximum", "upper"), "high"),
            **dict.fromkeys(("values", "levels", "labels"), "categories"),
        },
        "analysis": {
            **dict.fromkeys(("median", "percentile"), "quantile"),
            "average": "mean",
            "sum": "total",
            **dict.fromkeys(("share", "percentage"), "proportion"),
            **dict.fromkeys(("regression", "linear", "linearregression"), "ols"),
            **dict.fromkeys(("logit", "logisticregression"), "logistic"),
            **dict.fromkeys(("corr", "pearson"), "correlation"),
        },
        "fit": {
            "gem": "generator",
            **dict.fromkeys(("pgm", "private-pgm", "aim", "mst"), "graphical"),
            "privpgd": "particles",
            **dict.fromkeys(("gsd", "private-gsd"), "genetic"),
            **dict.fromkeys(("rap", "rap++"), "relaxed"),
            "napsu-mq": "max-entropy",
        },
    }  # fmt: skip
    return names[owner].get(name if owner in ("Schema", "Release") else name.lower(), "")


class AnswersNames:
    """An object whose unknown attributes raise ``AttributeError`` with a hint."""

    def _hint(self, name: str) -> str:
        """Return a hint for a name that the object does not have: none, unless a subclass knows one."""
        return ""

    if not TYPE_CHECKING:  # which would take every name for one of the object

        def __getattr__(self, name: str) -> Any:
            """Raise ``AttributeError`` for an unknown name. An error within a property is raised again."""
            if name in dir(type(self)):
                return object.__getattribute__(self, name)
            hint = "" if name.startswith("_") else self._hint(name)
            owner = f"{type(self).__name__!r} object"
            raise AttributeError(f"{owner} has no attribute {name!r}.{hint and f' {hint}'}")
