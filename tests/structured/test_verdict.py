"""The verdict on an answer, and what a model is told of a bad one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.canonical.completion import Completion
from adapters.canonical.parts import Dialect, Refusal, Text, Thinking, ToolCall, ToolResult
from adapters.canonical.request import Message, Request
from gateway.structured.check import Schemas
from gateway.structured.nulls import without_nulls
from gateway.structured.reask import reask
from gateway.structured.verdict import MAX_RAW, Verdict, Wanted, judge
from gateway.structured.words import Violation

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}


def wanted(schema: dict[str, Any] | None = SCHEMA, *optional: tuple[str, ...]) -> Wanted:
    return Wanted(None if schema is None else Schemas().checker(schema), optional)


def test_a_valid_answer_is_not_touched() -> None:
    text = ' {"a" : "\\u0041\\ud83d\\ude42"}\n'
    assert judge(text, wanted()) == Verdict(text)


def test_a_mended_answer_must_still_pass() -> None:
    good = judge("```\n{'a': 'x',}\n```", wanted())
    assert good.ok
    assert good.text == '{"a": "x"}'
    assert [change.kind for change in good.changes] == [
        "fence", "single_quotes", "single_quotes", "trailing_comma", "fence",
    ]  # fmt: skip
    bad = judge("{'c': 'x',}", wanted())
    assert (bad.kind, bad.text, bad.changes) == ("output_invalid", "{'c': 'x',}", ())


def test_what_can_t_be_read_and_what_does_not_fit() -> None:
    cut = judge('{"a": "x', wanted())
    assert cut.kind == "output_unparsable"
    assert cut.data()["raw"] == '{"a": "x'
    wrong = judge('{"a": 1}', wanted())
    assert wrong.kind == "output_invalid"
    assert wrong.data() == {
        "raw": '{"a": 1}',
        "errors": [{"pointer": "/a", "found": "1", "wanted": "type string"}],
    }
    assert len(judge("x" * 100_000, wanted()).data()["raw"]) == MAX_RAW


def test_any_object_will_do_where_no_schema_was_given() -> None:
    assert judge('{"any": 1}', wanted(None)).ok
    assert judge('[{"any": 1}]', wanted(None)).kind == "output_invalid"
    assert judge("42", wanted(None)).kind == "output_invalid"


def test_integers_beyond_64_bits_stay_what_they_are() -> None:
    text = '{"a": 123456789012345678901234567890}'
    verdict = judge(text, wanted({"properties": {"a": {"type": "integer"}}}))
    assert verdict == Verdict(text)


def test_an_answer_nested_without_end_is_refused_in_good_order() -> None:
    deep = '{"a":' * 100_000 + "1" + "}" * 100_000
    assert judge(deep, wanted()).kind == "output_unparsable"
    fair = '{"a":' * 900 + "1" + "}" * 900
    assert judge(fair, wanted()).kind == "output_invalid"


# --------------------------------------------------------------------------- nulls


def test_a_null_that_was_asked_for_is_left_out_again() -> None:
    verdict = judge('{"a": "x", "b": null}', wanted(SCHEMA, ("b",)))
    assert (verdict.kind, verdict.text) == (None, '{"a": "x"}')
    assert [(c.kind, c.before) for c in verdict.changes] == [("null", ', "b": null')]


def test_a_null_that_nobody_asked_for_is_an_error() -> None:
    assert judge('{"a": "x", "b": null}', wanted()).kind == "output_invalid"
    assert judge('{"a": null}', wanted(SCHEMA, ("b",))).kind == "output_invalid"


def test_a_null_that_the_caller_takes_stays() -> None:
    nullable = {"properties": {"b": {"type": ["string", "null"]}}}
    text = '{"b": null}'
    assert judge(text, wanted(nullable, ("b",))).text == text


PATHS = (("a",), ("b", "a"), ("c", "*", "a"), ("c", "*", "b"))
LEAF = st.none() | st.integers() | st.text('a{}[],:"\\ né', max_size=5)
KEYS = st.sampled_from(["a", "b", "c", "d"])
TREE = st.recursive(
    LEAF,
    lambda inner: st.dictionaries(KEYS, inner, max_size=4) | st.lists(inner, max_size=3),
    max_leaves=12,
)


def left_out(value: Any, path: tuple[str, ...]) -> Any:
    """What cutting the text has to amount to, done on the value."""
    step, *rest = path
    if step == "*":
        return [left_out(item, tuple(rest)) for item in value] if isinstance(value, list) else value
    if not isinstance(value, dict) or step not in value:
        return value
    if not rest:
        return {k: v for k, v in value.items() if k != step or v is not None}
    return {**value, step: left_out(value[step], tuple(rest))}


@given(st.dictionaries(KEYS, TREE, max_size=4), st.sampled_from([None, 1]), st.booleans())
def test_cutting_the_text_is_what_leaving_out_the_values_is(
    value: dict[str, Any], indent: int | None, tight: bool
) -> None:
    separators = (",", ":") if tight else None
    text = json.dumps(value, indent=indent, separators=separators)
    cut, changes = without_nulls(text, PATHS)
    for path in PATHS:
        value = left_out(value, path)
    assert json.loads(cut) == value
    assert (cut == text) == (not changes)


# --------------------------------------------------------------------------- the next turn


def request(origin: Dialect = "openai-chat") -> Request:
    return Request("m", (Message("user", (Text("hi"),)),), origin)


def answer(*parts: Any) -> Completion:
    return Completion(parts=parts, choices=(0,) * len(parts))


BAD = Verdict("{}", (), "output_invalid", (Violation("/a", "1", "type string"),))


def test_the_model_sees_its_answer_and_the_errors() -> None:
    thought = Thinking("hm", signature="s")
    asked = reask(request(), answer(thought, Text('{"a": 1}')), BAD)
    first, said, told = asked.messages
    assert first == request().messages[0]
    assert said == Message("assistant", (thought, Text('{"a": 1}')))
    assert told.role == "user"
    assert "- at /a: found 1, wanted type string" in told.parts[0].text  # type: ignore[union-attr]


@pytest.mark.parametrize("parts", [(), (Text(" "),), (Thinking("hm"),), (Refusal("no"),)])
def test_a_turn_without_words_is_not_repeated(parts: tuple[Any, ...]) -> None:
    assert [m.role for m in reask(request(), answer(*parts), BAD).messages] == ["user", "user"]


def test_each_call_of_a_turn_gets_a_result() -> None:
    calls = (ToolCall("c1", "f", "{}"), ToolCall("c2", "f", "{"))
    bad = Verdict("{", (), "output_unparsable", (Violation("", "{", "JSON"),), where="c2")
    _, said, results = reask(request(), answer(Text(""), *calls), bad).messages
    assert said == Message("assistant", calls)
    assert [(p.call_id, p.is_error) for p in results.parts if isinstance(p, ToolResult)] == [
        ("c1", True),
        ("c2", True),
    ]
    first, second = (p.content[0].text for p in results.parts)  # type: ignore[union-attr]
    assert "another call" in first
    assert "found {, wanted JSON" in second
