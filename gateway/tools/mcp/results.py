"""From an MCP tool's result to an outcome. Reads the SDK's objects by their fields, so that it
need not import the SDK."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from adapters.canonical.parts import Inline, Media, Text
from gateway.tools.base import ToolOutcome
from gateway.tools.caps import capped_outcome

MOST_MEDIA = 10_000_000
"""Characters of base64 in one result; what is beyond is named, not passed on."""
_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


def outcome(result: Any, cap: int) -> ToolOutcome:
    """What a call came to: all blocks in their order, text cut to ``cap`` characters."""
    room = MOST_MEDIA
    parts: list[Text | Media] = []
    for block in result.content:
        part = _part(block)
        if isinstance(part, Media) and isinstance(part.source, Inline):
            room -= len(part.source.data)
            part = part if room >= 0 else Text(f"[{part.source.media_type}, too large to be shown]")
        parts.append(part)
    structured = result.structured_content
    if not parts:
        shown = "(no content)" if structured is None else json.dumps(structured, ensure_ascii=False)
        parts = [Text(shown)]
    is_error = bool(result.is_error)
    return capped_outcome(ToolOutcome(tuple(parts), is_error, structured), cap)


def _part(block: Any) -> Text | Media:
    reader = _READERS.get(block.type)
    return Text(f"[a block of type {block.type!r}]") if reader is None else reader(block)


def _text(block: Any) -> Text:
    return Text(block.text)


def _image(block: Any) -> Text | Media:
    if block.mime_type not in _PICTURES:
        return Text(f"[a picture of type {block.mime_type}]")
    return Media("image", Inline(block.mime_type, block.data))


def _audio(block: Any) -> Media:
    return Media("audio", Inline(block.mime_type, block.data))


def _link(block: Any) -> Text:
    """A link is named and never followed."""
    about = f": {block.description}" if block.description else ""
    return Text(f"[{block.title or block.name} <{block.uri}>{about}]")


def _embedded(block: Any) -> Text | Media:
    resource = block.resource
    text = getattr(resource, "text", None)
    if text is not None:
        return Text(text)
    if resource.mime_type in _PICTURES:
        return Media("image", Inline(resource.mime_type, resource.blob))
    return Text(f"[{resource.uri}, {resource.mime_type or 'bytes'}]")


_READERS: Mapping[str, Any] = {
    "text": _text,
    "image": _image,
    "audio": _audio,
    "resource_link": _link,
    "resource": _embedded,
}
