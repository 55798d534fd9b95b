"""Every recorded request, of providers' users and of real clients, to every kind of upstream.

It is sent on, or refused by the name of something that stands in it; to its own protocol it
arrives as it was, but for what the gateway owns.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from adapters.canonical.facts import CAPABILITIES, Facts
from adapters.canonical.faults import Fault
from adapters.canonical.request import Request
from adapters.registry import DIALECTS
from adapters.wire.call import Encoded
from gateway.northbound.anthropic_messages import MESSAGES
from gateway.northbound.base import Limits, Northbound
from gateway.northbound.openai_chat import CHAT
from gateway.northbound.openai_responses import RESPONSES
from tests.wire.conftest import ROOT

CLIENTS = Path(os.environ.get("GATEWAY_SHARED", ROOT.parent)) / "clients"
FACTS = Facts("m", capabilities=CAPABILITIES, thinking="adaptive", max_output=64_000)
NORTH: Mapping[str, Northbound] = {
    "/chat/completions": CHAT,
    "/responses": RESPONSES,
    "/messages": MESSAGES,
}
Json = dict[str, Any]

OURS = frozenset(
    {"background", "conversation", "include", "previous_response_id", "prompt", "store", "stream"}
)
"""What of a Responses request the gateway acts on itself, or asks for on its own account."""


def _north(endpoint: str) -> Northbound | None:
    path = endpoint.partition("?")[0]
    return next((north for end, north in NORTH.items() if path.endswith(end)), None)


def requests() -> list[Any]:
    found = []
    for meta in sorted(ROOT.glob("corpus/*/meta.json")):
        told = json.loads(meta.read_text())
        body = json.loads((meta.parent / "request.json").read_text())
        found.append((meta.parent.name, _north(told["endpoint"]), body))
    for path in sorted(CLIENTS.glob("*.json")):
        told = json.loads(path.read_text())
        found.append((path.stem, _north(told["path"]), told["body"]))
    cases = [
        pytest.param(north, body, id=name)
        for name, north, body in found
        if north is not None and isinstance(body, dict)
    ]
    absent = pytest.mark.skip(reason=f"no recordings in {ROOT} (set GATEWAY_WIRE)")
    return cases or [pytest.param(None, None, id="absent", marks=absent)]


@pytest.mark.parametrize("south", DIALECTS)
@pytest.mark.parametrize(("north", "body"), requests())
def test_it_is_sent_or_refused_by_name(north: Northbound, body: Json, south: str) -> None:
    asked = north.parse(json.dumps(body).encode(), {}, Limits(choices=8))
    encoded = _encoded(asked.request, south)
    if isinstance(encoded, Fault):
        assert (encoded.kind, north.name == south) == ("unsupported", False)
        assert _stands_in(encoded.param or "", body)
        return
    assert json.loads(encoded.call.body)["model"] == "m"
    if north.name == south:
        assert encoded.dropped == ()
    for name in encoded.dropped:
        assert _stands_in(name, body), name


def _encoded(request: Request, south: str) -> Encoded | Fault:
    try:
        return DIALECTS[south].encode(request, "m", FACTS)  # type: ignore[index]
    except Fault as fault:
        return fault


def _stands_in(path: str, body: Any) -> bool:
    if not path:
        return False
    for name, index in re.findall(r"([\w-]+)|\[(\d+)\]", path):
        if name and (not isinstance(body, dict) or name not in body):
            return False
        if index and (not isinstance(body, list) or int(index) >= len(body)):
            return False
        body = body[name] if name else body[int(index)]
    return True


RESPONSES_ONLY = [case for case in requests() if case.values[0] in (RESPONSES, None)]


@pytest.mark.parametrize(("north", "body"), RESPONSES_ONLY)
def test_responses_arrive_as_they_were(north: Northbound, body: Json) -> None:
    """The other two have tests of their own beside their readers."""
    asked = RESPONSES.parse(json.dumps(body).encode(), {})
    encoded = DIALECTS["openai-responses"].encode(asked.request, body["model"], FACTS)
    assert _plain(json.loads(encoded.call.body)) == _plain(body)


def _plain(body: Json) -> Json:
    """A request without what may be written in two ways."""
    said = {name: _known(value) for name, value in body.items() if name not in OURS}
    said = {name: value for name, value in said.items() if value not in (None, {})}
    given = body["input"]
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    said["input"] = [_item(item) for item in items]
    return said


def _known(value: Any) -> Any:
    """Without ``null``, which says what leaving out says."""
    if isinstance(value, dict):
        return {name: _known(inner) for name, inner in value.items() if inner is not None}
    return [_known(inner) for inner in value] if isinstance(value, list) else value


def _item(item: Json) -> Json:
    kind = item.get("type", "message")
    item = {"type": kind, **_known(item)}
    item.pop("status", None)  # of an earlier answer's item: it says nothing to a provider
    content = item.get("content")
    if kind == "message" and isinstance(content, str):
        spoken = "output_text" if item["role"] == "assistant" else "input_text"
        item["content"] = [{"type": spoken, "text": content}]
    if kind == "message":
        item["content"] = [_without_empty(part) for part in item["content"]]
    return item


def _without_empty(part: Json) -> Json:
    return {n: v for n, v in part.items() if v != [] or n not in ("annotations", "logprobs")}
