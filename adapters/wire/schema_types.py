"""Which types of values a JSON Schema speaks of, as far as it says so itself.

Must not know any provider, nor follow a reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_JSON_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (type(None), "null"),
)


def kinds(schema: Mapping[str, Any]) -> tuple[Any, ...]:
    """The names under ``type``."""
    kind = schema.get("type")
    return tuple(kind) if isinstance(kind, list) else (kind,)


def is_object(schema: Mapping[str, Any]) -> bool:
    """Whether ``schema`` speaks of objects, perhaps beside others."""
    return "object" in kinds(schema) or "properties" in schema


def implied(schema: Mapping[str, Any]) -> Any:
    """What ``type`` says, or would say: properties and simple constants tell it, too. ``None``
    where nothing does."""
    if "type" in schema:
        return schema["type"]
    if "properties" in schema:
        return "object"
    constants = [schema["const"]] if "const" in schema else schema.get("enum", ())
    found = list(dict.fromkeys(map(_kind, constants)))
    if not found or None in found:
        return None
    return found[0] if len(found) == 1 else found


def _kind(value: Any) -> str | None:
    return next((name for kind, name in _JSON_TYPES if isinstance(value, kind)), None)


def takes_null(schema: Any) -> bool:
    """Whether null is a value of its own here."""
    if not isinstance(schema, Mapping):
        return False
    choices = schema.get("enum")
    if "null" in kinds(schema) or (isinstance(choices, list) and None in choices):
        return True
    return any(takes_null(one) for one in schema.get("anyOf") or ())
