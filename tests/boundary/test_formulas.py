"""Formulas are data: a closed grammar, generated and attacked; nothing in one is ever run."""

from __future__ import annotations

import ast
import itertools
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from margrave.cli.main import run
from margrave.errors import InputError
from margrave.formula import expand, parse, parse_factor
from margrave.formula.cursor import MAX_DEPTH
from margrave.formula.expansion import MAX_TERMS
from margrave.formula.parser import MAX_POWER
from margrave.formula.tokens import MAX_CHARACTERS
from margrave.inference import OLS, Logistic, analyze
from margrave.inference.design import ClosedMaterializer, design

SOURCE = Path(__file__).parents[2] / "src" / "margrave"
RNG = np.random.default_rng(1)
FRAME = pd.DataFrame(
    {
        "age": RNG.normal(50.0, 9.0, 60),
        "stay": RNG.gamma(2.0, 2.0, 60),
        "sex": pd.Categorical(RNG.choice(["F", "M"], 60)),
        "zip code": RNG.integers(0, 3, 60),
    }
)

EXPLOITS = [
    ("ols", "age ~ I(__import__('os').system('touch made') + age) + C(sex)"),
    ("logistic", "@pd.io.common.os.system('touch made') == age ~ age"),
    ("logistic", "age.to_csv('made') == age ~ age"),
    ("logistic", "sex.to_pickle('made') ~ age"),
]


@pytest.mark.parametrize(("kind", "formula"), EXPLOITS)
def test_a_formula_runs_nothing(
    kind: str, formula: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model: Any = {"ols": OLS, "logistic": Logistic}[kind](formula)
    for attempt in (
        lambda: model.check(FRAME),
        lambda: model(FRAME),
        lambda: analyze([FRAME, FRAME], model),
    ):
        with pytest.raises(InputError, match="at character"):
            attempt()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("kind", "formula"), EXPLOITS)
def test_the_command_line_runs_nothing(
    kind: str,
    formula: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
    release_file: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (
        [kind, str(release_file), formula],
        ["several", str(release_file), f'{kind} "{formula}"'],
    ):
        assert run(["analyze", *words, "--m", "4", "--method", "bootstrap"]) == 2
        assert "at character" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def release_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from margrave import synthesize
    from margrave.mechanisms import Independent
    from margrave.schema import Categorical, Integer, Schema

    schema = Schema([Categorical("sex", ["F", "M"]), Integer("age", 0, 99, bins=10)])
    rows = pd.DataFrame({"sex": ["F", "M"] * 50, "age": list(range(100))})
    path = tmp_path_factory.mktemp("made") / "r.margrave"
    synthesize(rows, schema, epsilon=5.0, delta=1e-6, mechanism=Independent()).save(path)
    return path


HOSTILE = [
    "__import__('os')", "age.__class__", "().__class__", "age.to_csv('made')", "age.values",
    "lambda: age", "(age := 1)", "f'{age}'", "b'age'", "@age", "[age for age in age]", "{age}",
    "{'a': age}", "`__import__`('os')", "`open('made', 'w')`", "Q('open')('made')", "Q(Q('age'))",
    "Q('a' 'b')", "Q(\"age\" + 'x')", "np.load('made')", "np.lib", "np.log.reduce(age)", "np", "np.",
    "pd.io.common.os", "pd.eval('1')", "eval('1')", "exec('1')", "open('made')", "getattr(age, 'x')",
    "C(age, __import__('os'))", "C(sex, Treatment(age))", "bs(age, df=age)", "bs(age, df=[age])",
    "bs(age, df=__import__('os'))", "bs(age, knots=(age for age in age))", "age[0]",
    "age if sex else age", "age; age", "age, age", "age ** 5", "age**1000000", "age ** 99999999",
    "age ** age", "I(age ** 99999999)", "I(2 ** age)", "age ** -1", "age ** 1.5", "1e999",
    "I(age + 1e999)", "2", "2 * age", "age // 2", "age % 2", "age ^ 2", "age @ age", "age ~ age", "~", "",
    "(", ")", "()", "'age'", "C('age')", "np.log('age')", "age == ", "age = 1", "age.isna", "age.isna(1)",
    "age.isna()()", "age.dt.year", "(age).isna()", "\u0430ge", "\u1d00ge", "I\u200b(age)", "age\x00",
    "age\x1b[31m", "Q('a\x00')", "`a\nb`", "Q('\\x41')", "Q('", "`", "``", "#age", "age # x", "age\\",
    "True", "None", "not", "age and", "C(bs(age))", "np.log(C(sex))", "cr(cr(age))", "Treatment('a')",
    "1_000", "0x10", "1if age", "...", "*", "**age", "age!", "$age", "age?", "C(C(sex))", "I()", "I(1)",
    "np.log(age, age)", "np.log(x=age)", "bs(age, df=4, df=4)", "bs(age, 4, knots=[1], 9)",
    "bs(age, extrapolation='clip')", "bs(age, _state=1)", "pd.cut(age)", "pd.cut(age, [2, 1])",
    "C(sex, Treatment('F'), 1)",
]  # fmt: skip


@pytest.mark.parametrize("hostile", HOSTILE)
def test_what_is_not_in_the_grammar_is_refused(
    hostile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for formula in (
        f"stay ~ {hostile}",
        f"stay ~ age + ({hostile})",
        f"{hostile} ~ age",
        f"stay ~ C({hostile})",
    ):
        if formula in VALID:
            parse(formula)
            continue
        for model in (OLS, Logistic):
            with pytest.raises(InputError) as refused:
                model(formula)(FRAME)
            assert refused.value.remedy
            assert str(refused.value).isprintable()
    assert list(tmp_path.iterdir()) == []


R_SPELLINGS = [
    ("age^2", "Write I(age ** 2)."),
    ("I(age^2)", "Write I(age ** 2)."),
    ("log(age)^3", "Write I(log(age) ** 3)."),
    ("(age + sex)^2", "Write (age + sex) ** 2."),
    ("age^age", "Write powers as **, such as I(age ** 2)."),
    ("age ** 2", "Write I(age ** 2)."),
    ("sex + (age) ** 3", "Write I(age ** 3)."),
    ("C(sex) ** 2", "Write C(sex)."),
    ("factor(sex)", "Write C(sex)."),
    ("as.factor(sex)", "Write C(sex)."),
    ("C(sex, ref='F')", "Write C(sex, Treatment('F'))."),
    ("C(sex, ref = F)", "Write C(sex, Treatment('F'))."),
    ("poly(age, 2)", "Write age + I(age ** 2)."),
    ("poly(age, degree = 3, raw = TRUE)", "Write age + I(age ** 2) + I(age ** 3)."),
    ("ns(age, 4)", "Write cr(age, df=4, constraints='center')."),
    ("s(age)", "Write cr(age, df=3, constraints='center')."),
    (
        "age + (1|sex)",
        "Random effects are not fitted. Write C(sex) for coefficients of its values.",
    ),
    (
        "age + (1 || sex)",
        "Random effects are not fitted. Write C(sex) for coefficients of its values.",
    ),
    (".", "Name the columns, such as y ~ a + b."),
]


@pytest.mark.parametrize(("spelling", "remedy"), R_SPELLINGS)
def test_spellings_of_r_are_refused_with_what_to_write(spelling: str, remedy: str) -> None:
    with pytest.raises(InputError, match="cannot be read at character") as refused:
        parse(f"stay ~ {spelling}")
    assert refused.value.remedy == remedy
    written = re.search(r"Write (.*?)( for .*)?\.$", remedy)
    if written and "such as" not in remedy:
        OLS(f"stay ~ {written[1]}")(FRAME)


ARITHMETIC = ("2 * age", "age ** -1", "age ** 1.5")
VALID = {f"stay ~ C({a})" for a in ARITHMETIC} | {f"{a} ~ age" for a in ARITHMETIC}
"""Arithmetic is not terms, but may stand in an outcome or a function."""


def test_limits_hold_at_once() -> None:
    x = [f"x{i}" for i in range(60)]
    deep = "(" * (MAX_DEPTH - 1) + "x" + ")" * (MAX_DEPTH - 1)
    assert str(parse(f"y ~ {deep}")) == "y ~ x"
    assert (
        len(expand(parse(f"y ~ {' + '.join(f'v{i}' for i in range(MAX_TERMS - 50))}").right)[1])
        == MAX_TERMS - 50
    )
    assert (
        len(expand(parse(f"y ~ ({' + '.join(x[:5])}) ** {MAX_POWER}").right)[1]) == 5 + 10 + 10 + 5
    )
    start = time.process_time()
    for formula, words in [
        (f"y ~ {'x' * MAX_CHARACTERS}", "at most 1,000"),
        (f"y ~ {'x' * 10**7}", "at most 1,000"),
        (f"y ~ {'(' * 300}x{')' * 300}", "at most 30 deep"),
        (f"y ~ {'~' * 900}x", "at most 30 deep"),
        (f"y ~ I({'-' * 900}x)", "at most 30 deep"),
        (f"y ~ {'I(' * 250}x{')' * 250}", "at most 30 deep"),
        (f"y ~ {'not ' * 200}x", "at most 30 deep"),
        (f"y ~ x ** {MAX_POWER + 1}", "a power of 1 to 4"),
        ("y ~ x ** 1000000", "a power of 1 to 4"),
        (f"y ~ I(x ** {MAX_POWER + 1})", "an exponent of at most 4"),
        ("y ~ I(x ** 2 ** 2)", "an operator or the end"),
        (f"y ~ ({' + '.join(x)}) ** 2", "more than 200 terms"),
        (f"y ~ ({' + '.join(x)}) ** 4", "more than 200 terms"),
        (f"y ~ {':'.join(['(a+b+c+d+e+f+g)**4'] * 50)}", "more than 200 terms"),
        (f"y ~ {'*'.join(f'v{i}' for i in range(200))}", "more than 200 terms"),
        (f"y ~ {'*'.join(['(a+b+c)'] * 90)}", ""),
    ]:
        if words:
            with pytest.raises(InputError, match=words):
                expand(parse(formula).right)
        else:
            expand(parse(formula).right)
    assert time.process_time() - start < 2.0


def test_bins_may_end_at_any_number() -> None:
    rows = pd.DataFrame({"x": np.arange(10.0)})
    _, x, names = design(parse("y ~ pd.cut(x, bins=[-1, 5, 1e308])").right, rows, np.arange(10.0))
    assert len(names) == 2
    assert x[:, 1].tolist() == [0.0] * 6 + [1.0] * 4


def test_a_design_of_too_many_columns_is_refused_before_it_is_made() -> None:
    rows = pd.DataFrame({"a": pd.Categorical(range(300)), "b": pd.Categorical(range(300))})
    with pytest.raises(InputError, match=r"makes 90,600 columns.* the term a:b alone makes 90,000"):
        design(parse("y ~ a * b").right, rows, np.arange(300.0))


def test_long_formulas_of_one_level_are_read() -> None:
    """The depth is that of the formula, not that of its length."""
    row = " + ".join(["age"] * 150)
    assert len(OLS(f"stay ~ {row}")(FRAME).names) == 2
    assert len(OLS(f"stay ~ I({row})")(FRAME).names) == 2
    assert len(OLS(f"stay ~ C({' | '.join(['age > 50'] * 80)})")(FRAME).names) == 2


def test_no_source_evaluates_text() -> None:
    """No text becomes code anywhere in the package, and libraries that do so are not imported."""
    for path in sorted(SOURCE.rglob("*.py")):
        assert list(complaints(ast.parse(path.read_text(encoding="utf-8")))) == [], path


def test_a_source_that_evaluates_is_seen() -> None:
    for line in (
        "eval('1')", "exec('1')", "compile('1', '', 'eval')", "frame.eval('a')", "frame.query('a > 1')",
        "pd.eval('1')", "import patsy", "from patsy import dmatrix",
        "import statsmodels.formula.api as smf", "from statsmodels.formula import api",
        "from formulaic import model_matrix", "from formulaic import Formula",
        "from formulaic.parser import DefaultFormulaParser", "smf.ols('y ~ x', f)",
        "np.load('f', allow_pickle=True)", "OLS.from_formula('y ~ x', f)", "__import__('os')",
    ):  # fmt: skip
        assert list(complaints(ast.parse(line))), line


RUNNERS = {
    "eval", "exec", "compile", "__import__", "stateful_eval", "model_matrix", "Formula", "from_formula",
}  # fmt: skip
FORMULAIC = {
    "SimpleFormula", "FactorEvaluationError", "PandasMaterializer", "FactorValues", "Factor", "Term", "C",
    "basis_spline", "natural_cubic_spline", "Contrasts", "DiffContrasts", "HelmertContrasts",
    "PolyContrasts", "SumContrasts", "TreatmentContrasts",
}  # fmt: skip


def complaints(tree: ast.AST) -> Any:
    """Calls and imports that make code of text. ``re.compile`` and linear queries' ``query(j)`` are none."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from called(node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", None) or ""
            names = [alias.name for alias in node.names]
            if any(re.match(r"patsy\b|statsmodels\.formula\b", m) for m in (module, *names)):
                yield f"{node.lineno}: {module} {names}"
            if module.partition(".")[0] == "formulaic" and not set(names) <= FORMULAIC:
                yield f"{node.lineno}: {module} {names}"


def called(node: ast.Call) -> Any:
    own = isinstance(node.func, ast.Name) and node.func.id in RUNNERS
    attribute = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    of = getattr(getattr(node.func, "value", None), "id", "")
    texts = [a for a in node.args if isinstance(a, ast.Constant | ast.JoinedStr)]
    if own and not (node.func.id == "Formula" and len(node.args) == 2):  # ours is made of two trees
        yield f"{node.lineno}: {node.func.id}"
    if attribute in RUNNERS - {"compile", "Formula"} or (attribute == "compile" and of != "re"):
        yield f"{node.lineno}: .{attribute}"
    if attribute == "query" and (texts or node.keywords):
        yield f"{node.lineno}: .query"
    if of == "smf" or any(
        k.arg == "allow_pickle" and getattr(k.value, "value", True) for k in node.keywords
    ):
        yield f"{node.lineno}: {of}.{attribute}"


@pytest.mark.parametrize(
    "hostile",
    [
        "__import__('os').system('touch made')",
        "age.to_csv('made')",
        "np.load('made')",
        "open('made', 'w')",
        "secret",
    ],
)
@pytest.mark.parametrize("method", ["python", "lookup"])
def test_a_factor_made_by_hand_is_refused(
    hostile: str, method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """formulaic's one place of evaluation is ours, so that a text that gets that far is read by our grammar."""
    from formulaic import SimpleFormula
    from formulaic.errors import FactorEvaluationError
    from formulaic.parser.types import Factor, Term

    monkeypatch.chdir(tmp_path)
    formula = SimpleFormula([Term([Factor(hostile, eval_method=method)])], _ordering="none")
    materializer = ClosedMaterializer(FRAME, context={"secret": FRAME.age})
    with pytest.raises(FactorEvaluationError, match="InputError: The formula"):
        materializer.get_model_matrix(formula, na_action="raise")
    assert list(tmp_path.iterdir()) == []


# The grammar, generated.

NAMES = [
    "age", "stay", "sex", "C", "np", "year", "\u00e4lter", "zip code", "it's", 'a "b"', "a\\b", "not",
    "1a", "x.y", "T",
]  # fmt: skip
SCALARS = st.one_of(
    st.integers(-9, 10**6).map(str), st.floats(0.001, 1e6).map(repr), st.just("1e-7")
)


def column() -> st.SearchStrategy[str]:
    return st.sampled_from(NAMES).map(spelling).flatmap(st.sampled_from)


def spelling(name: str) -> list[str]:
    escaped = name.replace("\\", "\\\\")
    single, double = escaped.replace("'", "\\'"), escaped.replace('"', '\\"')
    plain = [name] if re.fullmatch(r"[^\W\d]\w*", name) and name not in ("not", "np") else []
    ticks = [f"`{name}`"] if "`" not in name else []
    return [f"Q('{single}')", f'Q( "{double}" )', *plain, *ticks]


def number() -> st.SearchStrategy[str]:
    return st.recursive(
        st.one_of(column(), column()),
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from("+-*/"), st.one_of(inner, SCALARS)).map(" ".join),
            st.tuples(inner, st.integers(-4, 4)).map(lambda t: f"({t[0]})**{t[1]}"),
            inner.map(lambda t: f"( {t} )"),
            inner.map(lambda t: f"-{t}"),
            st.tuples(st.sampled_from(["np.log", "log1p", "abs", "I", "year"]), inner).map(
                lambda t: f"{t[0]}({t[1]})"
            ),
            st.tuples(inner, inner).map(lambda t: f"np.maximum({t[0]},{t[1]})"),
        ),
        max_leaves=5,
    )


def truth(side: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    signs, tests = (
        st.sampled_from(["==", "!=", "<", "<=", ">", ">="]),
        st.sampled_from(["isna", "notnull"]),
    )
    compared = st.tuples(side, signs, st.one_of(side, st.just("'a'"))).map(" ".join)
    missing = st.tuples(column(), tests).map(lambda t: f"{t[0]}.{t[1]}()")
    return st.recursive(
        st.one_of(compared, missing),
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(["&", "|", "and", "or"]), inner).map(" ".join),
            st.sampled_from(["~", "not "]).flatmap(
                lambda sign: inner.map(lambda t: f"{sign}({t})")
            ),
        ),
        max_leaves=4,
    )


def factor() -> st.SearchStrategy[str]:
    codings = [
        "", ", Treatment", ", Treatment('a')", ", Treatment(reference=2)", ", Sum", ", Poly",
        ", Poly(scores=[1, 2.5])", ", Helmert()",
    ]  # fmt: skip
    splines = [
        "4",
        "knots=[1, 2.5], degree=2",
        "df=5, include_intercept=True",
        "df=4, lower_bound=-1, upper_bound=1e3",
    ]
    return st.one_of(
        column(),
        st.tuples(st.one_of(number(), truth(number())), st.sampled_from(codings)).map(
            lambda t: f"C({t[0]}{t[1]})"
        ),
        st.tuples(number(), st.sampled_from(splines)).map(lambda t: f"bs({t[0]}, {t[1]})"),
        number().map(lambda t: f"cr({t}, df=3)"),
        number().map(lambda t: f"I({t})"),
        number().map(lambda t: f"pd.cut({t}, [-1, 0, 2.5], right=False)"),
        truth(column()),
    )


def terms() -> st.SearchStrategy[str]:
    return st.recursive(
        st.one_of(factor(), st.sampled_from(["0", "1", "(age + sex) ** 2"])),
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(["+", "-"]), inner).map(" ".join),
            st.tuples(factor(), st.sampled_from(["*", ":", "/"]), factor()).map("".join),
            inner.map(lambda t: f"({t})"),
            inner.map(lambda t: f"(-({t}))"),
        ),
        max_leaves=4,
    )


FORMULAS = st.tuples(st.one_of(number(), truth(number())), terms()).map(" ~ ".join)


def attempted(formula: str) -> tuple[Any, str]:
    """The tree of a formula and no words, or the words of the one error that it may raise."""
    try:
        tree = parse(formula)
        expand(tree.right)
    except InputError as error:
        return None, str(error) if error.remedy else ""
    return tree, ""


@settings(max_examples=400, deadline=None)
@given(FORMULAS)
def test_a_formula_is_read_and_printed_to_itself(formula: str) -> None:
    tree, refused = attempted(formula)
    if (
        tree is None
    ):  # more than a limit, an intercept that interacts, or truths beside numbers without parentheses
        assert re.search(r"at character|more than|intercept", refused)
        return
    printed = str(tree)
    if len(printed) <= MAX_CHARACTERS:
        assert parse(printed) == tree
        assert str(parse(printed)) == printed
    for text, node in itertools.chain(*(term.items() for term in expand(tree.right)[1])):
        assert len(text) > MAX_CHARACTERS or parse_factor(text) == node, (
            "a coefficient's name is read as its factor"
        )


@settings(max_examples=150, deadline=None)
@given(FORMULAS)
def test_most_generated_formulas_are_valid(formula: str) -> None:
    """So that the test before is not empty: what is refused is refused for a reason that the generator knows."""
    if len(formula) < 200 and "**" not in formula:
        tree, refused = attempted(formula)
        assert tree is not None or re.search(
            r"deep|comparison|column|operator|intercept", refused
        ), formula


SPICES = [
    *HOSTILE, "__", ".", "@", "lambda x: x", ":=", "f'", "`", "'", '"', "\\", "{", "}", "\x00", "\u202e", "\u0430",
    "(" * 40, "**" * 9,
]  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(
    st.one_of(st.text(max_size=60), FORMULAS),
    st.sampled_from(SPICES),
    st.integers(0, 200),
    st.booleans(),
)
def test_a_spoilt_formula_is_read_or_refused(
    formula: str, spice: str, at: int, replaced: bool
) -> None:
    spoilt = formula[:at] + spice + formula[at + (3 if replaced else 0) :]
    start = time.process_time()
    tree, refused = attempted(spoilt)
    if tree is None:
        assert refused
        assert refused.isprintable()
    else:
        assert len(str(tree)) > MAX_CHARACTERS or parse(str(tree)) == tree
    assert time.process_time() - start < 1.0


@settings(max_examples=150, deadline=None)
@given(terms())
def test_a_formula_that_is_read_gives_numbers_or_a_clear_error(right: str) -> None:
    frame = FRAME.assign(**{n: FRAME["age"] for n in NAMES if n not in FRAME})
    tree, _ = attempted(f"stay ~ {right}")
    if tree is None:
        return
    try:
        y, x, names = design(tree.right, frame, frame.stay.to_numpy())
    except InputError:
        return
    except ValueError as error:
        assert re.match(r"no record has |.* is infinite for", str(error))  # noqa: PT017 — most give none
        return
    assert x.shape == (len(y), len(names))
    assert np.isfinite(x).all()


# What comes of them is what statsmodels' own formulas gave.

SAME = [
    "x", "x + g", "g * x", "x:g", "x:g - 1", "g:h", "0 + g + h", "g / x", "(g + h + x) ** 2", "g * h * x",
    "C(k)", "C(k):x", "C(k, Treatment(2))", "C(g, Sum)", "C(g, Poly)", "C(k, Poly) * x", "C(g, Helmert)",
    "C(g, Diff)", "C(g, Treatment('c')) * x", "bs(x, df=4)", "bs(x, df=5) * g",
    "bs(x, df=4, include_intercept=True)", "bs(x, knots=[2, 3], degree=2)", "cr(x, df=4)",
    "cr(x, df=4) - 1", "cr(x, df=3, constraints='center')", "t", "t * x", "x > 3", "x > 3 + w",
    "C(x > 3):g", "I(x ** 2) + x * w", "np.log(np.abs(x))", "center(x) + standardize(w)", "Q('zip code')",
    "w:x:g + w + g:w", "h + h:g:x", "1", "I(t)", "np.maximum(x, w)",  "-1 + g", "a",
]  # fmt: skip


@pytest.mark.parametrize("right", SAME)
def test_designs_are_those_of_patsy(right: str) -> None:
    import patsy

    rng, n = np.random.default_rng(0), 200
    frame = pd.DataFrame(
        {
            "y": rng.normal(size=n), "x": rng.normal(size=n) + 3, "w": rng.normal(size=n), "k": rng.integers(0, 4, n),
            "g": pd.Categorical(rng.choice(list("abc"), n), categories=["b", "a", "c"]), "h": rng.choice(["p", "q"], n),
            "t": rng.random(n) < 0.4, "zip code": rng.integers(0, 9, n),
            "a": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
        }
    )  # fmt: skip
    theirs = patsy.dmatrix(right, frame)
    _, ours, names = design(parse(f"y ~ {right}").right, frame, frame.y.to_numpy())
    assert list(names) == [
        re.sub(r"(\[(?:T\.)?\d+)\.0\]", r"\1]", name) for name in theirs.design_info.column_names
    ]
    assert ours == pytest.approx(np.asarray(theirs), abs=1e-9)
