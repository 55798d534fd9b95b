"""Shapes of the OpenAI Responses API that both sides speak: items, content parts, usage.

Southbound, output items become parts and parts become input items; northbound it is the other
way round, with the same shapes. Knows field names only: not streams, not requests as a whole,
not who is asking. Readers take JSON from strangers and raise :class:`Malformed` where a field
that carries the meaning has the wrong type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.canonical.events import Reason, Usage
from adapters.canonical.parts import (
    NO_EXTRAS,
    Dialect,
    FileRef,
    Inline,
    Media,
    Opaque,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    Url,
)
from adapters.wire import data_url
from adapters.wire.usage import MAX_TOKENS, Counts

DIALECT: Dialect = "openai-responses"

ENCRYPTED = "reasoning.encrypted_content"
LOGPROBS = "message.output_text.logprobs"
"""Values of ``include``."""

TRUNCATION: Mapping[bool | None, str] = {True: "auto", False: "disabled"}
"""``truncation``, by whether the oldest turns may be left out."""

INCOMPLETE: Mapping[str, Reason] = {
    "max_output_tokens": "length",
    "content_filter": "content_filter",
}
"""``incomplete_details.reason`` in canonical words; any other is ``unknown``."""


class Malformed(Exception):
    """A field with a meaning that has the wrong type; the message names the field."""


# ------------------------------------------------------------------------------- reading


def text_at(found: Mapping[str, Any], name: str, default: str | None = None) -> str:
    """The string at ``name``; ``default`` where it is absent or null.

    :raises Malformed: if it is no string, or absent without a default.
    """
    value = found.get(name, default)
    if value is None:
        value = default
    if not isinstance(value, str):
        raise Malformed(name)
    return value


def object_at(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The object at ``name``.

    :raises Malformed: if it is none.
    """
    value = found.get(name)
    if not isinstance(value, dict):
        raise Malformed(name)
    return value


def list_at(found: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """The list of objects at ``name``; empty where it is absent or null.

    :raises Malformed: if it is something else.
    """
    value = found.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise Malformed(name)
    return value


def optional_text(found: Mapping[str, Any], name: str) -> str | None:
    """The string at ``name``, or ``None`` where there is none."""
    value = found.get(name)
    return value if isinstance(value, str) else None


def rest(found: Mapping[str, Any], *known: str) -> Mapping[str, Any]:
    """What ``found`` holds beyond the ``known`` fields: the ``extras`` of a part."""
    extras = {name: value for name, value in found.items() if name not in known}
    return extras or NO_EXTRAS


# ------------------------------------------------------------------------------- reasoning


def thinking_of(item: Mapping[str, Any]) -> Thinking:
    """A ``reasoning`` item. A summary is kept in its sections; raw reasoning text, which open
    models send in ``content``, is one piece."""
    summary = tuple(text_at(entry, "text", "") for entry in list_at(item, "summary"))
    content = list_at(item, "content")
    raw = [text_at(entry, "text", "") for entry in content]
    extras = dict(rest(item, "type", "id", "summary", "content", "encrypted_content"))
    whole = len(content) == 1 and set(content[0]) == {"type", "text"}
    if content and (summary or not whole):
        extras["content"] = content
    sections = list_at(item, "summary")
    if any(section.keys() > {"type", "text"} for section in sections):
        extras["summary"] = sections
    return Thinking(
        "".join(summary or raw),
        sealed=optional_text(item, "encrypted_content"),
        dialect=DIALECT,
        id=optional_text(item, "id"),
        summary=None if raw and not summary else summary,
        extras=extras or NO_EXTRAS,
    )


def reasoning_item(part: Thinking) -> dict[str, Any]:
    """The ``reasoning`` item of a thinking part: ``thinking_of`` the other way round."""
    item: dict[str, Any] = {"type": "reasoning"}
    if part.id is not None:
        item["id"] = part.id
    item["summary"] = [{"type": "summary_text", "text": text} for text in part.summary or ()]
    if part.summary is None and part.text:
        item["content"] = [{"type": "reasoning_text", "text": part.text}]
    if part.sealed is not None:
        item["encrypted_content"] = part.sealed
    return {**item, **part.extras}


# ------------------------------------------------------------------------------- tool calls

CALL_FIELD = {"function_call": "arguments", "custom_tool_call": "input"}
"""Which field of a call item holds what the model wrote."""


def call_of(item: Mapping[str, Any]) -> ToolCall:
    """A ``function_call`` or ``custom_tool_call`` item; ``id``, ``namespace`` … are extras."""
    field = CALL_FIELD[item["type"]]
    return ToolCall(
        text_at(item, "call_id"),
        text_at(item, "name"),
        text_at(item, field, ""),
        "custom" if field == "input" else "function",
        rest(item, "type", "call_id", "name", "status", field),
    )


def call_item(part: ToolCall, call_id: str) -> dict[str, Any]:
    """The item of a tool call, under ``call_id``; without the part's extras."""
    kind, field = (
        ("custom_tool_call", "input") if part.kind == "custom" else ("function_call", "arguments")
    )
    return {"type": kind, "call_id": call_id, "name": part.name, field: part.arguments}


AROUND = "item"
"""The extra of a content part that keeps the fields of the message item around it."""

CUSTOM_FIELDS = ("name", "description", "format")
"""What a custom tool is made of, here and in Chat, which nests it under ``custom``."""

# ------------------------------------------------------------------------------- messages


def output_part_of(part: Mapping[str, Any], item: Mapping[str, Any]) -> Text | Refusal | Opaque:
    """One content part of an output ``message`` item.

    ``extras[AROUND]`` says which message it stood in (its ``id``, ``phase`` …), so that the
    message can be put together again.
    """
    kind = part.get("type")
    if kind == "output_text":
        extras = rest(part, "type", "text", "annotations", "logprobs", AROUND)
        cited = tuple(list_at(part, "annotations"))
        return Text(text_at(part, "text", ""), cited, item_extras(item, extras))
    if kind == "refusal":
        extras = rest(part, "type", "refusal", AROUND)
        return Refusal(text_at(part, "refusal", ""), item_extras(item, extras))
    return content_opaque(part)


def item_extras(item: Mapping[str, Any], extras: Mapping[str, Any]) -> Mapping[str, Any]:
    """A content part's extras: its own, and the fields of the message it stood in."""
    around = rest(item, "type", "role", "content", "status")
    return {**extras, AROUND: around} if around else extras


_CONTENT = "content:"


def content_opaque(part: Mapping[str, Any]) -> Opaque:
    """A content part of an unknown type. Its ``type`` is marked, because an opaque part may
    also be a whole item, and the two go to different places."""
    return Opaque(DIALECT, f"{_CONTENT}{part.get('type', '')}", part)


def is_content(part: Opaque) -> bool:
    """Whether an opaque part belongs inside a message and is no item of its own."""
    return part.type.startswith(_CONTENT)


def output_content(part: Text | Refusal, *, citations: bool = True) -> dict[str, Any]:
    """The content part of an assistant's words, without its extras."""
    if isinstance(part, Refusal):
        return {"type": "refusal", "refusal": part.text}
    content: dict[str, Any] = {"type": "output_text", "text": part.text}
    if citations:
        content["annotations"] = [dict(citation) for citation in part.citations]
    return content


# ------------------------------------------------------------------------------- media


def image_content(part: Media) -> dict[str, Any]:
    """``input_image``, without the part's extras."""
    content: dict[str, Any] = {"type": "input_image"}
    if isinstance(part.source, FileRef):
        content["file_id"] = part.source.file_id
    else:
        content["image_url"] = data_url.write(part.source)
    if part.detail is not None:
        content["detail"] = part.detail
    return content


def file_content(part: Media) -> dict[str, Any]:
    """``input_file``, without the part's extras."""
    content: dict[str, Any] = {"type": "input_file"}
    match part.source:
        case FileRef(file_id):
            content["file_id"] = file_id
        case Url(url):
            content["file_url"] = url
        case Inline():
            content["file_data"] = data_url.write(part.source)
    if part.filename is not None:
        content["filename"] = part.filename
    if part.detail is not None:
        content["detail"] = part.detail
    return content


# ------------------------------------------------------------------------------- usage


def usage_of(raw: object) -> Usage | None:
    """A usage object in disjoint classes. Cached and written tokens are parts of
    ``input_tokens``, reasoning is a part of ``output_tokens``; a part larger than its whole is
    clamped and marks the usage invalid."""
    return None if raw is None else _plain_usage(raw) or _any_usage(raw)


def _plain_usage(raw: Any) -> Usage | None:
    """The counts where only totals came, both of them and in bounds; else ``None``."""
    try:
        total, output = raw["input_tokens"], raw["output_tokens"]
    except (KeyError, TypeError):
        return None
    if (
        not (type(total) is type(output) is int)
        or not 0 <= total <= MAX_TOKENS >= output >= 0
        or raw.get("input_tokens_details")
        or raw.get("output_tokens_details")
    ):
        return None
    return Usage(total, None, None, output, None, None, raw)


def _any_usage(raw: object) -> Usage:
    counts = Counts(raw)
    total = counts.take("input_tokens")
    read = counts.part(total, "cached_tokens", "input_tokens_details")
    fresh = None if total is None else total - (read or 0)
    written = counts.part(fresh, "cache_write_tokens", "input_tokens_details")
    output = counts.take("output_tokens")
    reasoning = counts.part(output, "reasoning_tokens", "output_tokens_details")
    return Usage(
        None if fresh is None else fresh - (written or 0),
        read,
        written,
        output,
        reasoning,
        raw=raw if isinstance(raw, dict) else None,
        invalid=counts.invalid,
    )


def usage_object(usage: Usage) -> dict[str, Any]:
    """The usage object of an answer that another protocol gave.

    The details are required by the API's schema, so an unknown detail is written as 0 here;
    an unknown total never is (the caller of this leaves the whole object out).
    """
    prompt, output = usage.prompt or 0, usage.output or 0
    return {
        "input_tokens": prompt,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read or 0,
            "cache_write_tokens": usage.cache_write or 0,
        },
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
        "total_tokens": prompt + output,
    }
