"""OpenAI chat completions from the provider's side: reading the request, writing the answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from adapters.simulator.meter import tokens
from adapters.simulator.reading import Conversation, data_url, inline
from adapters.simulator.voice import Told, argument_text, event, nibbles, padding, pieces
from adapters.simulator.words import (
    Ask,
    Body,
    Call,
    Frame,
    FrameKind,
    Media,
    Part,
    Refuse,
    Say,
    Think,
    ToolSpec,
    Trouble,
    Usage,
)
from adapters.wire.json import dumps

_FINISH = {
    "stop": "stop",
    "sequence": "stop",
    "length": "length",
    "context": "length",
    "tools": "tool_calls",
    "filter": "content_filter",
    "refusal": "stop",
    "pause": "stop",
}


def read(body: Body) -> Ask:
    """What is asked."""
    talk = Conversation()
    for message in body["messages"]:
        _hear(talk, message)
    tools = _tools(body)
    output = body.get("response_format") or {}
    limit = body.get("max_completion_tokens")
    stop = body.get("stop") or ()
    key = body.get("prompt_cache_key")
    count = talk.tokens + sum(tokens(argument_text(tool.schema)) for tool in tools)
    return Ask(
        model=body["model"],
        stream=bool(body.get("stream")),
        tools=tools,
        choice=_choice(body),
        parallel=body.get("parallel_tool_calls") is not False,
        schema=output["json_schema"].get("schema") if "json_schema" in output else None,
        json_object=output.get("type") == "json_object",
        thinks=body.get("reasoning_effort") not in (None, "none", "minimal"),
        limit=body.get("max_tokens") if limit is None else limit,
        stops=(stop,) if isinstance(stop, str) else tuple(stop),
        choices=body.get("n") or 1,
        tokens=max(count, 1),
        cached=((f"chat:{key}", count, 0),) if key else (),
        **talk.heard(),
    )


def _hear(talk: Conversation, message: Mapping[str, Any]) -> None:
    role = message["role"]
    text, media = _content(message.get("content"))
    if role in ("tool", "function"):
        talk.result(message.get("tool_call_id") or message["name"], text, media)
        return
    talk.say(role, text or message.get("refusal") or "", media)
    for one in message.get("tool_calls") or ():
        inner = one.get("function") or one["custom"]
        talk.call(one["id"], inner["name"], inner.get("arguments", inner.get("input", "")))
    if legacy := message.get("function_call"):
        talk.call(legacy["name"], legacy["name"], legacy["arguments"])


def _content(content: Any) -> tuple[str, list[Media]]:
    if content is None or isinstance(content, str):
        return content or "", []
    texts, media = [], []
    for part in content:
        kind = part["type"]
        if kind in ("text", "refusal"):
            texts.append(part[kind])
        elif kind == "image_url":
            media.append(data_url("image", part["image_url"]["url"]))
        elif kind == "input_audio":
            sound = part["input_audio"]
            media.append(inline("audio", f"audio/{sound['format']}", sound["data"]))
        else:
            file = part["file"]
            media.append(data_url("file", file.get("file_data") or file["file_id"]))
    return "\n".join(texts), media


def _tools(body: Body) -> tuple[ToolSpec, ...]:
    tools = [
        ToolSpec(one["custom"]["name"], {}, free_form=True)
        if one["type"] == "custom"
        else ToolSpec(one["function"]["name"], one["function"].get("parameters") or {})
        for one in body.get("tools") or ()
    ]
    tools += [
        ToolSpec(one["name"], one.get("parameters") or {}) for one in body.get("functions") or ()
    ]
    return tuple(tools)


def _choice(body: Body) -> str:
    choice = body.get("tool_choice", body.get("function_call"))
    if choice is None or isinstance(choice, str):
        return choice or "auto"
    inner = choice.get("function") or choice.get("custom") or choice
    return f"={inner['name']}" if "name" in inner else "auto"


def usage(counted: Usage) -> dict[str, Any]:
    """The usage object."""
    return {
        "prompt_tokens": counted.prompt,
        "completion_tokens": counted.output,
        "total_tokens": counted.prompt + counted.output,
        "prompt_tokens_details": {"cached_tokens": counted.read, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": counted.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def _finish(told: Told) -> str:
    ending = told.answer.ending
    if told.answer.reason is not None:
        return told.answer.reason
    return "function_call" if ending == "tools" and _legacy(told) else _FINISH[ending]


def _legacy(told: Told) -> bool:
    return "functions" in told.body and "tools" not in told.body


def _token_odds(texts: tuple[str, ...], told: Told) -> dict[str, Any] | None:
    """Log-probabilities, where they were asked: each piece counts as one token."""
    if not told.body.get("logprobs"):
        return None
    top = told.body.get("top_logprobs") or 0
    odds = []
    for text in texts:
        one = {"token": text, "logprob": -0.125, "bytes": list(text.encode())}
        odds.append({**one, "top_logprobs": [one] if top else []})
    return {"content": odds, "refusal": None}


def whole(told: Told) -> bytes:
    """The answer as one body."""
    answer = {
        "id": told.mint.new("chatcmpl-", 29),
        "object": "chat.completion",
        "created": told.created,
        "model": told.ask.model,
        "choices": [_choice_body(told, index) for index in range(told.ask.choices)],
        "service_tier": "default",
        "system_fingerprint": "fp_simulator",
    }
    if told.usage is not None:
        answer["usage"] = usage(told.usage)
    return dumps(answer)


def _choice_body(told: Told, index: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None, "refusal": None}
    calls: list[dict[str, Any]] = []
    said: list[str] = []
    for part in told.answer.parts:
        match part:
            case Say(text=text):
                message["content"] = (message["content"] or "") + text
                said += pieces(text, part.pieces)
            case Refuse(text=text):
                message["refusal"] = (message["refusal"] or "") + text
            case Think(text=text, hidden=False):
                message["reasoning_content"] = message.get("reasoning_content", "") + text
            case Call():
                calls.append(_call_body(part, told))
            case _:
                pass  # this protocol has no place for sealed reasoning
    if not told.answer.parts:
        message["content"] = ""
    message["annotations"] = []
    if calls and _legacy(told):
        message["function_call"] = calls[0]["function"]
    elif calls:
        message["tool_calls"] = calls
    return {
        "index": index,
        "message": message,
        "logprobs": _token_odds(tuple(said), told),
        "finish_reason": _finish(told),
    }


def _call_body(call: Call, told: Told) -> dict[str, Any]:
    call_id = call.id if call.id is not None else told.mint.new("call_")
    if call.free_form:
        inner = {"name": call.name, "input": call.arguments}
        return {"id": call_id, "type": "custom", "custom": inner}
    inner = {"name": call.name, "arguments": call.arguments}
    return {"id": call_id, "type": "function", "function": inner}


class _Chunks:
    """Writes the chunks of one stream."""

    def __init__(self, told: Told) -> None:
        self._told = told
        self._options = told.body.get("stream_options") or {}
        self._number = 0
        self._base = {
            "id": told.mint.new("chatcmpl-", 29),
            "object": "chat.completion.chunk",
            "created": told.created,
            "model": told.ask.model,
            "service_tier": "default",
            "system_fingerprint": "fp_simulator",
        }

    def frames(self) -> Iterator[Frame]:
        """All chunks, the choices side by side, and the end."""
        told = self._told
        for index in range(told.ask.choices):
            yield self._chunk("open", index, {"role": "assistant", "content": "", "refusal": None})
        lanes = [list(self._deltas(index)) for index in range(told.ask.choices)]
        for step in zip(*lanes, strict=True):
            yield from step
        for index in range(told.ask.choices):
            yield self._chunk("terminal", index, {}, finish=_finish(told))
        if self._options.get("include_usage") and told.usage is not None:
            yield self._send("usage", {"choices": [], "usage": usage(told.usage)})
        yield Frame("done", b"data: [DONE]\n\n")

    def _deltas(self, index: int) -> Iterator[Frame]:
        calls = 0
        for part in self._told.answer.parts:
            if isinstance(part, Call):
                yield from self._call(index, calls, part)
                calls += 1
            else:
                yield from self._texts(index, part)

    def _texts(self, index: int, part: Part) -> Iterator[Frame]:
        match part:
            case Say(text=text):
                for piece in pieces(text, part.pieces):
                    odds = _token_odds((piece,), self._told)
                    yield self._chunk("delta", index, {"content": piece}, odds=odds)
            case Think(text=text, hidden=False):
                for piece in pieces(text):
                    yield self._chunk("delta", index, {"reasoning_content": piece})
            case Refuse(text=text):
                for piece in pieces(text):
                    yield self._chunk("delta", index, {"refusal": piece})
            case _:
                pass

    def _call(self, index: int, place: int, call: Call) -> Iterator[Frame]:
        body = _call_body(call, self._told)
        kind = body["type"]
        field = "input" if kind == "custom" else "arguments"
        body[kind][field] = ""
        if _legacy(self._told):
            yield self._chunk("delta", index, {"function_call": body["function"]})
        else:
            yield self._chunk("delta", index, {"tool_calls": [{"index": place, **body}]})
        for piece in nibbles(call.arguments):
            inner: dict[str, Any] = {field: piece}
            if _legacy(self._told):
                yield self._chunk("delta", index, {"function_call": inner})
            else:
                yield self._chunk("delta", index, {"tool_calls": [{"index": place, kind: inner}]})

    def _chunk(
        self,
        kind: FrameKind,
        index: int,
        delta: dict[str, Any],
        *,
        odds: dict[str, Any] | None = None,
        finish: str | None = None,
    ) -> Frame:
        choice = {"index": index, "delta": delta, "logprobs": odds, "finish_reason": finish}
        rest = {"usage": None} if self._options.get("include_usage") else {}
        return self._send(kind, {"choices": [choice], **rest})

    def _send(self, kind: FrameKind, value: dict[str, Any]) -> Frame:
        chunk = {**self._base, **value}
        if self._options.get("include_obfuscation") is not False:
            self._number += 1
            chunk["obfuscation"] = padding(self._number)
        return event(kind, chunk)


def stream(told: Told) -> tuple[Frame, ...]:
    """The answer as a stream."""
    return tuple(_Chunks(told).frames())


def error_object(trouble: Trouble) -> dict[str, Any]:
    """OpenAI's error object, the same on all of its endpoints."""
    return {
        "message": trouble.message,
        "type": trouble.openai_type,
        "param": trouble.param,
        "code": trouble.code,
    }


def error(trouble: Trouble, request_id: str) -> bytes:
    """The body of an error."""
    return orjson.dumps({"error": error_object(trouble)}, option=orjson.OPT_INDENT_2)


def break_off(trouble: Trouble, sent: Sequence[Frame]) -> tuple[Frame, ...]:
    """An error in the middle of a stream, as OpenAI-compatible servers send it."""
    return (event("terminal", {"error": error_object(trouble)}),)
