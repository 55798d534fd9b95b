"""``GET /v1/models`` and ``GET /v1/models/{id}`` in OpenAI's shape."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

OWNER = "gateway"


def model_object(alias: str, created: int, owned_by: str = OWNER) -> dict[str, Any]:
    """One model; callers know it by its alias. ``created`` is Unix seconds."""
    return {"id": alias, "object": "model", "created": created, "owned_by": owned_by}


def models_list(aliases: Iterable[str], created: int) -> dict[str, Any]:
    """All of them, in the order given."""
    return {"object": "list", "data": [model_object(alias, created) for alias in aliases]}
