"""Every recorded failure of a provider, by status and in a stream: whose fault it is.

The recordings are read from the shared folder (see ``conftest``); a new one without a row fails.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from adapters.canonical.events import Failed
from adapters.canonical.faults import KINDS
from adapters.registry import DIALECTS
from adapters.wire.sse import SseParser
from tests.wire.conftest import ROOT

KIND: Mapping[str, str] = {
    "anthropic-messages-anthropic-client-error": "upstream_rejected",
    "anthropic-messages-anthropic-v1-messages-post-d65e09ee": "upstream_auth",
    "anthropic-messages-chat-error-handling-with-anthropic-claude-haiku-4-5": "upstream_auth",
    "azure-openai-chat-chat-reasoning": "upstream_rejected",
    "gemini-generate-content-chat-error-handling-with-gemini-gemini-2-5-flash-rai": "upstream_auth",
    "gemini-generate-content-chat-real-error-scenarios-gemini-gemini-2-5-flash-ha": (
        "upstream_rate_limited"  # of a minute's tokens, whatever its text says of billing
    ),
    "openai-chat-async-pipeline-with-chat-prompt-builder-and-chat-gen": "upstream_auth",
    "openai-chat-chat-unknown-model": "upstream_rejected",
    "openai-completions-completion-bad-request": "bad_request",
    "openai-embeddings-embeddings-bad-request": "bad_request",
    "openai-responses-response-error": "upstream_auth",
    "openai-responses-vercel-openai-error-1": "upstream_billing",
    "openrouter-chat-openrouter-errors-raised": "upstream_rate_limited",
    # put together from what is documented, because nobody has recorded one
    "anthropic-529": "upstream_overloaded",
    "anthropic-midstream-api-error": "upstream_server",
    "anthropic-midstream-overloaded": "upstream_overloaded",
    "anthropic-overloaded-first-event": "upstream_overloaded",
    "openai-429-tokens": "upstream_rate_limited",
}
DIALECT = {"messages": "anthropic-messages", "responses": "openai-responses"}
"""By API; every other speaks the errors of chat servers."""


def failures() -> list[Any]:
    found = []
    for meta in sorted([*ROOT.glob("corpus/*/meta.json"), *ROOT.glob("assembled/*/meta.json")]):
        told = json.loads(meta.read_text())
        if told["status"] != 200 or meta.parent.parent.name == "assembled":
            found.append(pytest.param(meta.parent, told, id=meta.parent.name))
    absent = pytest.mark.skip(reason=f"no recordings in {ROOT} (set GATEWAY_WIRE)")
    return found or [pytest.param(None, None, id="absent", marks=absent)]


@pytest.mark.parametrize(("folder", "meta"), failures())
def test_whose_fault_it_is(folder: Path, meta: dict[str, Any]) -> None:
    dialect = DIALECTS[DIALECT.get(meta["api"], "openai-chat")]  # type: ignore[index]
    if meta["stream"]:
        decoder = dialect.decoder()
        frames = SseParser().feed((folder / "response.sse").read_bytes())
        events = [event for frame in frames for event in decoder.feed(frame)]
        assert decoder.close() == []
        assert isinstance(events[-1], Failed)
        fault = events[-1].fault
    else:
        body = (folder / "response.json").read_bytes()
        fault = dialect.error(meta["status"], meta["headers"], body)
        assert fault.upstream_status == meta["status"]
    assert fault.kind == KIND[folder.name]
    assert "PLACEHOLDER" not in fault.message, "ids of the provider's stay inside"
    assert len(fault.message) < 1_000


def test_every_row_is_a_recording() -> None:
    if not ROOT.exists():
        pytest.skip(f"no recordings in {ROOT} (set GATEWAY_WIRE)")
    names = {path.name for kind in ("corpus", "assembled") for path in (ROOT / kind).iterdir()}
    assert KIND.keys() <= names
    assert set(KIND.values()) <= KINDS.keys()
