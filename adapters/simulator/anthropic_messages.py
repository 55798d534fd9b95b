"""Anthropic Messages from the provider's side: writing the answer, whole and as its events.

The request's side is in :mod:`adapters.simulator.anthropic_messages_request`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from adapters.simulator.seal import seal, sign
from adapters.simulator.voice import Told, as_mapping, nibbles, pieces
from adapters.simulator.words import (
    Call,
    Frame,
    FrameKind,
    Part,
    Refuse,
    Say,
    Think,
    Trouble,
    Usage,
)
from adapters.wire.json import dumps, loads_exact

_STOP = {
    "stop": "end_turn",
    "length": "max_tokens",
    "sequence": "stop_sequence",
    "tools": "tool_use",
    "filter": "refusal",
    "refusal": "refusal",
    "pause": "pause_turn",
    "context": "model_context_window_exceeded",
}


def usage(counted: Usage) -> dict[str, Any]:
    """The usage object: ``input_tokens`` leaves out what the cache read or wrote."""
    return {
        "input_tokens": counted.prompt - counted.read - counted.written,
        "cache_creation_input_tokens": counted.written,
        "cache_read_input_tokens": counted.read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": counted.written - counted.written_1h,
            "ephemeral_1h_input_tokens": counted.written_1h,
        },
        "output_tokens": counted.output,
        "service_tier": "standard",
    }


def _ending(told: Told) -> dict[str, Any]:
    reason = _STOP[told.answer.ending]
    details = None
    if reason == "refusal":
        texts = [part.text for part in told.answer.parts if isinstance(part, Refuse)]
        explanation = " ".join(texts) or None
        details = {"type": "refusal", "category": None, "explanation": explanation}
    return {
        "stop_reason": reason if told.answer.reason is None else told.answer.reason,
        "stop_sequence": told.answer.sequence,
        "stop_details": details,
    }


def _message(told: Told) -> dict[str, Any]:
    return {
        "model": told.ask.model,
        "id": told.mint.new("msg_01", 22),
        "type": "message",
        "role": "assistant",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "stop_details": None,
    }


def _block(part: Part, told: Told) -> dict[str, Any]:
    match part:
        case Say(text=text) | Refuse(text=text):
            return {"type": "text", "text": text}
        case Think(text=text, hidden=True):
            return {"type": "redacted_thinking", "data": seal(text)}
        case Think(text=text):
            shown = "" if _omits_thinking(told) else text
            return {"type": "thinking", "thinking": shown, "signature": sign(shown)}
        case Call():
            return {
                "type": "tool_use",
                "id": part.id if part.id is not None else told.mint.new("toolu_01", 22),
                "name": part.name,
                "input": _input(part.arguments),
                "caller": {"type": "direct"},
            }


def _omits_thinking(told: Told) -> bool:
    return as_mapping(told.body.get("thinking")).get("display") == "omitted"


def _input(arguments: str) -> Any:
    """The arguments as JSON; a whole body can't carry anything else."""
    try:
        return loads_exact((arguments or "{}").encode())
    except ValueError:
        return {"INVALID_JSON": arguments}


def whole(told: Told) -> bytes:
    """The answer as one body."""
    message = {
        **_message(told),
        "content": [_block(part, told) for part in told.answer.parts],
        **_ending(told),
    }
    if told.usage is not None:
        message["usage"] = usage(told.usage)
    return dumps(message)


class _Events:
    """Writes the events of one stream, padded with blanks as the vendor pads them."""

    def __init__(self, told: Told) -> None:
        self._told = told
        self._number = 0

    def frames(self) -> Iterator[Frame]:
        """The whole grammar, from ``message_start`` to ``message_stop``."""
        told = self._told
        yield self._send("open", "message_start", message=self._opening())
        for index, part in enumerate(told.answer.parts):
            block = _block(part, told)
            yield self._send(
                "mark", "content_block_start", index=index, content_block=_empty(block)
            )
            if index == 0:
                yield ping()
            for delta in _deltas(part, block):
                yield self._send("delta", "content_block_delta", index=index, delta=delta)
            yield self._send("mark", "content_block_stop", index=index)
        ending: dict[str, Any] = {"delta": _ending(told)}
        if told.usage is not None:
            final = usage(told.usage)
            del final["cache_creation"], final["service_tier"]
            ending["usage"] = final
        yield self._send("terminal", "message_delta", **ending)
        yield self._send("done", "message_stop")

    def _opening(self) -> dict[str, Any]:
        """The message as it starts; its usage is provisional, with a token or two of output."""
        message = _message(self._told)
        counted = self._told.usage
        if counted is not None:
            message["usage"] = {**usage(counted), "output_tokens": min(counted.output, 2)}
        return message

    def _send(self, kind: FrameKind, name: str, **fields: Any) -> Frame:
        self._number += 1
        data = dumps({"type": name, **fields})
        padded = data[:-1] + b" " * (self._number * 7 % 16) + b"}"
        return Frame(kind, b"event: " + name.encode() + b"\ndata: " + padded + b"\n\n")


def ping() -> Frame:
    """The keep-alive that may come anywhere."""
    return Frame("ping", b'event: ping\ndata: {"type": "ping"}\n\n')


def _empty(block: dict[str, Any]) -> dict[str, Any]:
    """A block as it is announced; redacted thinking comes whole at once."""
    if block["type"] == "redacted_thinking":
        return block
    empty = {"text": "", "thinking": "", "signature": "", "input": {}}
    return {**block, **{key: value for key, value in empty.items() if key in block}}


def _deltas(part: Part, block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    match part:
        case Say(text=text):
            for piece in pieces(text, part.pieces):
                yield {"type": "text_delta", "text": piece}
        case Refuse(text=text):
            for piece in pieces(text):
                yield {"type": "text_delta", "text": piece}
        case Think(hidden=False):
            for piece in pieces(block["thinking"]):
                yield {"type": "thinking_delta", "thinking": piece}
            yield {"type": "signature_delta", "signature": block["signature"]}
        case Call(arguments=arguments):
            yield {"type": "input_json_delta", "partial_json": ""}
            for piece in nibbles("" if arguments == "{}" else arguments):
                yield {"type": "input_json_delta", "partial_json": piece}
        case _:
            pass  # redacted thinking has no deltas


def stream(told: Told) -> tuple[Frame, ...]:
    """The answer as a stream."""
    return tuple(_Events(told).frames())


def error_object(trouble: Trouble) -> dict[str, Any]:
    """Anthropic's error, without the envelope's request id."""
    details = {"type": trouble.type, "message": trouble.message}
    return {"type": "error", "error": details}


def error(trouble: Trouble, request_id: str) -> bytes:
    """The body of an error."""
    return dumps({**error_object(trouble), "request_id": request_id})


def break_off(trouble: Trouble, sent: Sequence[Frame]) -> tuple[Frame, ...]:
    """An error in the middle of a stream."""
    data = dumps({**error_object(trouble), "request_id": "req_broken"})
    return (Frame("terminal", b"event: error\ndata: " + data + b"\n\n"),)
