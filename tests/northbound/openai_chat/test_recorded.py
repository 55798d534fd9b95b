"""Requests as real clients and recordings hold them; read from the shared folders, not copied."""

import json
import os
from pathlib import Path

import pytest

from adapters.canonical.faults import Fault
from gateway.northbound.openai_chat import CHAT

SHARED = Path(
    os.environ.get("GATEWAY_SHARED", Path(__file__).parents[3].parent / "shared")
).resolve()
WIRE = Path(os.environ.get("GATEWAY_WIRE", SHARED / "wire")).resolve()

REFUSED = {
    # n: 2, until more choices are supported.
    "openai-py-08-POST-v1_chat_completions.json": "n",
    "openai-chat-completion-stream-multiple-choices-with-tools": "n",
}


def recorded() -> list:
    cases = []
    for path in sorted(WIRE.glob("corpus/*-chat-*/request.json")):
        meta = json.loads((path.parent / "meta.json").read_text())
        body = json.loads(path.read_text())
        if "chat/completions" in meta["endpoint"] and body is not None:
            cases.append(pytest.param(body, id=path.parent.name))
    for path in sorted(SHARED.glob("clients/*chat_completions*")):
        cases.append(pytest.param(json.loads(path.read_text())["body"], id=path.name))
    return cases


@pytest.mark.skipif(not WIRE.exists(), reason="the shared recordings are not here")
@pytest.mark.parametrize("body", recorded())
def test_every_recorded_request_is_understood(body, request):
    name = request.node.callspec.id
    written = json.dumps(body).encode()
    if name in REFUSED:
        with pytest.raises(Fault) as caught:
            CHAT.parse(written, {})
        assert caught.value.param == REFUSED[name]
        return
    asked = CHAT.parse(written, {})
    assert asked.dropped == ()
    assert len(asked.request.messages) == len(body["messages"])
