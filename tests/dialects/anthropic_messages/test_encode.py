"""Single fields of a request: mapped, injected, dropped by name, refused with their path."""

from __future__ import annotations

import pytest

from adapters.canonical.facts import Facts
from adapters.canonical.faults import Fault
from adapters.canonical.parts import Text
from adapters.canonical.request import (
    Cache,
    FunctionTool,
    JsonObject,
    JsonSchema,
    Message,
    Reasoning,
    Sampling,
)
from adapters.dialects.anthropic_messages import DIALECT, encode_count
from adapters.dialects.anthropic_messages.encode import ANSWER_IN_JSON
from adapters.dialects.anthropic_messages.reasoning import DEFAULT_MAX_TOKENS
from adapters.wire.json import loads

SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "integer", "maximum": 10}},
    "required": ["score"],
    "additionalProperties": False,
}


def test_the_least_request(ask, send):
    sent = send(ask(), Facts("m"))
    assert sent.body == {
        "model": "claude-sent",
        "max_tokens": DEFAULT_MAX_TOKENS,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
    }
    assert sent.injected == (f"max_tokens={DEFAULT_MAX_TOKENS}",)
    assert sent.encoded.call.path == "/v1/messages"
    assert "anthropic-version" not in sent.encoded.call.headers


def test_max_tokens_is_the_callers_or_the_models(ask, send, modern):
    assert send(ask(sampling=Sampling(900)), modern).body["max_tokens"] == 900
    assert send(ask(sampling=Sampling(900)), modern).injected == ()
    assert send(ask(), modern).injected == ("max_tokens=64000",)


def test_stream_is_sent_only_when_asked(ask, send, modern):
    assert send(ask(stream=True), modern).body["stream"] is True
    assert "stream" not in send(ask(), modern).body


@pytest.mark.parametrize("blank", ["\n", " \t", ""])
def test_a_blank_stop_sequence_is_refused_by_the_callers_name(ask, send, modern, blank):
    with pytest.raises(Fault) as caught:
        send(ask(sampling=Sampling(stop=("END", blank))), modern)
    assert (caught.value.kind, caught.value.param) == ("unsupported", "stop")
    with pytest.raises(Fault) as caught:
        send(ask(sampling=Sampling(stop=(blank,)), origin="anthropic-messages"), modern)
    assert caught.value.param == "stop_sequences"


def test_stop_sequences(ask, send, modern):
    assert send(ask(sampling=Sampling(stop=("END",))), modern).body["stop_sequences"] == ["END"]
    assert "stop_sequences" not in send(ask(), modern).body


@pytest.mark.parametrize(
    ("sampling", "param"),
    [
        (Sampling(n=2), "n"),
        (Sampling(n=0), "n"),
        (Sampling(logprobs=True, top_logprobs=5), "logprobs"),
        (Sampling(top_logprobs=5), "top_logprobs"),
    ],
)
def test_what_must_not_be_lost_is_refused(ask, send, modern, sampling, param):
    with pytest.raises(Fault) as caught:
        send(ask(sampling=sampling), modern)
    assert (caught.value.kind, caught.value.param) == ("unsupported", param)


def test_what_changes_nothing_is_not_refused(ask, send, modern):
    sent = send(ask(sampling=Sampling(n=1, logprobs=False, top_logprobs=0), store=False), modern)
    assert sent.dropped == ()


def test_dropped_fields_bear_the_callers_names(ask, send, modern):
    sampling = Sampling(seed=7, frequency_penalty=0.5, presence_penalty=0.5, logit_bias={"1": -100})
    request = ask(
        sampling=sampling,
        verbosity="low",
        store=True,
        metadata={"a": "b"},
        cache=Cache(key="k", retention="24h", options={"x": 1}),
        extras={"brand_new": 1},
        headers={"openai-beta": "x"},
    )
    assert set(send(request, modern).dropped) == {
        "seed",
        "frequency_penalty",
        "presence_penalty",
        "logit_bias",
        "verbosity",
        "store",
        "metadata",
        "prompt_cache_key",
        "prompt_cache_retention",
        "prompt_cache_options",
        "brand_new",
        "openai-beta",
    }


def test_a_seed_of_zero_is_a_seed(ask, send, modern):
    assert send(ask(sampling=Sampling(seed=0)), modern).dropped == ("seed",)


def test_the_end_user(ask, send, modern):
    def user_of(**fields):
        return send(ask(**fields), modern).body.get("metadata")

    assert user_of() is None
    assert user_of(end_user="u") == {"user_id": "u"}
    assert user_of(safety_identifier="s") == {"user_id": "s"}
    assert send(ask(end_user="u", safety_identifier="s"), modern).dropped == ("safety_identifier",)


@pytest.mark.parametrize(
    ("tier", "sent", "dropped"),
    [
        ("auto", "auto", ()),
        ("default", "standard_only", ()),
        ("flex", None, ("service_tier",)),
    ],
)
def test_service_tiers(ask, send, modern, tier, sent, dropped):
    result = send(ask(service_tier=tier), modern)
    assert (result.body.get("service_tier"), result.dropped) == (sent, dropped)


def test_sampling_passes_and_gives_way_to_thinking(ask, send, older):
    sampling = Sampling(4096, temperature=0.5, top_p=0.9, top_k=5)
    still = send(ask(sampling=sampling), older)
    assert [still.body[n] for n in ("temperature", "top_p", "top_k")] == [0.5, 0.9, 5]
    thinking = send(ask(sampling=sampling, reasoning=Reasoning(effort="low")), older)
    assert thinking.body["thinking"]["type"] == "enabled"
    assert not {"temperature", "top_p", "top_k"} & thinking.body.keys()
    assert set(thinking.dropped) == {"temperature", "top_p", "top_k"}
    gentle = Sampling(4096, temperature=1, top_p=0.97)
    kept = send(ask(sampling=gentle, reasoning=Reasoning(effort="low")), older)
    assert (kept.body["temperature"], kept.body["top_p"], kept.dropped) == (1, 0.97, ())


def test_a_schema_is_projected_and_what_moved_is_named(ask, send, modern):
    before = repr(SCHEMA)
    sent = send(ask(output=JsonSchema("out", SCHEMA, strict=True)), modern)
    form = sent.body["output_config"]["format"]
    assert form["type"] == "json_schema"
    assert form["schema"]["properties"]["score"] == {
        "type": "integer",
        "description": "(maximum: 10)",
    }
    assert repr(SCHEMA) == before
    assert sent.adjusted == (
        "response_format=schema->the API's subset",
        "response_format=schema/properties/score/maximum->description",
    )


def test_a_callers_own_schema_is_not_touched_where_the_api_takes_it(ask, send, modern):
    """``pattern`` and ``default`` it takes in part; what it never takes becomes words here, too."""
    taken = {"type": "string", "pattern": "^a+$", "default": "a", "format": "uri"}
    for inner, shown in ((taken, taken), ({**taken, "maxLength": 9}, None)):
        schema = {**SCHEMA, "properties": {"score": inner}}
        sent = send(ask(output=JsonSchema("out", schema), origin="anthropic-messages"), modern)
        form = sent.body["output_config"]["format"]["schema"]["properties"]["score"]
        assert form == (shown or {**taken, "description": "(maxLength: 9)"})
        assert len(sent.adjusted) == (0 if shown else 2)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object", "properties": {"next": {"$ref": "#"}}},
    ],
)
def test_a_schema_without_projection_becomes_instructions(ask, send, modern, schema):
    sent = send(ask(output=JsonSchema("out", schema)), modern)
    assert "output_config" not in sent.body
    assert sent.body["system"][-1]["text"].startswith(ANSWER_IN_JSON)
    assert sent.adjusted[0].startswith("response_format=native schema->instructions")


def test_models_without_schemas_get_instructions(ask, send, older):
    assert (
        "JSON Schema"
        in send(ask(output=JsonSchema("out", SCHEMA)), older).body["system"][0]["text"]
    )
    assert send(ask(output=JsonObject()), older).body["system"][0]["text"] == ANSWER_IN_JSON


def test_what_a_caller_of_this_protocol_wrote_goes_on(ask, send, modern):
    request = ask(
        origin="anthropic-messages",
        extras={
            "context_management": {"edits": []},
            "output_config": {"task_budget": {"type": "tokens", "total": 9}},
            "metadata": {"beta_key": 1},
            "max_tokens": 1,
        },
        end_user="u",
        sampling=Sampling(50),
        cache=Cache(control={"type": "ephemeral"}),
        reasoning=Reasoning(effort="high"),
        headers={"anthropic-beta": "a,b"},
        service_tier="brand_new",
    )
    sent = send(request, modern)
    assert sent.body["context_management"] == {"edits": []}
    assert sent.body["output_config"] == {
        "task_budget": {"type": "tokens", "total": 9},
        "effort": "high",
    }
    assert sent.body["metadata"] == {"beta_key": 1, "user_id": "u"}
    assert sent.body["max_tokens"] == 50
    assert sent.body["cache_control"] == {"type": "ephemeral"}
    assert sent.body["service_tier"] == "brand_new"
    assert "thinking" not in sent.body
    assert sent.encoded.call.headers == {"anthropic-beta": "a,b"}
    assert (sent.dropped, sent.injected, sent.adjusted) == ((), (), ())


def test_counting_asks_only_for_what_counts(ask, modern):
    tool = FunctionTool("f", "does", {"type": "object", "properties": {}})
    request = ask(
        Message("system", (Text("be brief"),)),
        Message("user", (Text("hi"),)),
        tools=(tool,),
        sampling=Sampling(50, stop=("END",)),
        stream=True,
    )
    encoded = encode_count(request, "m", modern)
    assert encoded.call.path == "/v1/messages/count_tokens"
    assert not encoded.call.stream
    assert set(loads(encoded.call.body)) == {"model", "messages", "system", "tools"}


def test_the_key_has_its_header():
    assert DIALECT.auth("k") == {"x-api-key": "k"}
