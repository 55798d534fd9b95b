"""What an answer of the Messages API is made of, streamed or whole: written once for both.

Pure functions from canonical values to the protocol's fields. Must not know which of the two
it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from adapters.canonical.events import Finished, Usage
from adapters.canonical.parts import (
    NO_EXTRAS,
    Dialect,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
)
from adapters.wire.anthropic_messages import (
    NAME,
    RAW_REASONS,
    Block,
    block_of,
    input_of,
    thinking_block,
    tool_use_block,
    usage_object,
)
from gateway.northbound.anthropic_messages import seal
from gateway.northbound.base import Envelope

UNPARSED = "unparsed_arguments"
"""The key of a tool call's arguments that are no JSON object: ``input`` must be one."""


def message_id(upstream: str | None, dialect: Dialect | None, own: str) -> str:
    """The provider's id in the same dialect unless it is empty, else ours (promise 3)."""
    return upstream if upstream and dialect == NAME else own


def model_name(upstream: str | None, envelope: Envelope) -> str:
    """The model that the caller is told."""
    return envelope.alias if envelope.report_model == "alias" or not upstream else upstream


def usage(counted: Usage | None, dialect: Dialect | None) -> Mapping[str, Any]:
    """The counts: the provider's own object in the same dialect, unless they made no sense."""
    if counted is not None and dialect == NAME and counted.raw is not None and not counted.invalid:
        return counted.raw
    return usage_object(counted)


def ending(finished: Finished, dialect: Dialect | None) -> dict[str, Any]:
    """``stop_reason`` and ``stop_sequence``: the provider's own word in the same dialect, and
    for a reason that has none here the other provider's, never a plain ``end_turn``."""
    raw = finished.raw_reason
    if dialect == NAME and raw is not None:
        shown = raw
    else:
        shown = RAW_REASONS.get(finished.reason, raw or finished.reason)
    return {"stop_reason": shown, "stop_sequence": finished.stop}


def own_extras(extras: Mapping[str, Any], dialect: Dialect | None) -> Mapping[str, Any]:
    """What the protocol adds to an answer, if the provider spoke it."""
    return extras if dialect == NAME else {}


def is_shown(part: Part) -> bool:
    """Whether the protocol has a block for ``part``; foreign opaque ones have none."""
    return isinstance(part, _WORDS) or (isinstance(part, Opaque) and part.dialect == NAME)


_WORDS = (Text, Refusal, Thinking, ToolCall)


def block(part: Part, *, own: bool) -> Block:
    """The whole block of a part that :func:`is_shown`.

    :param own: the provider spoke this protocol, so what it added is shown as it is.
    """
    match part:
        case Text():
            return {**text_block(part, own=own), **(part.extras if own else {})}
        case Thinking():
            return thinking_block(part) if part.dialect == NAME else seal.block(part)
        case ToolCall():
            return call_block(part, own=own)
        case _:
            return block_of(part)


def text_block(part: Text, *, own: bool) -> Block:
    """A text block with what it cites."""
    cited = citations(part.citations, part.text, own=own) if part.citations else None
    text: Block = {"type": "text", "text": part.text}
    return {**text, "citations": cited} if cited else text


def call_block(part: ToolCall, *, own: bool) -> Block:
    """A ``tool_use`` block; free-form input of a custom tool is one string in an object."""
    shown = part if own else replace(part, extras=NO_EXTRAS)
    if part.kind == "custom":
        return tool_use_block(shown, {"input": part.arguments})
    given = input_of(part.arguments)
    return tool_use_block(shown, {UNPARSED: part.arguments} if given is None else given)


def citations(
    cited: Iterable[Mapping[str, Any]], text: str, *, own: bool
) -> list[Mapping[str, Any]]:
    """Citations in this protocol's form. Of other protocols only web pages have one; their
    ``encrypted_index`` is empty, by which they are known when they come back."""
    if own:
        return list(cited)
    return [_page(one, text) for one in cited if one.get("type") == "url_citation"]


def _page(cited: Mapping[str, Any], text: str) -> Mapping[str, Any]:
    inner = cited.get("url_citation")
    page = inner if isinstance(inner, Mapping) else cited
    start, end = page.get("start_index"), page.get("end_index")
    places = isinstance(start, int) and isinstance(end, int)
    return {
        "type": "web_search_result_location",
        "url": page.get("url", ""),
        "title": page.get("title"),
        "cited_text": text[start:end] if places else "",
        "encrypted_index": "",
    }
