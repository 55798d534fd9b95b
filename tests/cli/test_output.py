"""What commands print: nothing cut, nothing out of line, at any width of the terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.output import show

ROOT = Path(__file__).parents[2]
ID = "run_9da96b0485610b3020aab2d5"
ROWS = (
    {"id": ID, "agent": "气象", "turns": 2, "cost_usd": Decimal("0.000083"), "ended": None},
    {"id": ID, "agent": "weather", "turns": 12, "cost_usd": Decimal(0), "ended": "today"},
)


def on_a_terminal(columns: int, rows: tuple[Any, ...] = ROWS, **environment: str) -> str:
    """What :func:`show` prints for ``rows`` where standard output is a terminal of that width."""
    ours, theirs = pty.openpty()
    program = (
        "from decimal import Decimal; from gateway.cli.output import show;"
        f"show({rows!r}, {tuple(rows[0])!r}, 'table')"
    )
    try:
        subprocess.run(
            [sys.executable, "-c", program], stdout=theirs, check=True, timeout=60,
            env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": str(columns),
                 "PYTHONIOENCODING": "utf-8", **environment},
        )  # fmt: skip
        return os.read(ours, 65_536).decode().replace("\r\n", "\n")
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_table_stands_in_line(capsys: pytest.CaptureFixture[str]) -> None:
    show(ROWS, tuple(ROWS[0]), "table")
    assert capsys.readouterr().out.splitlines() == [
        "id                            agent    turns  cost_usd  ended",
        f"{ID}  气象         2  0.000083",
        f"{ID}  weather     12         0  today",
    ]


def test_a_wide_terminal_has_the_same_table_under_a_bold_head(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show(ROWS, tuple(ROWS[0]), "table")
    head, *lines = capsys.readouterr().out.splitlines()
    assert on_a_terminal(200, NO_COLOR="").splitlines() == [f"\x1b[1m{head}\x1b[0m", *lines]
    assert on_a_terminal(200, NO_COLOR="1").splitlines() == [head, *lines]


def test_a_narrow_terminal_has_each_row_by_itself_and_whole() -> None:
    assert on_a_terminal(60, NO_COLOR="1").split("\n\n") == [
        f"id        {ID}\nagent     气象\nturns     2\ncost_usd  0.000083",
        f"id        {ID}\nagent     weather\nturns     12\ncost_usd  0\nended     today\n",
    ]


def test_a_status_has_its_colour_on_a_terminal() -> None:
    shown = on_a_terminal(200, rows=({"id": "a", "status": "failed"}, {"id": "b", "status": "x"}))
    assert shown == "\x1b[1mid  status\x1b[0m\na   \x1b[31mfailed\x1b[0m\nb   x\n"


def test_what_others_wrote_moves_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    show([{"name": "a\x1b[2Jb\nc"}], ["name"], "table")
    assert capsys.readouterr().out == "name\na\ufffd[2Jb\ufffdc\n"
