"""What commands print: plain in a pipe, set out as a table on a terminal.

Results go to standard output, everything said about them to standard error. Colour is used on
a terminal only, and not where ``NO_COLOR`` is set (https://no-color.org).
"""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, TextIO

Row = Mapping[str, Any]


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
    elif sys.stdout.isatty():
        _rich(rows, columns)
    else:
        _aligned(rows, columns)


def _csv(rows: Sequence[Row], columns: Sequence[str], stream: TextIO) -> None:
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(row.get(column)) for column in columns] for row in rows)


def _aligned(rows: Sequence[Row], columns: Sequence[str]) -> None:
    """Columns in spaces, for pipes: nothing that a terminal would have to draw."""
    lines = [list(columns), *([_cell(row.get(c)) for c in columns] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    for line in lines:
        out("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip())


def _rich(rows: Sequence[Row], columns: Sequence[str]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        numeric = all(isinstance(row.get(column), int | float | Decimal) for row in rows)
        table.add_column(column, justify="right" if numeric and rows else "left")
    for row in rows:
        table.add_row(*(_cell(row.get(column)) for column in columns))
    Console(no_color="NO_COLOR" in os.environ, markup=False).print(table)


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
