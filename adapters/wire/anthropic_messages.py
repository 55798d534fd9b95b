"""The Messages API's JSON, as both doors need it: content blocks, usage, stop reasons.

Field names and shapes after the vendor's published types. Turns single blocks into canonical
parts and back, without loss: what the canonical words do not know stays in ``extras`` or in an
``Opaque`` part. Must not know requests as a whole, nor who is asking.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from adapters.canonical.events import Reason, Usage
from adapters.canonical.parts import (
    NO_EXTRAS,
    Dialect,
    FileRef,
    Inline,
    Media,
    Opaque,
    Part,
    Refusal,
    Source,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Url,
)
from adapters.wire.json import dumps, loads_exact
from adapters.wire.usage import Counts

NAME: Dialect = "anthropic-messages"

Block = dict[str, Any]

# --------------------------------------------------------------------------- stop reasons

STOP_REASONS: Mapping[str, Reason] = {
    "end_turn": "stop",
    "max_tokens": "length",
    "stop_sequence": "stop_sequence",
    "tool_use": "tool_calls",
    "pause_turn": "pause",
    "compaction": "pause",
    "refusal": "refusal",
    "model_context_window_exceeded": "context_window",
}
"""Every ``stop_reason`` that the vendor's types list; any other is ``unknown`` (N21)."""

RAW_REASONS: Mapping[Reason, str] = {
    "stop": "end_turn",
    "stop_sequence": "stop_sequence",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "context_window": "model_context_window_exceeded",
    "content_filter": "refusal",
    "refusal": "refusal",
    "pause": "pause_turn",
}
"""The way back, for answers of other protocols. ``unknown`` has none: it is no success here."""


def reason_of(raw: str) -> Reason:
    """The canonical reason for a ``stop_reason``; never a plain ``stop`` for an unknown one.

    :raises ValueError: where it is no text.
    """
    if not isinstance(raw, str):
        raise ValueError("a stop_reason is no text")
    return STOP_REASONS.get(raw, "unknown")


# --------------------------------------------------------------------------- usage


_APART = ("compaction", "advisor_message")
"""Iterations that are charged for and that the usage object's own counts leave out; all others
are parts of them."""

_CLASSES = ("input", "cache_read", "cache_write", "output", "reasoning", "cache_write_1h")


def usage_of(raw: Mapping[str, Any]) -> Usage:
    """All that a usage object says was used: its own counts and those of iterations that these
    leave out. What another model used, as an advisor does, counts like this model's own."""
    usage = _counted(raw)
    iterations = raw.get("iterations")
    if not isinstance(iterations, list) or None in (usage.input, usage.output):
        return usage
    apart = [one for one in iterations if isinstance(one, dict) and one.get("type") in _APART]
    return _summed([usage, *map(_counted, apart)]) if apart else usage


def _counted(raw: Mapping[str, Any]) -> Usage:
    """One object's counts as disjoint, validated classes. ``input_tokens`` already leaves out
    what was read from or written to the cache, so the classes are taken as they stand."""
    counts = Counts(raw)
    written = counts.take("cache_creation_input_tokens")
    if written is None and isinstance(raw.get("cache_creation"), dict):
        by_life = [
            counts.detail(f"ephemeral_{n}_input_tokens", "cache_creation") for n in ("5m", "1h")
        ]
        written = sum(number or 0 for number in by_life)
    output = counts.take("output_tokens")
    return Usage(
        counts.take("input_tokens"),
        counts.take("cache_read_input_tokens"),
        written,
        output,
        counts.part(output, "thinking_tokens", "output_tokens_details"),
        counts.part(written, "ephemeral_1h_input_tokens", "cache_creation"),
        raw,
        counts.invalid,
    )


def _summed(usages: Sequence[Usage]) -> Usage:
    """The first one with what the others used beside it; a class that none has stays unknown."""

    def total(name: str) -> int | None:
        found = [number for one in usages if (number := getattr(one, name)) is not None]
        return sum(found) if found else None

    return Usage(
        **{name: total(name) for name in _CLASSES},
        raw=usages[0].raw,
        invalid=any(one.invalid for one in usages),
        largest=max(one.prompt or 0 for one in usages),
    )


def usage_object(usage: Usage | None) -> dict[str, Any]:
    """A usage object for counts of any origin. The two counts that the protocol requires are 0
    where unknown; every other unknown count is left out."""
    known = usage if usage is not None else Usage()
    written: dict[str, Any] = {
        "input_tokens": known.input or 0,
        "output_tokens": known.output or 0,
    }
    if known.cache_write is not None:
        written["cache_creation_input_tokens"] = known.cache_write
    if known.cache_read is not None:
        written["cache_read_input_tokens"] = known.cache_read
    if known.cache_write is not None and known.cache_write_1h is not None:
        written["cache_creation"] = {
            "ephemeral_5m_input_tokens": known.cache_write - known.cache_write_1h,
            "ephemeral_1h_input_tokens": known.cache_write_1h,
        }
    if known.reasoning is not None:
        written["output_tokens_details"] = {"thinking_tokens": known.reasoning}
    return written


# --------------------------------------------------------------------------- JSON


def input_of(arguments: str) -> dict[str, Any] | None:
    """A tool call's raw arguments as the object that ``input`` must be; none at all is ``{}``.

    ``None`` where they are no JSON object: the caller of this function decides what then.
    """
    if not arguments.strip():
        return {}
    try:
        found = loads_exact(arguments.encode())
    except ValueError:  # no JSON, or a lone surrogate
        return None
    return found if isinstance(found, dict) else None


# --------------------------------------------------------------------------- block -> part


def part_of(block: Mapping[str, Any]) -> Part:
    """The part that a content block means, from an answer or from a request.

    :raises ValueError: where a block lacks what its type demands.
    """
    kind = block.get("type")
    if not isinstance(kind, str):
        raise ValueError("a content block has no type")
    reader = _READERS.get(kind)
    try:
        return reader(block) if reader is not None else Opaque(NAME, kind, dict(block))
    except (KeyError, TypeError, AttributeError) as lacking:
        raise ValueError(f"a {kind} block lacks or mistypes {lacking}") from lacking


def _text(block: Mapping[str, Any]) -> Part:
    cited = block.get("citations")
    return Text(
        _string(block, "text"),
        citations=_objects(cited, "citations") if cited else (),
        extras=_rest(block, "type", "text", "citations"),
    )


def _thinking(block: Mapping[str, Any]) -> Part:
    # A stream opens with an empty signature as a placeholder: empty means "not signed (yet)".
    return Thinking(
        _string(block, "thinking"),
        signature=_optional_string(block, "signature") or None,
        dialect=NAME,
        extras=_rest(block, "type", "thinking", "signature"),
    )


def _redacted(block: Mapping[str, Any]) -> Part:
    return Thinking(
        "", sealed=_string(block, "data"), dialect=NAME, extras=_rest(block, "type", "data")
    )


def _tool_use(block: Mapping[str, Any]) -> Part:
    given = block.get("input")
    if given is not None and not isinstance(given, dict):
        raise TypeError("input")
    return ToolCall(
        _string(block, "id"),
        _string(block, "name"),
        dumps(given if given is not None else {}).decode(),
        extras=_rest(block, "type", "id", "name", "input"),
    )


def _tool_result(block: Mapping[str, Any]) -> Part:
    return ToolResult(
        _string(block, "tool_use_id"),
        tuple(_result_content(block.get("content"))),
        is_error=block.get("is_error"),
        extras=_rest(block, "type", "tool_use_id", "content", "is_error"),
    )


def _result_content(content: Any) -> list[Text | Media | Opaque]:
    if content is None:
        return []
    if isinstance(content, str):
        return [Text(content)]
    parts = [part_of(item) for item in content]
    return [
        part if isinstance(part, Text | Media | Opaque) else Opaque(NAME, item["type"], item)
        for part, item in zip(parts, content, strict=True)
    ]


def _image(block: Mapping[str, Any]) -> Part:
    source = _source(block["source"])
    if source is None:
        return Opaque(NAME, "image", dict(block))
    return Media("image", source, extras=_media_extras(block, "type", "source"))


def _document(block: Mapping[str, Any]) -> Part:
    source = _source(block["source"])
    if source is None:
        return Opaque(NAME, "document", dict(block))
    return Media(
        "file",
        source,
        filename=_optional_string(block, "title"),
        extras=_media_extras(block, "type", "source", "title"),
    )


def _media_extras(block: Mapping[str, Any], *known: str) -> Mapping[str, Any]:
    """The extras of media, those of its source under ``source``."""
    within = _rest(block["source"], *SOURCE_FIELDS)
    extras = _rest(block, *known)
    return {**extras, "source": within} if within else extras


SOURCE_FIELDS = ("type", "media_type", "data", "url", "file_id")


def _source(source: Mapping[str, Any]) -> Source | None:
    """The canonical source; ``None`` for the ones that only this protocol has."""
    match source.get("type"):
        case "base64":
            return Inline(_string(source, "media_type"), _string(source, "data"))
        case "text":
            plain = _string(source, "data").encode()
            return Inline(_string(source, "media_type"), base64.b64encode(plain).decode())
        case "url":
            return Url(_string(source, "url"))
        case "file":
            return FileRef(_string(source, "file_id"))
        case _:
            return None


_READERS: Mapping[str, Callable[[Mapping[str, Any]], Part]] = {
    "text": _text,
    "thinking": _thinking,
    "redacted_thinking": _redacted,
    "tool_use": _tool_use,
    "tool_result": _tool_result,
    "image": _image,
    "document": _document,
}
"""The block types that have a canonical part; every other block is an ``Opaque``."""


def _string(block: Mapping[str, Any], name: str) -> str:
    value = block[name]
    if not isinstance(value, str):
        raise TypeError(name)
    return value


def _objects(value: Any, name: str) -> tuple[dict[str, Any], ...]:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise TypeError(name)
    return tuple(value)


def _optional_string(block: Mapping[str, Any], name: str) -> str | None:
    return None if block.get(name) is None else _string(block, name)


def _rest(block: Mapping[str, Any], *known: str) -> Mapping[str, Any]:
    rest = {name: value for name, value in block.items() if name not in known}
    return rest or NO_EXTRAS


# --------------------------------------------------------------------------- part -> block


def block_of(part: Part) -> Block:
    """The block of one part of an answer, its own ``extras`` included.

    :raises ValueError: for a tool call whose arguments are no JSON object, and for parts that
        no answer holds; check with :func:`input_of` first.
    """
    match part:
        case Text():
            cited = {"citations": list(part.citations)} if part.citations else {}
            return {"type": "text", "text": part.text, **cited, **part.extras}
        case Refusal():
            return {"type": "text", "text": part.text}
        case Thinking():
            return thinking_block(part)
        case ToolCall():
            given = input_of(part.arguments)
            if given is None:
                raise ValueError("the arguments of a tool call are no JSON object")
            return tool_use_block(part, given)
        case Opaque():
            return dict(part.data)
        case _:
            raise ValueError(f"no answer holds a {type(part).__name__}")


def thinking_block(part: Thinking) -> Block:
    """A ``thinking`` block, or ``redacted_thinking`` for a sealed part."""
    if part.sealed is not None:
        return {"type": "redacted_thinking", "data": part.sealed, **part.extras}
    signature = part.signature if part.signature is not None else ""
    return {"type": "thinking", "thinking": part.text, "signature": signature, **part.extras}


def tool_use_block(part: ToolCall, given: Mapping[str, Any]) -> Block:
    """A ``tool_use`` block with ``given`` as its ``input``."""
    return {
        "type": "tool_use",
        "id": part.call_id,
        "name": part.name,
        "input": given,
        **part.extras,
    }
