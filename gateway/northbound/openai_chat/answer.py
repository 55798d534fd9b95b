"""What a chat answer is made of, streamed or whole: written once for both.

Pure functions from canonical values to OpenAI's fields. Must not know which of the two it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from adapters.canonical.events import Reason, Usage
from adapters.canonical.parts import Dialect, Thinking, ToolCall
from adapters.wire import openai_chat

REPORTED = ("service_tier", "system_fingerprint")
"""Fields of the provider's own that the protocol has a place for, whatever the dialect."""

SECTION_BREAK = "\n\n"
"""Between two sections of reasoning, where people read them as one text."""


def model_name(upstream: str | None, alias: str, report: str) -> str:
    """The model that the caller is told."""
    return alias if report == "alias" or not upstream else upstream


def answer_id(upstream: str | None, dialect: Dialect | None, own: str) -> str:
    """The provider's id in the same dialect unless it is empty, else ours (promise 3)."""
    return upstream if upstream and dialect == "openai-chat" else own


def usage_object(usage: Usage | None, dialect: Dialect | None) -> Mapping[str, Any] | None:
    """The counts: the provider's own object in the same dialect, unless they made no sense."""
    if usage is None:
        return None
    if dialect == "openai-chat" and usage.raw is not None and not usage.invalid:
        return usage.raw
    return openai_chat.write_usage(usage)


def finish(reason: Reason, raw: str | None, *, refused: bool, legacy: bool) -> dict[str, Any]:
    """``finish_reason``, and the provider's own word where ours says less.

    :param refused: the message has a ``refusal``, which says it better than the reason could.
    :param legacy: the caller sent ``functions``.
    """
    shown = openai_chat.WRITTEN_REASONS[reason]
    if reason == "refusal" and refused:
        shown = "stop"
    if legacy and shown == "tool_calls":
        shown = "function_call"
    if reason in openai_chat.PLAIN_REASONS or raw is None or raw == shown:
        return {"finish_reason": shown}
    return {"finish_reason": shown, "native_finish_reason": raw}


def call_object(call: ToolCall) -> dict[str, Any]:
    """A tool call as it stands in a message, without its index in a stream."""
    if call.kind == "custom":
        custom = {"name": call.name, "input": call.arguments}
        return {"id": call.call_id, "type": "custom", "custom": custom}
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.call_id, "type": "function", "function": function}


def shown_reasoning(thinking: Thinking) -> str:
    """The text of ``thinking`` for people."""
    if thinking.summary is not None and len(thinking.summary) > 1:
        return SECTION_BREAK.join(thinking.summary)
    return thinking.text


def citations(cited: Iterable[Mapping[str, Any]], start: int, end: int) -> dict[str, Any]:
    """``annotations`` for what cites a web page, ``citations`` for all else.

    The protocol knows only ``url_citation``, and clients refuse others there; what has no URL
    stands unchanged in a field of its own.

    :param start: where the cited text begins in the message's content, in characters.
    :param end: where it ends; used where the provider gave no place.
    """
    annotations: list[Mapping[str, Any]] = []
    others: list[Mapping[str, Any]] = []
    for citation in cited:
        annotation = _annotation(citation, start, end)
        (others if annotation is None else annotations).append(annotation or citation)
    found: dict[str, Any] = {}
    if annotations:
        found["annotations"] = annotations
    if others:
        found["citations"] = others
    return found


def _annotation(citation: Mapping[str, Any], start: int, end: int) -> Mapping[str, Any] | None:
    if isinstance(citation.get("url_citation"), Mapping):
        return citation  # A chat provider's own.
    url = citation.get("url")
    if not isinstance(url, str):
        return None
    place = {"start_index": start, "end_index": end}
    if citation.get("type") == "url_citation":
        # OpenAI's Responses API counts within the part, chat within the message.
        for name in place:
            given = citation.get(name)
            if isinstance(given, int):
                place[name] = start + given
    title = citation.get("title")
    return {
        "type": "url_citation",
        "url_citation": {"url": url, "title": title if isinstance(title, str) else "", **place},
    }
