"""The strict judge's tools: small checks that raise a vendor's own 400.

A provider that takes everything proves nothing. The three judges
(:mod:`~adapters.simulator.judge_chat`, :mod:`~adapters.simulator.judge_responses`,
:mod:`~adapters.simulator.judge_messages`) refuse what the real ones refuse, with their words,
from the vendors' documentation and from error texts that users reported.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NoReturn

from adapters.simulator.words import Refused, Trouble

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
ID_CHARACTERS = re.compile(r"[a-zA-Z0-9_-]+")


def refuse(message: str, *, param: str | None = None, code: str | None = None) -> NoReturn:
    """A 400.

    :raises Refused: always.
    """
    raise Refused(Trouble(400, message, param=param, code=code))


class OpenAI:
    """The checks that OpenAI's endpoints share, in OpenAI's words."""

    @staticmethod
    def known(body: Mapping[str, Any], fields: Collection[str]) -> None:
        """No field but the known ones."""
        for field in body:
            if field not in fields:
                refuse(f"Unknown parameter: '{field}'.", param=field, code="unknown_parameter")

    @staticmethod
    def required(body: Mapping[str, Any], field: str) -> None:
        """``field`` is there."""
        if field not in body:
            refuse(
                f"Missing required parameter: '{field}'.",
                param=field,
                code="missing_required_parameter",
            )

    @staticmethod
    def typed(value: Any, kind: type | tuple[type, ...], param: str, words: str) -> None:
        """``value`` is of a JSON type; a boolean is no number."""
        wrong = isinstance(value, bool) and kind is not bool
        if wrong or not isinstance(value, kind):
            got = {dict: "object", list: "array", str: "string", bool: "boolean"}
            name = "null" if value is None else got.get(type(value), "number")
            refuse(
                f"Invalid type for '{param}': expected {words}, but got {name} instead.",
                param=param,
                code="invalid_type",
            )

    @staticmethod
    def number(body: Mapping[str, Any], field: str, low: float, high: float | None) -> None:
        """A number within its bounds, if it is there at all."""
        value = body.get(field)
        if value is None:
            return
        OpenAI.typed(value, (int, float), field, "a number")
        kind = "integer" if isinstance(value, int) and isinstance(low, int) else "decimal"
        if value < low:
            refuse(
                f"Invalid '{field}': {kind} below minimum value. "
                f"Expected a value >= {low}, but got {value} instead.",
                param=field,
                code=f"{kind}_below_min_value",
            )
        if high is not None and value > high:
            refuse(
                f"Invalid '{field}': {kind} above maximum value. "
                f"Expected a value <= {high}, but got {value} instead.",
                param=field,
                code=f"{kind}_above_max_value",
            )

    @staticmethod
    def one_of(value: Any, allowed: Collection[str], param: str) -> None:
        """A value out of a closed set."""
        if value not in allowed:
            listed = ", ".join(f"'{one}'" for one in sorted(allowed))
            refuse(
                f"Invalid value: '{value}'. Supported values are: {listed}.",
                param=param,
                code="invalid_value",
            )

    @staticmethod
    def length(text: str, limit: int, param: str) -> None:
        """A string that is not too long."""
        if len(text) > limit:
            refuse(
                f"Invalid '{param}': string too long. Expected a string with maximum length "
                f"{limit}, but got a string with length {len(text)} instead.",
                param=param,
                code="string_above_max_length",
            )

    @staticmethod
    def pattern(text: Any, param: str) -> None:
        """A name of a tool or a schema."""
        OpenAI.typed(text, str, param, "a string")
        if NAME.fullmatch(text) is None:
            refuse(
                f"Invalid '{param}': string does not match pattern. "
                "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
                param=param,
                code="invalid_value",
            )

    @staticmethod
    def not_empty(value: Any, param: str) -> None:
        """An array with something in it."""
        OpenAI.typed(value, list, param, "an array")
        if not value:
            refuse(
                f"Invalid '{param}': empty array. Expected an array with minimum length 1, "
                "but got an empty array instead.",
                param=param,
                code="empty_array",
            )

    @staticmethod
    def metadata(body: Mapping[str, Any]) -> None:
        """At most 16 pairs of short strings."""
        metadata = body.get("metadata")
        if metadata is None:
            return
        OpenAI.typed(metadata, dict, "metadata", "an object")
        if len(metadata) > 16:
            refuse("Invalid 'metadata': too many properties.", param="metadata")
        for key, value in metadata.items():
            OpenAI.typed(value, str, f"metadata.{key}", "a string")
            OpenAI.length(key, 64, "metadata")
            OpenAI.length(value, 512, f"metadata.{key}")


def objects(schema: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every object schema inside ``schema``, with the path to it."""
    for where, node in schemas(schema, path):
        if node.get("type") == "object" or "properties" in node:
            yield ", ".join(f"'{step}'" for step in where), node


def schemas(
    schema: Any, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Every schema inside ``schema``, itself first, with the path to it."""
    if isinstance(schema, list):
        for index, item in enumerate(schema):
            yield from schemas(item, (*path, str(index)))
    if not isinstance(schema, Mapping):
        return
    yield path, schema
    for key in ("properties", "$defs", "definitions"):
        for name, inner in (schema.get(key) or {}).items():
            yield from schemas(inner, (*path, key, name))
    for key in ("items", "prefixItems", "anyOf", "oneOf", "allOf"):
        if key in schema:
            yield from schemas(schema[key], (*path, key))
