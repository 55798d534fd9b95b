"""The body of ``POST /v1/messages`` as callers send it, checked by Pydantic.

Typed dicts, so that absent, ``null`` and empty stay three things; unknown fields and unknown
block types stay in place and are sorted out by
:mod:`gateway.northbound.anthropic_messages.request`. Strict: ``"5"`` is no number. Shapes after
the vendor's ``MessageCreateParams``. Must not know the canonical words.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Required, TypeVar

from pydantic import ConfigDict, Discriminator, Field, Tag, TypeAdapter, with_config
from typing_extensions import TypedDict

from gateway.northbound.base import MOST_TOKENS

_OPEN = with_config(ConfigDict(extra="allow", strict=True, allow_inf_nan=False, defer_build=True))

T = TypeVar("T")
FastList = Annotated[list[T], Field(fail_fast=True)]
"""A list whose check stops at the first bad item, so that a million bad items cost as one."""

NonEmpty = Annotated[str, Field(min_length=1)]
JsonObject = dict[str, Any]


def _has_text(value: Any) -> str:
    return "string" if isinstance(value, str) else "list"


def _text_or(blocks: Any) -> Any:
    """Content that is one string or a list of blocks, errors under the form that was sent."""
    return Annotated[
        Annotated[str, Tag("string")] | Annotated[blocks, Tag("list")], Discriminator(_has_text)
    ]


def _type_or_other(*known: str) -> Discriminator:
    """Choose by ``type``; whatever is not among ``known`` is the protocol's future."""

    def choose(value: Any) -> str:
        kind = value.get("type") if isinstance(value, dict) else None
        return kind if kind in known else "other"

    return Discriminator(choose)


@_OPEN
class Other(TypedDict, total=False):
    """A block, source or tool that only providers of this protocol understand."""

    type: Required[NonEmpty]


# --------------------------------------------------------------------------- blocks


@_OPEN
class TextBlock(TypedDict, total=False):
    type: Required[Literal["text"]]
    text: Required[str]
    citations: FastList[JsonObject] | None


@_OPEN
class Base64Source(TypedDict, total=False):
    type: Required[Literal["base64"]]
    media_type: Required[NonEmpty]
    data: Required[str]


@_OPEN
class TextSource(TypedDict, total=False):
    type: Required[Literal["text"]]
    media_type: Required[NonEmpty]
    data: Required[str]


@_OPEN
class UrlSource(TypedDict, total=False):
    type: Required[Literal["url"]]
    url: Required[NonEmpty]


@_OPEN
class FileSource(TypedDict, total=False):
    type: Required[Literal["file"]]
    file_id: Required[NonEmpty]


Source = Annotated[
    Annotated[Base64Source, Tag("base64")]
    | Annotated[TextSource, Tag("text")]
    | Annotated[UrlSource, Tag("url")]
    | Annotated[FileSource, Tag("file")]
    | Annotated[Other, Tag("other")],
    _type_or_other("base64", "text", "url", "file"),
]


@_OPEN
class ImageBlock(TypedDict, total=False):
    type: Required[Literal["image"]]
    source: Required[Source]


@_OPEN
class DocumentBlock(TypedDict, total=False):
    type: Required[Literal["document"]]
    source: Required[Source]
    title: str | None


@_OPEN
class ThinkingBlock(TypedDict, total=False):
    type: Required[Literal["thinking"]]
    thinking: Required[str]
    signature: str | None


@_OPEN
class RedactedThinkingBlock(TypedDict, total=False):
    type: Required[Literal["redacted_thinking"]]
    data: Required[str]


@_OPEN
class ToolUseBlock(TypedDict, total=False):
    type: Required[Literal["tool_use"]]
    id: Required[NonEmpty]
    name: Required[NonEmpty]
    input: Required[JsonObject]


ResultBlock = Annotated[
    Annotated[TextBlock, Tag("text")]
    | Annotated[ImageBlock, Tag("image")]
    | Annotated[DocumentBlock, Tag("document")]
    | Annotated[Other, Tag("other")],
    _type_or_other("text", "image", "document"),
]


@_OPEN
class ToolResultBlock(TypedDict, total=False):
    type: Required[Literal["tool_result"]]
    tool_use_id: Required[NonEmpty]
    content: _text_or(FastList[ResultBlock]) | None  # type: ignore[valid-type]
    is_error: bool | None


Block = Annotated[
    Annotated[TextBlock, Tag("text")]
    | Annotated[ImageBlock, Tag("image")]
    | Annotated[DocumentBlock, Tag("document")]
    | Annotated[ThinkingBlock, Tag("thinking")]
    | Annotated[RedactedThinkingBlock, Tag("redacted_thinking")]
    | Annotated[ToolUseBlock, Tag("tool_use")]
    | Annotated[ToolResultBlock, Tag("tool_result")]
    | Annotated[Other, Tag("other")],
    _type_or_other(
        "text",
        "image",
        "document",
        "thinking",
        "redacted_thinking",
        "tool_use",
        "tool_result",
    ),
]


@_OPEN
class Message(TypedDict, total=False):
    role: Required[Literal["user", "assistant", "system"]]
    content: Required[_text_or(FastList[Block])]  # type: ignore[valid-type]


# --------------------------------------------------------------------------- tools


@_OPEN
class Function(TypedDict, total=False):
    type: Literal["custom"] | None
    name: Required[NonEmpty]
    description: str | None
    input_schema: Required[JsonObject]
    strict: bool | None


def _tool_type(value: Any) -> str:
    given = value.get("type") if isinstance(value, dict) else None
    return "function" if given in (None, "custom") else "other"


Tool = Annotated[
    Annotated[Function, Tag("function")] | Annotated[Other, Tag("other")],
    Discriminator(_tool_type),
]


@_OPEN
class ToolChoice(TypedDict, total=False):
    type: Required[NonEmpty]
    name: NonEmpty | None
    disable_parallel_tool_use: bool | None


# --------------------------------------------------------------------------- the rest


@_OPEN
class Thinking(TypedDict, total=False):
    type: Required[NonEmpty]
    budget_tokens: int | None
    display: NonEmpty | None


@_OPEN
class SchemaFormat(TypedDict, total=False):
    type: Required[Literal["json_schema"]]
    schema: Required[JsonObject]


Format = Annotated[
    Annotated[SchemaFormat, Tag("json_schema")] | Annotated[Other, Tag("other")],
    _type_or_other("json_schema"),
]


@_OPEN
class OutputConfig(TypedDict, total=False):
    effort: NonEmpty | None
    format: Format | None


@_OPEN
class Metadata(TypedDict, total=False):
    user_id: str | None


@_OPEN
class Counted(TypedDict, total=False):
    """What both endpoints take: a message to be made, or to be counted."""

    model: Required[NonEmpty]
    messages: Required[FastList[Message]]
    system: _text_or(FastList[TextBlock]) | None  # type: ignore[valid-type]
    tools: FastList[Tool] | None
    tool_choice: ToolChoice | None
    thinking: Thinking | None
    output_config: OutputConfig | None
    output_format: Format | None
    cache_control: JsonObject | None
    temperature: Annotated[float, Field(ge=0, le=1)] | None
    top_p: Annotated[float, Field(ge=0, le=1)] | None
    top_k: Annotated[int, Field(ge=0)] | None
    stop_sequences: FastList[str] | None
    stream: bool | None
    metadata: Metadata | None
    service_tier: NonEmpty | None


@_OPEN
class Body(Counted, total=False):
    """Every field that :mod:`~gateway.northbound.anthropic_messages.fields` maps by itself."""

    max_tokens: Required[Annotated[int, Field(ge=0, le=MOST_TOKENS)]]


BODY = TypeAdapter(Body)
COUNT_BODY = TypeAdapter(Counted)
