"""``docs/ledger.md`` names every column of every table, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gateway.store.base import RequestRow
from tests.store.booking import Books

PAGE = Path(__file__).parents[2] / "docs" / "ledger.md"
TABLE = re.compile(r"^### `(\w+)`", flags=re.MULTILINE)
LINE = re.compile(r"^\| `(\w+)` \|", flags=re.MULTILINE)

SQLITE = """SELECT m.name AS tab, c.name AS col FROM sqlite_master AS m
    JOIN pragma_table_info(m.name) AS c WHERE m.type IN ('table', 'view')
    AND m.name NOT LIKE 'sqlite_%' AND m.name NOT IN ('calls', 'later_attempts')"""
"""The last two are shown by views, ``requests`` and ``attempts``."""
POSTGRES = """SELECT table_name AS tab, column_name AS col FROM information_schema.columns
    WHERE table_schema = 'public'"""


def documented() -> set[tuple[str, str]]:
    _, *parts = TABLE.split(PAGE.read_text())
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return {(table, column) for table, text in pairs for column in LINE.findall(text)}


async def test_every_column_is_explained(books: Books) -> None:
    query = SQLITE if books.url.startswith("sqlite") else POSTGRES
    there = {(row["tab"], row["col"]) for row in await books.sql(query)}
    ours = {table for table, _ in documented()}
    assert {pair for pair in there if pair[0] in ours} == documented()


async def test_every_table_is_explained(books: Books) -> None:
    query = SQLITE if books.url.startswith("sqlite") else POSTGRES
    there = {row["tab"] for row in await books.sql(query)}
    assert there == {table for table, _ in documented()}


@pytest.mark.parametrize("field", [f for f in RequestRow._fields if f != "id"])
def test_every_field_of_a_call_has_a_column(field: str) -> None:
    assert ("requests", field) in documented()
