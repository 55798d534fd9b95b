"""``GET /v1/models`` and ``GET /v1/models/{id}`` in the Messages API's shape."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any


def model_object(alias: str, created: int) -> dict[str, Any]:
    """One model; callers know it by its alias. ``created`` is Unix seconds."""
    return {
        "type": "model",
        "id": alias,
        "display_name": alias,
        "created_at": datetime.fromtimestamp(created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "lifecycle": "active",
    }


def models_list(aliases: Iterable[str], created: int) -> dict[str, Any]:
    """All of them on one page, in the order given."""
    data = [model_object(alias, created) for alias in aliases]
    return {
        "data": data,
        "has_more": False,
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
    }
