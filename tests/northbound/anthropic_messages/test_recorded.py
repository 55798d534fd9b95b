"""Requests as real clients and recordings hold them; read from the shared folders, not copied."""

import json
import os
from pathlib import Path

import pytest

from adapters.canonical.facts import CAPABILITIES, Facts
from adapters.dialects.anthropic_messages import DIALECT
from gateway.northbound.anthropic_messages import MESSAGES, parse_count

SHARED = Path(
    os.environ.get("GATEWAY_SHARED", Path(__file__).parents[3].parent / "shared")
).resolve()
WIRE = Path(os.environ.get("GATEWAY_WIRE", SHARED / "wire")).resolve()
ABLE = Facts("m", capabilities=CAPABILITIES, thinking="manual")
ADAPTIVE = Facts("m", capabilities=CAPABILITIES, thinking="adaptive")


def recorded() -> list:
    cases = []
    for path in sorted(WIRE.glob("corpus/anthropic-*/request.json")):
        body = json.loads(path.read_text())
        if body is not None:
            cases.append(pytest.param(body, {}, id=path.parent.name))
    for path in sorted(SHARED.glob("clients/*POST*messages*")):
        told = json.loads(path.read_text())
        # Long values were replaced by their length, in parentheses, when they were recorded.
        headers = {name.lower(): value.strip("()") for name, value in told["headers"]}
        cases.append(pytest.param(told["body"], headers, id=path.name))
    return cases


def golden() -> list:
    paths = sorted((Path(__file__).parents[2] / "golden" / "anthropic_messages").iterdir())
    return [
        pytest.param(json.loads((path / "request.json").read_text()), {}, id=path.name)
        for path in paths
    ]


@pytest.mark.parametrize(("body", "headers"), golden())
def test_every_golden_request_goes_through_unchanged(body, headers):
    goes_through_unchanged(body, headers)


@pytest.mark.skipif(not WIRE.exists(), reason="the shared recordings are not here")
@pytest.mark.parametrize(("body", "headers"), recorded())
def test_every_recorded_request_goes_through_unchanged(body, headers):
    goes_through_unchanged(body, headers)


def goes_through_unchanged(body, headers):
    counting = "max_tokens" not in body
    parse = parse_count if counting else MESSAGES.parse
    asked = parse(json.dumps(body).encode(), headers)
    assert asked.dropped == ()
    thinking = (body.get("thinking") or {}).get("type")
    encoded = DIALECT.encode(
        asked.request, body["model"], ADAPTIVE if thinking == "adaptive" else ABLE
    )
    sent = json.loads(encoded.call.body)
    expected = normal(body)
    if "thinking" in encoded.dropped or "thinking.type" in encoded.dropped:
        expected.pop("thinking")  # a round of tool calls that began without thinking
    if counting:
        sent.pop("max_tokens")
    assert normal(sent) == expected
    assert "anthropic-version" not in encoded.call.headers


def normal(body: dict) -> dict:
    """The same request with every shorthand written out."""
    told = {name: value for name, value in body.items() if value not in (None, [], False)}
    if isinstance(told.get("system"), str):
        told["system"] = [{"type": "text", "text": told["system"]}]
    if told.get("tool_choice") == {"type": "auto", "disable_parallel_tool_use": False}:
        told["tool_choice"] = {"type": "auto"}
    told["messages"] = [
        {**message, "content": blocks(message["content"])} for message in told["messages"]
    ]
    return told


def blocks(content):
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [
        {**block, "content": blocks(block["content"])}
        if block.get("type") == "tool_result" and "content" in block
        else {name: value for name, value in block.items() if value not in (None, [])}
        for block in content
    ]
