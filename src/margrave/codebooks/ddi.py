"""DDI-Codebook files."""

from __future__ import annotations

import math
from xml.etree import ElementTree

from margrave.codebooks.json_parts import bound_of, check_words, with_labels
from margrave.codebooks.value_labels import list_all_values, split_labels
from margrave.codebooks.variable import Phrase, Variable, codes_within
from margrave.errors import SchemaError
from margrave.schema.parsing import number


def read_ddi(content: str, *, ranges_public: bool = False) -> list[Variable]:
    """Return the variables of a DDI-Codebook file (versions 1 to 2.5).

    Ranges and values that a program computed from the rows are left out: statistics (``sumStat``, ``catStat``), a
    valid range whose stated ends equal them, and categories of which some have frequencies and no labels. A label
    that repeats its code is not a label.

    Args:
        content: The XML.
        ranges_public: Whether such ranges and categories are public all the same.
    """
    if "<!DOCTYPE" in content or "<!ENTITY" in content:
        raise SchemaError(
            "The code book has a document type declaration, which can hide files and code.",
            remedy="Take the <!DOCTYPE ...> out.",
        )
    try:
        root = ElementTree.fromstring(content)
    except ElementTree.ParseError as error:
        raise SchemaError(
            f"The code book is not valid XML: line {error.position[0]}.",
            remedy="Correct it, or export it anew.",
        ) from None
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    if next(root.iter("codeBook"), None) is None:
        raise SchemaError(
            f"The code book is XML, and not DDI-Codebook: its first element is {root.tag[:40]!r}.",
            remedy="Export it as DDI-Codebook 2.5.",
        )
    found = [*root.iter("var")]
    files = [set(var.get("files", "").split()) for var in found]
    stated = [of for of in files if of]
    if stated and not set.intersection(*stated):
        raise SchemaError(
            f"The code book describes the variables of {len(set.union(*stated))} files.",
            remedy="Keep the var elements of one of them.",
        )
    return [_ddi(var, ranges_public) for var in found]


def _ddi(var: ElementTree.Element, ranges_public: bool) -> Variable:
    name = (var.get("name") or "").strip()
    if not name:
        raise SchemaError("The code book has a variable without a name.", remedy="Name it.")
    _check_words(name, var)
    form, digits = var.find("varFormat"), var.get("dcml")
    kind = _kind(var, form, digits)
    categories = var.findall("catgry")
    entries = [
        (_inner(c, "catValu"), _inner(c, "labl"), c.get("missing") == "Y") for c in categories
    ]
    codes = with_labels(name, ((code, label) for code, label, out in entries if not out and code))
    no_value = [code for code, _, out in entries if out and code]
    no_value += [i.get("VALUE", "") for i in var.findall("invalrng/item")]
    invalid = _spans(var, "invalrng", kind)
    no_value += [code for code in codes if any(_within(code, *span) for span in invalid)]
    codes = {code: label for code, label in codes.items() if code not in no_value}
    notes: list[str] = []
    questions: list[str] = []
    if kind in ("date", "timestamp") and (form is None or form.get("schema") != "ISO"):
        questions.append(Phrase.DATES)
    low, high = _valid_range(var, kind)
    if not ranges_public and (low or high) and _are_of_rows(var, low, high):
        ends = " and ".join(w for w, end in (("minimum", low), ("maximum", high)) if end)
        equal = f"Its valid range is left out: it equals the {ends} of the rows in sumStat"
        notes += [] if codes else [equal]
        low = high = None
    else:
        valid = [f"{a or 'all'} to {b or 'all'}" for a, b in _spans(var, "valrng", kind)]
        notes += [f"Valid: {', '.join(valid)}"] if len(valid) > 1 else []
    counted = any(c.find("catStat") is not None for c in categories)
    labels = {code: label for code, label in codes.items() if label not in ("", code)}
    of_rows = not ranges_public and counted and len(labels) < len(codes)
    if of_rows:
        notes.append("Its values are left out: some have frequencies and no labels")
    numeric = kind in ("integer", "real")
    some = len(codes) == 1 or (len(labels) == len(codes) and not list_all_values(labels))
    if of_rows or (numeric and some) or var.get("intrvl") == "contin":
        no_answer, answers = split_labels(labels)
        no_value += no_answer if numeric else []
        notes += answers if numeric else [f"{code} = {label}" for code, label in labels.items()]
        if not of_rows and var.get("intrvl") != "contin" and len(answers) > 1:
            questions += [Phrase.SOME_LABELS] if None in (low, high) else []
            kind = "text" if var.get("nature") == "nominal" and not (low or high) else kind
        codes = {}
    for least, most in invalid:
        if numeric and any(b and math.isnan(number(b)) for b in (least, most)):
            raise SchemaError(
                f"The code book's range of missing codes of {name!r} is not of numbers.",
                remedy="Correct the code book.",
            )
        within = codes_within(least, most)
        no_value += within
        notes += [] if within else [f"{Phrase.NO_VALUE}: {least or 'all'} to {most or 'all'}"]
        questions += [] if codes or within else [Phrase.MISSING_RANGE]
    listed = kind in ("integer", "real", "text") and bool(codes)
    return Variable(
        name, kind, _inner(var, "labl"), codes if listed else {}, var.get("nature") == "ordinal",
        None if kind == "text" else low, None if kind == "text" else high,
        tuple(dict.fromkeys(c for c in no_value if c)),
        notes=notes, questions=questions,
        missing_labels={code: label for code, label, _ in entries if code in no_value},
    )  # fmt: skip


def _kind(var: ElementTree.Element, form: ElementTree.Element | None, digits: str | None) -> str:
    """Return the kind of a variable. Only a discrete one is of whole numbers without a number of decimals."""
    of = "" if form is None else (form.get("type") or "")
    category = "" if form is None else (form.get("category") or "")
    if category in ("date", "time"):
        return {"date": "date", "time": "timestamp"}[category]
    if of != "numeric" and not (of == "" and var.get("intrvl") == "contin"):
        return "text"
    whole = digits == "0" or (digits in (None, "") and var.get("intrvl") != "contin")
    return "integer" if whole else "real"


def _spans(var: ElementTree.Element, of: str, kind: str) -> list[tuple[str, str]]:
    """Return the bounds of the ranges of a variable, valid or not, as texts; "" for one that is open."""
    step, found = int(kind == "integer"), []
    for span in var.findall(f"{of}/range"):
        low = bound_of(span.attrib, ["min"], "minExclusive", step)
        high = bound_of(span.attrib, ["max"], "maxExclusive", -step)
        found.append(("" if low is None else str(low), "" if high is None else str(high)))
    return found


def _within(code: str, least: str, most: str) -> bool:
    """Return True if a code is a number in a range; "" is an open end, and a range has one end at least."""
    low, high = number(least) if least else -math.inf, number(most) if most else math.inf
    return bool(least or most) and low <= number(code) <= high


def _valid_range(var: ElementTree.Element, kind: str) -> tuple[str | None, str | None]:
    """Return the least and the greatest of the valid ranges and values of a variable."""
    spans = _spans(var, "valrng", kind)
    spans += [(i.get("VALUE", ""), i.get("VALUE", "")) for i in var.findall("valrng/item")]
    if not spans:
        return None, None
    lows, highs = ([span[end] for span in spans] for end in (0, 1))
    unread = [text for text in (*lows, *highs) if text and math.isnan(number(text))]
    if unread and len(spans) > 1:  # which the column reports
        return unread[0], unread[0]
    if len(spans) == 1:
        return lows[0] or None, highs[0] or None
    return (
        min(lows, key=number) if all(lows) else None, max(highs, key=number) if all(highs) else None,
    )  # fmt: skip


def _are_of_rows(var: ElementTree.Element, low: str | None, high: str | None) -> bool:
    """Return True if all stated bounds are the minimum or maximum of the rows, by the statistics beside them."""
    agree = []
    for bound, kind in ((low, "min"), (high, "max")):
        if not bound:
            continue
        texts = [(s.text or "").strip() for s in var.findall("sumStat") if s.get("type") == kind]
        agree.append(any(t == bound or number(t) == number(bound) for t in texts))
    return all(agree)


def _check_words(name: str, var: ElementTree.Element) -> None:
    """Raise ``SchemaError`` for an element or a value that the standard does not have."""
    elements = (
        "location", "labl", "imputation", "security", "embargo", "respUnit", "anlysUnit", "qstn", "valrng", "invalrng",
        "undocCod", "universe", "TotlResp", "sumStat", "txt", "stdCatgry", "catgryGrp", "catgry", "codInstr", "verStmt",
        "concept", "derivation", "varFormat", "geoMap", "catLevel", "notes",
    )  # fmt: skip
    check_words(name, (child.tag for child in var), elements, "element", "DDI-Codebook")
    digits = [d for d in [var.get("dcml")] if d and not d.isdecimal()]
    check_words(name, digits, ("0", "1", "2"), "dcml", "DDI-Codebook")
    missing = [c.get("missing") for c in var.findall("catgry") if c.get("missing") is not None]
    check_words(name, missing, ("Y", "N"), "missing", "DDI-Codebook")
    in_ranges = ("range", "item", "key", "notes")
    for of in (*var.findall("valrng"), *var.findall("invalrng")):
        check_words(name, (child.tag for child in of), in_ranges, "element", "DDI-Codebook")
    attributes = (
        "min", "max", "minExclusive", "maxExclusive", "VALUE", "UNITS", "ID", "source", "elementVersion",
        "elementVersionDate", "ddiLifecycleUrn", "ddiCodebookUrn",
    )  # fmt: skip
    for span in (s for tag in ("valrng", "invalrng") for s in var.iterfind(f"{tag}/*")):
        written = (a for a in span.attrib if not a.startswith("{"))
        check_words(name, written, attributes, f"attribute of {span.tag}", "DDI-Codebook")
    in_categories = ("catValu", "labl", "txt", "catStat", "mrow")
    for category in var.findall("catgry"):
        check_words(name, (c.tag for c in category), in_categories, "element", "DDI-Codebook")
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
