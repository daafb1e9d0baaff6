"""The grammar of formulas, by recursive descent.

    formula     expression "~" terms
    expression  and, or, not, comparisons and arithmetic of columns, numbers and functions
    terms       + -, then * /, then :, then ** of factors
    factor      a column, a function, C(...), bs(...), cr(...), a truth of these, or terms in parentheses

Comparisons bind closer than ``+`` between terms, and less close than ``+`` inside of expressions, as in statsmodels.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from margrave.formula.cursor import Cursor, Rule
from margrave.formula.functions import (
    ALIASES,
    CENTER,
    CODINGS,
    COUNT,
    FUNCTIONS,
    MAX_COUNT,
    MISSING,
    MODULES,
    NUMBERS,
    PARTS,
    TRUTH,
    Function,
)
from margrave.formula.functions import NUMBER as A_NUMBER
from margrave.formula.nodes import (
    Call,
    Category,
    Chain,
    Coding,
    ColumnName,
    Compare,
    Formula,
    Logic,
    Missing,
    Negative,
    Node,
    Not,
    Number,
    Option,
    Power,
    Text,
    children,
    written,
)
from margrave.formula.tokens import NAME, NUMBER, QUOTED, TEXT, Token

#: The largest exponent, of terms and of numbers.
MAX_POWER = 4


def parse(formula: str) -> Formula:
    """Return the tree of a formula.

    Raises:
        InputError: The text is not a formula of the grammar; the message says where.

    >>> str(parse('age>65 ~ C( sex )*bs(hours,4)-1'))
    'age > 65 ~ C(sex) * bs(hours, df=4) - 1'
    """
    return _parsed(formula) if isinstance(formula, str) else Parser(formula).formula()


def parse_factor(text: str) -> Node:
    """Return the tree of a single factor of a formula's right side.

    Raises:
        InputError: The text is not a factor.
    """
    return _factor(text) if isinstance(text, str) else Parser(text).single()


@lru_cache(maxsize=256)
def _parsed(formula: str) -> Formula:
    return Parser(formula).formula()


@lru_cache(maxsize=1024)
def _factor(text: str) -> Node:
    return Parser(text).single()


class Parser(Cursor):
    """The grammar's rules, one method each, over the tokens of a formula."""

    def formula(self) -> Formula:
        """Read all of it as a formula."""
        left = self._shallow(self._expression)
        if isinstance(left, Number | Text):
            raise self._wrong("an outcome with a column", self._tokens[0])
        self._expect("~", "'~' after the outcome")
        right = self._shallow(self._terms)
        self._end()
        return Formula(left, right)

    def single(self) -> Node:
        """Read all of it as a factor."""
        node = self._shallow(lambda: self._truth(self._factor))
        self._end()
        if isinstance(node, Chain | Power | Number):
            raise self._wrong("a single factor", self._tokens[0])
        return node

    # Truths, of expressions and of factors

    def _truth(self, operand: Rule) -> Node:
        return self._joined(
            "|", "or", lambda: self._joined("&", "and", lambda: self._opposite(operand))
        )

    def _joined(self, sign: str, word: str, part: Rule) -> Node:
        start = self._token
        parts = [part()]
        while self._accept(sign) or self._accept(word):
            parts.append(self._checked(part, Chain | Power | Negative | Number | Category | Text))
        if len(parts) == 1:
            return parts[0]
        self._refuse(parts[0], Chain | Power | Negative | Number | Category | Text, start)
        return Logic(sign, tuple(parts))

    def _opposite(self, operand: Rule) -> Node:
        if not (self._accept("~") or self._accept("not")):
            return self._comparison(operand)
        with self._deeper():
            return Not(
                self._checked(
                    lambda: self._opposite(operand),
                    Chain | Power | Negative | Number | Category | Text,
                )
            )

    def _comparison(self, operand: Rule) -> Node:
        comparisons = ("==", "!=", "<", "<=", ">", ">=")
        start, first, rest = self._token, self._side(operand), []
        while (sign := self._accept(*comparisons)) is not None:
            rest.append((sign, self._checked(lambda: self._side(operand), self._unfit(operand))))
        if rest:
            self._refuse(first, self._unfit(operand), start)
            return Compare(first, tuple(rest))
        if isinstance(first, Text) or (start.kind == NAME and start.text in ("True", "False")):
            raise self._wrong(
                "a column",
                start,
                "A text or truth stands in a comparison, in Q('...') or in an option.",
            )
        return first

    def _unfit(self, operand: Rule) -> Any:
        """Return the types of nodes that cannot be a side of a comparison; in factors those of arithmetic too."""
        inside = operand != self._factor
        return (
            Category | Compare | Logic | Not | Missing
            if inside
            else (Chain | Power | Negative | Category | Compare | Logic | Not | Missing)
        )

    def _checked(self, rule: Rule, unfit: Any) -> Node:
        start = self._token
        node = rule()
        self._refuse(node, unfit, start)
        return node

    def _refuse(self, node: Node, unfit: Any, start: Token) -> None:
        if isinstance(node, unfit) or (isinstance(node, Call) and FUNCTIONS[node.function].factor):
            raise self._wrong(
                "a column, a number or a comparison",
                start,
                "Write arithmetic between terms inside of I(...).",
            )

    def _side(self, operand: Rule) -> Node:
        token = self._token
        if token.kind == TEXT:
            self._at += 1
            return Text(token.text)
        if (word := self._accept("True", "False")) is not None:
            return Number(float(word == "True"))
        return operand()

    # Arithmetic

    def _expression(self) -> Node:
        return self._truth(self._sum)

    def _sum(self) -> Node:
        return self._chain(("+", "-"), lambda: self._chain(("*", "/"), self._signed))

    def _chain(self, signs: tuple[str, ...], part: Rule) -> Node:
        first, rest = part(), []
        while (sign := self._accept(*signs)) is not None:
            rest.append((sign, part()))
        return Chain(first, tuple(rest)) if rest else first

    def _signed(self) -> Node:
        sign = self._accept("+", "-")
        if sign is None:
            return self._power()
        with self._deeper():
            operand = self._signed()
        if sign == "+":
            return operand
        return Number(-operand.value) if isinstance(operand, Number) else Negative(operand)

    def _power(self) -> Node:
        base = self._atom()
        if self._accept("**") is None:
            return base
        start = self._token
        exponent = self._number()
        if abs(exponent) > MAX_POWER:
            raise self._wrong(f"an exponent of at most {MAX_POWER}", start, "Use a smaller one.")
        if self._is("**"):
            raise self._wrong(
                "an operator or the end", remedy="Put the inner power into parentheses."
            )
        return Power(base, exponent)

    def _atom(self) -> Node:
        if self._is("("):
            with self._deeper():
                self._at += 1
                node = self._expression()
                self._expect(")")
            return node
        if self._token.kind == NUMBER:
            return Number(self._number())
        return self._named(factor=False)

    # Terms

    def _terms(self) -> Node:
        sign = self._accept("+", "-")
        first: Node = Number(1.0) if sign == "-" else self._crossed()
        rest = [("-", self._crossed())] if sign == "-" else []
        while (sign := self._accept("+", "-")) is not None:
            rest.append((sign, self._crossed()))
        return Chain(first, tuple(rest)) if rest else first

    def _crossed(self) -> Node:
        return self._apart(("*", "/"), lambda: self._apart((":",), self._raised))

    def _apart(self, signs: tuple[str, ...], part: Rule) -> Node:
        start = self._token
        node = self._chain(signs, part)
        own = isinstance(node, Chain) and node.rest[0][0] in signs
        if own and any(isinstance(part, Number) for part in children(node)):
            raise self._wrong("a column", start, "Write arithmetic between terms inside of I(...).")
        return node

    def _raised(self) -> Node:
        start = self._token
        base = self._truth(self._factor)
        if isinstance(base, Number) and base.value not in (0.0, 1.0):
            raise self._wrong(
                "a column, 0 or 1", start, "Write arithmetic between terms inside of I(...)."
            )
        if self._accept("**") is None:
            return base
        place = self._token
        exponent = self._number()
        if exponent not in range(1, MAX_POWER + 1) or isinstance(base, Number) or self._is("**"):
            raise self._wrong(
                f"terms to a power of 1 to {MAX_POWER}",
                place,
                "Write powers of values inside of I(...).",
            )
        if exponent > 1 and not isinstance(base, Chain | Power):
            own = base if isinstance(base, Category) else Call("I", (Power(base, exponent),))
            raise self._wrong("a sum of columns before **", start, f"Write {written(own)}.")
        return Power(base, exponent)

    def _factor(self) -> Node:
        if self._is("("):
            with self._deeper():
                self._at += 1
                node = self._terms()
                self._expect(")")
            return node
        if self._token.kind == NUMBER or self._is("-"):
            return Number(self._number())
        return self._named(factor=True)

    # Columns and functions

    def _named(self, *, factor: bool) -> Node:
        token = self._token
        if token.kind == QUOTED:
            self._at += 1
            return self._tested(ColumnName(token.text))
        if token.kind != NAME or token.text in ("and", "or", "not"):
            raise self._wrong("a column, a number or a function")
        self._at += 1
        name = token.text
        if name in MODULES and self._accept("."):
            if self._token.kind != NAME:
                raise self._wrong(f"a function after '{name}.'")
            self._at += 1
            return self._called(
                f"{MODULES[name]}.{self._tokens[self._at - 1].text}", token, factor=factor
            )
        return (
            self._called(name, token, factor=factor)
            if self._is("(")
            else self._tested(ColumnName(name))
        )

    def _tested(self, column: ColumnName) -> Node:
        if self._accept(".") is None:
            return column
        token = self._token
        if token.text == "dt":
            raise self._wrong(
                "a test for missing values", token,
                "Dates are days since 1970 in formulas. Write C(year(visit)) for C(visit.dt.year); there are"
                f" {', '.join(PARTS)}.",
            )  # fmt: skip
        if token.kind != NAME or token.text not in MISSING:
            raise self._wrong(
                "isna() or notna() after a column and '.'",
                token,
                "A column has no other attributes.",
            )
        self._at += 1
        self._expect("(")
        self._expect(")")
        return Missing(column, MISSING[token.text])

    def _called(self, name: str, start: Token, *, factor: bool) -> Node:
        with self._deeper():
            self._expect("(", "'(' after a function")
            if name == "Q":
                return self._quoted_column()
            if name == "C" and factor:
                return self._category()
            name = ALIASES.get(name, name)
            if name not in FUNCTIONS or (FUNCTIONS[name].factor and not factor):
                raise self._wrong(
                    "a function of formulas" if factor else "a function of numbers", start,
                    f"There are {', '.join(['C', 'Q', *FUNCTIONS])}.",
                )  # fmt: skip
            return self._function(name, FUNCTIONS[name], start)

    def _quoted_column(self) -> Node:
        token = self._token
        if token.kind != TEXT or not token.text:
            raise self._wrong("a column's name in quotes", remedy="Write it as Q('zip code').")
        self._at += 1
        self._expect(")")
        return self._tested(ColumnName(token.text))

    def _function(self, name: str, function: Function, start: Token) -> Node:
        arguments = [self._expression()]
        while len(arguments) < function.arguments:
            self._expect(",")
            arguments.append(self._expression())
        if all(isinstance(argument, Number) for argument in arguments):
            raise self._wrong("a function of columns", start)
        options = self._options(name, function)
        for needed in function.needs:
            if needed not in options:
                raise self._wrong(f"the option {needed} of {name}")
        self._expect(")")
        kept = tuple((key, options[key]) for key, _ in function.options if key in options)
        return Call(name, tuple(arguments), kept)

    def _options(self, name: str, function: Function) -> dict[str, Option]:
        kinds, found, by_name = dict(function.options), dict[str, Option](), False
        while self._accept(","):
            token, following = self._token, self._tokens[min(self._at + 1, len(self._tokens) - 1)]
            if token.kind == NAME and following.text == "=":
                key, by_name = token.text, True
                self._at += 2
            else:
                places = list(kinds)
                key = "" if by_name or len(found) >= len(places) else places[len(found)]
            if key not in kinds or key in found:
                raise self._wrong(
                    f"an option of {name}",
                    token,
                    f"It has {', '.join(kinds) or 'none'}, each once.",
                )
            found[key] = self._option(kinds[key])
        return found

    def _option(self, kind: str) -> Option:
        token = self._token
        if kind == TRUTH and (word := self._accept("True", "False")):
            return word == "True"
        if kind == CENTER and token.kind == TEXT and token.text == "center":
            self._at += 1
            return token.text
        if kind == NUMBERS and self._is("[", "("):
            return self._numbers()
        if kind in (COUNT, A_NUMBER):
            value = self._number()
            if kind == A_NUMBER or (value.is_integer() and 0 <= value <= MAX_COUNT):
                return value
        raise self._wrong(kind, token)

    def _category(self) -> Node:
        operand = self._truth(self._sum) if not self._is_cut() else self._named(factor=True)
        coding = None
        if self._accept(","):
            start = self._token
            if start.text == "contrast" and self._tokens[self._at + 1].text == "=":
                self._at += 2
            coding = self._coding()
        self._expect(")")
        if isinstance(operand, Number):
            raise self._wrong("categories of a column")
        return Category(operand, coding)

    def _is_cut(self) -> bool:
        words = [t.text for t in self._tokens[self._at : self._at + 3]]
        return words[1:] == [".", "cut"]

    def _coding(self) -> Coding:
        token = self._token
        if token.kind != NAME or token.text not in CODINGS:
            raise self._wrong("a coding of categories", remedy=f"There are {', '.join(CODINGS)}.")
        self._at += 1
        option, named = None, CODINGS[token.text]
        if self._accept("("):
            if named is not None and not self._is(")"):
                if self._accept(named):
                    self._expect("=")
                option = self._level_or_scores(token.text)
            self._expect(")")
        return Coding(token.text, option)

    def _level_or_scores(self, coding: str) -> str | float | tuple[float, ...]:
        token = self._token
        if coding == "Poly":
            if not self._is("[", "("):
                raise self._wrong(NUMBERS)
            return self._numbers()
        if token.kind == TEXT:
            self._at += 1
            return token.text
        if (word := self._accept("True", "False")) is not None:
            return word
        return self._number()
