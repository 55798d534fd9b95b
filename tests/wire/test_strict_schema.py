"""Schemas in OpenAI's strict form, and what can't be put into it."""

from __future__ import annotations

import copy
import json
import time
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.wire.strict_schema import may_be_strict, strict
from gateway.structured.nulls import without_nulls

TEXT = {"type": "string"}


def closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def test_a_strict_schema_stays_as_it_is() -> None:
    schema = closed(a={"anyOf": [TEXT, {"type": "null"}]}, b={"type": "array", "items": TEXT})
    form = strict(schema)
    assert form is not None
    assert (form.schema, form.optional) == (schema, ())


def test_optional_becomes_nullable() -> None:
    schema = {"type": "object", "properties": {"a": TEXT, "b": TEXT}, "required": ["a"]}
    before = copy.deepcopy(schema)
    form = strict(schema)
    assert form is not None
    assert form.schema == closed(a=TEXT, b={"anyOf": [TEXT, {"type": "null"}]})
    assert form.optional == (("b",),)
    assert schema == before
    assert strict(schema) == form


def test_a_null_of_its_own_is_kept() -> None:
    schema = {"type": "object", "properties": {"a": {"type": ["string", "null"]}}}
    form = strict(schema)
    assert form is not None
    assert form.optional == ()


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"type": "string", "minLength": 1}, {"type": "string", "description": "(minLength: 1)"}),
        (
            {"type": "string", "format": "uri", "description": "A link."},
            {"type": "string", "description": 'A link.\n\n(format: "uri")'},
        ),
        ({"type": "string", "format": "date"}, {"type": "string", "format": "date"}),
        (
            {"type": "string", "pattern": "^(?!0)"},
            {"type": "string", "description": '(pattern: "^(?!0)")'},
        ),
        (
            {"type": "array", "items": TEXT, "uniqueItems": True, "minItems": 2},
            {"type": "array", "items": TEXT, "minItems": 2, "description": "(uniqueItems: true)"},
        ),
        (
            {"type": "array", "prefixItems": [TEXT, {"type": "integer"}], "minItems": 2},
            {
                "type": "array",
                "items": {"anyOf": [TEXT, {"type": "integer"}]},
                "minItems": 2,
                "description": '(prefixItems: [{"type":"string"},{"type":"integer"}])',
            },
        ),
        (
            {**closed(x=TEXT, y=TEXT), "if": {"required": ["x"]}, "then": {"required": ["y"]}},
            {
                **closed(x=TEXT, y=TEXT),
                "description": '(if: {"required":["x"]}; then: {"required":["y"]})',
            },
        ),
        (
            {**closed(x=TEXT, y=TEXT), "anyOf": [{"required": ["x"]}, {"required": ["y"]}]},
            {
                **closed(x=TEXT, y=TEXT),
                "description": '(anyOf: [{"required":["x"]},{"required":["y"]}])',
            },
        ),
        (
            {
                **closed(x=TEXT, y={"anyOf": [closed(k=TEXT), closed(m=TEXT)]}),
                "if": {"properties": {"x": {"const": "a"}}},
                "then": {"properties": {"y": {"properties": {"k": {"const": "b"}}}}},
            },
            {
                **closed(x=TEXT, y={"anyOf": [closed(k=TEXT), closed(m=TEXT)]}),
                "description": '(if: {"properties":{"x":{"const":"a"}}}; '
                'then: {"properties":{"y":{"properties":{"k":{"const":"b"}}}}})',
            },
        ),
        ({"oneOf": [TEXT, {"type": "null"}]}, {"anyOf": [TEXT, {"type": "null"}]}),
        ({"allOf": [TEXT], "description": "x"}, {"type": "string", "description": "x"}),
        ({"enum": ["a", None]}, {"enum": ["a", None], "type": ["string", "null"]}),
        ({"const": 1}, {"const": 1, "type": "integer"}),
        ({"type": "string", "default": "x", "x-ui": 1, "examples": ["y"]}, TEXT),
        ({"properties": {"x": TEXT}, "required": ["x"]}, closed(x=TEXT)),
    ],
    ids=",".join,
)
def test_what_the_mode_has_no_word_for_is_said(given: Any, sent: Any) -> None:
    form = strict(closed(a=given))
    assert form is not None
    assert form.schema == closed(a=sent)
    assert bool(form.said) == ("(" in str(sent.get("description")))


def test_fine_tuned_models_take_no_limits() -> None:
    schema = closed(a={"type": "integer", "maximum": 3}, b={"type": "string", "format": "date"})
    form = strict(schema, limits=False)
    assert form is not None
    assert form.schema["properties"]["a"] == {"type": "integer", "description": "(maximum: 3)"}
    assert form.said == ("/properties/a/maximum", "/properties/b/format")
    kept = strict(schema)
    assert kept is not None
    assert kept.schema == schema


def test_what_became_words_is_named() -> None:
    form = strict(closed(a={"type": "array", "items": {"type": "string", "maxLength": 3}}))
    assert form is not None
    assert form.said == ("/properties/a/items/maxLength",)


POINT: dict[str, Any] = {"type": "object", "properties": {"x": TEXT}}
REF: dict[str, Any] = {"$ref": "#/$defs/d"}
TREE: dict[str, Any] = closed(v=TEXT, kids={"type": "array", "items": REF})


def test_a_definition_may_stand_at_many_places() -> None:
    form = strict({**closed(a=REF, b={"type": "array", "items": REF}), "$defs": {"d": POINT}})
    assert form is not None
    assert form.optional == (("a", "x"), ("b", "*", "x"))
    assert form.schema["$defs"] == {"d": closed(x={"anyOf": [TEXT, {"type": "null"}]})}


def test_a_reference_stands_alone() -> None:
    form = strict({**closed(a={**REF, "description": "here"}), "$defs": {"d": closed(x=TEXT)}})
    assert form is not None
    assert form.schema["properties"]["a"] == {"anyOf": [REF], "description": "here"}


def test_recursion_is_fine() -> None:
    for schema in ({**REF, "$defs": {"d": TREE}}, {**closed(t=REF), "$defs": {"d": TREE}}):
        form = strict(schema)
        assert form is not None
        assert form.schema["$defs"] == {"d": TREE}
        assert form.schema["type"] == "object"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "additionalProperties": TEXT},
        {"type": "object"},
        closed(labels={"type": "object", "additionalProperties": TEXT}),
        {"type": "object", "properties": {"a": TEXT}, "additionalProperties": True},
        {"type": "object", "properties": {"a": TEXT}, "patternProperties": {"^x": TEXT}},
        {"type": "array", "items": TEXT},
        {"anyOf": [closed(a=TEXT)]},
        closed(a={"allOf": [TEXT, TEXT]}),
        closed(a=True),
        closed(a={}),
        closed(a={"minimum": 1}),
        closed(a={"type": "array"}),
        closed(a={"enum": [{}]}),
        closed(a={"anyOf": [TEXT], "oneOf": [TEXT]}),
        closed(a={"$ref": "#/properties/b"}, b=TEXT),
        {**closed(a=TEXT), "if": {"required": ["a"]}, "then": {"required": ["z"]}},
        {**closed(a=closed(b=TEXT)), "not": {"properties": {"a": {"required": ["z"]}}}},
        {**closed(a=TEXT), "dependentRequired": {"a": ["z"]}},
        {**closed(a=TEXT), "dependentSchemas": {"a": {"properties": {"z": TEXT}}}},
        {**closed(a=TEXT), "anyOf": [{"required": ["a"]}, {"required": ["z"]}]},
        {"type": "object", "properties": {"a": TEXT}, "required": ["b"]},
        {**closed(a=REF), "$defs": {"d": {**POINT, "properties": {"x": TEXT, "again": REF}}}},
        {"type": "object", "properties": {"a": {"anyOf": [TEXT, {"$ref": "#"}]}}},
        {**closed(a=REF), "$defs": {"d": REF["$ref"]}},
    ],
)
def test_what_has_no_strict_form(schema: dict[str, Any]) -> None:
    assert strict(schema) is None


@pytest.mark.parametrize(
    "parameters",
    [
        {"type": "object", "properties": 5},
        {"type": "object", "properties": {"a": TEXT}, "required": [{}]},
        {"type": "object", "properties": {"a": {"type": 7}}},
        {"type": "object", "properties": {"a": {"anyOf": {}}}},
        {"$ref": 5},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/d"}}, "$defs": []},
    ],
)
def test_what_is_no_schema_has_no_strict_form(parameters: dict[str, Any]) -> None:
    assert strict(parameters) is None


SPOKEN = """
type properties required anyOf oneOf allOf not if then items prefixItems enum const $ref $defs
additionalProperties dependentRequired dependentSchemas object array string a # #/$defs/a
"""
WORDS = st.sampled_from(SPOKEN.split())
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=25,
)


@given(st.dictionaries(WORDS, JUNK, max_size=5), st.booleans())
def test_no_json_is_too_odd_to_be_judged(parameters: dict[str, Any], is_object: bool) -> None:
    strict({**parameters, "type": "object"} if is_object else parameters)


def test_a_foreign_tool_is_strict_only_as_it_stands() -> None:
    assert may_be_strict(closed(a=TEXT), "anthropic-messages")
    assert not may_be_strict(POINT, "anthropic-messages")
    limited = closed(a={"type": "string", "minLength": 1})
    assert not may_be_strict(limited, "anthropic-messages")
    assert not may_be_strict(None, "anthropic-messages")
    assert may_be_strict(limited, "openai-chat")


def test_too_deep_is_no_strict_form() -> None:
    schema: dict[str, Any] = closed(a=TEXT)
    for _ in range(12):
        schema = closed(a=schema)
    assert strict(schema) is None


def many(count: int) -> dict[str, Any]:
    return {f"p{number}": TEXT for number in range(count)}


def choices(count: int, length: int) -> dict[str, Any]:
    return {"type": "string", "enum": [str(n).rjust(length, "x") for n in range(count)]}


@pytest.mark.parametrize(
    ("fits", "does_not"),
    [
        (closed(**many(5000)), closed(**many(5001))),
        (closed(enum=choices(1000, 10)), closed(enum=choices(1001, 10))),
        (closed(a=choices(250, 100)), closed(a=choices(251, 100))),
        (closed(a={"type": "string", "const": "x" * 119_000}), closed(a={"const": "x" * 120_001})),
    ],
    ids=["properties", "values", "characters of one", "characters"],
)
def test_the_size_that_strict_mode_takes(fits: dict[str, Any], does_not: dict[str, Any]) -> None:
    assert strict(fits) is not None
    assert strict(does_not) is None


def test_references_that_multiply_cost_little() -> None:
    chain = {f"d{n}": closed(a={"$ref": f"#/$defs/d{n + 1}"}) for n in range(3000)}
    doubling = {
        f"d{n}": {"type": "object", "properties": {k: {"$ref": f"#/$defs/d{n + 1}"} for k in "ab"}}
        for n in range(40)
    }
    began = time.process_time()
    for definitions in (chain, doubling):
        last = {f"d{len(definitions)}": POINT}
        root = {"$ref": "#/$defs/d0", "$defs": {**definitions, **last}}
        assert strict(root) is None
    assert time.process_time() - began < 10


LEAVES = st.sampled_from(
    [TEXT, {"type": "integer"}, {"type": ["string", "null"]}, {"enum": [1, 2]}]
)


@st.composite
def objects(draw: Any, depth: int = 2) -> dict[str, Any]:
    inner = LEAVES if depth == 0 else st.one_of(LEAVES, objects(depth - 1))
    names = draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True))
    properties = {name: draw(inner) for name in names}
    required = [name for name in names if draw(st.booleans())]
    return {"type": "object", "properties": properties, "required": required}


def answers(schema: dict[str, Any]) -> Any:
    """Answers that fit a strict schema."""
    if "anyOf" in schema:
        return st.one_of([answers(one) for one in schema["anyOf"]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kind = schema["type"]
    if kind == "object":
        return st.fixed_dictionaries({n: answers(s) for n, s in schema["properties"].items()})
    kinds = kind if isinstance(kind, list) else [kind]
    leaf = {"string": st.text(max_size=3), "integer": st.integers(0, 9), "null": st.none()}
    return st.one_of([leaf[one] for one in kinds])


@given(objects(), st.data())
def test_a_strict_answer_fits_the_callers_own_schema(
    schema: dict[str, Any], data: st.DataObject
) -> None:
    form = strict(schema)
    assert form is not None
    answer = data.draw(answers(dict(form.schema)))
    assert jsonschema_rs.is_valid(dict(form.schema), answer)
    cut, _ = without_nulls(json.dumps(answer), form.optional)
    assert jsonschema_rs.is_valid(schema, json.loads(cut))
