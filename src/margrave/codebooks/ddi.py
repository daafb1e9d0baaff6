"""DDI-Codebook files."""

from __future__ import annotations

from xml.etree import ElementTree

from margrave.codebooks.json_parts import check_words
from margrave.codebooks.variable import Variable
from margrave.errors import SchemaError


def read_ddi(content: str) -> list[Variable]:
    """Return the variables of a DDI-Codebook file (versions 1 to 2.5).

    Ranges that a program computed from the rows (``sumStat``, frequencies) are not read.
    """
    if "<!DOCTYPE" in content or "<!ENTITY" in content:
        raise SchemaError(
            "The code book has a document type declaration, which can hide files and code.",
            remedy="Take the <!DOCTYPE ...> out.",
        )
    try:
        root = ElementTree.fromstring(content)
    except ElementTree.ParseError as error:
        raise SchemaError(f"The code book is not valid XML: line {error.position[0]}.") from None
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    return [_ddi(v) for v in root.iter("var")]


def _ddi(var: ElementTree.Element) -> Variable:
    name = (var.get("name") or "").strip()
    if not name:
        raise SchemaError("The code book has a variable without a name.", remedy="Name it.")
    _check_words(name, var)
    entries = [
        (_inner(c, "catValu"), _inner(c, "labl"), c.get("missing", "N").upper() == "Y")
        for c in var.findall("catgry")
    ]
    form = var.find("varFormat")
    of = "" if form is None else (form.get("category") or form.get("type") or "")
    digits = var.get("dcml")
    whole = digits in (None, "", "0")
    kind = {"numeric": "integer" if whole else "real", "date": "date", "time": "timestamp"}.get(
        of, "text"
    )
    if of == "" and var.get("intrvl") == "contin":
        kind = "integer" if digits == "0" else "real"
    valid = var.find("valrng/range")
    low, high = (None, None) if valid is None else (valid.get("min"), valid.get("max"))
    codes = {code: label for code, label, missing in entries if not missing and code}
    no_value = [code for code, _, missing in entries if missing and code]
    no_value += [i.get("VALUE", "") for i in var.findall("invalrng/item")]
    if (
        var.get("intrvl") == "contin"
    ):  # labels of some values of a continuous variable are not its categories
        codes = {}
    listed = kind in ("integer", "real", "text") and bool(codes)
    return Variable(
        name, kind, _inner(var, "labl"), codes if listed else {}, var.get("nature") == "ordinal",
        None if kind == "text" else low, None if kind == "text" else high,
        tuple(dict.fromkeys(c for c in no_value if c)),
    )  # fmt: skip


def _check_words(name: str, var: ElementTree.Element) -> None:
    """Raise ``SchemaError`` for an element or a value that the standard does not have."""
    elements = (
        "location", "labl", "imputation", "security", "embargo", "respUnit", "anlysUnit", "qstn", "valrng", "invalrng",
        "undocCod", "universe", "TotlResp", "sumStat", "txt", "stdCatgry", "catgryGrp", "catgry", "codInstr", "verStmt",
        "concept", "derivation", "varFormat", "geoMap", "catLevel", "notes",
    )  # fmt: skip
    check_words(name, (child.tag for child in var), elements, "element", "DDI-Codebook")
    in_ranges = ("range", "item", "key", "notes")
    for of in (*var.findall("valrng"), *var.findall("invalrng")):
        check_words(name, (child.tag for child in of), in_ranges, "element", "DDI-Codebook")
    intervals = [i for i in [var.get("intrvl")] if i is not None]
    check_words(name, intervals, ("contin", "discrete"), "intrvl", "DDI-Codebook")
    natures = [n for n in [var.get("nature")] if n is not None]
    check_words(
        name,
        natures,
        ("nominal", "ordinal", "interval", "ratio", "percent", "other"),
        "nature",
        "DDI-Codebook",
    )
    form = var.find("varFormat")
    kinds = [] if form is None or form.get("type") is None else [form.get("type")]
    check_words(name, kinds, ("numeric", "character"), "type of varFormat", "DDI-Codebook")
    categories = [] if form is None or form.get("category") is None else [form.get("category")]
    check_words(
        name,
        categories,
        ("date", "time", "currency", "other"),
        "category of varFormat",
        "DDI-Codebook",
    )


def _inner(element: ElementTree.Element, tag: str) -> str:
    found = element.find(tag)
    return "" if found is None else " ".join("".join(found.itertext()).split())
