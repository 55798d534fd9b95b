"""Statements built from column lists, so that a column is named once (in ``rows``).

The only place where SQL is put together from names; the names are constants of this package.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType


def columns(names: Sequence[str]) -> str:
    """``a, b``."""
    return ", ".join(names)


def insert(
    table: str, names: Sequence[str], given: Mapping[str, str] = MappingProxyType({})
) -> str:
    """``INSERT INTO table (a, b) VALUES (?, ?)``, with what is ``given`` in place of a ``?``."""
    values = [given.get(name, "?") for name in names]
    return f"INSERT INTO {table} ({columns(names)}) VALUES ({columns(values)})"  # noqa: S608


def assignments(names: Sequence[str]) -> str:
    """``a = ?, b = ?``."""
    return columns([f"{name} = ?" for name in names])


def replaced(names: Sequence[str]) -> str:
    """``a = excluded.a, b = excluded.b``, for an upsert that overwrites."""
    return columns([f"{name} = excluded.{name}" for name in names])


def added(table: str, names: Sequence[str]) -> str:
    """``a = table.a + excluded.a``, for an upsert that adds."""
    return columns([f"{name} = {table}.{name} + excluded.{name}" for name in names])


@cache
def numbered(statement: str) -> str:
    """The same statement with PostgreSQL's ``$1 $2`` in place of ``?``."""
    first, *rest = statement.split("?")
    return first + "".join(f"${n}{part}" for n, part in enumerate(rest, 1))
