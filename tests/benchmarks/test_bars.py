"""What the bench tells of its figures."""

from __future__ import annotations

from benchmarks.bars import Figure, chart, summary

OVER, AT, UNDER = Figure("call", 6.0, 1.7), Figure("at", 1.8, 1.8), Figure("chunk", 1.0, 1.4)
TOLD = Figure("c=64", 3.0, None)


def test_a_chart_shows_figures_and_bars() -> None:
    assert chart([OVER, AT, UNDER, TOLD]).split("\n") == [
        "call   " + "#" * 17 + "|" + "#" * 43 + "  6.0",
        "at     " + "#" * 18 + "|" + " " * 42 + "  1.8",
        "chunk  " + "#" * 10 + "    |" + " " * 46 + "  1.0",
        "c=64   " + "#" * 30 + " " * 31 + "  3.0",
    ]


def test_a_bar_beyond_all_figures_is_in_the_chart() -> None:
    assert chart([Figure("chunk", 1.0, 2.0)]) == "chunk  " + "#" * 30 + " " * 30 + "|  1.0"


def test_a_figure_at_its_bar_is_held_and_one_without_is_not_counted() -> None:
    assert [one.cells for one in (OVER, AT, TOLD)] == ["1.7 | over", "1.8 | ok", " | "]
    assert summary([AT, UNDER, TOLD]) == "Bars held: 2 of 2."
    memory = Figure("an open stream", 45.44, 40, " kB")
    assert summary([OVER, AT, TOLD, memory]) == (
        "Bars held: 1 of 3. Over: call (6, bar 1.7); an open stream (45.4 kB, bar 40)."
    )
