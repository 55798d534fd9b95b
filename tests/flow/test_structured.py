"""Structured output through the whole gateway: proven, mended, asked again, and on the books."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from adapters.simulator import Answer as Says
from adapters.simulator import Call as Calls
from adapters.simulator import Refuse, Say, Usage
from tests.harness import Answer, Harness, alias, gateway

UPSTREAMS = ("openai", "anthropic", "chat")
MODELS = {"openai": "gpt-5.2", "anthropic": "claude-sonnet-4-6", "chat": "some-model"}

CITY: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "score": {"type": "integer", "maximum": 10}},
    "required": ["name", "score"],
    "additionalProperties": False,
}
GOOD = '{"name":"Oslo","score":7}'
WRONG = '{"name":"Oslo","score":11}'
EXACTLY = [{"pointer": "/score", "found": "11", "wanted": "at most 10"}]


def asked(schema: dict[str, Any] = CITY, strict: bool | None = True) -> dict[str, Any]:
    inner = {"name": "out", "schema": schema}
    return {
        "type": "json_schema",
        "json_schema": inner if strict is None else {**inner, "strict": strict},
    }


@pytest.fixture
async def g(tmp_path: Path) -> AsyncIterator[Harness]:
    """Three upstreams whose models tests give their lines, and aliases with other settings."""
    more = [alias(name, (name, model)) for name, model in MODELS.items()]
    more += [
        alias("never", ("openai", "gpt-5.2"), max_repairs=0),
        alias("twice", ("openai", "gpt-5.2"), max_attempts=2, max_repairs=5),
        alias("hasty", ("openai", "gpt-5.2"), deadline=0.2),
        alias(
            "next", ("openai", "gpt-5.2"), ("chat", "some-model"), max_repairs=1,
            next_on=["output_invalid"],
        ),
        alias("stay", ("openai", "gpt-5.2"), ("chat", "some-model"), max_repairs=0),
        alias("old-claude", ("anthropic", "claude-3-5-sonnet")),
        alias("old-gpt", ("chat", "gpt-3.5-turbo")),
        alias("older-gpt", ("chat", "gpt-4")),
        alias("old-responses", ("openai", "gpt-4-turbo")),
        alias("checked", ("openai", "gpt-5.2"), on_invalid_arguments="repair"),
        alias("checked-claude", ("anthropic", "claude-sonnet-4-6"), on_invalid_arguments="repair"),
        alias("checked-chat", ("chat", "some-model"), on_invalid_arguments="repair"),
    ]  # fmt: skip
    async with gateway(tmp_path, *more) as running:
        yield running


def says(g: Harness, upstream: str, *texts: str) -> None:
    g.simulator.script(MODELS[upstream], [Say(text) for text in texts])


async def kinds(g: Harness, answer: Answer) -> list[tuple[str, str | None]]:
    """The attempts as the ledger has them, each with its fault."""
    return [(row["kind"], row["fault"]) for row in (await g.explain(answer))["attempts"]]


def text_of(answer: Answer, stream: bool) -> str:
    if not stream:
        return answer.json()["choices"][0]["message"]["content"]
    return "".join(
        choice["delta"].get("content") or ""
        for chunk in answer.data()[:-1]
        for choice in chunk["choices"]
    )


# --------------------------------------------------------------------------- the answer


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("upstream", UPSTREAMS)
async def test_a_valid_answer_goes_through_untouched(
    g: Harness, upstream: str, stream: bool
) -> None:
    text = ' {"name" : "\\u00d8ster\\u00e5s","score":7.0}\n'
    says(g, upstream, text)
    answer = await g.chat(upstream, response_format=asked(), stream=stream)
    assert answer.status == 200
    assert text_of(answer, stream) == text
    assert "x-gateway-mended" not in answer.headers
    assert await kinds(g, answer) == [("first", None)]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("upstream", UPSTREAMS)
async def test_what_was_mended_is_told(g: Harness, upstream: str, stream: bool) -> None:
    says(g, upstream, f"```json\n{GOOD[:-1]},}}\n```")
    answer = await g.chat(upstream, response_format=asked(), stream=stream)
    assert text_of(answer, stream) == GOOD
    assert answer.headers["x-gateway-mended"] == (
        'fence@0 "```json\\n" -> "", trailing_comma@33 "," -> "", fence@34 "\\n```" -> ""'
    )
    [row] = (await g.explain(answer))["attempts"]
    assert row["counts"] == {"mended_fence": 2, "mended_trailing_comma": 1}
    assert GOOD not in json.dumps(row)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("upstream", UPSTREAMS)
async def test_an_answer_that_does_not_fit_is_asked_for_again(
    g: Harness, upstream: str, stream: bool
) -> None:
    says(g, upstream, WRONG, GOOD)
    answer = await g.chat(upstream, response_format=asked(), stream=stream)
    assert text_of(answer, stream) == GOOD
    assert await kinds(g, answer) == [("first", "output_invalid"), ("repair", None)]
    again = json.dumps(g.simulator.log[-1].body)
    assert "at /score: found 11, wanted at most 10" in again
    assert json.dumps(WRONG)[1:-1] in again
    rows = (await g.explain(answer))["attempts"]
    assert [row["usage_source"] for row in rows] == ["provider", "provider"]
    assert all(row["output_tokens"] for row in rows)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("upstream", UPSTREAMS)
async def test_an_answer_that_never_fits_is_a_422(g: Harness, upstream: str, stream: bool) -> None:
    says(g, upstream, WRONG, WRONG, WRONG)
    answer = await g.chat(upstream, response_format=asked(), stream=stream)
    assert answer.status == 422
    error = answer.json()["error"]
    assert (error["type"], error["code"]) == ("output_error", "output_invalid")
    assert (error["provider"], error["raw"], error["errors"]) == (upstream, WRONG, EXACTLY)
    assert error["message"].endswith(".")
    assert await kinds(g, answer) == [
        ("first", "output_invalid"),
        ("repair", "output_invalid"),
        ("repair", "output_invalid"),
    ]
    assert WRONG not in json.dumps(await g.explain(answer))


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (
            "/v1/responses",
            {
                "input": "hi",
                "text": {"format": {"type": "json_schema", "name": "out", "schema": CITY}},
            },
        ),
        (
            "/v1/messages",
            {
                "max_tokens": 100,
                "messages": [{"role": "user", "content": "hi"}],
                "output_config": {"format": {"type": "json_schema", "schema": CITY}},
            },
        ),
    ],
    ids=["responses", "messages"],
)
@pytest.mark.parametrize("upstream", UPSTREAMS)
async def test_the_other_two_dialects(
    g: Harness, upstream: str, path: str, body: dict[str, Any]
) -> None:
    if path == "/v1/messages" and upstream == "anthropic":
        inner = {**CITY["properties"], "score": {"type": "integer"}}
        body = json.loads(json.dumps(body))
        body["output_config"]["format"]["schema"]["properties"] = inner
    says(g, upstream, '{"name":"Oslo"}', GOOD, *['{"name":"Oslo"}'] * 3)
    good = await g.post(path, {"model": upstream, **body})
    assert good.status == 200
    assert "Oslo" in good.body.decode()
    assert json.dumps(GOOD)[1:-1] in good.body.decode()
    bad = await g.post(path, {"model": upstream, **body})
    assert bad.status == 422
    error = bad.json()["error"]
    assert (error["code"], error["provider"]) == ("output_invalid", upstream)
    assert error["type"] == ("api_error" if path == "/v1/messages" else "output_error")


async def test_any_object_where_no_schema_was_given(g: Harness) -> None:
    says(g, "chat", "no JSON", "[1]", '{"any": 1}')
    answer = await g.chat("chat", "JSON, please", response_format={"type": "json_object"})
    assert text_of(answer, False) == '{"any": 1}'
    faults = ["output_unparsable", "output_invalid", None]
    assert [fault for _, fault in await kinds(g, answer)] == faults


# --------------------------------------------------------------------------- caps and what follows


@pytest.mark.parametrize(("name", "tries"), [("never", 1), ("twice", 2)])
async def test_repairs_keep_to_the_caps(g: Harness, name: str, tries: int) -> None:
    says(g, "openai", *[WRONG] * 6)
    answer = await g.chat(name, response_format=asked())
    assert answer.status == 422
    assert len(await kinds(g, answer)) == tries


async def test_repairs_keep_to_the_deadline(g: Harness) -> None:
    slow = Says((Say(WRONG, tuple(WRONG)),), pace=0.02)
    g.simulator.script("gpt-5.2", [slow, slow, slow])
    answer = await g.chat("hasty", response_format=asked(), stream=True)
    assert answer.status in (422, 504)
    assert len(await kinds(g, answer)) == 1


async def test_the_next_target_is_asked_afresh_where_the_alias_says_so(g: Harness) -> None:
    says(g, "openai", WRONG, WRONG)
    says(g, "chat", GOOD)
    answer = await g.chat("next", response_format=asked())
    assert text_of(answer, False) == GOOD
    assert await kinds(g, answer) == [
        ("first", "output_invalid"),
        ("repair", "output_invalid"),
        ("failover", None),
    ]
    assert len(g.simulator.log[-1].body["messages"]) == 1


async def test_the_next_target_is_not_asked_otherwise(g: Harness) -> None:
    says(g, "openai", WRONG)
    answer = await g.chat("stay", response_format=asked())
    assert answer.status == 422
    assert await kinds(g, answer) == [("first", "output_invalid")]


async def test_a_provider_that_fails_amid_repairs_is_tried_again(g: Harness) -> None:
    g.simulator.script("some-model", [Say(WRONG), "fault-status-500", Say(GOOD)])
    answer = await g.chat("chat", response_format=asked())
    assert text_of(answer, False) == GOOD
    assert await kinds(g, answer) == [
        ("first", "output_invalid"),
        ("repair", "upstream_server"),
        ("retry", None),
    ]
    assert "found 11" in json.dumps(g.simulator.log[-1].body)


# --------------------------------------------------------------------------- ends that are none


def cut(text: str) -> Says:
    return Says((Say(text),), stop="length")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("upstream", UPSTREAMS)
async def test_a_cut_answer_is_asked_for_with_more_room_once(
    g: Harness, upstream: str, stream: bool
) -> None:
    g.simulator.script(MODELS[upstream], [cut('{"name":"Os'), Say(GOOD)])
    answer = await g.chat(upstream, response_format=asked(), stream=stream)
    assert text_of(answer, stream) == GOOD
    assert await kinds(g, answer) == [("first", "output_truncated"), ("more_room", None)]
    second = g.simulator.log[-1].body
    limits = {"max_tokens", "max_completion_tokens", "max_output_tokens"} & set(second)
    assert [second[name] >= 16_000 for name in limits] == [True]
    g.simulator.script(MODELS[upstream], [cut("{"), cut("{")])
    again = await g.chat(upstream, response_format=asked(), stream=stream)
    assert (again.status, again.json()["error"]["code"]) == (422, "output_truncated")
    assert len(await kinds(g, again)) == 2


@pytest.mark.parametrize("upstream", UPSTREAMS)
async def test_there_is_no_more_room_than_the_model_s_own(g: Harness, upstream: str) -> None:
    full = Says((Say('{"na'),), stop="length", usage=Usage(10, 300_000))
    g.simulator.script(MODELS[upstream], [full])
    answer = await g.chat(upstream, response_format=asked())
    assert answer.json()["error"]["code"] == "output_truncated"
    assert await kinds(g, answer) == [("first", "output_truncated")]


@pytest.mark.parametrize("upstream", UPSTREAMS)
async def test_case_o05_a_caller_s_own_limit_is_kept_and_nothing_is_closed_up(
    g: Harness, upstream: str
) -> None:
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "items": {"type": "array", "items": {}}},
        "required": ["name", "items"],
    }
    text = '{"name":"Ana","items":["leek","carrot"'
    g.simulator.script(MODELS[upstream], [cut(text), Say(text)])
    limited = await g.chat(upstream, response_format=asked(schema, None), max_tokens=16)
    assert limited.status == 422
    error = limited.json()["error"]
    assert (error["code"], error["finish_reason"], error["raw"]) == (
        "output_truncated",
        "length",
        text,
    )
    assert await kinds(g, limited) == [("first", "output_truncated")]
    ended = await g.chat(upstream, response_format=asked(schema, None), max_tokens=16)
    assert text_of(ended, False) == text + "]}"


@pytest.mark.parametrize("upstream", UPSTREAMS)
async def test_refusals_and_filters_are_shown_as_they_are(g: Harness, upstream: str) -> None:
    filtered = Says((Say('{"na'),), stop="filter")
    g.simulator.script(MODELS[upstream], [Refuse("I can't."), filtered])
    refused = await g.chat(upstream, response_format=asked())
    assert refused.status == 200
    assert "I can't." in refused.body.decode()
    filtered_too = await g.chat(upstream, response_format=asked())
    assert filtered_too.json()["choices"][0]["finish_reason"] == "content_filter"
    assert len(g.simulator.log) == 2


@pytest.mark.parametrize("upstream", UPSTREAMS)
async def test_tool_calls_are_not_the_final_output(g: Harness, upstream: str) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    g.simulator.script(MODELS[upstream], [[Say("Let me see."), Calls("f", "{}")]])
    answer = await g.chat(upstream, response_format=asked(), tools=[tool])
    assert answer.status == 200
    assert answer.json()["choices"][0]["finish_reason"] == "tool_calls"


# --------------------------------------------------------------------------- how it is asked


@pytest.mark.parametrize("stream", [False, True])
async def test_a_forced_tool_stands_for_the_schema(g: Harness, stream: bool) -> None:
    g.simulator.script("claude-3-5-sonnet", [Calls("out", WRONG), Calls("out", GOOD)])
    answer = await g.chat("old-claude", response_format=asked(), stream=stream)
    assert text_of(answer, stream) == GOOD
    assert await kinds(g, answer) == [("first", "output_invalid"), ("repair", None)]
    reasons = [answer.json()] if not stream else answer.data()[:-1]
    told = {choice["finish_reason"] for one in reasons for choice in one["choices"]}
    assert told - {None} == {"stop"}
    first = g.simulator.log[0].body
    assert first["tool_choice"] == {"type": "tool", "name": "out"}
    assert first["tools"][0]["input_schema"] == CITY


@pytest.mark.parametrize(
    ("name", "form"), [("old-gpt", {"type": "json_object"}), ("older-gpt", None)]
)
async def test_lower_tiers_say_it_in_words(g: Harness, name: str, form: Any) -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    answer = await g.chat(name, response_format=asked(), tools=tools)
    assert answer.status == 200
    json.loads(text_of(answer, False))
    sent = g.simulator.log[-1].body
    assert sent.get("response_format") == form
    assert '"maximum":10' in sent["messages"][0]["content"]
    assert "response_format=json_schema->" in answer.headers["x-gateway-adjusted"]


async def test_case_o01_limits_that_the_provider_lacks_are_enforced_here(g: Harness) -> None:
    schema = {
        "type": "object",
        "properties": {
            "tags": {
                "type": "array",
                "items": {"type": "string", "minLength": 1},
                "minItems": 2,
                "maxItems": 5,
            },
            "score": {"type": "integer", "minimum": 0, "maximum": 10},
        },
        "required": ["tags", "score"],
        "additionalProperties": False,
    }
    bad = '{"tags":["a"],"score":11}'
    says(g, "anthropic", *[bad] * 3)
    answer = await g.chat("anthropic", response_format=asked(schema))
    assert answer.status == 422
    assert {e["pointer"] for e in answer.json()["error"]["errors"]} == {"/tags", "/score"}
    assert [attempt.refused for attempt in g.simulator.log] == [None] * 3


@pytest.mark.parametrize("upstream", ["openai", "chat"])
async def test_case_o04_strict_only_where_it_keeps_the_meaning(g: Harness, upstream: str) -> None:
    optional = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "required": ["a"],
    }
    labels = {
        "type": "object",
        "properties": {"labels": {"type": "object", "additionalProperties": {"type": "string"}}},
        "required": ["labels"],
        "additionalProperties": False,
    }
    nullable = {
        "type": "object",
        "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
        "required": ["a"],
        "additionalProperties": False,
    }
    cases = [
        (optional, False, '{"a":"x"}', '{"a":"x"}'),
        (labels, True, '{"labels":{"k":"v"}}', '{"labels":{"k":"v"}}'),
        (nullable, True, '{"a":null}', '{"a":null}'),
        (optional, True, '{"a":"x","b":null}', '{"a":"x"}'),
        (optional, False, '{"a":"x"}', '{"a":"x"}'),
    ]
    says(g, upstream, *[said for _, _, said, _ in cases])
    for schema, strict, _, shown in cases:
        answer = await g.chat(upstream, response_format=asked(schema, strict))
        assert text_of(answer, False) == shown
    attempts = list(g.simulator.log)
    assert [attempt.refused for attempt in attempts] == [None] * 5
    assert attempts[0].raw == attempts[4].raw


async def test_what_is_verified_is_not_rewritten_beforehand(g: Harness) -> None:
    """A null for "left out" could not be taken out of a stream again."""
    optional = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "required": ["a"],
    }
    body = {"model": "chat", "stream": True, "response_format": asked(optional)}
    body["messages"] = [{"role": "user", "content": "hi"}]
    headers = {"x-gateway-structured": "verify"}
    await g.post("/v1/chat/completions", body, headers=headers)
    sent = g.simulator.log[-1].body["response_format"]["json_schema"]
    assert (sent["strict"], sent["schema"]) == (False, optional)


async def test_case_o08_no_structure_is_guessed(g: Harness) -> None:
    says(g, "chat", '{"key": ["samsung 32" display"]}', '{"a":1}{"a":2}', '{"a":1,}')
    answer = await g.chat("chat", "JSON", response_format={"type": "json_object"})
    assert text_of(answer, False) == '{"a":1}'
    faults = [fault for _, fault in await kinds(g, answer)]
    assert faults == ["output_unparsable", "output_unparsable", None]


@pytest.mark.parametrize("upstream", UPSTREAMS)
async def test_every_choice_is_proven(g: Harness, upstream: str) -> None:
    """Chat providers give several choices in one answer, the others one each."""
    says(g, upstream, *[GOOD] * 4)
    answer = await g.chat(upstream, response_format=asked(), n=2)
    assert [c["message"]["content"] for c in answer.json()["choices"]] == [GOOD, GOOD]
    says(g, upstream, *[WRONG] * 9)
    assert (await g.chat(upstream, response_format=asked(), n=2)).status == 422
    says(g, upstream, *[WRONG] * 2)
    body = {"model": upstream, "n": 2, "stream": True, "response_format": asked()}
    body["messages"] = [{"role": "user", "content": "hi"}]
    headers = {"x-gateway-structured": "verify"}
    verified = await g.post("/v1/chat/completions", body, headers=headers)
    verdicts = [c["gateway"] for c in verified.data()[:-1] if "gateway" in c]
    assert [told["structured"]["valid"] for told in verdicts] == [False]


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("strict", [True, False])
async def test_no_schema_is_refused_by_a_provider_for_its_shape(
    g: Harness, upstream: str, strict: bool
) -> None:
    """The simulated providers compile no more than the real ones do (fault kind K06)."""
    wide = {f"p{n}": {"type": ["string", "null"]} for n in range(30)}
    inner: dict[str, Any] = {"type": "object", "properties": {"x": {"type": "string"}}}
    one = {
        "uri": {"type": "string", "format": "uri", "minLength": 1, "pattern": "^(?!x)"},
        "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"const": 1}]},
        "set": {"type": "array", "items": {"$ref": "#/$defs/i"}, "uniqueItems": True},
        "either": {"oneOf": [{"$ref": "#/$defs/i", "title": "I"}, {"enum": [1, None]}]},
    }
    schemas: list[dict[str, Any]] = [
        {"type": "object", "properties": wide},
        {"type": "object", "properties": one, "$defs": {"i": inner}, "minProperties": 1},
        {"type": "array", "items": {"type": "integer"}},
        {"anyOf": [inner, {"type": "null"}]},
        {"$ref": "#/$defs/i", "$defs": {"i": {**inner, "default": {}}}},
        {"type": "object", "properties": {}, "additionalProperties": {"type": "string"}},
        {"type": "object", "properties": {"t": {"$ref": "#"}, "x": {"type": "string"}}},
    ]
    for schema in schemas:
        answer = await g.chat(upstream, response_format=asked(schema, strict))
        assert answer.status in (200, 422), answer.body
        assert g.simulator.log[-1].refused is None


async def test_json_mode_of_responses_has_its_word_in_the_input(g: Harness) -> None:
    for system in ([], [{"role": "system", "content": "You answer in JSON."}]):
        form = asked() if not system else {"type": "json_object"}
        body = {"model": "old-responses", "response_format": form}
        body["messages"] = [*system, {"role": "user", "content": "hi"}]
        answer = await g.post("/v1/chat/completions", body)
        assert answer.status == 200, answer.body
        sent = g.simulator.log[-1].body
        assert sent["text"]["format"] == {"type": "json_object"}
        assert "json" in json.dumps(sent["input"]).lower()


@pytest.mark.parametrize("upstream", UPSTREAMS)
async def test_a_strict_tool_of_messages_is_taken_everywhere(g: Harness, upstream: str) -> None:
    """Strict means another subset there: properties may be left out."""
    loose = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    closed = {**loose, "required": ["a", "b"]}
    tools = [
        {"name": name, "input_schema": schema, "strict": True}
        for name, schema in (("loose", loose), ("closed", closed))
    ]
    body = {"model": upstream, "max_tokens": 99, "tools": tools}
    body["messages"] = [{"role": "user", "content": "hi"}]
    answer = await g.post("/v1/messages", body)
    assert answer.status == 200, answer.body
    sent = [tool.get("function", tool) for tool in g.simulator.log[-1].body["tools"]]
    told = answer.headers.get("x-gateway-dropped")
    if upstream == "anthropic":
        assert ([tool["strict"] for tool in sent], told) == ([True, True], None)
    else:
        assert ([tool["strict"] for tool in sent], told) == ([False, True], "tools[0].strict")


# --------------------------------------------------------------------------- the schema itself


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        ({"$ref": "http://127.0.0.1:1/x.json"}, "nothing is ever fetched"),
        ({"type": "string", "pattern": "(?=a)b"}, "bounded time"),
        ({"type": "text"}, "no valid JSON Schema"),
    ],
)
@pytest.mark.parametrize("upstream", UPSTREAMS)
async def test_hostile_schemas_are_refused_before_any_provider_is_asked(
    g: Harness, upstream: str, schema: Any, told: str
) -> None:
    answer = await g.chat(upstream, response_format=asked(schema))
    error = answer.json()["error"]
    assert (answer.status, error["param"]) == (400, "response_format")
    assert told in error["message"]
    assert len(g.simulator.log) == 0


async def test_a_schema_that_multiplies_is_refused_quickly(g: Harness) -> None:
    chain = {
        str(n): {"allOf": [{"$ref": f"#/$defs/{n + 1}"}, {"$ref": f"#/$defs/{n + 1}"}]}
        for n in range(24)
    }
    schema = {"$defs": {**chain, "24": {"type": "object"}}, "$ref": "#/$defs/0"}
    started = time.monotonic()
    answer = await g.chat("openai", response_format=asked(schema, None))
    assert answer.status == 400
    assert time.monotonic() - started < 5


# --------------------------------------------------------------------------- tool calls

ADD = {
    "type": "function",
    "function": {
        "name": "add",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
    },
}
NOW = {"type": "function", "function": {"name": "now"}}


def calls_of(answer: Answer) -> list[tuple[str, str]]:
    calls = answer.json()["choices"][0]["message"]["tool_calls"]
    return [(call["function"]["name"], call["function"]["arguments"]) for call in calls]


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("checked", "gpt-5.2"),
        ("checked-claude", "claude-sonnet-4-6"),
        ("checked-chat", "some-model"),
    ],
)
async def test_arguments_that_don_t_fit_are_asked_for_again(
    g: Harness, name: str, model: str
) -> None:
    lines: Sequence[Any] = [
        [Calls("add", '{"a":1,"b":"two"}', id="c1"), Calls("now", "{}", id="c2")],
        Calls("subtract", "{}"),
        [Calls("add", '{"a":1,"b":2}'), Calls("now", "{}")],
    ]
    g.simulator.script(model, lines)
    answer = await g.chat(name, tools=[ADD, NOW])
    assert calls_of(answer) == [("add", '{"a":1,"b":2}'), ("now", "{}")]
    assert await kinds(g, answer) == [
        ("first", "output_invalid"),
        ("repair", "output_invalid"),
        ("repair", None),
    ]
    assert 'at /b: found \\"two\\", wanted type integer' in g.simulator.log[1].raw.decode()
    assert all(attempt.refused is None for attempt in g.simulator.log)


async def test_arguments_that_are_careless_are_mended(g: Harness) -> None:
    g.simulator.script("some-model", [Calls("add", "{'a': 1, 'b': 2,}")])
    answer = await g.chat("checked-chat", tools=[ADD])
    assert calls_of(answer) == [("add", '{"a": 1, "b": 2}')]
    assert "single_quotes" in answer.headers["x-gateway-mended"]


async def test_arguments_pass_as_they_are_by_default(g: Harness) -> None:
    g.simulator.script("some-model", [Calls("add", '{"a":')])
    answer = await g.chat("chat", tools=[ADD])
    assert calls_of(answer) == [("add", '{"a":')]


async def test_no_arguments_for_a_tool_without_any(g: Harness) -> None:
    g.simulator.script("some-model", [Calls("now", "")])
    assert calls_of(await g.chat("checked-chat", tools=[NOW])) == [("now", "")]


async def test_a_tool_s_hostile_schema_is_refused_where_it_would_be_used(g: Harness) -> None:
    bad = {"type": "function", "function": {"name": "f", "parameters": {"$ref": "x.json"}}}
    answer = await g.chat("checked", tools=[ADD, bad])
    assert answer.status == 400
    assert answer.json()["error"]["param"] == "tools[1].parameters"
