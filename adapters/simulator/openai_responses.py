"""OpenAI Responses from the provider's side: writing the answer, whole and as its events.

The request's side is in :mod:`adapters.simulator.openai_responses_request`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from adapters.simulator.openai_chat import error_object
from adapters.simulator.seal import seal
from adapters.simulator.voice import Told, event, nibbles, padding, pieces
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

_INCOMPLETE = {
    "length": "max_output_tokens",
    "context": "max_output_tokens",
    "filter": "content_filter",
}

_DEFAULTS: dict[str, Any] = {
    "background": False,
    "frequency_penalty": 0.0,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "presence_penalty": 0.0,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "prompt_cache_retention": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": "default",
    "store": True,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}, "verbosity": "medium"},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}
"""What a response says of a field that the request left out; the request's own values win."""


def usage(counted: Usage) -> dict[str, Any]:
    """The usage object."""
    return {
        "input_tokens": counted.prompt,
        "input_tokens_details": {"cached_tokens": counted.read, "cache_write_tokens": 0},
        "output_tokens": counted.output,
        "output_tokens_details": {"reasoning_tokens": counted.reasoning},
        "total_tokens": counted.prompt + counted.output,
    }


def _text_settings(body: Any) -> dict[str, Any]:
    text = body.get("text") or {}
    return {**_DEFAULTS["text"], **{key: value for key, value in text.items() if value is not None}}


def _reasoning_settings(body: Any) -> dict[str, Any]:
    return {**_DEFAULTS["reasoning"], **(body.get("reasoning") or {})}


def _tool_settings(tool: dict[str, Any]) -> dict[str, Any]:
    """A function as the answer repeats it: strict unless told otherwise."""
    if tool.get("type") != "function":
        return tool
    return {"description": None, "parameters": None, "strict": True, **tool}


class _Response:
    """One response under way: its object and its items, by which both forms are written."""

    def __init__(self, told: Told) -> None:
        self.told = told
        self.incomplete = told.answer.reason or _INCOMPLETE.get(told.answer.ending)
        given = {key: told.body[key] for key in _DEFAULTS if told.body.get(key) is not None}
        self._object: dict[str, Any] = {
            "id": told.mint.new("resp_", 48),
            "object": "response",
            "created_at": told.created,
            "status": "in_progress",
            "completed_at": None,
            "error": None,
            "incomplete_details": None,
            "model": told.ask.model,
            "output": [],
            "usage": None,
            **_DEFAULTS,
            **given,
            "tools": [_tool_settings(tool) for tool in told.body.get("tools") or ()],
            "text": _text_settings(told.body),
            "reasoning": _reasoning_settings(told.body),
        }

    def started(self) -> dict[str, Any]:
        """The object before there is an answer."""
        return self._object

    def ended(self, output: list[dict[str, Any]]) -> dict[str, Any]:
        """The object at the end."""
        counted = self.told.usage
        return {
            **self._object,
            "status": "incomplete" if self.incomplete else "completed",
            "completed_at": None if self.incomplete else self.told.created,
            "incomplete_details": {"reason": self.incomplete} if self.incomplete else None,
            "output": output,
            "usage": None if counted is None else usage(counted),
        }

    def item(self, part: Part, *, last: bool) -> dict[str, Any]:
        """The whole item of one part."""
        status = "incomplete" if last and self.incomplete else "completed"
        new = self.told.mint.new
        match part:
            case Think():
                return self._reasoning(part)
            case Call(free_form=True):
                return {
                    "id": new("ctc_", 48),
                    "type": "custom_tool_call",
                    "status": status,
                    "call_id": part.id if part.id is not None else new("call_"),
                    "input": part.arguments,
                    "name": part.name,
                }
            case Call():
                return {
                    "id": new("fc_", 48),
                    "type": "function_call",
                    "status": status,
                    "arguments": part.arguments,
                    "call_id": part.id if part.id is not None else new("call_"),
                    "name": part.name,
                }
            case Say(text=text):
                content = {"type": "output_text", "annotations": [], "logprobs": [], "text": text}
            case Refuse(text=text):
                content = {"type": "refusal", "refusal": text}
        return {
            "id": new("msg_", 48),
            "type": "message",
            "status": status,
            "content": [content],
            "role": "assistant",
        }

    def _reasoning(self, part: Think) -> dict[str, Any]:
        """Readable only if a summary was asked; sealed only if the caller included it. The id
        of an item that is kept says so, by which the judge knows it again."""
        prefix = "rs_k" if self._object["store"] else "rs_"
        item: dict[str, Any] = {"id": self.told.mint.new(prefix, 48), "type": "reasoning"}
        if "reasoning.encrypted_content" in (self.told.body.get("include") or ()):
            item["encrypted_content"] = seal(part.text)
        shown = self._object["reasoning"].get("summary") is not None and not part.hidden
        item["summary"] = [{"type": "summary_text", "text": part.text}] if shown else []
        return item

    def items(self) -> list[dict[str, Any]]:
        """All items, in order."""
        parts = self.told.answer.parts
        return [self.item(part, last=part is parts[-1]) for part in parts]


def whole(told: Told) -> bytes:
    """The answer as one body: escaped to ASCII, as the vendor does it."""
    response = _Response(told)
    return json.dumps(response.ended(response.items()), indent=2).encode()


class _Events:
    """Writes the events of one stream, numbered without gaps."""

    def __init__(self, told: Told) -> None:
        self._response = _Response(told)
        self._told = told
        self._number = -1
        options = told.body.get("stream_options") or {}
        self._pads = options.get("include_obfuscation") is not False

    def frames(self) -> Iterator[Frame]:
        """The whole grammar, from ``response.created`` to the terminal."""
        response = self._response
        for name in ("response.created", "response.in_progress"):
            yield self._send("open", name, response=response.started())
        items = response.items()
        for index, (item, part) in enumerate(zip(items, self._told.answer.parts, strict=True)):
            yield self._send(
                "mark", "response.output_item.added", output_index=index, item=_opening(item)
            )
            yield from self._inside(index, item, part)
            yield self._send("mark", "response.output_item.done", output_index=index, item=item)
        name = "response.incomplete" if response.incomplete else "response.completed"
        yield self._send("terminal", name, response=response.ended(items))

    def _inside(self, index: int, item: dict[str, Any], part: Part) -> Iterator[Frame]:
        place = {"item_id": item["id"], "output_index": index}
        match part:
            case Call(free_form=True):
                yield from self._deltas("response.custom_tool_call_input", place, part.arguments)
                yield self._send(
                    "mark", "response.custom_tool_call_input.done", **place, input=part.arguments
                )
            case Call():
                yield from self._deltas("response.function_call_arguments", place, part.arguments)
                yield self._send(
                    "mark",
                    "response.function_call_arguments.done",
                    **place,
                    arguments=part.arguments,
                )
            case Think():
                for number, section in enumerate(item["summary"]):
                    yield from self._summary({**place, "summary_index": number}, section)
            case Say() | Refuse():
                yield from self._content({**place, "content_index": 0}, item["content"][0], part)

    def _deltas(self, name: str, place: dict[str, Any], text: str) -> Iterator[Frame]:
        for piece in nibbles(text):
            yield self._send("delta", f"{name}.delta", **place, delta=piece)

    def _summary(self, place: dict[str, Any], section: dict[str, Any]) -> Iterator[Frame]:
        name = "response.reasoning_summary"
        yield self._send("mark", f"{name}_part.added", **place, part={**section, "text": ""})
        for piece in pieces(section["text"]):
            yield self._send("delta", f"{name}_text.delta", **place, delta=piece)
        yield self._send("mark", f"{name}_text.done", **place, text=section["text"])
        yield self._send("mark", f"{name}_part.done", **place, part=section)

    def _content(
        self, place: dict[str, Any], content: dict[str, Any], part: Say | Refuse
    ) -> Iterator[Frame]:
        field = "text" if isinstance(part, Say) else "refusal"
        name = f"response.{content['type']}"
        rest: dict[str, Any] = {"logprobs": []} if isinstance(part, Say) else {}
        opening = {**content, field: ""}
        yield self._send("mark", "response.content_part.added", **place, part=opening)
        given = part.pieces if isinstance(part, Say) else ()
        for piece in pieces(part.text, given):
            yield self._send("delta", f"{name}.delta", **place, delta=piece, **rest)
        yield self._send("mark", f"{name}.done", **place, **{field: part.text}, **rest)
        yield self._send("mark", "response.content_part.done", **place, part=content)

    def _send(self, kind: FrameKind, name: str, **fields: Any) -> Frame:
        self._number += 1
        if kind == "delta" and self._pads:
            fields["obfuscation"] = padding(self._number)
        return event(kind, {"type": name, **fields, "sequence_number": self._number}, name)


def _opening(item: dict[str, Any]) -> dict[str, Any]:
    """An item as it is announced: empty, and sealed with a seal that is not yet the last."""
    empty = {"content": [], "summary": [], "arguments": "", "input": ""}
    opening = {**item, **{key: value for key, value in empty.items() if key in item}}
    if "status" in item:
        opening["status"] = "in_progress"
    if "encrypted_content" in item:
        opening["encrypted_content"] = seal("unfinished")
    return opening


def stream(told: Told) -> tuple[Frame, ...]:
    """The answer as a stream."""
    return tuple(_Events(told).frames())


def break_off(trouble: Trouble, sent: Sequence[Frame]) -> tuple[Frame, ...]:
    """An error in the middle: the ``error`` event, its fields nested, then ``response.failed``."""
    started = next((_data(frame) for frame in sent if frame.kind == "open"), {})
    number = _data(sent[-1])["sequence_number"] + 1 if sent else 0
    failed = {
        **started.get("response", {}),
        "status": "failed",
        "error": {"code": trouble.code or "server_error", "message": trouble.message},
    }
    nested = {"type": "error", "sequence_number": number, "error": error_object(trouble)}
    ending = {"type": "response.failed", "sequence_number": number + 1, "response": failed}
    return event("mark", nested, "error"), event("terminal", ending, "response.failed")


def _data(frame: Frame) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(frame.data.partition(b"data: ")[2])
    return data
