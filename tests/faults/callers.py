"""The three callers: how each asks, and how each reads what it gets. Strict, and on no SDK.

A caller believes an answer only where its protocol's own success mark stands; everything else
that ends is either an error in its protocol, or nothing that it could use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from adapters.canonical.faults import KINDS
from gateway.northbound.errors import WORDS

TEXT = "one two three four five six seven eight nine ten"


@dataclass(frozen=True)
class Heard:
    """What a caller made of an answer.

    ``whole``: the protocol says that the answer is complete. ``code`` is that of the error, if
    one was told; ``in_band``: under a status 200. ``garbled`` says what was against the protocol.
    """

    text: str = ""
    whole: bool = False
    code: str | None = None
    in_band: bool = False
    garbled: str | None = None


Events = list[tuple[str, Any]]


@dataclass(frozen=True)
class Caller:
    """One protocol above: its path, its body for a prompt, its reading of answers."""

    dialect: str
    path: str
    body: Callable[[str, bool], dict[str, Any]]
    read_stream: Callable[[Events], Heard]
    read_whole: Callable[[Any], Heard]

    def hear(self, status: int, headers: Mapping[str, str], body: bytes) -> Heard:
        """Read a finished answer."""
        if status >= 400:
            return _error(self.dialect, orjson.loads(body))
        if headers["content-type"].startswith("text/event-stream"):
            return self.read_stream(events(body))
        return self.read_whole(orjson.loads(body))


def events(body: bytes) -> Events:
    """The SSE events of a body as ``(name, data)``; ``[DONE]`` as its text."""
    found: Events = []
    for block in body.decode().split("\n\n"):
        fields = [line.partition(": ") for line in block.split("\n") if not line.startswith(":")]
        named = {name: value for name, _, value in fields if name}
        if "data" in named:
            data = named["data"]
            value = data if data == "[DONE]" else orjson.loads(data)
            found.append((named.get("event", ""), value))
    return found


def _error(dialect: str, body: Any) -> Heard:
    """An error answer, if it has the shape that the protocol's clients know."""
    if dialect == "anthropic-messages" and body.get("type") != "error":
        return Heard(garbled=f"no Anthropic error: {body}")
    error = body.get("error")
    if not isinstance(error, dict) or not isinstance(error.get("message"), str):
        return Heard(garbled=f"no error object: {body}")
    return Heard(code=error.get("code"))


def code_of(kind: str) -> str:
    """The code that a kind of fault is told by."""
    assert kind in KINDS
    return WORDS[kind].code


# --------------------------------------------------------------------------- chat


def _chat_body(model: str, stream: bool) -> dict[str, Any]:
    return {
        "model": model,
        "messages": [{"role": "user", "content": TEXT}],
        "stream": stream,
    }


def _chat_stream(told: Events) -> Heard:
    text, reason = "", None
    for number, (_, data) in enumerate(told):
        if data == "[DONE]":
            last = number == len(told) - 1
            whole = last and reason is not None
            return Heard(text, whole, garbled=None if whole else "[DONE] too early")
        if "error" in data:
            return Heard(text, code=data["error"]["code"], in_band=True)
        for choice in data["choices"]:
            text += choice["delta"].get("content") or ""
            reason = choice["finish_reason"] or reason
    return Heard(text, garbled="the stream just ends")


def _chat_whole(body: Any) -> Heard:
    choice = body["choices"][0]
    return Heard(choice["message"]["content"] or "", choice["finish_reason"] is not None)


# --------------------------------------------------------------------------- responses


def _responses_body(model: str, stream: bool) -> dict[str, Any]:
    return {"model": model, "input": TEXT, "stream": stream}


def _responses_stream(told: Events) -> Heard:
    text, error = "", None
    for number, (name, data) in enumerate(told):
        if name != data["type"] or number != data["sequence_number"]:
            return Heard(text, garbled=f"event {number} is {name} {data}")
        if name == "response.output_text.delta":
            text += data["delta"]
        elif name == "error":
            error = data["code"]
        elif name == "response.completed":
            whole = _responses_whole(data["response"])
            return whole if whole.text == text else Heard(text, garbled="the end tells otherwise")
        elif name == "response.failed":
            told_code = data["response"]["error"]["code"]
            return Heard(text, code=error or told_code, in_band=True)
    return Heard(text, garbled="the stream just ends")


def _responses_whole(body: Any) -> Heard:
    text = "".join(
        part["text"]
        for item in body["output"]
        if item["type"] == "message"
        for part in item["content"]
        if part["type"] == "output_text"
    )
    return Heard(text, body["status"] == "completed")


# --------------------------------------------------------------------------- messages


def _messages_body(model: str, stream: bool) -> dict[str, Any]:
    return {**_chat_body(model, stream), "max_tokens": 1000}


def _messages_stream(told: Events) -> Heard:
    text, reason = "", None
    for name, data in told:
        if name != data["type"]:
            return Heard(text, garbled=f"{name} is {data}")
        if name == "content_block_delta":
            text += data["delta"].get("text", "")
        elif name == "message_delta":
            reason = data["delta"]["stop_reason"]
        elif name == "message_stop":
            return Heard(text, reason is not None)
        elif name == "error":
            return Heard(text, code=data["error"]["code"], in_band=True)
    return Heard(text, garbled="the stream just ends")


def _messages_whole(body: Any) -> Heard:
    text = "".join(block["text"] for block in body["content"] if block["type"] == "text")
    return Heard(text, body["stop_reason"] is not None)


CALLERS: tuple[Caller, ...] = (
    Caller("openai-chat", "/v1/chat/completions", _chat_body, _chat_stream, _chat_whole),
    Caller(
        "openai-responses", "/v1/responses", _responses_body, _responses_stream, _responses_whole
    ),
    Caller("anthropic-messages", "/v1/messages", _messages_body, _messages_stream, _messages_whole),
)
