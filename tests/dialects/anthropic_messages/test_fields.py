"""The ``FIELDS`` table says what the encoder does, for every field that a request has."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from adapters.canonical.faults import Fault
from adapters.canonical.parts import Text
from adapters.canonical.request import (
    Cache,
    FunctionTool,
    JsonSchema,
    Message,
    Reasoning,
    Request,
    Sampling,
    ToolChoice,
)
from adapters.dialects.anthropic_messages import FIELDS
from adapters.wire.json import loads
from adapters.wire.names import caller_name

NESTED = {"sampling": Sampling, "reasoning": Reasoning, "cache": Cache}

SAMPLES: dict[str, Any] = {
    "messages": (Message("user", (Text("other"),)),),
    "instructions": (Text("be brief"),),
    "tools": (FunctionTool("f", parameters={"type": "object"}),),
    "tool_choice": ToolChoice("auto"),
    "parallel_tools": False,
    "output": JsonSchema("out", {"type": "string"}),
    "sampling.max_output_tokens": 77,
    "sampling.temperature": 0.5,
    "sampling.top_p": 0.5,
    "sampling.top_k": 5,
    "sampling.stop": ("END",),
    "sampling.seed": 0,
    "sampling.frequency_penalty": 0.5,
    "sampling.presence_penalty": 0.5,
    "sampling.logit_bias": {"1": 1},
    "sampling.logprobs": True,
    "sampling.top_logprobs": 2,
    "sampling.n": 2,
    "reasoning.effort": "low",
    "reasoning.budget_tokens": 2_000,
    "reasoning.mode": "adaptive",
    "reasoning.display": "omitted",
    "reasoning.summary": "auto",
    "reasoning.extras": {"new": 1},
    "cache.key": "k",
    "cache.retention": "24h",
    "cache.options": {"x": 1},
    "cache.control": {"type": "ephemeral"},
    "metadata": {"a": "b"},
    "end_user": "u",
    "safety_identifier": "s",
    "service_tier": "auto",
    "verbosity": "low",
    "store": True,
    "stream": True,
    "extras": {"context_management": {}},
    "headers": {"anthropic-beta": "x"},
}

ELSEWHERE = {"model", "origin", "continues", "prompt", "sampling.limit_name", "truncate"}
"""Rows whose value is the gateway's business: alias, caller's dialect and words, prompts, what
fits the window."""

COMPANIONS: dict[str, dict[str, Any]] = {
    "tool_choice": {"tools": SAMPLES["tools"]},
    "parallel_tools": {"tools": SAMPLES["tools"]},
    "reasoning.summary": {"reasoning.mode": "adaptive"},
    "reasoning.display": {"reasoning.mode": "adaptive"},
    "reasoning.extras": {"reasoning.mode": "adaptive"},
    "reasoning.budget_tokens": {"reasoning.mode": "enabled"},
}
"""What a field needs beside it to mean anything."""

OWN = {"reasoning.mode", "reasoning.extras", "extras", "headers"}
"""Fields that only a caller of this protocol can set."""


def build(fields: dict[str, Any], origin: str) -> Request:
    request = Request("alias", (Message("user", (Text("hi"),)),), origin)
    for name, value in fields.items():
        outer, _, inner = name.partition(".")
        if inner:
            whole = getattr(request, outer) or NESTED[outer]()
            value = dataclasses.replace(whole, **{inner: value})
        request = dataclasses.replace(request, **{outer: value})
    return request


def leaves() -> set[str]:
    names = set()
    for field in dataclasses.fields(Request):
        inner = NESTED.get(field.name)
        names |= (
            {field.name}
            if inner is None
            else {f"{field.name}.{f.name}" for f in dataclasses.fields(inner)}
        )
    return names


def test_every_field_of_a_request_has_a_row():
    assert set(FIELDS) == leaves()


def test_every_row_is_proven_here():
    assert set(SAMPLES) == set(FIELDS) - ELSEWHERE


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_the_row_is_true(name, send, modern, older):
    facts = older if name == "reasoning.budget_tokens" else modern
    origin = "anthropic-messages" if name in OWN else "openai-chat"
    around = COMPANIONS.get(name, {})
    request = build({**around, name: SAMPLES[name]}, origin)
    row = FIELDS[name]
    if row.state == "refused":
        with pytest.raises(Fault) as caught:
            send(request, facts)
        assert caught.value.kind == "unsupported"
        return
    sent, without = send(request, facts), send(build(around, origin), facts)
    if row.state == "dropped":
        canonical = name.removeprefix("sampling.")
        assert caller_name(origin, canonical) in sent.dropped
        assert sent.encoded.call.body == without.encoded.call.body
        return
    assert sent.dropped == without.dropped
    assert sent.encoded.call != without.encoded.call
    if row.to != "*":
        assert reaches(loads(sent.encoded.call.body), row.to) != reaches(
            loads(without.encoded.call.body), row.to
        )


def reaches(body: Any, path: str) -> Any:
    for name in path.split("."):
        body = body.get(name) if isinstance(body, dict) else None
    return body
