"""The display of a release: its page, charts, a comparison, and a card in notebooks."""

from __future__ import annotations

from typing import Any

from margrave._card import Card, Facts, counted, listed
from margrave._front import part
from margrave._other_names import AnswersNames, in_our_words
from margrave.account import Account
from margrave.error_sanitizer import hide_rows, short_errors
from margrave.errors import did_you_mean
from margrave.models import FittedAnswers, NoModel
from margrave.provenance import Provenance
from margrave.release.beyond_bounds import beyond_bounds_words
from margrave.release.certificate import large_delta, several_rows
from margrave.release.numbers import numbers_of
from margrave.schema import Schema
from margrave.schema.constraint_values import NUMERIC_KINDS
from margrave.transcript import Transcript


class Display(AnswersNames, Card):
    """The methods of a release that show it, by the code of the report and of the evaluation."""

    schema: Schema
    account: Account
    provenance: Provenance

    model: FittedAnswers
    transcript: Transcript

    def _facts(self) -> Facts:
        account, columns = self.account, [c.name for c in self.schema.columns]
        private = "" if account.private else ", NOT PRIVATE"
        line = (
            f"{self.provenance.mechanism}, {counted(len(columns), 'column')}, epsilon={account.epsilon:g},"
            f" delta={account.delta:g}{private}"
        )
        facts = [
            ("protected", str(account.unit)),
            ("spent", f"rho {float(account.rho_spent):.6g} of {float(account.rho_budget):.6g}"),
            ("records, about", f"{self.model.total:,.0f}"),
            ("columns", listed(columns)),
            ("noisy marginals", f"{len(self.transcript.measurements)}"),
        ]
        absent = [f"No model: {self.model.absent}."] if self.model.absent else []
        hidden, most = self._hidden_values(), 3
        others = len(hidden) - most
        more = [f"And likewise {others:,} more column{'s' * (others > 1)}."] if others > 0 else []
        reliable = ".numbers() and .report() show what is reliable."
        weak = large_delta(account.delta, self.model.total), several_rows(self.schema, account)
        warnings = [text for text in (*weak, account.left_out) if text]
        return Facts(line, facts, [*absent, *warnings, *hidden[:most], *more, reliable])

    def _hidden_values(self) -> list[str]:
        """Return a sentence for each learned column whose hidden values count beside the noise."""
        schema, level = self.schema, 0.95
        learned = [c.name for c in schema.columns if isinstance(c, NUMERIC_KINDS) and c.mean]
        if not learned:
            return []
        absent = NoModel(schema.domain, self.transcript.total(), "the card has no use for it")
        numbers = numbers_of(schema, self.transcript, absent, level, learned, quantiles={})
        return beyond_bounds_words(schema, numbers, level)

    def _require_model(self) -> None:
        if self.model.absent:
            self.model.distribution()

    def _hint(self, name: str) -> str:
        """Return the place of a name that a release does not have, or the name that is most like it."""
        if ours := in_our_words("Release", name):
            return ours
        for home in ("account", "provenance", "schema", "transcript", "model"):
            if name in dir(self.__dict__.get(home)):
                return f"It is release.{home}.{name}."
        return did_you_mean(name, [n for n in dir(self) if not n.startswith("_")]).strip()

    def report(self, *, title: str = "", office: str = "", dataset: str = "") -> Any:
        """Return the report page: shown in notebooks, and written by ``.save("visits.html")``.

        Args:
            title: Its title, in public words; by default the name of the data set.
            office: The office that publishes the release, in public words.
            dataset: The name of the data set, in public words.

        Returns:
            A ``margrave.report.Page``.

        Raises:
            InputError: A text is not one line of at most 200 characters.

        Privacy:
            None spent.
        """
        report = part("report")
        heading = report.Heading(title=title, office=office, dataset=dataset)
        return report.Page.of(self, heading)

    @short_errors
    def plot(self, *columns: Any) -> Any:
        """Return the chart of a column, ``plot("age")``, or of a pair, ``plot("age", "sex")``.

        A column shows the model's counts as bars, and the noisy counts with their intervals. A pair
        shows the joint counts by the model.

        Returns:
            A ``margrave.report.Chart``: shown in notebooks, and written by ``.save("age.svg")``.

        Raises:
            InputError: They are not one or two columns of the release.
            ReleaseError: The release has no model of the pair.

        Privacy:
            None spent.
        """
        return part("report").Chart.of(self, columns)

    @hide_rows
    def compare(self, real: Any, **options: Any) -> Any:
        """Compare with the real rows. **Not private**: for the custodian alone.

        Args:
            real: The real table, a frame or a file.
            options: Those of ``margrave.evaluate``.

        Returns:
            An ``Evaluation``. The release keeps nothing of it.

        Privacy:
            NOT private: see ``margrave.evaluate``.
        """
        return part("evaluation").evaluate(real, self, **options)
