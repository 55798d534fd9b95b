"""Schemas in OpenAI's strict form, and what can't be put into it."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.wire.strict_schema import strict, without_nulls

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


def test_optional_becomes_nullable_and_back() -> None:
    schema = {"type": "object", "properties": {"a": TEXT, "b": TEXT}, "required": ["a"]}
    before = copy.deepcopy(schema)
    form = strict(schema)
    assert form is not None
    assert form.schema == closed(a=TEXT, b={"anyOf": [TEXT, {"type": "null"}]})
    assert form.optional == (("b",),)
    assert without_nulls({"a": "x", "b": None}, form.optional) == {"a": "x"}
    assert without_nulls({"a": "x", "b": "y"}, form.optional) == {"a": "x", "b": "y"}
    assert schema == before
    assert strict(schema) == form


def test_nulls_deep_inside() -> None:
    inner = {"type": "object", "properties": {"x": {"type": "integer"}}}
    form = strict(closed(list={"type": "array", "items": inner}))
    assert form is not None
    answer = {"list": [{"x": None}, {"x": 1}]}
    assert without_nulls(answer, form.optional) == {"list": [{}, {"x": 1}]}
    assert answer == {"list": [{"x": None}, {"x": 1}]}


def test_a_null_of_its_own_is_kept() -> None:
    schema = {"type": "object", "properties": {"a": {"type": ["string", "null"]}}}
    form = strict(schema)
    assert form is not None
    assert form.optional == ()


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "additionalProperties": TEXT},
        {"type": "object"},
        closed(labels={"type": "object", "additionalProperties": TEXT}),
        {"type": "object", "properties": {"a": TEXT}, "additionalProperties": True},
        {"type": "array", "items": TEXT},
        {"anyOf": [closed(a=TEXT)], "type": "object"},
        closed(a={"oneOf": [TEXT]}),
        closed(a={"allOf": [TEXT]}),
        closed(a=True),
        {"type": "object", "properties": {"a": TEXT}, "required": ["b"]},
        {
            **closed(a={"$ref": "#/$defs/d"}),
            "$defs": {"d": {"type": "object", "properties": {"x": TEXT}}},
        },
    ],
)
def test_what_has_no_strict_form(schema: dict[str, Any]) -> None:
    assert strict(schema) is None


def test_too_deep_is_no_strict_form() -> None:
    schema: dict[str, Any] = closed(a=TEXT)
    for _ in range(12):
        schema = closed(a=schema)
    assert strict(schema) is None


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
    assert jsonschema_rs.is_valid(schema, without_nulls(answer, form.optional))
