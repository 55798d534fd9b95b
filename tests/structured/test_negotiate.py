"""How JSON is asked for, by the facts and by the protocol."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from adapters.canonical.facts import CAPABILITIES, Facts
from adapters.canonical.parts import Dialect, Text
from adapters.canonical.request import (
    FunctionTool,
    JsonObject,
    JsonSchema,
    Message,
    Output,
    Reasoning,
    Request,
    ToolChoice,
)
from adapters.registry import DIALECTS
from gateway.structured.negotiate import Asked, negotiate

CLOSED: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}
OPTIONAL: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
    "required": ["a"],
}
MAP: dict[str, Any] = {
    "type": "object",
    "properties": {"labels": {"type": "object", "additionalProperties": {"type": "string"}}},
    "required": ["labels"],
    "additionalProperties": False,
}
OPENAI: tuple[Dialect, ...] = ("openai-chat", "openai-responses")


def request(output: Output | None, origin: Dialect = "openai-chat", **fields: Any) -> Request:
    said = (Message("user", (Text("hi"),)),)
    return Request("m", said, origin, output=output, **fields)


def facts(*lacks: str) -> Facts:
    return Facts("m", max_output=1000, capabilities=CAPABILITIES - set(lacks))


def asked(given: Request, dialect: Dialect = "openai-chat", *lacks: str, **how: Any) -> Asked:
    before = copy.deepcopy(given)
    found = negotiate(given, dialect, facts(*lacks), **how)
    assert given == before
    assert found is not None
    return found


def schema(value: dict[str, Any], strict: bool | None = None) -> JsonSchema:
    return JsonSchema("out", value, strict)


def test_text_is_asked_for_as_ever() -> None:
    assert negotiate(request(None), "openai-chat", facts()) is None


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_three_tiers(dialect: Dialect) -> None:
    given = request(schema(CLOSED, True), tools=(FunctionTool("f"),))
    native = asked(given, dialect)
    assert (native.tier, native.request.output) == ("native", given.output)
    mode = asked(given, dialect, "json_schema")
    assert (mode.tier, mode.request.output) == ("object", JsonObject())
    assert '"additionalProperties":false' in mode.request.instructions[-1].text
    words = asked(given, dialect, "json_schema", "json_object")
    assert (words.tier, words.request.output) == ("instructions", None)
    assert words.request.instructions == mode.request.instructions
    assert words.adjusted == ("response_format=json_schema->instructions",)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_any_object(dialect: Dialect) -> None:
    given = request(JsonObject())
    assert asked(given, dialect).request.output == JsonObject()
    words = asked(given, dialect, "json_object")
    assert words.request.output is None
    assert "JSON object" in words.request.instructions[-1].text


@pytest.mark.parametrize("dialect", OPENAI)
def test_optional_properties_become_required_and_nullable(dialect: Dialect) -> None:
    found = asked(request(schema(OPTIONAL, True)), dialect)
    assert isinstance(found.request.output, JsonSchema)
    assert found.request.output.strict is True
    assert found.request.output.schema["required"] == ["a", "b"]
    assert found.optional == (("b",),)
    assert found.adjusted == ("response_format=schema->strict form",)


@pytest.mark.parametrize("dialect", OPENAI)
def test_what_strict_mode_has_no_word_for_is_said_and_told(dialect: Dialect) -> None:
    limited = {**CLOSED, "properties": {"a": {"type": "string", "minLength": 2}}}
    found = asked(request(schema(limited, True)), dialect)
    assert isinstance(found.request.output, JsonSchema)
    sent = found.request.output.schema["properties"]["a"]
    assert sent == {"type": "string", "description": "(minLength: 2)"}
    assert found.adjusted == (
        "response_format=schema->strict form",
        "response_format=schema/properties/a/minLength->description",
    )


def test_a_model_that_takes_no_limits_is_told_them() -> None:
    limited = {**CLOSED, "properties": {"a": {"type": "string", "pattern": "^a"}}}
    found = asked(request(schema(limited, True)), "openai-chat", "schema_limits")
    assert "response_format=schema/properties/a/pattern->description" in found.adjusted
    assert asked(request(schema(limited, True))).adjusted == ()


LIST: dict[str, Any] = {"type": "array", "items": {"type": "string"}}


@pytest.mark.parametrize("root", [LIST, {"anyOf": [CLOSED, LIST]}, {"type": ["object", "null"]}])
@pytest.mark.parametrize("strict", [None, True])
@pytest.mark.parametrize("dialect", OPENAI)
def test_a_root_that_need_be_no_object_is_asked_for_in_words(
    dialect: Dialect, strict: Any, root: dict[str, Any]
) -> None:
    """OpenAI's protocols refuse one, and JSON mode would give an object."""
    for lacking in ((), ("json_schema",)):
        found = asked(request(schema(root, strict)), dialect, *lacking)
        assert (found.tier, found.request.output) == ("instructions", None)
    assert asked(request(schema(root, strict)), "anthropic-messages").tier == "native"


def test_a_root_behind_a_reference() -> None:
    recursive = {"$ref": "#/$defs/c", "$defs": {"c": CLOSED}}
    native = asked(request(schema(recursive, True)))
    assert isinstance(native.request.output, JsonSchema)
    assert native.request.output.schema["type"] == "object"
    assert asked(request(schema(recursive))).tier == "object"
    endless = {"$ref": "#/$defs/c", "$defs": {"c": {"$ref": "#/$defs/c"}}}
    assert asked(request(schema(endless))).tier == "instructions"


@pytest.mark.parametrize("dialect", OPENAI)
def test_a_map_is_left_alone_and_not_strict(dialect: Dialect) -> None:
    found = asked(request(schema(MAP, True)), dialect)
    assert found.request.output == schema(MAP, False)
    assert found.adjusted == ("response_format.strict=true->false",)


@pytest.mark.parametrize("strict", [None, False])
@pytest.mark.parametrize("dialect", OPENAI)
def test_who_did_not_ask_for_strict_gets_their_schema(dialect: Dialect, strict: Any) -> None:
    given = request(schema(OPTIONAL, strict))
    assert asked(given, dialect).request is given


def test_formats_of_messages_are_strict_by_nature() -> None:
    found = asked(request(schema(OPTIONAL), "anthropic-messages"), "openai-responses")
    assert isinstance(found.request.output, JsonSchema)
    assert found.request.output.strict is True


def test_what_can_t_be_changed_afterwards_is_not_rewritten() -> None:
    found = asked(request(schema(OPTIONAL, True)), "openai-chat", as_it_comes=True)
    assert found.request.output == schema(OPTIONAL, False)
    assert found.optional == ()
    assert asked(request(schema(CLOSED, True)), as_it_comes=True).request.output == schema(
        CLOSED, True
    )


def test_a_forced_tool_where_there_is_neither_schema_nor_json_mode() -> None:
    found = asked(request(schema(CLOSED)), "anthropic-messages", "json_schema", "json_object")
    assert (found.tier, found.tool) == ("tool", "out")
    assert found.request.output is None
    assert found.request.tool_choice == ToolChoice("named", "out")
    assert found.request.tools is not None
    assert found.request.tools[0].parameters is CLOSED  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["my out", "é", "a" * 65])
def test_a_forced_tool_has_a_name_that_every_protocol_takes(name: str) -> None:
    found = asked(request(JsonSchema(name, CLOSED)), "openai-chat", "json_schema", "json_object")
    assert (found.tier, found.tool) == ("tool", "answer")
    assert found.request.tool_choice == ToolChoice("named", "answer")


@pytest.mark.parametrize(
    "given",
    [
        request(schema(CLOSED), tools=(FunctionTool("own"),)),
        request(schema(CLOSED), reasoning=Reasoning(effort="high")),
        request(schema({"type": "array"})),
        request(schema({"type": "object", "anyOf": [CLOSED, MAP]})),
    ],
    ids=["own tools", "thinking", "no object", "a union"],
)
def test_no_tool_is_forced_where_it_can_t_stand_for_the_schema(given: Request) -> None:
    lacking = ("json_schema", "json_object")
    assert asked(given, "anthropic-messages", *lacking).tier == "instructions"
    bare = request(schema(CLOSED))
    assert asked(bare, "anthropic-messages", *lacking, "tools").tier == "instructions"
