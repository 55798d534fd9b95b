"""Anthropic Messages from the provider's side: reading the request."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from adapters.simulator.meter import tokens
from adapters.simulator.reading import Conversation, inline
from adapters.simulator.voice import argument_text
from adapters.simulator.words import Ask, Body, Media, ToolSpec
from adapters.wire.json import dumps

_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
_LIFETIMES = {"5m": 300, "1h": 3600}


def read(body: Body) -> Ask:
    """What is asked."""
    talk = Conversation()
    system = body.get("system")
    if system:
        talk.say("system", _content(system)[0])
    for message in body["messages"]:
        _hear(talk, message)
    tools = tuple(
        ToolSpec(tool["name"], tool["input_schema"])
        for tool in body.get("tools") or ()
        if "input_schema" in tool
    )
    choice = body.get("tool_choice") or {"type": "auto"}
    output = (body.get("output_config") or {}).get("format") or body.get("output_format") or {}
    thinking = (body.get("thinking") or {}).get("type")
    count = max(talk.tokens + sum(tokens(argument_text(tool.schema)) for tool in tools), 1)
    return Ask(
        model=body["model"],
        stream=bool(body.get("stream")),
        tools=tools,
        choice=_CHOICES.get(choice["type"]) or f"={choice['name']}",
        parallel=not choice.get("disable_parallel_tool_use"),
        schema=output.get("schema"),
        thinks=thinking in ("enabled", "adaptive", "between_tools"),
        limit=body.get("max_tokens"),
        stops=tuple(body.get("stop_sequences") or ()),
        tokens=count,
        cached=tuple(_prefixes(body, count)),
        **talk.heard(),
    )


def _hear(talk: Conversation, message: Mapping[str, Any]) -> None:
    content = message["content"]
    text, media = _content(content)
    blocks = [] if isinstance(content, str) else content
    results = [block for block in blocks if block["type"] == "tool_result"]
    for block in results:
        inner, seen = _content(block.get("content") or "")
        talk.result(block["tool_use_id"], inner, seen, is_error=bool(block.get("is_error")))
    if not results:
        talk.say(message["role"], text, media)
    elif text:
        talk.remark(text)
    for block in blocks:
        if block["type"] == "tool_use":
            talk.call(block["id"], block["name"], argument_text(block["input"]))
        elif block["type"] == "thinking":
            talk.tokens += tokens(block["thinking"])


def _content(content: Any) -> tuple[str, list[Media]]:
    if isinstance(content, str):
        return content, []
    texts = [block["text"] for block in content if block["type"] == "text"]
    media = [
        _medium(block["type"], block["source"])
        for block in content
        if block["type"] in ("image", "document")
    ]
    return "\n".join(texts), media


def _medium(kind: str, source: Mapping[str, Any]) -> Media:
    match source["type"]:
        case "base64":
            return inline(kind, source["media_type"], source["data"])
        case "text":
            return Media(kind, source["media_type"], len(source["data"].encode()))
        case "url":
            return Media(kind, source["url"], None)
        case _:
            return Media(kind, str(source.get("file_id", "given content")), None)


def _prefixes(body: Body, whole: int) -> Iterator[tuple[str, int, int]]:
    """Every prefix that ends in a ``cache_control`` mark, in the vendor's order: tools, system,
    messages. A mark on the request itself stands at the very end."""
    digest = hashlib.sha256(body["model"].encode())
    size = 0
    for block in _blocks(body):
        control = block.get("cache_control")
        bare = dumps({key: value for key, value in block.items() if key != "cache_control"})
        digest.update(bare)
        size += tokens(str(block.get("text", "")) or bare.decode())
        if control:
            yield digest.hexdigest(), min(size, whole), _lifetime(control)
    if body.get("cache_control"):
        yield digest.hexdigest(), whole, _lifetime(body["cache_control"])


def _lifetime(control: Mapping[str, Any]) -> int:
    return _LIFETIMES.get(str(control.get("ttl")), 300)


def _blocks(body: Body) -> Iterator[Mapping[str, Any]]:
    yield from body.get("tools") or ()
    for content in (body.get("system") or (), *(one["content"] for one in body["messages"])):
        if isinstance(content, str):
            yield {"type": "text", "text": content}
        else:
            yield from content
