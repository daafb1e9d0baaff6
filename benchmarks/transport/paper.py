"""What the paper's Tables 1 to 6 say of the two tables that are at hand, or nearly."""

from __future__ import annotations

from benchmarks.transport.tasks import PAPER

METRICS = (
    "downstream", "centred_covariance_error", "counting_error", "thresholding_error", "sliced_wasserstein", "two_way_l1"
)  # fmt: skip
"""The paper's columns in their order, by what they seem to be."""

AS_LARGE = ("diabetes", "diabetes7")
"""The tables that have as many rows as the paper's: noise weighs as much."""

REAL = {"Inc.": 0.19, "Diab.": 0.4}
"""The downstream error of the private rows."""

_TABLES: dict[tuple[str, float], dict[str, tuple[float, ...]]] = {
    ("Inc.", 2.5): {
        "privpgd": (0.19, 0.001, 0.00078, 0.00031, 0.00043, 0.028),
        "aim": (0.19, 0.014, 0.0017, 0.00034, 0.0017, 0.034),
        "mst": (0.24, 0.051, 0.0077, 0.0024, 0.0054, 0.11),
        "private-gsd": (0.2, 0.0049, 0.0017, 0.00083, 0.00093, 0.045),
        "gem": (0.22, 0.047, 0.01, 0.0038, 0.0099, 0.17),
        "rap": (0.2, 0.0078, 0.0017, 0.00056, 0.0011, 0.037),
    },
    ("Diab.", 2.5): {
        "privpgd": (0.4, 0.0013, 0.0013, 0.00042, 0.00084, 0.028),
        "aim": (0.4, 0.0045, 0.0025, 0.0015, 0.0022, 0.028),
        "mst": (0.41, 0.0047, 0.0083, 0.00029, 0.0017, 0.045),
        "private-gsd": (0.41, 0.0017, 0.0017, 0.00026, 0.00067, 0.026),
        "gem": (0.41, 0.042, 0.032, 0.0084, 0.032, 0.23),
        "rap": (0.41, 0.0034, 0.0021, 0.00097, 0.0025, 0.041),
    },
    ("Inc.", 1.0): {
        "privpgd": (0.19, 0.0019, 0.00092, 0.00039, 0.0006, 0.042),
        "aim": (0.19, 0.014, 0.0015, 0.00042, 0.0016, 0.033),
        "mst": (0.24, 0.052, 0.0077, 0.0024, 0.0054, 0.11),
        "private-gsd": (0.2, 0.0061, 0.0017, 0.00089, 0.00095, 0.046),
        "gem": (0.22, 0.047, 0.01, 0.0037, 0.0098, 0.16),
        "rap": (0.19, 0.0074, 0.0017, 0.00054, 0.001, 0.041),
    },
    ("Diab.", 1.0): {
        "privpgd": (0.4, 0.0033, 0.0026, 0.001, 0.002, 0.052),
        "aim": (0.4, 0.0031, 0.0019, 0.0014, 0.0019, 0.03),
        "mst": (0.41, 0.0042, 0.0067, 0.00056, 0.0019, 0.045),
        "private-gsd": (0.41, 0.0036, 0.0024, 0.00096, 0.0022, 0.039),
        "gem": (0.41, 0.04, 0.031, 0.0078, 0.03, 0.22),
        "rap": (0.41, 0.0073, 0.0043, 0.002, 0.0054, 0.071),
    },
    ("Inc.", 0.2): {
        "privpgd": (0.19, 0.0098, 0.0027, 0.00086, 0.0024, 0.15),
        "aim": (0.19, 0.019, 0.0025, 0.00053, 0.0022, 0.048),
        "mst": (0.24, 0.052, 0.0077, 0.0024, 0.0056, 0.11),
        "private-gsd": (0.2, 0.0058, 0.0018, 0.0008, 0.001, 0.052),
        "gem": (0.22, 0.046, 0.0099, 0.0035, 0.0096, 0.16),
        "rap": (0.2, 0.011, 0.0024, 0.001, 0.0019, 0.072),
    },
    ("Diab.", 0.2): {
        "privpgd": (0.42, 0.01, 0.013, 0.0045, 0.0082, 0.17),
        "aim": (0.41, 0.011, 0.0085, 0.0042, 0.0056, 0.071),
        "mst": (0.41, 0.012, 0.01, 0.0044, 0.008, 0.1),
        "private-gsd": (0.41, 0.014, 0.0083, 0.0041, 0.011, 0.12),
        "gem": (0.41, 0.043, 0.033, 0.0076, 0.032, 0.23),
        "rap": (0.42, 0.021, 0.014, 0.0061, 0.018, 0.19),
    },
}


def said(task: str, epsilon: float | None, contender: str, metric: str) -> float | None:
    """The paper's number, where it has one: all forms of PrivPGD are its PrivPGD."""
    who = "privpgd" if contender.startswith("privpgd") else contender
    if contender == "real":
        return REAL.get(PAPER.get(task, "")) if metric == "downstream" else None
    if task not in PAPER or epsilon is None or metric not in METRICS:
        return None
    row = _TABLES[PAPER[task], epsilon].get(who)
    return None if row is None else row[METRICS.index(metric)]
