"""Schemas in the subset that the provider's grammar takes."""

from __future__ import annotations

import contextlib
import copy

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapters.dialects.anthropic_messages.schema import Room, Unprojectable, project


def closed(**properties):
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


INSIDE = [
    closed(a={"type": "string", "format": "date"}, b={"enum": ["x", 1, None, True]}),
    closed(a={"type": "array", "items": {"type": "number"}, "minItems": 1}),
    closed(a={"anyOf": [{"type": "string"}, {"type": "null"}]}, b={"const": 3}),
    {**closed(a={"$ref": "#/$defs/x"}), "$defs": {"x": closed(y={"type": "boolean"})}},
    {"type": "array", "items": {"type": "integer", "title": "N", "description": "D"}},
]


@pytest.mark.parametrize("schema", INSIDE)
def test_what_fits_stays_as_it_is(schema):
    projection = project(schema)
    assert (projection.schema, projection.moved) == (schema, [])


@pytest.mark.parametrize(
    ("schema", "sent", "moved"),
    [
        (
            {"type": "integer", "minimum": 0, "maximum": 10, "description": "A score"},
            {"type": "integer", "description": "A score\n\n(minimum: 0; maximum: 10)"},
            ["/minimum", "/maximum"],
        ),
        (
            {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 2},
            {
                "type": "array",
                "items": {"type": "string", "description": "(minLength: 1)"},
                "description": "(minItems: 2)",
            },
            ["/items/minLength", "/minItems"],
        ),
        (
            {"type": "string", "format": "ssn", "pattern": "^x$"},
            {"type": "string", "description": '(format: "ssn"; pattern: "^x$")'},
            ["/format", "/pattern"],
        ),
        (
            {"type": ["string", "null"], "maxLength": 3, "title": "T"},
            {
                "anyOf": [{"type": "string", "description": "(maxLength: 3)"}, {"type": "null"}],
                "title": "T",
            },
            ["/0/maxLength"],
        ),
        (
            {"type": ["string", "null"], "enum": ["a", None]},
            {"enum": ["a", None]},
            [],
        ),
        (
            {"oneOf": [{"type": "string"}, {"type": "integer"}]},
            {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            [],
        ),
        (
            {"type": "object", "properties": {"a": {"type": "string"}}},
            {
                "type": "object",
                "properties": {"a": {"type": "string"}},
                "additionalProperties": False,
            },
            [],
        ),
        (
            {"type": "string", "enum": [{"complex": 1}]},
            {"type": "string", "description": '(enum: [{"complex":1}])'},
            ["/enum"],
        ),
        (
            {
                "allOf": [{"$ref": "#/definitions/x"}],
                "default": 1,
                "definitions": {"x": {"type": "integer"}},
            },
            {"$ref": "#/$defs/x", "$defs": {"x": {"type": "integer"}}},
            ["/default"],
        ),
    ],
)
def test_what_does_not_fit_becomes_words(schema, sent, moved):
    before = copy.deepcopy(schema)
    projection = project(schema)
    assert (projection.schema, projection.moved) == (sent, moved)
    assert schema == before


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"description": "no type"},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object"},
        closed(a={"type": "object", "additionalProperties": True}),
        closed(a=True),
        {**closed(a={"$ref": "#/$defs/x"}), "$defs": {"x": closed(y={"$ref": "#/$defs/x"})}},
        closed(a={"$ref": "#"}),
        closed(a={"$ref": "https://example.org/schema"}),
        closed(a={"$ref": "#/$defs/missing"}),
        closed(a={"type": "array"}),
        {"anyOf": [{"required": ["a"]}]},
        {"anyOf": []},
        {"anyOf": [{"type": "string"}], "allOf": [{"type": "string"}]},
        {"type": "object", "patternProperties": {"^a": {"type": "string"}}, "properties": {}},
    ],
)
def test_what_can_not_be_said_even_loosely(schema):
    with pytest.raises(Unprojectable):
        project(schema)


def test_what_compiles_dearly_is_counted_and_bounded():
    """Every property that may be left out counts, every place with alternatives, wherever."""
    union = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    inner = {"type": "object", "properties": {"u": union, "v": {"type": ["integer", "null"]}}}
    projection = project(closed(list={"type": "array", "items": inner}))
    assert (projection.optional, projection.unions) == (2, 2)
    room = Room()
    for _ in range(8):
        room.take(projection)
    assert (room.optional, room.unions) == (8, 0)
    with pytest.raises(Unprojectable, match="alternatives"):
        room.take(projection)
    room.take(project({"type": "object", "properties": {str(n): {"const": n} for n in range(8)}}))
    with pytest.raises(Unprojectable, match="left out"):
        room.take(project({"type": "object", "properties": {"a": {"const": 1}}}))


def test_a_schema_nested_without_end_is_refused_not_followed():
    schema: dict = {"type": "string"}
    for _ in range(200):
        schema = closed(a=schema)
    with pytest.raises(Unprojectable):
        project(schema)


NAMES = st.sampled_from(
    (
        *("type", "format", "properties", "required", "items", "enum", "const", "minItems"),
        *("anyOf", "allOf", "$ref", "$defs", "definitions", "description", "a"),
        *("additionalProperties", "patternProperties"),
    )
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.just("#/$defs/a"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@given(keyword=NAMES, value=VALUES, deeper=st.booleans())
@example(keyword="properties", value="auto", deeper=False)
@example(keyword="type", value=[{}], deeper=True)
@example(keyword="required", value=[[]], deeper=False)
@example(keyword="format", value=[], deeper=False)
@example(keyword="$ref", value=7, deeper=False)
def test_no_json_is_too_odd_to_be_judged(keyword, value, deeper):
    """A tool's parameters are whatever a caller sent."""
    schema = {**closed(a={"type": "string"}), keyword: value}
    if deeper:
        schema = closed(b=schema)
    with contextlib.suppress(Unprojectable):
        assert project(schema).schema["type"] == "object"
