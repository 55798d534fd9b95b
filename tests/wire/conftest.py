"""Recorded answers of real providers, and the providers' own SDKs as judges of what they say.

The recordings belong to others and are not part of this project: they are read from
``../shared/wire`` (or ``GATEWAY_WIRE``), and the tests skip where that folder is absent.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from openai.lib.streaming.chat import ChatCompletionStreamState

ROOT = Path(os.environ.get("GATEWAY_WIRE", Path(__file__).parents[3] / "shared" / "wire"))

DIALECTS = {
    "responses": "adapters.dialects.openai_responses",
    "messages": "adapters.dialects.anthropic_messages",
    "chat": "adapters.dialects.openai_chat",
}
"""Which dialect decodes the recordings of an API, whichever provider they come from."""

ENDPOINTS = ("/responses", "/messages", "/chat/completions")
"""Others (compaction, token counts) are no answers of a model."""


@dataclass(frozen=True)
class Recording:
    """One answer: its API, status, headers and bytes as the provider sent them."""

    name: str
    api: str
    status: int
    headers: Mapping[str, str]
    stream: bool
    data: bytes
    features: tuple[str, ...] = ()


@dataclass(frozen=True)
class Told:
    """What an answer says, in words that decoder and SDK can both be asked for.

    ``reason`` is ``None`` for an answer that failed. ``usage`` is all input, what of it was
    cached, output, and what of it was reasoning.
    """

    text: tuple[str, ...] = ()
    refusal: str = ""
    thinking: str = ""
    calls: tuple[tuple[Any, ...], ...] = ()
    reason: str | None = None
    usage: tuple[int, int, int, int] | None = None


def _recordings() -> Iterator[Recording]:
    for folder in sorted((ROOT / "corpus").glob("*")):
        meta = json.loads((folder / "meta.json").read_text())
        endpoint = meta["endpoint"].partition("?")[0]
        resumed = "/responses/resp_" in endpoint
        if meta["api"] not in DIALECTS or not (resumed or endpoint.endswith(ENDPOINTS)):
            continue
        stream = (folder / "response.sse").exists()
        data = (folder / ("response.sse" if stream else "response.json")).read_bytes()
        features = tuple(meta["features"])
        yield Recording(
            folder.name, meta["api"], meta["status"], meta["headers"], stream, data, features
        )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "recording" not in metafunc.fixturenames:
        return
    found = list(_recordings())
    if not found:
        missing = pytest.mark.skip(reason=f"no recordings in {ROOT} (set GATEWAY_WIRE)")
        metafunc.parametrize("recording", [pytest.param(None, id="absent", marks=missing)])
        return
    metafunc.parametrize("recording", found, ids=[recording.name for recording in found])


# ---------------------------------------------------------------------------- the judges


def _transport(recording: Recording) -> Any:
    kind = "text/event-stream" if recording.stream else "application/json"

    def answer(request: Any) -> Any:
        return httpx2.Response(
            recording.status, headers={"content-type": kind}, content=recording.data
        )

    return httpx2.Client(transport=httpx2.MockTransport(answer))


def _arguments(text: str) -> Any:
    """Arguments by value where they are JSON: the SDKs differ in whether they parse them."""
    try:
        return json.loads(text) if text else {}
    except ValueError:
        return text


def _by_openai(recording: Recording) -> openai.OpenAI:
    return openai.OpenAI(api_key="k", max_retries=0, http_client=_transport(recording))


ABRIDGED = {"openai-responses-vercel-openai-shell-container-1-chunks"}
"""Recordings whose keeper left out deltas: the text they stream is not the text they end with,
and a caller of a stream has only the deltas."""

RESPONSES_REASONS = {"max_output_tokens": "length", "content_filter": "content_filter"}


def _judge_responses(recording: Recording) -> Told:
    client = _by_openai(recording).responses
    if recording.stream:
        last, deltas = None, []
        for event in client.create(model="m", input="hi", stream=True):
            last: Any = event
            deltas += [event.delta] if event.type == "response.output_text.delta" else []
        response = last.response
    else:
        response = client.create(model="m", input="hi")
    if response.status not in ("completed", "incomplete"):
        return Told()
    thinking, calls, refusals = [], [], []
    for item in response.output:
        if item.type == "reasoning":
            thinking += [part.text for part in item.summary or item.content or ()]
        elif item.type == "function_call":
            calls.append((0, item.call_id, item.name, _arguments(item.arguments)))
        elif item.type == "custom_tool_call":
            calls.append((0, item.call_id, item.name, _arguments(item.input)))
        elif item.type == "message":
            refusals += [part.refusal for part in item.content if part.type == "refusal"]
    reason = "tool_calls" if calls else "stop"
    if response.status == "incomplete":
        reason = RESPONSES_REASONS[response.incomplete_details.reason]
    used = response.usage
    text = "".join(deltas) if recording.name in ABRIDGED else response.output_text
    return Told(
        (text,),
        "".join(refusals),
        "".join(thinking),
        tuple(calls),
        reason,
        used
        and (
            used.input_tokens,
            used.input_tokens_details.cached_tokens,
            used.output_tokens,
            used.output_tokens_details.reasoning_tokens,
        ),
    )


CHAT_REASONS = {"function_call": "tool_calls"}


def _judge_chat(recording: Recording) -> Told:
    client = _by_openai(recording).chat.completions
    ask: Any = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    if recording.stream:
        state = ChatCompletionStreamState()
        for chunk in client.create(**ask, stream=True):
            for choice in chunk.choices:
                # the helper refuses what some servers stream here, and it is not compared
                (choice.delta.model_extra or {}).pop("annotations", None)
            state.handle_chunk(chunk)
        completion: Any = state.current_completion_snapshot
    else:
        completion = client.create(**ask)
    calls = []
    for choice in completion.choices:
        for call in choice.message.tool_calls or ():
            name, arguments = call.function.name, call.function.arguments
            calls.append((choice.index, call.id, name, _arguments(arguments)))
        if choice.message.function_call is not None:
            call = choice.message.function_call
            calls.append((choice.index, "", call.name, _arguments(call.arguments)))
    first = completion.choices[0]
    extra = first.message.model_extra or {}
    reason = CHAT_REASONS.get(first.finish_reason, first.finish_reason)
    if reason == "stop" and first.message.refusal:
        reason = "refusal"  # the protocol says it with the field alone
    return Told(
        tuple(choice.message.content or "" for choice in completion.choices),
        first.message.refusal or "",
        extra.get("reasoning_content") or extra.get("reasoning") or "",
        tuple(calls),
        reason,
        completion.usage and _chat_usage(completion.usage),
    )


def _chat_usage(used: Any) -> tuple[int, int, int, int]:
    prompt, answer = used.prompt_tokens_details, used.completion_tokens_details
    return (
        used.prompt_tokens,
        # one recording claims more cached tokens than there were (case A09): clamped
        min((prompt and prompt.cached_tokens) or 0, used.prompt_tokens),
        used.completion_tokens,
        (answer and answer.reasoning_tokens) or 0,
    )


MESSAGES_REASONS = {
    "end_turn": "stop",
    "max_tokens": "length",
    "stop_sequence": "stop_sequence",
    "tool_use": "tool_calls",
    "pause_turn": "pause",
    "refusal": "refusal",
    "model_context_window_exceeded": "context_window",
}


def _judge_messages(recording: Recording) -> Told:
    client = anthropic.Anthropic(
        api_key="k", max_retries=0, http_client=_transport(recording)
    ).beta.messages
    ask: Any = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    if recording.stream:
        with client.stream(**ask) as stream:
            message: Any = stream.get_final_message()
    else:
        message = client.create(**ask)
    blocks = message.content
    used, details = message.usage, message.usage.output_tokens_details
    apart = [one for one in used.iterations or () if one.type in ("compaction", "advisor_message")]
    charged = [used, *apart]  # the SDK: what these used is not in the usage's own counts
    cached = sum(one.cache_read_input_tokens or 0 for one in charged)
    written = sum(one.cache_creation_input_tokens or 0 for one in charged)
    return Told(
        ("".join(block.text for block in blocks if block.type == "text"),),
        "",
        "".join(block.thinking for block in blocks if block.type == "thinking"),
        tuple((0, b.id, b.name, b.input) for b in blocks if b.type == "tool_use"),
        MESSAGES_REASONS[message.stop_reason],
        (
            sum(one.input_tokens for one in charged) + cached + written,
            cached,
            sum(one.output_tokens for one in charged),
            (details and details.thinking_tokens) or 0,
        ),
    )


_JUDGES = {"responses": _judge_responses, "chat": _judge_chat, "messages": _judge_messages}


def _judge(recording: Recording) -> Told:
    """What the provider's own SDK makes of the bytes; a failure it raises is an empty answer."""
    try:
        return _JUDGES[recording.api](recording)
    except (openai.APIError, anthropic.APIError):
        return Told()


@pytest.fixture(scope="session")
def judge() -> Callable[[Recording], Told]:
    return _judge


@pytest.fixture(scope="session")
def dialect_of() -> Callable[[Recording], Any]:
    """The dialect that decodes a recording."""
    return lambda recording: importlib.import_module(DIALECTS[recording.api]).DIALECT


@pytest.fixture(scope="session")
def told() -> type[Told]:
    return Told
