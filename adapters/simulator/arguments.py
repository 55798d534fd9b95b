"""Instances of a JSON schema, made of what the prompt offers.

The simulated model fills a tool's arguments, or a structured answer, with the numbers, quoted
strings, non-Latin words and names that it finds in the prompt, in their order; where there are
none it falls back to plain values that fit. Deterministic, bounded, and for ordinary schemas
only: a ``pattern`` is met where one of a few samples matches it.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

_MAX_DEPTH = 12
_QUOTED = re.compile(
    r"\"([^\"\n]{1,400})\"|“([^”\n]{1,400})”|「([^」\n]{1,400})」|`([^`\n]{1,400})`"
    r"|(?<![\w])'([^'\n]{1,400})'(?![\w])"
)
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w])")
_OTHER_SCRIPT = re.compile(r"[\u0370-\u1fff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]+")
_NAME = re.compile(
    r"\b(?:in|for|at|from|to|of|about|near|named|called)\s+"
    r"([A-Z][\w'-]*(?:(?:,\s|\s)[A-Z][\w'-]*)*)"
)
_FORMATS = {
    "date": "2026-01-02",
    "date-time": "2026-01-02T03:04:05Z",
    "time": "03:04:05Z",
    "duration": "PT1H",
    "email": "person@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/",
    "uuid": "12345678-1234-4234-8234-123456789abc",
}
_SAMPLES = ("abc", "ABC", "123", "A1", "a-b", "1234", "AB-123", "abc_1", *_FORMATS.values())


class Clues:
    """What a prompt offers; each find is used once, in order."""

    def __init__(self, prompt: str) -> None:
        self.prompt = prompt
        quoted = ["".join(groups) for groups in _QUOTED.findall(prompt)]
        rest = _QUOTED.sub(" ", prompt)
        self._numbers = deque(_NUMBER.findall(rest))
        self._strings = deque([*quoted, *_OTHER_SCRIPT.findall(rest), *_NAME.findall(rest)])

    def named(self, name: str) -> str | None:
        """The value in ``name=value`` or ``name: value``, if the prompt has it."""
        found = re.search(
            rf"\b{re.escape(name)}\s*[=:]\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s,;]+))", self.prompt
        )
        if found is None:
            return None
        return next(group for group in found.groups() if group is not None)

    def number(self) -> float | None:
        """The next number."""
        return float(self._numbers.popleft()) if self._numbers else None

    def string(self) -> str:
        """The next quoted string, word of another script, or name; at last the prompt itself."""
        return self._strings.popleft() if self._strings else self.prompt.strip()[:80]


def instance(schema: Mapping[str, Any], prompt: str) -> Any:
    """A value that fits ``schema``, with the prompt's own numbers and strings in it."""
    return _Maker(schema, Clues(prompt)).make(schema, 0, None)


class _Maker:
    """One walk over one schema."""

    def __init__(self, root: Mapping[str, Any], clues: Clues) -> None:
        self._root = root
        self._clues = clues
        self._kinds: dict[str, Callable[[Mapping[str, Any], int, str | None], Any]] = {
            "object": self._object,
            "array": self._array,
            "string": self._string,
            "integer": self._integer,
            "number": self._number,
            "boolean": self._boolean,
            "null": lambda schema, depth, name: None,
        }

    def make(self, schema: Any, depth: int, name: str | None) -> Any:
        """A value for ``schema``, which stands under the property ``name``."""
        if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
            return None
        schema = self._flat(schema)
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return self._enum(schema["enum"])
        return self._kinds.get(_kind(schema), self._string)(schema, depth, name)

    def _flat(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """References followed, ``allOf`` merged, the first possible branch taken."""
        for _ in range(_MAX_DEPTH):
            if "$ref" in schema:
                rest = {key: value for key, value in schema.items() if key != "$ref"}
                schema = {**self._target(schema["$ref"]), **rest}
            elif schema.get("allOf"):
                merged = {key: value for key, value in schema.items() if key != "allOf"}
                for branch in schema["allOf"]:
                    merged = _merge(merged, self._flat(branch))
                schema = merged
            elif branches := schema.get("anyOf") or schema.get("oneOf"):
                rest = {k: v for k, v in schema.items() if k not in ("anyOf", "oneOf")}
                schema = _merge(rest, _preferred(branches))
            else:
                break
        return schema

    def _target(self, ref: Any) -> Mapping[str, Any]:
        node: Any = self._root
        for step in str(ref).removeprefix("#").strip("/").split("/"):
            if step:
                step = step.replace("~1", "/").replace("~0", "~")
                node = node.get(step, {}) if isinstance(node, Mapping) else {}
        return node if isinstance(node, Mapping) else {}

    def _enum(self, values: Iterable[Any]) -> Any:
        values = list(values)
        prompt = self._clues.prompt.lower()
        return next((v for v in values if isinstance(v, str) and v.lower() in prompt), values[0])

    def _object(self, schema: Mapping[str, Any], depth: int, name: str | None) -> Any:
        properties = schema.get("properties") or {}
        required = schema.get("required")
        wanted = [
            key
            for key in properties
            if required is None or key in required or self._clues.named(key) is not None
        ]
        made = {key: self.make(properties[key], depth + 1, key) for key in wanted}
        for key in required or ():
            made.setdefault(key, self._clues.string())
        return made

    def _array(self, schema: Mapping[str, Any], depth: int, name: str | None) -> Any:
        if schema.get("prefixItems"):
            return [self.make(item, depth + 1, name) for item in schema["prefixItems"]]
        size = min(max(int(schema.get("minItems", 1)), 1), int(schema.get("maxItems", 64)), 64)
        items = schema.get("items", {"type": "string"})
        if depth + 1 > _MAX_DEPTH // 2:
            size = int(schema.get("minItems", 0))  # a recursive schema must come to an end
        return [self.make(items, depth + 1, None) for _ in range(size)]

    def _string(self, schema: Mapping[str, Any], depth: int, name: str | None) -> Any:
        if schema.get("format") in _FORMATS:
            return _FORMATS[schema["format"]]
        given = self._clues.named(name) if name is not None else None
        pattern = schema.get("pattern")
        if pattern is not None:
            return next((s for s in (given, *_SAMPLES) if s and re.search(pattern, s)), "")
        text = given if given is not None else self._clues.string()
        text = text.ljust(int(schema.get("minLength", 0)), "x")
        return text[: int(schema["maxLength"])] if "maxLength" in schema else text

    def _integer(self, schema: Mapping[str, Any], depth: int, name: str | None) -> Any:
        return int(self._bounded(schema, name, 1))

    def _number(self, schema: Mapping[str, Any], depth: int, name: str | None) -> Any:
        value = self._bounded(schema, name, 0)
        return int(value) if value.is_integer() else value

    def _bounded(self, schema: Mapping[str, Any], name: str | None, edge: int) -> float:
        """The next number of the prompt, brought into the schema's bounds."""
        given = self._clues.named(name) if name is not None else None
        value = _as_number(given)
        if value is None:
            value = self._clues.number()
        value = 1.0 if value is None else value
        step = schema.get("multipleOf")
        low, high = schema.get("minimum"), schema.get("maximum")
        if schema.get("exclusiveMinimum") is not None:
            low = schema["exclusiveMinimum"] + (step or edge or 0.5)
        if schema.get("exclusiveMaximum") is not None:
            high = schema["exclusiveMaximum"] - (step or edge or 0.5)
        if high is not None:
            value = min(value, float(high))
        if low is not None:
            value = max(value, float(low))
        return float(-(-value // step) * step) if step else value

    def _boolean(self, schema: Mapping[str, Any], depth: int, name: str | None) -> Any:
        given = self._clues.named(name) if name is not None else None
        return given is None or given.lower() not in ("false", "no", "off", "0")


def _kind(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        return next((one for one in kind if one != "null"), "null")
    if isinstance(kind, str):
        return kind
    return "object" if "properties" in schema else "string"


def _preferred(branches: Iterable[Any]) -> Mapping[str, Any]:
    """The first branch that is not just null."""
    usable = [branch for branch in branches if isinstance(branch, Mapping)]
    return next((branch for branch in usable if branch.get("type") != "null"), {"type": "null"})


def _merge(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**one, **other}
    if "properties" in one and "properties" in other:
        merged["properties"] = {**one["properties"], **other["properties"]}
    if "required" in one and "required" in other:
        merged["required"] = [*one["required"], *other["required"]]
    return merged


def _as_number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
