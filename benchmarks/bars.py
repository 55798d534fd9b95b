"""What is told of measured figures: whether each is under its bar, a chart, and how many are.

It knows nothing of where a figure comes from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH = 60
"""Signs of the longest line of a chart, names and figures apart."""


@dataclass(frozen=True, slots=True)
class Figure:
    """Something measured. ``most`` is its bar; without one it is reported only."""

    name: str
    value: float
    most: float | None
    unit: str = ""

    @property
    def over(self) -> bool:
        """Whether it is more than it should be."""
        return self.most is not None and self.value > self.most

    @property
    def cells(self) -> str:
        """The last two cells of its line in a table: the bar, and whether it is held."""
        if self.most is None:
            return " | "
        return f"{self.most:g} | {'over' if self.over else 'ok'}"


def chart(figures: Sequence[Figure]) -> str:
    """A line of ``#`` for each figure, as long as it is large, with ``|`` where its bar is."""
    longest = max(max(figure.value, figure.most or 0.0) for figure in figures)
    wide = max(len(figure.name) for figure in figures)
    return "\n".join(
        f"{figure.name:{wide}}  {_line(figure, WIDTH / longest):{WIDTH + 1}}  {figure.value:.1f}"
        for figure in figures
    )


def _line(figure: Figure, scale: float) -> str:
    line = "#" * round(figure.value * scale)
    if figure.most is None:
        return line
    at = round(figure.most * scale)
    return f"{line[:at]:{at}}|{line[at:]}"


def summary(figures: Sequence[Figure]) -> str:
    """One line: how many bars are held, and which are not."""
    barred = [figure for figure in figures if figure.most is not None]
    over = [
        f"{figure.name} ({figure.value:.3g}{figure.unit}, bar {figure.most:g})"
        for figure in barred
        if figure.over
    ]
    held = f"Bars held: {len(barred) - len(over)} of {len(barred)}."
    return f"{held} Over: {'; '.join(over)}." if over else held
