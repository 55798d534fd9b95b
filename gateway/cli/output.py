"""What commands print: the same plain table in a pipe and on a terminal, or JSON, or CSV.

Results go to standard output, everything said about them to standard error. Colour is used on a
terminal only, and not where ``NO_COLOR`` is set (https://no-color.org).
"""

from __future__ import annotations

import csv
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal
from shutil import get_terminal_size
from typing import Any, TextIO
from unicodedata import east_asian_width

Row = Mapping[str, Any]

UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters, and those that change the direction of writing."""


BOLD, RED, GREEN, YELLOW, CYAN = 1, 31, 32, 33, 36

TONES: Mapping[str, int] = {
    **dict.fromkeys(("completed", "closed"), GREEN),
    **dict.fromkeys(("failed", "interrupted", "expired", "revoked"), RED),
    **dict.fromkeys(("waiting", "paused", "incomplete", "partial", "cancelled"), YELLOW),
    **dict.fromkeys(("queued", "running", "cancelling", "open"), CYAN),
}
"""The colour of a ``status``: how it ended, or that somebody is waited for."""


def painted(text: str, tone: int | None) -> str:
    """``text`` in a colour, where standard output is a terminal that shows colours."""
    if tone is None or os.environ.get("NO_COLOR") or not sys.stdout.isatty():
        return text
    return f"\x1b[{tone}m{text}\x1b[0m"


def say(text: str) -> None:
    """Tell the person at the screen something that is not the result."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201


def out(text: str) -> None:
    """Print a result."""
    print(text, flush=True)  # noqa: T201


def show(rows: Sequence[Row], columns: Sequence[str], style: str) -> None:
    """Print ``rows`` as ``table``, ``json`` (one array) or ``csv`` (with a head)."""
    if style == "json":
        out(json.dumps([dict(row) for row in rows], indent=2, default=_plain))
    elif style == "csv":
        _csv(rows, columns, sys.stdout)
    else:
        _table(rows, columns)


def _csv(rows: Sequence[Row], columns: Sequence[str], stream: TextIO) -> None:
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(row.get(column)) for column in columns] for row in rows)


def _table(rows: Sequence[Row], columns: Sequence[str]) -> None:
    """Columns set out with spaces, numbers to the right; where the terminal is too narrow for
    that, each row by itself. Nothing is ever cut: ids are there to be copied."""
    cells = [[seen(_cell(row.get(column))) for column in columns] for row in rows]
    widths = [max(map(_width, column)) for column in zip(columns, *cells, strict=True)]
    if (
        rows
        and sys.stdout.isatty()
        and sum(widths) + 2 * len(widths) - 2 > get_terminal_size().columns
    ):
        out("\n\n".join(_record(columns, line) for line in cells))
        return
    right = [_numeric(rows, column) for column in columns]
    out(painted("  ".join(_padded(columns, widths, right)).rstrip(), BOLD))
    for line in cells:
        padded = _padded(line, widths, right)
        toned = map(_toned, columns, line, padded)
        out("  ".join(toned).rstrip())


def _padded(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> list[str]:
    return [
        " " * (width - _width(cell)) + cell if to_right else cell + " " * (width - _width(cell))
        for cell, width, to_right in zip(cells, widths, right, strict=True)
    ]


def _toned(column: str, cell: str, shown: str) -> str:
    return painted(shown, TONES.get(cell)) if column == "status" else shown


def _record(columns: Sequence[str], cells: Sequence[str]) -> str:
    """One row, a line a value; what is empty is left out."""
    width = max(map(len, columns))
    pairs = zip(columns, cells, strict=True)
    return "\n".join(f"{name:<{width}}  {_toned(name, cell, cell)}" for name, cell in pairs if cell)


def _numeric(rows: Sequence[Row], column: str) -> bool:
    values = [row[column] for row in rows if row.get(column) is not None]
    return bool(values) and all(isinstance(value, int | float | Decimal) for value in values)


def _width(text: str) -> int:
    """Places that ``text`` takes on a terminal: Chinese, Japanese and Korean take two each."""
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def seen(text: str) -> str:
    """``text`` without what would move a terminal's cursor or turn the line round: names and
    answers come from anybody."""
    return text if text.isprintable() else UNSEEN.sub("\ufffd", text)


def _cell(value: Any) -> str:
    """One value as text; unknown is empty, never zero."""
    if value is None:
        return ""
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, list | tuple):
        return ",".join(str(item) for item in value)
    return str(value)


def _plain(value: Any) -> Any:
    return f"{value:f}" if isinstance(value, Decimal) else str(value)
