"""How the contenders are called and coloured in the charts of docs/napsu.md."""

from __future__ import annotations

from charts import Legend

COLOURS = {
    "nuts": ("#17697a", "#5fb8c6"), "laplace": ("#3f8f4f", "#7cc98b"), "naive": ("#c4622d", "#e8925f"),
    "bootstrap": ("#7a4fa3", "#b892dc"), "plain": ("#b39bc9", "#8f74b0"), "pgm5": ("#d3b04c", "#e6cf86"),
    "pgm10": ("#a98212", "#cfae4a"), "pgm20": ("#6f5508", "#a98f45"), "exact": ("#b5366b", "#e283a9"),
    "laplace, one": ("#6a7683", "#9fabb7"), "exact, one": ("#c4622d", "#e8925f"), "real": ("#1f2630", "#e6e8ea"),
}  # fmt: skip

LABELS = {
    "real": "no privacy", "nuts": "NAPSU-MQ, NUTS", "laplace": "NAPSU-MQ, Laplace", "naive": "one PGM table, as real",
    "bootstrap": "bootstrap of PGM", "plain": "the same, bias left in", "pgm5": "5 runs of PGM",
    "pgm10": "10 runs of PGM", "pgm20": "20 runs of PGM", "exact": "without noise-awareness",
    "laplace, one": "without multiple imputation", "exact, one": "with neither",
}  # fmt: skip

LEGEND = Legend(LABELS, COLOURS)
