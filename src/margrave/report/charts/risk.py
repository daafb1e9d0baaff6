"""The privacy guarantee as a picture: cases out of 100 that an attacker accuses, wrongly and rightly."""

from __future__ import annotations

import math

from markupsafe import Markup

from margrave.attack_risk import AttackRisk, hundredths
from margrave.report.charts.svg import drawing, element, text


def risk(found: AttackRisk) -> Markup:
    """Return two fields of 100 cases: accused wrongly at a chosen rate, and rightly at most that often."""
    wrong, points = 100 * found.at, 100 * found.advantage
    right, most = hundredths(found.power), hundredths(found.advantage)
    parts = [
        *_field(0, wrong, "not in the table", f"{wrong:g} accused wrongly"),
        *_field(190, 100 * found.power, "in the table", f"at most {right} accused rightly"),
        text(0, 236, f"Advantage over guessing: at most {most} of 100 points", "l", "start"),
        element("rect", class_="c", x=0, y=243, width=360, height=10, rx=3),
        element("rect", class_="x", x=0, y=243, width=3.6 * points, height=10, rx=3),
    ]
    described = (
        f"Of 100 cases in which the person is not in the table an attacker accuses {wrong:g}."
        f" Then of 100 cases in which the person is in the table the attacker accuses at most {right}."
        f" The advantage over guessing, right accusations less wrong ones, is at most {most} of 100 points."
    )
    return drawing("The risk of an attack", described, 360, 260, parts)


def _field(left: float, accused: float, head: str, below: str) -> list[Markup]:
    step, side = 17, 14
    parts = [text(left, 12, f"100 cases: {head}", "l", "start")]
    for i in range(100):
        x, y = left + i % 10 * step, 22 + i // 10 * step
        parts.append(element("rect", class_="c", x=x, y=y, width=side, height=side, rx=3))
        share = min(max(accused - i, 0.0), 1.0)
        if share > 0:
            parts.append(
                element(
                    "rect",
                    class_="x",
                    x=x,
                    y=y,
                    width=side * share,
                    height=side,
                    rx=min(3.0, side * share / 2),
                )
            )
            if math.isclose(share, 1.0):
                parts.append(element("path", class_="k", d=f"M{x + 4} {y + 4}l6 6m0 -6l-6 6"))
    return [*parts, text(left, 208, below, "t", "start")]
