"""How the contenders are called and coloured in docs/adaptive.md."""

from __future__ import annotations

from charts import Legend

LABELS = {
    "mwem": "MWEM", "mwem-forgetful": "MWEM without past queries", "mwem-marginals": "MWEM, whole marginals",
    "mwem-paper": "MWEM, as published",
    "pep": "PEP", "pep-marginals": "PEP, whole marginals",
    "gem": "GEM", "gem-marginals": "GEM, whole marginals", "gem-aim": "AIM's choice, mixture",
    "rap-softmax-paper": "RAP softmax, as published",
    "rap": "RAP", "rap-released": "RAP, as released", "rap-softmax": "RAP softmax",
    "dual-query": "DualQuery", "fem": "FEM",
    "gem-pub-tenth": "GEM Pub", "gem-pub-reduced": "GEM Pub (reduced)", "pmw-pub-tenth": "PMW Pub",
    "pep-pub-tenth": "PEP Pub", "gem-pub-us": "GEM Pub, states", "pmw-pub-us": "PMW Pub, states",
    "pep-pub-us": "PEP Pub, states", "gem-pub-ca": "GEM Pub, CA", "pmw-pub-ca": "PMW Pub, CA",
    "pep-pub-ca": "PEP Pub, CA", "gem-pub-oh": "GEM Pub, OH", "pmw-pub-oh": "PMW Pub, OH",
    "pep-pub-oh": "PEP Pub, OH", "aim": "AIM", "mst": "MST", "mwem-pgm": "MWEM+PGM", "independent": "independent",
    "gem-paper": "GEM, the paper's network", "gem-plain": "GEM in plain PyTorch",
}  # fmt: skip

FORMS = {"paper": "as published", "marginals": "whole marginals"}
LABELS |= {
    f"{name}-{form}": f"{label}, {words}"
    for name, label in list(LABELS.items()) if name.startswith(("pmw-pub", "pep-pub"))
    for form, words in FORMS.items()
}  # fmt: skip

_TEAL, _GREEN, _BLUE = ("#17697a", "#5fb8c6"), ("#3f8f4f", "#7cc98b"), ("#3b5fa8", "#85a3e0")
_RUST, _GOLD, _PINK = ("#c4622d", "#e8925f"), ("#a98212", "#cfae4a"), ("#b5366b", "#e283a9")
_VIOLET, _LILAC = ("#7a4fa3", "#b892dc"), ("#b39bc9", "#8f74b0")
_GREY, _INK = ("#6a7683", "#9fabb7"), ("#1f2630", "#e6e8ea")

_FAMILIES = {
    "gem-pub-reduced": _BLUE, "gem-pub": _GREEN, "pmw-pub": _RUST, "pep-pub": _VIOLET, "gem-marginals": _BLUE,
    "gem-aim": _GREEN, "gem-paper": _LILAC, "gem-plain": _INK, "gem": _TEAL, "pep": _VIOLET, "mwem-forgetful": _GOLD,
    "mwem-marginals": _PINK, "mwem-paper": _LILAC, "pep-marginals": _VIOLET,
    "mwem-pgm": _LILAC, "mwem": _RUST, "rap-softmax": _GREEN, "rap-released": _LILAC, "rap": _GOLD,
    "dual-query": _GREY, "fem": _PINK, "aim": _INK, "mst": _LILAC, "independent": _GOLD,
}  # fmt: skip

COLOURS = {name: next(c for f, c in _FAMILIES.items() if name.startswith(f)) for name in LABELS}
LEGEND = Legend(LABELS, COLOURS)
