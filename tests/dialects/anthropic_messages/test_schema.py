"""Schemas in the subset that the provider's grammar takes."""

from __future__ import annotations

import copy

import pytest

from adapters.dialects.anthropic_messages import Unprojectable, project


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


def test_a_schema_nested_without_end_is_refused_not_followed():
    schema: dict = {"type": "string"}
    for _ in range(200):
        schema = closed(a=schema)
    with pytest.raises(Unprojectable):
        project(schema)
