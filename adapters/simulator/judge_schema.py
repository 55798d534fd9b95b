"""Which JSON Schemas the real providers compile, and how they refuse the others.

Written from the vendors' pages on structured outputs and from refusals that users reported; it
shares no code with the gateway, whose schemas it judges.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from adapters.simulator.judge import objects, refuse, schemas

Schema = Mapping[str, Any]

PERMITTED = frozenset(
    {"$ref", "$defs", "definitions", "type", "enum", "const", "anyOf", "title", "description"}
    | {"properties", "required", "additionalProperties", "items", "minItems", "maxItems"}
    | {"pattern", "format", "multipleOf"}
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
)
"""Keywords of OpenAI's strict mode; any other is a 400."""
FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)
MAX_LEVELS = 10
MAX_PROPERTIES = 5000
MAX_CHOICES = 1000
_AROUND = re.compile(r"\(\?<?[=!]")

MAX_OPTIONAL = 24
MAX_UNIONS = 16
"""What Anthropic compiles of one request."""


def openai_root(schema: Any, param: str, name: str) -> None:
    """Strict or not, the root is an object."""
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    if kind != "object":
        got = "None" if kind is None else kind
        refuse(
            f"Invalid schema for {name}: schema must be a JSON Schema of 'type: \"object\"', got "
            f"'type: \"{got}\"'.",
            param=param,
            code="invalid_json_schema",
        )


def openai_strict(schema: Any, param: str, name: str) -> None:
    """The subset of strict mode: closed objects, every property required, listed keywords."""
    if not isinstance(schema, Mapping):
        refuse(f"Missing required parameter: '{param}'.", param=param)
    openai_root(schema, param, name)
    for why in _broken_rules(schema):
        refuse(f"Invalid schema for {name}: {why}", param=param, code="invalid_json_schema")


def _broken_rules(schema: Schema) -> Iterator[str]:
    if "anyOf" in schema:
        yield "schema must not have 'anyOf' at the top level."
    for path, node in schemas(schema):
        where = f"In context=({', '.join(repr(step) for step in path)})"
        for rule in _node(node, is_root=not path):
            yield f"{where}, {rule}"
    for named, node in objects(schema):
        if node.get("additionalProperties") is not False:
            rule = "'additionalProperties' is required to be supplied and to be false."
        elif set(node.get("properties") or {}) != set(node.get("required") or ()):
            rule = (
                "'required' is required to be supplied and to be an array including every key in "
                "properties."
            )
        else:
            continue
        yield f"In context=({named}), {rule}"
    yield from _too_large(schema)


def _node(node: Schema, *, is_root: bool) -> Iterator[str]:
    for keyword in node:
        if keyword not in PERMITTED:
            yield f"'{keyword}' is not permitted."
    if "$ref" in node and not is_root and len(node) > 1:
        yield f"$ref cannot have keywords {set(node) - {'$ref'}}."
    if not node.keys() & {"type", "anyOf", "$ref"}:
        yield "schema must have a 'type' key."
    if node.get("type") == "array" and "items" not in node:
        yield "array schema missing items."
    if "format" in node and node["format"] not in FORMATS:
        yield f"'{node['format']}' is not a valid format."
    if _AROUND.search(str(node.get("pattern", ""))):
        yield "'pattern' uses lookaround, which is not supported."


def _too_large(schema: Schema) -> Iterator[str]:
    nodes = [node for _, node in schemas(schema)]
    levels = max(
        sum(step in ("properties", "items") for step in path) for path, _ in schemas(schema)
    )
    if levels > MAX_LEVELS:
        yield f"{levels} levels of nesting exceeds limit of {MAX_LEVELS}."
    if sum(len(node.get("properties") or ()) for node in nodes) > MAX_PROPERTIES:
        yield f"Expected at most {MAX_PROPERTIES} properties in total within a schema."
    if sum(len(node.get("enum") or ()) for node in nodes) > MAX_CHOICES:
        yield f"Expected at most {MAX_CHOICES} enum values in total within a schema."


def anthropic_compiles(compiled: Iterable[Schema]) -> None:
    """All schemas of one request that have to be compiled, the output's and strict tools'."""
    nodes = [node for schema in compiled for _, node in schemas(schema)]
    optional = sum(
        len(set(node.get("properties") or {}) - set(node.get("required") or ())) for node in nodes
    )
    unions = sum("anyOf" in node or isinstance(node.get("type"), list) for node in nodes)
    if optional > MAX_OPTIONAL:
        refuse(
            f"Schemas contains too many optional parameters ({optional}), which would make grammar "
            f"compilation inefficient. Reduce the number of optional parameters in your tool "
            f"schemas (limit: {MAX_OPTIONAL})."
        )
    if unions > MAX_UNIONS:
        refuse(
            f"Schemas contains too many parameters with union types ({unions} parameters with type "
            f"arrays or anyOf) (limit: {MAX_UNIONS})."
        )
