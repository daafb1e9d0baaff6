"""The first stage of a run: columns that the schema leaves open are learned behind the gate."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Literal

from margrave._fields import is_number
from margrave.accounting import Budget
from margrave.accounting.thresholds import threshold_for
from margrave.custodian import NOT_PRIVATE
from margrave.domain import Domain
from margrave.errors import InputError, UnlearnableError
from margrave.learning import GateColumn, advice_on, learn_schema
from margrave.learning.extent import range_advice, rows_to_show
from margrave.learning.shares import LearningShares, column_share
from margrave.mechanisms import Mechanism
from margrave.privacy import Gaussian, Private
from margrave.schema import Schema
from margrave.schema.column_queries import LineCells
from margrave.transcript import ColumnAnswer
from margrave.unit import Unit, rows_per_person


def budget_for(schema: Schema, epsilon: float, delta: float) -> Budget:
    """Return the budget of a run: a tenth of delta is for thresholds if the schema has categories to learn.

    Raises:
        InputError: If epsilon or delta is out of range.
    """
    is_open = any(not c.is_number for c in schema.to_learn)
    return Budget.approx(epsilon, delta, delta / 10 if is_open and is_number(delta) else 0.0)


def check_thresholds(schema: Schema, budget: Budget, unit: Unit) -> None:
    """Raise ``InputError`` if categories are to be learned and the budget buys no threshold."""
    names = [c.name for c in schema.to_learn if not c.is_number]
    if names and not budget.threshold_delta:
        raise InputError(
            f"The categories of {names[0]!r} are to be learned, and the budget has no delta for thresholds.",
            remedy="Give Budget.approx(epsilon, delta, threshold_delta=delta / 10), or declare the categories.",
        )
    if names:
        share = column_share(budget.rho * LearningShares.learning, len(schema.to_learn))
        part = Fraction(budget.threshold_delta) / len(names)
        threshold_for(unit, Gaussian.scale_for(share, unit), part)


def rows_to_learn(
    schema: Schema,
    budget: Budget,
    unit: Unit,
    rows: int | None,
    *,
    true_rows: int | None = None,
) -> str:
    """Return a note on the rows that learning needs; "" if there are enough, or there is nothing to learn.

    A column is learned if a value, or the numbers between a value and its double, is on enough rows. With fewer rows
    than that, the note says that learning is likely to fail. Rows are taken to be enough if a quarter of them are.

    Args:
        schema: The schema.
        budget: The budget, with a delta for thresholds if there are categories to learn.
        unit: The unit of privacy.
        rows: The number of rows that is public, or that the user states; None if unknown.
        true_rows: The true row count, only if nobody but the custodian gets the result. The result is then "" if the
            unit is a row and the count is 1.5 times the rows that are needed, or more. A note that the count could have
            suppressed is marked as not private.

    Privacy:
        None spent: a function of public inputs, except that ``true_rows`` can suppress the note.
    """
    if not schema.to_learn:
        return ""
    most_frequent, row_margin = 4, 1.5
    share = column_share(budget.rho * LearningShares.learning, len(schema.to_learn))
    names = [c.name for c in schema.to_learn if not c.is_number]
    least, words = 0, list[str]()
    if names:
        part = Fraction(budget.threshold_delta) / len(names)
        least = threshold_for(unit, Gaussian.scale_for(share, unit), part)
        words.append(f"a category must be on about {least:,} rows")
    if any(c.is_number and (c.low is None or c.high is None) for c in schema.to_learn):
        shown = rows_to_show(Gaussian.scale_for(share * LearningShares.extent, unit))
        least = max(least, shown)
        words.append(
            f"of a number, date or time about {shown:,} rows must lie between some value and its double (dates and"
            " times are counted from 1970, elapsed times from their start)"
        )
    needed = most_frequent * least
    if not words or (rows is not None and rows >= needed):
        return ""
    mark, by_row = "", rows_per_person(unit) is None  # rows beyond a person's limit do not count
    if rows is None and true_rows is not None and by_row:
        if true_rows >= row_margin * needed:
            return ""
        mark = f"{NOT_PRIVATE} "
    fails = rows is not None and rows < least
    what = f"is likely to fail on {rows:,} rows" if fails else f"needs about {needed:,} rows"
    return (
        f"{mark}Learning columns {what}: {'; '.join(words)}. {'Then' if fails else 'On fewer rows'} public bounds and"
        " categories beside learn = true, fewer columns to learn or a larger epsilon help."
    )


def mechanism_budget(schema: Schema, rho: Fraction) -> Fraction:
    """Return the least that learning leaves for the mechanism (zCDP)."""
    return rho * (1 - LearningShares.learning) if schema.to_learn else rho


def learn_columns(
    private: Private,
    mechanism: Mechanism,
    unlearnable: Literal["stop", "drop"],
    threshold_delta: Fraction,
    progress: Callable[[str, float], None] | None = None,
    *,
    resumable: bool = False,
) -> None:
    """Learn the columns that the gate's schema leaves open, and let the gate adopt the learned schema.

    Args:
        private: The gate, before any other question.
        mechanism: The mechanism that runs next; its noise sets how wide bins are.
        unlearnable: "stop" raises for a column that cannot be learned; "drop" leaves it out.
        threshold_delta: What thresholds may spend.
        progress: Callback ``(stage, fraction)``.
        resumable: The run has a journal, in which the answers stay.

    Raises:
        UnlearnableError: A column cannot be learned.

    Privacy:
        ``LearningShares.learning`` of the gate's budget, and ``threshold_delta``, at most.
    """
    schema = private.schema
    if not schema.to_learn:
        return
    if progress is not None:
        progress("learning columns", 0.0)
    rest = mechanism_budget(schema, private.rho)
    learning = learn_schema(
        schema,
        lambda name: GateColumn(name, private.measure_column),
        private.discover,
        private.rho - rest,
        threshold_delta,
    )
    hidden = learning.unlearnable
    if hidden and (unlearnable == "stop" or len(hidden) == len(schema.columns)):
        names = ", ".join(repr(name) for name in hidden)
        rare = [advice_on(d) for d in private.transcript.discoveries if d.column in hidden]
        rare += [
            range_advice(e.column, e)
            for e in private.transcript
            if isinstance(e, ColumnAnswer) and e.column in hidden and isinstance(e.query, LineCells)
        ]
        without = (
            "Resume the run by the same command with --resume --unlearnable drop (in Python resume=True,"
            ' unlearnable="drop") to go on without them: nothing is paid twice.'
            if resumable
            else 'A run with --unlearnable drop (in Python unlearnable="drop") goes on without them.'
        )
        if len(hidden) == len(schema.columns):
            without = "No other column is left."
        raise UnlearnableError(
            f"The noise hides where the values of {names} lie.",
            columns=hidden,
            remedy=f"{without} Public bounds or categories, a larger epsilon or fewer columns to learn help, in a new"
            f" run that is charged anew. {' '.join(dict.fromkeys(rare))}",
        )
    private.adopt(
        learning.declared(schema, first_scale(mechanism, schema.domain, rest, private.unit))
    )


def first_scale(mechanism: Mechanism, domain: Domain, rho: Fraction, unit: Unit) -> float:
    """Return the noise scale of the mechanism's first measurements, in records."""
    steps = mechanism.steps(domain, rho, unit)
    return steps[0].scale if steps else Gaussian.scale_for(rho / len(domain), unit)
