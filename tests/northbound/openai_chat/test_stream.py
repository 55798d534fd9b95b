"""The chunks that callers see, made from canonical events."""

import json

import pytest
from openai.lib.streaming._deltas import accumulate_delta
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk

from adapters.canonical.events import (
    ArgumentsDelta,
    Failed,
    Finished,
    OpaqueEvent,
    PartAnnotated,
    PartEnded,
    PartStarted,
    Reason,
    Started,
    TextDelta,
    ThinkingDelta,
    Usage,
    UsageReported,
    Verbatim,
)
from adapters.canonical.faults import Fault
from adapters.canonical.parts import Media, Opaque, Refusal, Text, Thinking, ToolCall, Url
from adapters.dialects.openai_chat import DIALECT
from adapters.wire.openai_chat import WRITTEN_REASONS
from gateway.northbound.openai_chat import CHAT

STOPPED = Finished("stop")
STARTED = Started("msg_1", "claude", 1700000001, dialect="anthropic-messages")


def text(index: int, *pieces: str, choice: int = 0) -> list:
    return [
        PartStarted(index, Text(""), choice),
        *(TextDelta(index, piece) for piece in pieces),
        PartEnded(index),
    ]


def tool(index: int, call_id: str, *pieces: str, kind: str = "function") -> list:
    return [
        PartStarted(index, ToolCall(call_id, "f", "", kind)),
        *(ArgumentsDelta(index, piece) for piece in pieces),
        PartEnded(index),
    ]


def deltas(chunks: list) -> list:
    return [c["choices"][0]["delta"] for c in chunks if c["choices"]]


def reasons(chunks: list) -> list:
    return [
        choice["finish_reason"]
        for chunk in chunks
        for choice in chunk["choices"]
        if choice["finish_reason"] is not None
    ]


def message(chunks: list) -> dict:
    """What a stock client accumulates."""
    whole: dict = {}
    for delta in deltas(chunks):
        accumulate_delta(whole, delta)
    return whole


def test_text(chunks):
    written = chunks([STARTED, *text(0, "Hel", "", "lo"), Finished("stop", "end_turn")])
    assert deltas(written) == [{"role": "assistant"}, {"content": "Hel"}, {"content": "lo"}, {}]
    assert reasons(written) == ["stop"]
    for chunk in written:
        assert chunk["object"] == "chat.completion.chunk"
        assert (chunk["id"], chunk["model"], chunk["created"]) == (
            "chatcmpl-ours",
            "claude",
            1700000001,
        )
        assert "usage" not in chunk


def test_the_alias_is_shown_if_the_setting_says_so(chunks):
    written = chunks([STARTED, *text(0, "x"), Finished("stop")], report_model="alias")
    assert {chunk["model"] for chunk in written} == {"alias"}


def test_the_id_of_the_same_dialect_stays(chunks):
    started = Started("chatcmpl-theirs", "m", dialect="openai-chat")
    assert {c["id"] for c in chunks([started, Finished("stop")])} == {"chatcmpl-theirs"}
    nameless = Started("", "", dialect="openai-chat")
    assert {(c["id"], c["model"]) for c in chunks([nameless, Finished("stop")])} == {
        ("chatcmpl-ours", "alias")
    }


def test_calls_have_dense_slots_and_are_named_once(chunks):
    """Case S01: other parts before and between take no slot; fragments may interleave."""
    written = chunks(
        [
            STARTED,
            PartStarted(0, Thinking("", dialect="openai-responses")),
            PartEnded(0),
            PartStarted(1, ToolCall("call_a", "f", "")),
            ArgumentsDelta(1, '{"a"'),
            PartStarted(2, Text("")),
            PartStarted(3, ToolCall("call_b", "g", "")),
            ArgumentsDelta(3, "{}"),
            ArgumentsDelta(1, ":1}"),
            PartEnded(1),
            PartEnded(2),
            PartEnded(3),
            Finished("tool_calls"),
        ]
    )
    fragments = [call for delta in deltas(written) for call in delta.get("tool_calls", ())]
    assert [(f["index"], f.get("id"), f["function"].get("name")) for f in fragments] == [
        (0, "call_a", "f"),
        (0, None, None),
        (1, "call_b", "g"),
        (1, None, None),
        (0, None, None),
    ]
    assert [c["function"]["arguments"] for c in message(written)["tool_calls"]] == [
        '{"a":1}',
        "{}",
    ]
    assert reasons(written) == ["tool_calls"]


def test_custom_calls(chunks):
    written = chunks([STARTED, *tool(0, "c1", "l", "s", kind="custom"), Finished("tool_calls")])
    assert message(written)["tool_calls"] == [
        {"index": 0, "id": "c1", "type": "custom", "custom": {"name": "f", "input": "ls"}}
    ]


def test_the_older_function_form(chunks):
    written = chunks([STARTED, *tool(0, "c1", "{", "}"), Finished("tool_calls")], legacy_calls=True)
    assert message(written)["function_call"] == {"name": "f", "arguments": "{}"}
    assert reasons(written) == ["function_call"]


@pytest.mark.parametrize("reason", WRITTEN_REASONS)
def test_only_a_finished_answer_is_called_so(chunks, reason: Reason):
    """Case N21: what is cut, declined, paused or unknown is never a plain stop."""
    written = chunks([STARTED, *text(0, "x"), Finished(reason, "their_word")])
    assert len(reasons(written)) == 1
    assert (reasons(written) == ["stop"]) == (reason in ("stop", "stop_sequence"))
    native = written[-1]["choices"][0].get("native_finish_reason")
    assert native == (
        None if reason in ("stop", "tool_calls", "length", "content_filter") else "their_word"
    )


def test_a_refusal_in_words_ends_as_openai_ends_it(chunks):
    refusal = [PartStarted(0, Refusal("")), TextDelta(0, "No."), PartEnded(0)]
    written = chunks([STARTED, *refusal, Finished("refusal", "stop")])
    assert message(written) == {"role": "assistant", "refusal": "No."}
    assert reasons(written) == ["stop"]


def test_an_answer_of_nothing_but_reasoning_has_empty_content(chunks):
    """Case N22."""
    thinking = [PartStarted(0, Thinking("", dialect="openai-responses", summary=())), PartEnded(0)]
    written = chunks([STARTED, *thinking, Finished("length", "max_output_tokens")])
    assert message(written)["content"] == ""
    assert reasons(written) == ["length"]


USAGE = Usage(input=100, cache_read=6000, cache_write=400, output=50, reasoning=20)


def test_usage_only_where_asked_for(chunks):
    """Case S09."""
    events = [STARTED, *text(0, "x"), UsageReported(USAGE), Finished("stop")]
    assert all(chunk["choices"] for chunk in chunks(events))
    written = chunks(events, include_usage=True)
    assert [chunk["choices"] == [] for chunk in written].count(True) == 1
    assert all(chunk["usage"] is None for chunk in written[:-1])
    assert written[-1]["usage"] == {
        "prompt_tokens": 6500,
        "completion_tokens": 50,
        "total_tokens": 6550,
        "prompt_tokens_details": {"cached_tokens": 6000, "cache_write_tokens": 400},
        "completion_tokens_details": {"reasoning_tokens": 20},
        "cache_creation_input_tokens": 400,
    }


def test_unknown_usage_is_null(chunks):
    written = chunks([STARTED, *text(0, "x"), Finished("stop")], include_usage=True)
    assert written[-1]["choices"] == []
    assert written[-1]["usage"] is None


def test_usage_of_the_same_dialect_is_the_providers_own(chunks):
    raw = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3, "cost": 4}
    events = [
        Started("x", "m", dialect="openai-chat"),
        UsageReported(Usage(input=1, output=2, raw=raw)),
        Finished("stop"),
    ]
    assert chunks(events, include_usage=True)[-1]["usage"] == raw
    events[1] = UsageReported(Usage(input=1, output=2, raw=raw, invalid=True))
    assert chunks(events, include_usage=True)[-1]["usage"]["total_tokens"] == 3
    assert "cost" not in chunks(events, include_usage=True)[-1]["usage"]


def test_a_failure_is_one_error_frame(chunks):
    """Case E01: no reason, no end mark, nothing that could be taken for success."""
    failed = Failed(Fault("stream_truncated", "The provider's stream ended early."))
    written = chunks([STARTED, *text(0, "par")[:2], failed])
    assert reasons(written[:-1]) == []
    assert written[-1] == {
        "error": {
            "message": "The provider's stream ended early.",
            "type": "server_error",
            "param": None,
            "code": "stream_truncated",
        }
    }


def test_a_failure_before_the_start_is_the_same_frame(chunks):
    written = chunks([Failed(Fault("upstream_timeout", "x"))])
    assert [chunk.keys() for chunk in written] == [{"error"}]


def test_reasoning_is_shown_as_it_comes_and_kept_whole_at_its_end(chunks):
    written = chunks(
        [
            STARTED,
            PartStarted(0, Thinking("", dialect="anthropic-messages")),
            ThinkingDelta(0, "be"),
            ThinkingDelta(0, "cause"),
            PartAnnotated(0, "signature", "c2ln"),
            PartEnded(0),
            PartStarted(1, Thinking("", sealed="c2VhbA==", dialect="anthropic-messages")),
            PartEnded(1),
            PartStarted(2, Thinking("", dialect="openai-responses", summary=())),
            ThinkingDelta(2, "one", 0),
            ThinkingDelta(2, "two", 1),
            PartAnnotated(2, "sealed", "ZW5j"),
            PartAnnotated(2, "id", "rs_1"),
            PartEnded(2),
            *text(3, "x"),
            Finished("stop"),
        ]
    )
    whole = message(written)
    assert whole["reasoning_content"] == "because\n\none\n\ntwo"
    assert whole["reasoning_details"] == [
        {
            "type": "reasoning.text",
            "text": "because",
            "signature": "c2ln",
            "format": "anthropic-messages",
            "index": 0,
        },
        {
            "type": "reasoning.encrypted",
            "data": "c2VhbA==",
            "format": "anthropic-messages",
            "index": 1,
        },
        {
            "type": "reasoning.summary",
            "summary": "onetwo",
            "sections": ["one", "two"],
            "data": "ZW5j",
            "id": "rs_1",
            "format": "openai-responses",
            "index": 2,
        },
    ]


def test_citations_come_with_the_end_of_their_text(chunks):
    page = {"type": "web_search_result_location", "url": "https://x.test", "title": "X"}
    place = {"type": "char_location", "document_index": 0, "cited_text": "x"}
    written = chunks(
        [
            STARTED,
            *text(0, "abc"),
            PartStarted(1, Text("")),
            PartAnnotated(1, "citation", page),
            PartAnnotated(1, "citation", place),
            TextDelta(1, "defg"),
            PartEnded(1),
            Finished("stop"),
        ]
    )
    assert message(written)["annotations"] == [
        {
            "type": "url_citation",
            "url_citation": {
                "url": "https://x.test",
                "title": "X",
                "start_index": 3,
                "end_index": 7,
            },
        }
    ]
    assert message(written)["citations"] == [place]


def test_the_sdks_own_helper_reads_the_stream(chunks):
    cited = {"url": "https://x.test", "title": "X"}
    events = [STARTED]
    for index in (0, 1):
        events += [PartStarted(index, Text("", (cited,))), TextDelta(index, "ab"), PartEnded(index)]
    events += [*tool(2, "c1", "{}"), *tool(3, "c2", "{}"), UsageReported(USAGE)]
    state = ChatCompletionStreamState()
    for written in chunks([*events, Finished("tool_calls")], include_usage=True):
        state.handle_chunk(ChatCompletionChunk.model_validate(written))
    whole = state.get_final_completion()
    assert whole.usage.total_tokens == 6550
    said = whole.choices[0].message
    assert said.content == "abab"
    assert [call.id for call in said.tool_calls] == ["c1", "c2"]
    places = [(a.url_citation.start_index, a.url_citation.end_index) for a in said.annotations]
    assert places == [(0, 2), (2, 4)]


def test_logprobs_stand_on_the_choice(chunks):
    token = {"token": "x", "logprob": -0.1, "bytes": [120], "top_logprobs": []}
    events = [STARTED, *text(0, "x")[:2], PartAnnotated(0, "logprobs", [token]), PartEnded(0)]
    written = chunks([*events, Finished("stop")])
    found = [c["choices"][0]["logprobs"] for c in written if c["choices"][0]["logprobs"]]
    assert found == [{"content": [token], "refusal": None}]


def test_several_choices(chunks):
    written = chunks(
        [
            STARTED,
            PartStarted(0, Text("")),
            PartStarted(1, Text(""), 1),
            TextDelta(1, "b"),
            TextDelta(0, "a"),
            PartEnded(0),
            PartEnded(1),
            Finished("stop", choices={1: ("length", "length")}),
        ]
    )
    said = {0: [], 1: []}
    for chunk in written:
        choice = chunk["choices"][0]
        said[choice["index"]].append((choice["delta"], choice["finish_reason"]))
    assert said[0] == [({"role": "assistant"}, None), ({"content": "a"}, None), ({}, "stop")]
    assert said[1] == [({"role": "assistant"}, None), ({"content": "b"}, None), ({}, "length")]


def test_fields_of_the_providers_own(chunks):
    started = Started(
        "x", "m", 1, {"system_fingerprint": "fp", "secret_extra": 1}, dialect="openai-responses"
    )
    written = chunks([started, *text(0, "x"), Finished("stop", extras={"service_tier": "flex"})])
    assert written[0]["system_fingerprint"] == "fp"
    assert written[-1]["service_tier"] == "flex"
    assert all("secret_extra" not in chunk for chunk in written)


def test_blocks_of_other_dialects_have_no_place(chunks):
    written = chunks(
        [
            STARTED,
            PartStarted(0, Opaque("anthropic-messages", "server_tool_use", {"id": "x"})),
            PartEnded(0),
            PartStarted(1, Media("image", Url("https://x.test"))),
            PartEnded(1),
            OpaqueEvent("anthropic-messages", "surprise", {}),
            Finished("stop"),
        ]
    )
    assert message(written) == {"role": "assistant", "content": ""}


def test_blocks_of_this_dialect_are_shown(chunks):
    written = chunks(
        [
            Started("x", "m", dialect="openai-chat"),
            PartStarted(0, Opaque("openai-chat", "audio", {"id": "a"})),
            PartEnded(0),
            OpaqueEvent("openai-chat", "images", {"choice": 0, "value": [1]}),
            Finished("stop"),
        ]
    )
    assert {"audio": {"id": "a"}} in deltas(written)
    assert {"images": [1]} in deltas(written)


# --------------------------------------------------------------------------- relaying


def chunk(delta: dict | None = None, reason: str | None = None, **outer) -> Verbatim:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": reason}]
    value = {"id": "c1", "model": "m", "choices": choices, **outer}
    # Spaces that no writer of ours makes: equal bytes prove that nothing was written anew.
    return Verbatim("openai-chat", "message", json.dumps(value, indent=None).encode(), value)


def relayed(envelope, verbatims: list, terminal=STOPPED, **options) -> list[bytes]:
    encoder = CHAT.encoder(envelope(**options))
    decoded = [Started("c1", "m", dialect="openai-chat"), PartStarted(0, Text(""))]
    written = b"".join(encoder.feed([verbatim, *decoded]) for verbatim in verbatims)
    return (written + encoder.finish(terminal)).split(b"\n\n")[:-1]


def test_the_same_dialect_is_relayed_byte_for_byte(envelope):
    said = [chunk({"role": "assistant", "x_own": 1}), chunk({"content": "é"}), chunk({}, "stop")]
    assert relayed(envelope, said) == [
        *(b"data: " + verbatim.data for verbatim in said),
        b"data: [DONE]",
    ]


def test_the_ending_waits_until_the_answer_is_settled(envelope):
    encoder = CHAT.encoder(envelope())
    assert encoder.feed([chunk({"content": "a"})])
    assert encoder.feed([chunk({}, "stop")]) == b""
    failed = encoder.finish(Failed(Fault("upstream_server", "x")))
    assert failed.startswith(b'data: {"error"')
    assert b"DONE" not in failed


def test_the_usage_chunk_goes_only_to_who_asked(envelope):
    usage = chunk(usage={"prompt_tokens": 1, "total_tokens": 1, "completion_tokens": 0})
    said = [chunk({"content": "a"}), chunk({}, "stop"), usage]
    assert relayed(envelope, said)[-2] == b"data: " + said[1].data
    assert relayed(envelope, said, include_usage=True)[-2] == b"data: " + usage.data


def test_who_did_not_ask_sees_no_usage_at_all(envelope):
    """The gateway asks the provider for usage whether the caller does or not."""
    inner = {"content": 'says "usage": null', "usage": None}
    said = [
        chunk({"content": "a"}, usage=None),
        chunk(inner, usage=None),
        chunk({}, "stop", usage=None, obfuscation="xyz"),
    ]
    *plain, _ = relayed(envelope, said)
    assert plain[0] == b"data: " + said[0].data.replace(b', "usage": null', b"")
    assert json.loads(plain[1][6:])["choices"][0]["delta"] == inner
    assert json.loads(plain[2][6:])["obfuscation"] == "xyz"
    assert not any("usage" in json.loads(frame[6:]) for frame in plain)
    asked = relayed(envelope, said, include_usage=True)
    assert asked[:3] == [b"data: " + verbatim.data for verbatim in said]


def test_usage_on_a_chunk_with_content_moves_to_its_own(envelope):
    last = chunk({"content": "b"}, "stop", usage={"total_tokens": 1}, created=5)
    written = relayed(envelope, [chunk({"content": "a"}), last], include_usage=True)
    assert json.loads(written[1][6:])["usage"] is None
    assert json.loads(written[1][6:])["choices"] == last.json["choices"]
    assert json.loads(written[2][6:]) == {**last.json, "choices": []}


def test_unknown_usage_is_a_chunk_with_null(envelope):
    written = relayed(envelope, [chunk({"content": "a"}, "stop")], include_usage=True)
    assert json.loads(written[-2][6:])["usage"] is None


def test_empty_and_changing_ids_and_the_alias_are_put_right(envelope):
    opening = chunk(None, id="", model="", prompt_filter_results=[])
    said = [opening, chunk({"content": "a"}), chunk({"content": "b"}, id="c2"), chunk({}, "stop")]
    written = [json.loads(frame[6:]) for frame in relayed(envelope, said)[:-1]]
    assert [(c["id"], c["model"]) for c in written] == [("c1", "m")] * 4
    assert written[0]["prompt_filter_results"] == []
    named = [json.loads(f[6:]) for f in relayed(envelope, said, report_model="alias")[:-1]]
    assert {c["model"] for c in named} == {"alias"}
    assert [c["choices"] for c in named] == [c["choices"] for c in written]


def test_a_stream_without_any_id_gets_ours(envelope):
    said = [chunk({"content": "a"}, id=""), chunk({}, "stop", id="")]
    written = [json.loads(frame[6:]) for frame in relayed(envelope, said)[:-1]]
    assert {c["id"] for c in written} == {"chatcmpl-ours"}


def test_only_one_reason_a_choice_and_nothing_empty_after_it(envelope):
    said = [
        chunk({"content": "a"}),
        chunk({}, "length"),
        chunk({"content": "", "role": "assistant"}, "length"),
        chunk({"content": ""}, usage={"total_tokens": 1}),
    ]
    assert relayed(envelope, said) == [
        b"data: " + said[0].data,
        b"data: " + said[1].data,
        b"data: [DONE]",
    ]


def test_words_after_a_reason_are_shown_without_a_second_one(envelope):
    said = [chunk({"content": "a"}, "tool_calls"), chunk({"content": "b"}, "stop")]
    first, second = (json.loads(frame[6:]) for frame in relayed(envelope, said)[:-1])
    assert first["choices"] == said[0].json["choices"]
    assert second["choices"] == [{"index": 0, "delta": {"content": "b"}, "finish_reason": None}]


def test_another_dialects_verbatim_is_not_relayed(chunks):
    written = chunks(
        [
            Verbatim("anthropic-messages", "message_start", b"{}", {}),
            STARTED,
            *text(0, "x"),
            Finished("stop"),
        ]
    )
    assert message(written)["content"] == "x"


def test_the_older_function_form_is_never_relayed(chunks):
    """The provider was asked in the newer form, so its chunks are not what the caller reads."""
    written = chunks(
        [chunk({"tool_calls": []}), STARTED, *tool(0, "c1", "{}"), Finished("tool_calls")],
        legacy_calls=True,
    )
    assert message(written)["function_call"]["arguments"] == "{}"


def test_a_provider_that_answers_a_stream_with_a_whole_body(chunks):
    said = {"role": "assistant", "content": "Hello", "refusal": None}
    choice = {"index": 0, "message": said, "finish_reason": "stop", "logprobs": None}
    body = {
        "id": "chatcmpl-theirs",
        "object": "chat.completion",
        "created": 1700000001,
        "model": "gpt",
        "choices": [choice],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
    }
    events = DIALECT.decoder(verbatim=True).body(json.dumps(body).encode())
    written = chunks(events, include_usage=True)
    assert {chunk["object"] for chunk in written} == {"chat.completion.chunk"}
    assert message(written) == {"role": "assistant", "content": "Hello"}
    assert reasons(written) == ["stop"]
    assert written[-1]["usage"]["total_tokens"] == 5
