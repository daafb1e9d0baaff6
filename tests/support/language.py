"""The rules of language for the package's source that a program can check.

`python -m tests.support.language` prints every sentence and name that breaks one. `make check` runs it.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parents[2] / "src" / "margrave"

# A function's summary starts with a verb, so with none of these and with no formula.
NOT_VERBS = """
    a about after all an and another any as at both but by codes columns counts delta each every
    expected few for from how if in independent its linear marginals more no noisy none nothing of
    on one only others pairs plain points possible potentials python queries real records rows
    scaled shares so some synthetic texts that the their these they this those three true two values
    weights what when where whether which who whose why with multiplicative numbers loss edges dates
    ticks whole key means unless bounds neighboring asking equal rounds public many fresh unit anywhere
    measurements directions greedy logarithms cells chains coordinates trained training mean steps
    logistic several times standard rising summed squared runs floats says probabilities
"""
IDIOMS = {
    r"(?<![Tt]here )\b(is|are|was|were) (no|none|nothing)\b": "negate with not",
    r"\b(tells?|told|hears?|heard|teach(es)?|taught|believe[sd]?|learnt)\b": "models fit, errors report",
    r"\bnothing (tells|says)\b": "say what is unknown",
    r"(^|[.:;] )Of (a|an|the|these|those|others|what)\b[^.?]*[.]": "subject, verb, object",
    r"(^|[.;] )(What|Whether|How|Why)\b[^.?]*(\.|$)": "start with a noun or a verb",
    r"(^|[.;] )Where there\b": "write: if there is",
    r"\bfrom its end\b": "say what fails",
    r"\b(dearer|dearest|seldom|thereof|as good as)\b": "use the glossary",
    r"\bprivate choices?\b": "the glossary says private selection",
    r"\b(analys|normalis|optimis|summaris|recognis)(e|ed|er|ing|ation)\b": "American spelling",
    r"\b(neighbour|colour|behaviour|favour|centre)\w*": "American spelling",
}  # fmt: skip
VAGUE = """
    MOST MANY LARGE FAR SURE NEAR SMALL TINY LARGEST SMALLEST LEAST FEWEST FARTHEST FURTHEST LONGEST
    LOOSEST FAINTEST NOTHING ENOUGH STRONG STEEP SHORT TOGETHER KNOWN TOLD KEPT
"""
PARTICIPLES = "told asked given shown said held wanted moved made"


class Complaint(NamedTuple):
    """A line of a file that breaks a rule."""

    place: str
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.rule}: {self.text[:100]}"


def summaries(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    """Yield line, rule and text of every docstring whose first word breaks rule 1."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef | ast.FunctionDef):
            continue
        text = ast.get_docstring(node) or ""
        words = text.split()
        if not words or isinstance(node, ast.ClassDef):
            continue
        noun = any("property" in ast.unparse(d) for d in node.decorator_list)
        if not noun and (
            words[0].lower() in NOT_VERBS.split() or not re.match(r"[A-Z][a-z]+,?$", words[0])
        ):
            yield node.lineno, "start with a verb", text.split("\n")[0]


def sentences(source: str, tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield every text with its line: docstrings, messages and comments."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, " ".join(node.value.split())
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("#: ")


def constants(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield every module constant with its line; type variables are not constants."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            if isinstance(node.value, ast.Call) and ast.unparse(node.value.func).endswith(
                ("TypeVar", "ParamSpec")
            ):
                continue
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name) and target.id.strip("_").isupper():
                    yield node.lineno, target.id


def names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield every function, class and parameter that is named by a bare participle."""
    for node in ast.walk(tree):
        name = getattr(node, "name", None) or getattr(node, "arg", None)
        if (
            isinstance(node, ast.FunctionDef | ast.ClassDef | ast.arg)
            and name in PARTICIPLES.split()
        ):
            yield getattr(node, "lineno", 0), str(name)


def check(source: str, place: str) -> list[Complaint]:
    """Return the complaints about one file."""
    tree = ast.parse(source)
    found = [Complaint(f"{place}:{n}", rule, text) for n, rule, text in summaries(tree)]
    for line, text in sentences(source, tree):
        for idiom, rule in IDIOMS.items():
            if hit := re.search(idiom, text):
                found.append(Complaint(f"{place}:{line}", rule, text[max(0, hit.start() - 30) :]))
    found += [
        Complaint(f"{place}:{line}", "name the quantity and its unit", name)
        for line, name in constants(tree)
        if name.strip("_").split("_")[-1] in VAGUE.split()
    ]
    return found + [Complaint(f"{place}:{n}", "name the thing", name) for n, name in names(tree)]


def complaints(package: Path = PACKAGE) -> list[Complaint]:
    """Return the complaints about every file of the package."""
    paths = sorted(package.rglob("*.py"))
    return [
        complaint
        for path in paths
        for complaint in check(path.read_text(encoding="utf-8"), str(path.relative_to(package)))
    ]


def main() -> int:
    """Print the complaints; return 1 if there are any."""
    found = complaints()
    for complaint in found:
        print(complaint)  # noqa: T201
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
