"""Cases of translation: ids, deltas, silent losses, ranges, pairing, endings.

Each test's name ends in the id of the public report behind it (INDEX.md). Inputs are our own.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cases.conftest import body, sse
from tests.harness import Harness

TOOL = {
    "type": "function",
    "function": {
        "name": "look_up",
        "parameters": {"type": "object", "properties": {"q": {"type": "string"}}},
    },
}
CREATED = {
    "type": "response.created",
    "response": {"id": "resp_a", "object": "response", "status": "in_progress", "output": []},
}


def item(index: int, value: dict[str, Any], done: bool = False) -> dict[str, Any]:
    kind = "response.output_item.done" if done else "response.output_item.added"
    return {"type": kind, "output_index": index, "item": value}


def call(item_id: str, call_id: str, arguments: str = "") -> dict[str, Any]:
    return {
        "id": item_id,
        "type": "function_call",
        "status": "completed",
        "call_id": call_id,
        "name": "look_up",
        "arguments": arguments,
    }


def arguments(index: int, item_id: str, text: str, done: bool = False) -> dict[str, Any]:
    end = "done" if done else "delta"
    key = "arguments" if done else "delta"
    return {
        "type": f"response.function_call_arguments.{end}",
        "output_index": index,
        "item_id": item_id,
        key: text,
    }


def completed(**usage: Any) -> dict[str, Any]:
    used = usage or {"input_tokens": 11, "output_tokens": 3, "total_tokens": 14}
    response = {"id": "resp_a", "object": "response", "status": "completed", "output": []}
    return {"type": "response.completed", "response": {**response, "usage": used}}


async def streamed(g: Harness, model: str = "m-openai", **fields: Any) -> list[Any]:
    answer = await g.chat(model, stream=True, tools=[TOOL], **fields)
    assert answer.status == 200, answer.body
    return answer.data()


def calls_of(chunks: list[Any]) -> dict[int, dict[str, str]]:
    """Tool calls by slot, joined; fails where an id comes twice."""
    found: dict[int, dict[str, str]] = {}
    for chunk in chunks:
        for choice in chunk["choices"] if isinstance(chunk, dict) else ():
            for piece in choice["delta"].get("tool_calls") or ():
                slot = found.setdefault(piece["index"], {"id": "", "name": "", "arguments": ""})
                slot["id"] += piece.get("id") or ""
                slot["name"] += piece["function"].get("name") or ""
                slot["arguments"] += piece["function"].get("arguments") or ""
    return found


async def test_parallel_calls_have_dense_slots_S01(g: Harness, laid) -> None:
    laid(
        "gpt-test",
        sse(
            CREATED,
            item(0, {"id": "rs_1", "type": "reasoning", "summary": []}),
            item(0, {"id": "rs_1", "type": "reasoning", "summary": []}, done=True),
            item(1, call("fc_1", "call_1")),
            item(2, call("fc_2", "call_2")),
            arguments(2, "fc_2", '{"q":"b"}'),
            arguments(1, "fc_1", '{"q":"a"}'),
            item(1, call("fc_1", "call_1", '{"q":"a"}'), done=True),
            item(2, call("fc_2", "call_2", '{"q":"b"}'), done=True),
            completed(),
        ),
    )
    assert calls_of(await streamed(g)) == {
        0: {"id": "call_1", "name": "look_up", "arguments": '{"q":"a"}'},
        1: {"id": "call_2", "name": "look_up", "arguments": '{"q":"b"}'},
    }


WHOLE = '{"q":"all of it"}'


@pytest.mark.parametrize(
    "pieces",
    [
        [arguments(0, "fc_1", ""), arguments(0, "fc_1", WHOLE, done=True)],
        [arguments(0, "fc_1", WHOLE[:5]), arguments(0, "fc_1", WHOLE[5:])],
        [arguments(0, "fc_1", WHOLE[:9]), arguments(0, "fc_1", WHOLE, done=True)],
        [],
    ],
    ids=["done only", "deltas only", "half and done", "item only"],
)
async def test_arguments_arrive_once_S04(g: Harness, laid, pieces) -> None:
    laid(
        "gpt-test",
        sse(
            CREATED,
            item(0, call("fc_1", "call_1")),
            *pieces,
            item(0, call("fc_1", "call_1", WHOLE), done=True),
            completed(),
        ),
    )
    assert calls_of(await streamed(g))[0]["arguments"] == WHOLE


async def test_one_finish_reason_and_the_right_one_S06(g: Harness, laid) -> None:
    laid(
        "gpt-test",
        sse(
            CREATED,
            item(0, {"id": "msg_1", "type": "message", "role": "assistant", "content": []}),
            {
                "type": "response.output_text.delta",
                "output_index": 0,
                "content_index": 0,
                "item_id": "msg_1",
                "delta": "I will look.",
            },
            item(1, call("fc_1", "call_1", "{}")),
            item(1, call("fc_1", "call_1", "{}"), done=True),
            completed(),
        ),
    )
    chunks = [c for c in await streamed(g) if c != "[DONE]"]
    reasons = [c["choices"][0]["finish_reason"] for c in chunks]
    assert [r for r in reasons if r is not None] == ["tool_calls"]
    assert reasons[-1] == "tool_calls"


@pytest.mark.parametrize("asked", [True, False])
async def test_usage_comes_only_when_asked_for_S09(g: Harness, asked: bool) -> None:
    extra = {"stream_options": {"include_usage": True}} if asked else {}
    chunks = (await g.chat("m-claude", stream=True, **extra)).data()[:-1]
    empty = [c for c in chunks if not c["choices"]]
    assert len(empty) == (1 if asked else 0)
    assert all(c.get("usage") is None for c in chunks if c["choices"])
    row = (await g.get("/admin/usage?by=alias")).json()["usage"][0]
    assert row["output_tokens"] > 0, "metered either way"


async def test_prompt_size_is_told_with_the_end_S11(g: Harness, laid) -> None:
    laid(
        "gpt-test",
        sse(
            CREATED,
            item(0, {"id": "msg_1", "type": "message", "role": "assistant", "content": []}),
            {
                "type": "response.output_text.delta",
                "output_index": 0,
                "content_index": 0,
                "item_id": "msg_1",
                "delta": "ok",
            },
            completed(input_tokens=11, output_tokens=1, total_tokens=12),
        ),
    )
    request = {"model": "m-openai", "max_tokens": 64, "stream": True}
    answer = await g.post(
        "/v1/messages", {**request, "messages": [{"role": "user", "content": "hi"}]}
    )
    delta = next(e for e in answer.data() if e["type"] == "message_delta")
    assert delta["usage"]["input_tokens"] == 11
    row = await g.explain(answer)
    assert row["attempts"][0]["input_tokens"] == 11


PDF = "data:application/pdf;base64,JVBERi0xLjQK"


@pytest.mark.parametrize("model", ["m-openai", "m-claude"])
async def test_a_pdf_arrives_N06(g: Harness, model: str) -> None:
    content = [
        {"type": "text", "text": "Sum it up"},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": PDF}},
    ]
    answer = await g.chat(model, text=content)
    assert answer.status == 200, answer.body
    assert b"JVBERi0xLjQK" in next(iter(g.simulator.log)).raw


@pytest.mark.parametrize(
    "part",
    [
        {"type": "hologram", "hologram": {}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
    ],
)
async def test_what_cannot_be_carried_is_refused_N06(g: Harness, part) -> None:
    answer = await g.chat("m-claude", text=[{"type": "text", "text": "hi"}, part])
    assert answer.status == 400
    assert len(g.simulator.log) == 0


@pytest.mark.parametrize("model", ["m-openai", "m-claude", "m-chat"])
async def test_no_choice_is_invented_N08(g: Harness, model: str) -> None:
    answer = await g.chat(model, tools=[TOOL], parallel_tool_calls=False)
    assert answer.status == 200
    sent = next(iter(g.simulator.log)).body
    choice = sent.get("tool_choice")
    assert choice in (None, {"type": "auto", "disable_parallel_tool_use": True})


@pytest.mark.parametrize(
    ("model", "field"), [("m-openai", "max_output_tokens"), ("m-claude", "max_tokens")]
)
async def test_the_newer_limit_wins_N09(g: Harness, model: str, field: str) -> None:
    answer = await g.chat(model, max_tokens=4000, max_completion_tokens=100)
    assert answer.status == 200
    assert next(iter(g.simulator.log)).body[field] == 100
    zero = await g.chat(model, max_completion_tokens=0)
    assert zero.status == 400
    assert zero.json()["error"]["param"] == "max_completion_tokens"


async def test_ranges_hold_on_every_path_N12(g: Harness) -> None:
    hot = await g.chat("m-claude", temperature=1.4)
    assert hot.status == 200
    assert "temperature" in hot.headers["x-gateway-adjusted"]
    both = await g.chat("m-claude", temperature=0.5, top_p=0.9)
    assert both.status == 200
    assert "top_p" in both.headers["x-gateway-dropped"]
    g.simulator.script("gpt-down", ["fault-status-503"] * 3)
    over = await g.chat("m-over", temperature=1.4)
    assert over.status == 200, "the constraint holds on failover, too"
    assert all(a.refused is None for a in g.simulator.log)


@pytest.mark.parametrize(
    ("model", "stop", "sent", "kept"),
    [
        ("m-claude", ["\n"], None, "one END two"),
        ("m-claude", "END", ["END"], "one "),
        ("m-claude", None, None, "one END two\nthree"),
        ("m-claude", [], None, "one END two\nthree"),
        ("m-openai", ["END"], None, "one "),
    ],
)
async def test_stop_is_kept_at_the_provider_or_here_N14(
    g: Harness, model: str, stop, sent, kept: str
) -> None:
    answer = await g.chat(model, "one END two\nthree", stop=stop)
    choice = answer.json()["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == (kept, "stop")
    assert next(iter(g.simulator.log)).body.get("stop_sequences") == sent


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        ("m-claude", {"logprobs": True, "top_logprobs": 5}),
        ("m-openai", {"seed": 7}),
        ("m-claude", {"logit_bias": {"50256": -100}}),
        ("m-openai", {"frequency_penalty": 0.5}),
    ],
)
async def test_no_parameter_is_ignored_in_silence_N15(g: Harness, model: str, fields) -> None:
    answer = await g.chat(model, **fields)
    if answer.status == 200:
        assert next(iter(fields)) in answer.headers["x-gateway-dropped"]
        row = await g.explain(answer)
        assert next(iter(fields)) in row["attempts"][0]["dropped"]
    else:
        assert answer.status == 400
        assert answer.json()["error"]["param"] in fields


def turn(*ids: str) -> list[dict[str, Any]]:
    made = [
        {"id": i, "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
        for i in ids
    ]
    return [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": made},
    ]


def result(call_id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


async def ask(g: Harness, model: str, messages: list[dict[str, Any]]):
    request = {"model": model, "messages": messages, "tools": [TOOL]}
    return await g.post("/v1/chat/completions", request)


async def test_results_of_a_turn_stay_together_N17(g: Harness) -> None:
    messages = [
        *turn("c1", "c2"),
        result("c2", "B"),
        result("c1", "A"),
        {"role": "user", "content": "and now?"},
    ]
    answer = await ask(g, "m-claude", messages)
    assert answer.status == 200, answer.body
    blocks = next(iter(g.simulator.log)).body["messages"][-1]["content"]
    assert [b["type"] for b in blocks] == ["tool_result", "tool_result", "text"]


@pytest.mark.parametrize("results", [[result("c1", "A")], [result("c9", "X")]])
@pytest.mark.parametrize("model", ["m-claude", "m-openai"])
async def test_a_result_out_of_place_is_refused_here_N17(g: Harness, model, results) -> None:
    messages = [*turn("c1", "c2"), *results, {"role": "user", "content": "and now?"}]
    answer = await ask(g, model, messages)
    assert answer.status == 400
    assert answer.json()["error"]["param"].startswith("messages[")
    assert len(g.simulator.log) == 0


@pytest.mark.parametrize("model", ["m-claude", "m-openai", "m-chat"])
async def test_foreign_ids_are_mapped_alike_N18(g: Harness, model: str) -> None:
    ids = ["functions.get:0|x", "functions.get:0/x", "call_" + "a" * 70]
    messages = [*turn(*ids), *(result(i, str(n)) for n, i in enumerate(ids))]
    for _ in range(2):
        answer = await ask(g, model, messages)
        assert answer.status == 200, answer.body
    first, second = list(g.simulator.log)
    assert first.raw == second.raw
    assert first.refused is None


STOPS = [
    ("refusal", "content_filter"),
    ("model_context_window_exceeded", "length"),
    ("max_tokens", "length"),
    ("pause_turn", "length"),
    ("something_new", "length"),
]


@pytest.mark.parametrize(("stop", "shown"), STOPS)
async def test_no_unknown_end_is_a_plain_stop_N21(g: Harness, laid, stop, shown) -> None:
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": [{"type": "text", "text": "partly"}],
        "stop_reason": stop,
        "usage": {"input_tokens": 3, "output_tokens": 1},
    }
    laid("claude-sonnet-4-5", body(message), body(message))
    answer = await g.chat("m-claude")
    assert answer.json()["choices"][0]["finish_reason"] == shown
    native = await g.post(
        "/v1/messages",
        {"model": "m-claude", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]},
    )
    assert native.json()["stop_reason"] == stop


async def test_reasoning_without_text_is_an_answer_N22(g: Harness, laid) -> None:
    response = {
        "id": "resp_1",
        "object": "response",
        "status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"},
        "model": "gpt-test",
        "output": [{"type": "reasoning", "id": "rs_1", "summary": []}],
        "usage": {
            "input_tokens": 5,
            "output_tokens": 64,
            "output_tokens_details": {"reasoning_tokens": 64},
            "total_tokens": 69,
        },
    }
    laid("gpt-test", body(response))
    answer = await g.chat("m-openai")
    assert answer.status == 200, answer.body
    found = answer.json()
    assert found["choices"][0]["finish_reason"] == "length"
    assert not found["choices"][0]["message"]["content"]
    assert found["usage"]["completion_tokens_details"]["reasoning_tokens"] == 64


UTF8 = "北京 é 🙂"


def text_stream(text: bytes) -> list[bytes]:
    """A Responses stream as raw lines, one text delta in it."""
    return [
        b"event: response.created\ndata: " + json.dumps(CREATED).encode(),
        b"event: response.output_item.added\ndata: "
        + json.dumps(
            item(0, {"id": "m", "type": "message", "role": "assistant", "content": []})
        ).encode(),
        b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta",'
        b'"output_index":0,"content_index":0,"item_id":"m","delta":"' + text + b'"}',
        b"event: response.completed\ndata: " + json.dumps(completed()).encode(),
    ]


async def test_one_byte_writes_break_no_character_T01(g: Harness, laid) -> None:
    raw = b"\n\n".join([*text_stream(UTF8.encode()), b""])
    laid("gpt-test", sse(*(raw[n : n + 1] for n in range(len(raw)))))
    chunks = await streamed(g)
    text = "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks[:-1])
    assert text == UTF8


async def test_what_is_no_utf8_is_a_protocol_error_T01(g: Harness, laid) -> None:
    raw = b"\n\n".join([*text_stream(b"\xff\xfe"), b""])
    laid("gpt-test", sse(raw))
    answer = await g.chat("m-openai", stream=True)
    assert answer.status == 502
    assert answer.json()["error"]["code"] == "protocol_error"


FRAMINGS = {
    "crlf": lambda lines: b"\r\n\r\n".join(x.replace(b"\n", b"\r\n") for x in [*lines, b""]),
    "cr": lambda lines: b"\r\r".join(x.replace(b"\n", b"\r") for x in [*lines, b""]),
    "no space": lambda lines: b"\n\n".join(x.replace(b"data: ", b"data:") for x in [*lines, b""]),
    "comments": lambda lines: b"\n\n".join(b": busy\nretry: 3000\n" + x for x in lines) + b"\n\n",
    "bom": lambda lines: b"\xef\xbb\xbf" + b"\n\n".join([*lines, b""]),
    "empty event": lambda lines: b"event: nothing\n\n" + b"\n\n".join([*lines, b""]),
    "unknown event": lambda lines: b'event: new\ndata: {"type":"new"}\n\n'.join(
        [b"", b"\n\n".join([*lines, b""])]
    ),
}


@pytest.mark.parametrize("framing", list(FRAMINGS))
async def test_every_legal_framing_reads_alike_T02(g: Harness, laid, framing: str) -> None:
    raw = FRAMINGS[framing](text_stream(b"same"))
    laid("gpt-test", sse(raw))
    chunks = await streamed(g)
    assert chunks[-1] == "[DONE]"
    text = "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks[:-1])
    assert text == "same"


async def test_a_last_event_without_its_end_is_a_cut_T02(g: Harness, laid) -> None:
    raw = b"\n\n".join(text_stream(b"same"))
    laid("gpt-test", sse(raw))
    answer = await g.chat("m-openai", stream=True)
    assert b"stream_truncated" in answer.body
    assert b"[DONE]" not in answer.body
