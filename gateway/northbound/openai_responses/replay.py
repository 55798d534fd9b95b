"""A kept response told once more as a stream: ``GET /v1/responses/{id}?stream=true``.

Pure JSON to JSON: the events that the finished object would have come from, each text in one
piece. No model is asked, so two readings of one response are equal to the byte, and
``starting_after`` finds its place in either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from adapters.canonical.faults import Fault
from adapters.wire import sse
from adapters.wire.json import dumps
from gateway.northbound.openai_responses.growing import Told

Json = Mapping[str, Any]

NO_STREAM = (
    "This response does not follow the Responses protocol: the provider wrote it so, and it can't "
    "be told in pieces. Read it without stream=true."
)


def replayed(response: Json, starting_after: int | None = None) -> bytes:
    """The SSE frames of ``response``, those up to ``starting_after`` left out.

    :raises Fault: ``bad_request`` for a number that the stream does not reach, and for a response
        that can't be told in pieces, as a provider may have written it.
    """
    try:
        told = list(_told(response))
    except (AttributeError, KeyError, TypeError):
        raise Fault("bad_request", NO_STREAM, param="stream") from None
    if starting_after is not None and not 0 <= starting_after < len(told):
        raise Fault(
            "bad_request",
            f"starting_after is a sequence_number of this stream: 0 to {len(told) - 1}.",
            param="starting_after",
        )
    first = 0 if starting_after is None else starting_after + 1
    frames = [
        sse.frame(dumps({"type": name, **fields, "sequence_number": number}), name)
        for number, (name, fields) in enumerate(told)
        if number >= first
    ]
    return b"".join(frames)


def _told(response: Json) -> Iterator[Told]:
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    begun |= {"completed_at": None, "error": None, "incomplete_details": None}
    yield "response.created", {"response": begun}
    yield "response.in_progress", {"response": begun}
    for index, item in enumerate(response["output"]):
        yield from _item(index, item)
    if response["status"] == "failed":
        error = response.get("error") or {}
        flat = {name: error.get(name) for name in ("code", "message", "param")}
        yield "error", {**flat, "error": error}
    yield f"response.{response['status']}", {"response": response}


def _item(index: int, item: Json) -> Iterator[Told]:
    grow = _GROW.get(item["type"])
    begun = item if grow is None else {**item, **_BLANK[item["type"]]}
    if "status" in item:
        begun = {**begun, "status": "in_progress"}
    yield "response.output_item.added", {"output_index": index, "item": begun}
    if grow is not None:
        where = {"item_id": item["id"], "output_index": index}
        for name, fields in grow(item):
            yield f"response.{name}", {**where, **fields}
    yield "response.output_item.done", {"output_index": index, "item": item}


def _message(item: Json) -> Iterator[Told]:
    for number, part in enumerate(item["content"]):
        yield from _content(number, part)


_TEXTS: Mapping[str, str] = {
    "output_text": "text",
    "refusal": "refusal",
    "reasoning_text": "text",
}
"""Content parts that grow, and the field that does."""


def _content(number: int, part: Json) -> Iterator[Told]:
    kind = part["type"]
    field = _TEXTS.get(kind)
    at = {"content_index": number}
    if field is None:
        yield "content_part.added", {**at, "part": part}
        yield "content_part.done", {**at, "part": part}
        return
    blank = {**part, field: ""}
    logprobs: dict[str, Any] = {}
    if kind == "output_text":
        blank |= {"annotations": [], "logprobs": []}
        logprobs = {"logprobs": part.get("logprobs") or []}
    yield "content_part.added", {**at, "part": blank}
    if part[field]:
        yield f"{kind}.delta", {**at, "delta": part[field], **logprobs}
    for place, annotation in enumerate(part.get("annotations") or ()):
        told = {**at, "annotation_index": place, "annotation": annotation}
        yield "output_text.annotation.added", told
    yield f"{kind}.done", {**at, field: part[field], **logprobs}
    yield "content_part.done", {**at, "part": part}


def _reasoning(item: Json) -> Iterator[Told]:
    for number, part in enumerate(item.get("summary") or ()):
        at = {"summary_index": number}
        yield "reasoning_summary_part.added", {**at, "part": {**part, "text": ""}}
        if part["text"]:
            yield "reasoning_summary_text.delta", {**at, "delta": part["text"]}
        yield "reasoning_summary_text.done", {**at, "text": part["text"]}
        yield "reasoning_summary_part.done", {**at, "part": part}
    for number, part in enumerate(item.get("content") or ()):
        yield from _content(number, part)


def _call(stream: str, field: str) -> Callable[[Json], Iterator[Told]]:
    def grow(item: Json) -> Iterator[Told]:
        if item[field]:
            yield f"{stream}.delta", {"delta": item[field]}
        yield f"{stream}.done", {field: item[field]}

    return grow


_GROW: Mapping[str, Callable[[Json], Iterator[Told]]] = {
    "message": _message,
    "reasoning": _reasoning,
    "function_call": _call("function_call_arguments", "arguments"),
    "custom_tool_call": _call("custom_tool_call_input", "input"),
}
"""Items that come in pieces; others are told whole."""

_BLANK: Mapping[str, dict[str, Any]] = {
    "message": {"content": []},
    "reasoning": {"summary": []},
    "function_call": {"arguments": ""},
    "custom_tool_call": {"input": ""},
}
"""Each of them before its first piece."""
