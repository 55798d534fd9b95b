"""JSON Schemas in OpenAI's strict form, where that keeps their meaning (case O04).

In strict mode every object is closed and names all its properties as required. A schema can be
written so if what the model may then answer is still valid for the caller: an open object is
closed, an optional property becomes required but may be null (and its null is taken out of the
answer again). A free-form map can't: closed, it could never hold a key. Pure; the caller's schema
is never changed. Source: OpenAI's guide on structured outputs, "supported schemas".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_DEPTH = 10
"""Levels of nested objects that strict mode takes."""

_UNSUPPORTED = frozenset(
    {
        "allOf",
        "oneOf",
        "not",
        "if",
        "then",
        "else",
        "dependentRequired",
        "dependentSchemas",
        "patternProperties",
        "propertyNames",
        "minProperties",
        "maxProperties",
        "unevaluatedProperties",
        "unevaluatedItems",
        "prefixItems",
        "contains",
        "minContains",
        "maxContains",
        "uniqueItems",
    }
)
_NOTES = frozenset({"default", "examples", "$schema", "$id", "$comment", "readOnly", "writeOnly"})
"""Keywords that ask nothing of an answer: left out, because strict mode refuses some of them."""

Path = tuple[str, ...]
"""Steps of properties from the root; ``*`` is any item of an array."""


@dataclass(frozen=True, slots=True)
class Strict:
    """A schema in strict form. ``optional`` lists the properties that were made nullable."""

    schema: Mapping[str, Any]
    optional: tuple[Path, ...] = ()


def strict(schema: Mapping[str, Any]) -> Strict | None:
    """``schema`` in strict form, or ``None`` where no such form means the same."""
    writing = _Writing()
    try:
        if schema.get("type") != "object" or "anyOf" in schema:
            return None
        return Strict(writing.write(schema, (), 0), tuple(writing.optional))
    except _NoStrictForm:
        return None


def without_nulls(value: Any, optional: tuple[Path, ...]) -> Any:
    """An answer in strict form as the caller's schema knows it: the nulls of properties that
    were made nullable are absent again. ``value`` itself stays as it is."""
    for path in optional:
        value = _without(value, path)
    return value


def _without(value: Any, path: Path) -> Any:
    step, rest = path[0], path[1:]
    if step == "*":
        return [_without(item, rest) for item in value] if isinstance(value, list) else value
    if not isinstance(value, dict) or step not in value:
        return value
    if not rest:
        return {k: v for k, v in value.items() if k != step} if value[step] is None else value
    return {**value, step: _without(value[step], rest)}


class _NoStrictForm(Exception):
    """The schema says something that strict mode can't."""


@dataclass(slots=True)
class _Writing:
    optional: list[Path] = field(default_factory=list)

    def write(self, schema: Any, path: Path, depth: int) -> dict[str, Any]:
        if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
            raise _NoStrictForm
        if not _UNSUPPORTED.isdisjoint(schema):
            raise _NoStrictForm
        written = {name: value for name, value in schema.items() if name not in _NOTES}
        for name in ("$defs", "definitions"):
            if name in written:
                written[name] = self._definitions(written[name], depth)
        if "anyOf" in written:
            written["anyOf"] = [self.write(one, path, depth) for one in written["anyOf"]]
        if "items" in written:
            written["items"] = self.write(written["items"], (*path, "*"), depth + 1)
        if _is_object(schema):
            written |= self._object(schema, path, depth)
        return written

    def _definitions(self, given: Mapping[str, Any], depth: int) -> dict[str, Any]:
        """Definitions stand at many places at once, so a property that is optional in one of
        them has no path at which its null could be taken out again."""
        before = len(self.optional)
        written = {name: self.write(one, (), depth) for name, one in given.items()}
        if len(self.optional) != before:
            raise _NoStrictForm
        return written

    def _object(self, schema: Mapping[str, Any], path: Path, depth: int) -> dict[str, Any]:
        properties = schema.get("properties") or {}
        extra = schema.get("additionalProperties")
        if extra not in (None, False) or (not properties and extra is None):
            raise _NoStrictForm  # a map, or anything at all
        required = schema.get("required") or ()
        if not set(required) <= set(properties):
            raise _NoStrictForm
        written = {}
        for name, inner in properties.items():
            here = (*path, name)
            one = self.write(inner, here, depth + 1)
            if name not in required and not _takes_null(inner):
                one = {"anyOf": [one, {"type": "null"}]}
                self.optional.append(here)
            written[name] = one
        return {
            "properties": written,
            "required": list(properties),
            "additionalProperties": False,
        }


def _is_object(schema: Mapping[str, Any]) -> bool:
    kind = schema.get("type")
    named = kind == "object" or (isinstance(kind, list) and "object" in kind)
    return named or "properties" in schema


def _takes_null(schema: Any) -> bool:
    """Whether null is a value of its own here, so that it must not be taken out again."""
    if not isinstance(schema, Mapping):
        return False
    kind = schema.get("type")
    if kind == "null" or (isinstance(kind, list) and "null" in kind):
        return True
    choices = schema.get("enum")
    if isinstance(choices, list) and None in choices:
        return True
    return any(_takes_null(one) for one in schema.get("anyOf") or ())
