"""A key's row as columns, and back. Knows the table's shape, not the SQL of any database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from gateway.settings.snapshot import Limits
from gateway.store.base import KeyRow
from gateway.store.rows import packed, readable

KEY = [
    "id",
    "name",
    "digest",
    "role",
    "project",
    "created_at",
    "models",
    "limits",
    "expires_at",
    "revoked_at",
    "settings",
]

_LIMITS = [field.name for field in fields(Limits)]


def key_values(row: KeyRow) -> tuple[Any, ...]:
    """The values of :data:`KEY`. Limits that are not set are left out of their JSON."""
    limits = {name: getattr(row.limits, name) for name in _LIMITS}
    return (
        row.id,
        row.name,
        row.digest,
        row.role,
        row.project,
        row.created_at,
        None if row.models is None else _listed(row.models),
        packed({name: limit for name, limit in limits.items() if limit is not None}),
        row.expires_at,
        row.revoked_at,
        packed(row.settings),
    )


def key_row(row: Mapping[str, Any]) -> KeyRow:
    """The key that :func:`key_values` wrote."""
    values = readable(row)
    models = values["models"]
    values["models"] = None if models is None else tuple(models)
    values["limits"] = Limits(**values["limits"])
    return KeyRow(**values)


def _listed(models: tuple[str, ...]) -> str:
    """No models at all (``()``) is not "all models" (``None``), so an empty list is written."""
    return packed(models) or "[]"
