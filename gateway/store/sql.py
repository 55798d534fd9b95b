"""Statements built from column lists, so that a column is named once (in ``rows``).

The only place where SQL is put together from names; the names are constants of this package.
"""

from __future__ import annotations

from collections.abc import Sequence


def insert(table: str, columns: Sequence[str]) -> str:
    """``INSERT INTO table (a, b) VALUES (?, ?)``."""
    marks = ", ".join("?" * len(columns))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608


def assignments(columns: Sequence[str]) -> str:
    """``a = ?, b = ?``."""
    return ", ".join(f"{name} = ?" for name in columns)


def replaced(columns: Sequence[str]) -> str:
    """``a = excluded.a, b = excluded.b``, for an upsert that overwrites."""
    return ", ".join(f"{name} = excluded.{name}" for name in columns)


def added(table: str, columns: Sequence[str]) -> str:
    """``a = table.a + excluded.a``, for an upsert that adds."""
    return ", ".join(f"{name} = {table}.{name} + excluded.{name}" for name in columns)


def numbered(sql: str) -> str:
    """The same statement with PostgreSQL's ``$1 $2`` in place of ``?``."""
    first, *rest = sql.split("?")
    return first + "".join(f"${n}{part}" for n, part in enumerate(rest, 1))
