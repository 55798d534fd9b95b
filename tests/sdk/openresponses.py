"""What OpenResponses (openresponses.org) asks of an answer, as a schema and a grammar.

Written from the published specification: which fields a response object, an item and an event
must have, of which types, and in which order the events of a stream may come.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jsonschema_rs

TEXT = {"type": "string"}
NUMBER = {"type": "number"}
WHOLE = {"type": "integer"}
YES_NO = {"type": "boolean"}
OBJECT = {"type": "object"}


def nullable(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


def record(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {**required, **optional},
        "required": sorted(required),
    }


def listed(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": schema}


def one_of(**by_type: dict[str, Any]) -> dict[str, Any]:
    """A choice by ``type``; a type that is not listed is refused."""
    rows = [
        {
            **schema,
            "properties": {**schema["properties"], "type": {"const": kind}},
            "required": [*schema["required"], "type"],
        }
        for kind, schema in by_type.items()
    ]
    return {"oneOf": rows}


STATUS = {"enum": ["in_progress", "completed", "incomplete"]}
CITATION = one_of(
    url_citation=record({"url": TEXT, "title": TEXT, "start_index": WHOLE, "end_index": WHOLE})
)
CONTENT = one_of(
    input_text=record({"text": TEXT}),
    output_text=record({"text": TEXT, "annotations": listed(CITATION)}, logprobs=listed(OBJECT)),
    text=record({"text": TEXT}),
    summary_text=record({"text": TEXT}),
    reasoning_text=record({"text": TEXT}),
    refusal=record({"refusal": TEXT}),
)
ITEM = one_of(
    message=record(
        {
            "id": TEXT,
            "status": STATUS,
            "role": {"enum": ["user", "assistant", "system", "developer"]},
            "content": listed(CONTENT),
        }
    ),
    function_call=record(
        {"id": TEXT, "call_id": TEXT, "name": TEXT, "arguments": TEXT, "status": STATUS}
    ),
    reasoning=record(
        {"id": TEXT, "summary": listed(CONTENT)},
        content=listed(CONTENT),
        encrypted_content=TEXT,
    ),
)
USAGE = record(
    {
        "input_tokens": WHOLE,
        "output_tokens": WHOLE,
        "total_tokens": WHOLE,
        "input_tokens_details": record({"cached_tokens": WHOLE}),
        "output_tokens_details": record({"reasoning_tokens": WHOLE}),
    }
)
FUNCTION = record(
    {
        "type": {"const": "function"},
        "name": TEXT,
        "description": nullable(TEXT),
        "parameters": nullable(OBJECT),
        "strict": nullable(YES_NO),
    }
)
RESPONSE = record(
    {
        "id": TEXT,
        "object": {"const": "response"},
        "created_at": WHOLE,
        "completed_at": nullable(WHOLE),
        "status": TEXT,
        "incomplete_details": nullable(record({"reason": TEXT})),
        "model": TEXT,
        "previous_response_id": nullable(TEXT),
        "instructions": nullable(TEXT),
        "output": listed(ITEM),
        "error": nullable(record({"code": TEXT, "message": TEXT})),
        "tools": listed(FUNCTION),
        "tool_choice": {"type": ["string", "object"]},
        "truncation": {"enum": ["auto", "disabled"]},
        "parallel_tool_calls": YES_NO,
        "text": record({"format": record({"type": TEXT})}),
        "top_p": NUMBER,
        "presence_penalty": NUMBER,
        "frequency_penalty": NUMBER,
        "top_logprobs": WHOLE,
        "temperature": NUMBER,
        "reasoning": nullable(record({"effort": nullable(TEXT), "summary": nullable(TEXT)})),
        "user": nullable(TEXT),
        "usage": nullable(USAGE),
        "max_output_tokens": nullable(WHOLE),
        "max_tool_calls": nullable(WHOLE),
        "store": YES_NO,
        "background": YES_NO,
        "service_tier": TEXT,
        "metadata": OBJECT,
        "safety_identifier": nullable(TEXT),
        "prompt_cache_key": nullable(TEXT),
    }
)

_ITEM_EVENT = {"output_index": WHOLE, "item": ITEM}
_AT = {"item_id": TEXT, "output_index": WHOLE}
_IN_CONTENT = {**_AT, "content_index": WHOLE}
_IN_SUMMARY = {**_AT, "summary_index": WHOLE}
EVENTS: dict[str, dict[str, Any]] = {
    **{
        f"response.{moment}": {"response": RESPONSE}
        for moment in ("created", "in_progress", "completed", "incomplete", "failed")
    },
    "response.output_item.added": _ITEM_EVENT,
    "response.output_item.done": _ITEM_EVENT,
    "response.content_part.added": {**_IN_CONTENT, "part": CONTENT},
    "response.content_part.done": {**_IN_CONTENT, "part": CONTENT},
    "response.output_text.delta": {**_IN_CONTENT, "delta": TEXT, "logprobs": listed(OBJECT)},
    "response.output_text.done": {**_IN_CONTENT, "text": TEXT, "logprobs": listed(OBJECT)},
    "response.output_text.annotation.added": {
        **_IN_CONTENT,
        "annotation_index": WHOLE,
        "annotation": CITATION,
    },
    "response.refusal.delta": {**_IN_CONTENT, "delta": TEXT},
    "response.refusal.done": {**_IN_CONTENT, "refusal": TEXT},
    "response.reasoning_text.delta": {**_IN_CONTENT, "delta": TEXT},
    "response.reasoning_text.done": {**_IN_CONTENT, "text": TEXT},
    "response.reasoning_summary_part.added": {**_IN_SUMMARY, "part": CONTENT},
    "response.reasoning_summary_part.done": {**_IN_SUMMARY, "part": CONTENT},
    "response.reasoning_summary_text.delta": {**_IN_SUMMARY, "delta": TEXT},
    "response.reasoning_summary_text.done": {**_IN_SUMMARY, "text": TEXT},
    "response.function_call_arguments.delta": {**_AT, "delta": TEXT},
    "response.function_call_arguments.done": {**_AT, "arguments": TEXT},
}
"""The fields of each event beside its type and its sequence number."""

_VALIDATORS = {
    name: jsonschema_rs.Draft202012Validator(
        record({"type": {"const": name}, "sequence_number": WHOLE, **fields})
    )
    for name, fields in EVENTS.items()
}
_RESPONSE = jsonschema_rs.Draft202012Validator(RESPONSE)

ENDS = ("response.completed", "response.incomplete", "response.failed")
GROWING = {
    "response.output_text": ("response.content_part", "text"),
    "response.refusal": ("response.content_part", "refusal"),
    "response.reasoning_text": ("response.content_part", "text"),
    "response.reasoning_summary_text": ("response.reasoning_summary_part", "text"),
    "response.function_call_arguments": (None, "arguments"),
}
"""What grows by deltas: the part around it, and the field that its end repeats."""


def check_response(response: Any) -> None:
    """A response object has everything that it must have."""
    problems = [f"{e.instance_path}: {e.message}" for e in _RESPONSE.iter_errors(response)]
    assert not problems, problems


def check_stream(events: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Every event, the order of all, and that the end repeats them; the final response."""
    for event in events:
        validator = _VALIDATORS.get(event["type"])
        assert validator is not None, f"unknown event {event['type']}"
        problems = [f"{e.instance_path}: {e.message}" for e in validator.iter_errors(event)]
        assert not problems, (event["type"], problems)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    types = [event["type"] for event in events]
    assert types[:2] == ["response.created", "response.in_progress"]
    assert [kind for kind in types if kind in ENDS] == [types[-1]]
    assert len({event["response"]["id"] for event in events if "response" in event}) == 1
    final: dict[str, Any] = events[-1]["response"]
    assert final["output"] == _items(events[2:-1])
    return final


def _items(events: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The items that ``events`` tell of, checked for their order."""
    items: dict[int, dict[str, Any]] = {}
    done: list[dict[str, Any]] = []
    parts: dict[tuple[Any, ...], str] = {}
    for event in events:
        name, index = event["type"], event["output_index"]
        if name == "response.output_item.added":
            assert index == len(items), "items are numbered in the order of their first event"
            items[index] = event["item"]
            continue
        assert index in items, f"{name} before its item"
        assert event.get("item_id", items[index]["id"]) == items[index]["id"]
        if name == "response.output_item.done":
            assert event["item"]["id"] == items[index]["id"]
            assert all(state == "closed" for key, state in parts.items() if key[0] == index)
            done.append((index, event["item"]))  # type: ignore[arg-type]
            continue
        if "annotation" in event:
            assert parts[index, "content", event["content_index"]] != "closed"
            continue
        _part(event, parts)
    assert len(done) == len(items)
    return [item for _, item in sorted(done, key=lambda pair: pair[0])]  # type: ignore[misc]


def _part(event: dict[str, Any], parts: dict[tuple[Any, ...], str]) -> None:
    """One event inside an item: opened, grown, told whole, closed, in this order."""
    stem, _, moment = event["type"].rpartition(".")
    place = event.get("content_index", event.get("summary_index"))
    kind = "summary" if "summary_index" in event else "content"
    key = (event["output_index"], kind, place)
    around, field = GROWING.get(stem, (stem, None))
    state = parts.get(key)
    if moment == "added":
        assert state is None
        parts[key] = ""
    elif moment == "delta":
        assert state not in ("closed", None) or (state is None and around is None)
        parts[key] = (state or "") + event["delta"]
    elif field is not None:
        assert event[field] == (state or ""), "the end repeats what came before"
        if around is None:
            parts[key] = "closed"
    else:
        assert state is not None
        whole = event["part"].get("text", event["part"].get("refusal"))
        assert whole == state
        parts[key] = "closed"
