"""How large a schema may be for OpenAI's strict mode.

Knows only the strict form, in which schemas stand under four keywords. Source: OpenAI's guide on
structured outputs, "supported schemas".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

MAX_PROPERTIES = 5000
MAX_CHARACTERS = 120_000
"""Of all names of properties and definitions, and all constants, together."""
MAX_CHOICES = 1000
"""Values of all enums together."""
MANY_CHOICES, MAX_CHOICE_CHARACTERS = 250, 15_000
"""An enum of more values than the first may have no more characters than the second."""

_NAMED = ("properties", "$defs", "definitions")


def takes_size(schema: Mapping[str, Any]) -> bool:
    """Whether strict mode takes a schema of this size; ``schema`` is in strict form."""
    properties = characters = choices = 0
    for node in _schemas(schema):
        values = node.get("enum", ())
        constants = (*values, *([node["const"]] if "const" in node else ()))
        length = sum(len(value) for value in constants if isinstance(value, str))
        if len(values) > MANY_CHOICES and length > MAX_CHOICE_CHARACTERS:
            return False
        names = [name for keyword in _NAMED for name in node.get(keyword, ())]
        properties += len(node.get("properties", ()))
        characters += length + sum(map(len, names))
        choices += len(values)
    return properties <= MAX_PROPERTIES and characters <= MAX_CHARACTERS and choices <= MAX_CHOICES


def _schemas(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        yield node
        for keyword in _NAMED:
            waiting += node.get(keyword, {}).values()
        waiting += node.get("anyOf", ())
        if "items" in node:
            waiting.append(node["items"])
