"""The body of ``POST /v1/responses`` as callers send it, checked by Pydantic.

Typed dicts, so that absent, ``null`` and empty stay three things. Unknown fields, item types,
content types and tools stay in place: a provider of the same dialect may know them. Strict:
``"5"`` is no number. Ranges are OpenAI's own (the API reference of responses). Must not know
the canonical words.
"""

from __future__ import annotations

from collections.abc import Callable
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


def _text_or(shape: Any) -> Any:
    """A string or ``shape``, each error under the form that was sent."""

    def form(value: Any) -> str:
        return "string" if isinstance(value, str) else "other"

    return Annotated[
        Annotated[str, Tag("string")] | Annotated[shape, Tag("other")], Discriminator(form)
    ]


def _type_among(*known: str, absent: str = "other") -> Callable[[Any], str]:
    """A discriminator: ``type`` where it is ``known``, else ``other``."""

    def of(value: Any) -> str:
        kind = value.get("type", absent) if isinstance(value, dict) else absent
        return kind if kind in known else "other"

    return of


# --------------------------------------------------------------------------- content


@_OPEN
class TextContent(TypedDict, total=False):
    type: Required[str]
    text: Required[str]
    annotations: FastList[JsonObject] | None


@_OPEN
class RefusalContent(TypedDict, total=False):
    type: Required[Literal["refusal"]]
    refusal: Required[str]


@_OPEN
class ImageContent(TypedDict, total=False):
    type: Required[Literal["input_image"]]
    image_url: NonEmpty | None
    file_id: NonEmpty | None
    detail: str | None


@_OPEN
class FileContent(TypedDict, total=False):
    type: Required[Literal["input_file"]]
    file_data: NonEmpty | None
    file_id: NonEmpty | None
    file_url: NonEmpty | None
    filename: str | None
    detail: str | None


@_OPEN
class InputAudio(TypedDict, total=False):
    data: Required[NonEmpty]
    format: Required[NonEmpty]


@_OPEN
class AudioContent(TypedDict, total=False):
    type: Required[Literal["input_audio"]]
    input_audio: Required[InputAudio]


@_OPEN
class OtherTyped(TypedDict, total=False):
    """Anything with a type that the canonical words do not know."""

    type: Required[NonEmpty]


Content = Annotated[
    Annotated[TextContent, Tag("input_text")]
    | Annotated[TextContent, Tag("output_text")]
    | Annotated[TextContent, Tag("text")]
    | Annotated[RefusalContent, Tag("refusal")]
    | Annotated[ImageContent, Tag("input_image")]
    | Annotated[FileContent, Tag("input_file")]
    | Annotated[AudioContent, Tag("input_audio")]
    | Annotated[OtherTyped, Tag("other")],
    Discriminator(
        _type_among(
            "input_text",
            "output_text",
            "text",
            "refusal",
            "input_image",
            "input_file",
            "input_audio",
        )
    ),
]

# --------------------------------------------------------------------------- items


@_OPEN
class MessageItem(TypedDict, total=False):
    type: Literal["message"]
    role: Required[Literal["user", "assistant", "system", "developer"]]
    content: Required[_text_or(FastList[Content])]  # type: ignore[valid-type]
    id: str | None
    phase: str | None


@_OPEN
class FunctionCallItem(TypedDict, total=False):
    type: Required[Literal["function_call"]]
    call_id: Required[NonEmpty]
    name: Required[NonEmpty]
    arguments: Required[str]


@_OPEN
class CustomCallItem(TypedDict, total=False):
    type: Required[Literal["custom_tool_call"]]
    call_id: Required[NonEmpty]
    name: Required[NonEmpty]
    input: Required[str]


@_OPEN
class CallOutputItem(TypedDict, total=False):
    type: Required[Literal["function_call_output", "custom_tool_call_output"]]
    call_id: Required[NonEmpty]
    output: Required[_text_or(FastList[Content])]  # type: ignore[valid-type]


@_OPEN
class ReasoningText(TypedDict, total=False):
    type: Required[str]
    text: Required[str]


@_OPEN
class ReasoningItem(TypedDict, total=False):
    type: Required[Literal["reasoning"]]
    summary: Required[FastList[ReasoningText]]
    content: FastList[ReasoningText] | None
    encrypted_content: str | None
    id: str | None


@_OPEN
class ItemReference(TypedDict, total=False):
    type: Required[Literal["item_reference"]]
    id: Required[NonEmpty]


Item = Annotated[
    Annotated[MessageItem, Tag("message")]
    | Annotated[FunctionCallItem, Tag("function_call")]
    | Annotated[CustomCallItem, Tag("custom_tool_call")]
    | Annotated[CallOutputItem, Tag("function_call_output")]
    | Annotated[CallOutputItem, Tag("custom_tool_call_output")]
    | Annotated[ReasoningItem, Tag("reasoning")]
    | Annotated[ItemReference, Tag("item_reference")]
    | Annotated[OtherTyped, Tag("other")],
    Discriminator(
        _type_among(
            "message",
            "function_call",
            "custom_tool_call",
            "function_call_output",
            "custom_tool_call_output",
            "reasoning",
            "item_reference",
            absent="message",
        )
    ),
]
"""An item without a type is a message."""

# --------------------------------------------------------------------------- tools


@_OPEN
class FunctionTool(TypedDict, total=False):
    type: Required[Literal["function"]]
    name: Required[NonEmpty]
    description: str | None
    parameters: JsonObject | None
    strict: bool | None


@_OPEN
class CustomTool(TypedDict, total=False):
    type: Required[Literal["custom"]]
    name: Required[NonEmpty]
    description: str | None
    format: JsonObject | None


Tool = Annotated[
    Annotated[FunctionTool, Tag("function")]
    | Annotated[CustomTool, Tag("custom")]
    | Annotated[OtherTyped, Tag("other")],
    Discriminator(_type_among("function", "custom")),
]


@_OPEN
class NamedChoice(TypedDict, total=False):
    type: Required[Literal["function", "custom"]]
    name: Required[NonEmpty]


_Choice = Annotated[
    Annotated[NamedChoice, Tag("function")]
    | Annotated[NamedChoice, Tag("custom")]
    | Annotated[OtherTyped, Tag("other")],
    Discriminator(_type_among("function", "custom")),
]


def _choice_form(value: Any) -> str:
    return "string" if isinstance(value, str) else "other"


Choice = Annotated[
    Annotated[Literal["auto", "none", "required"], Tag("string")]
    | Annotated[_Choice, Tag("other")],
    Discriminator(_choice_form),
]

# --------------------------------------------------------------------------- output


@_OPEN
class TextFormat(TypedDict, total=False):
    type: Required[Literal["text"]]


@_OPEN
class JsonObjectFormat(TypedDict, total=False):
    type: Required[Literal["json_object"]]


@_OPEN
class JsonSchemaFormat(TypedDict, total=False):
    type: Required[Literal["json_schema"]]
    name: Required[NonEmpty]
    schema: Required[JsonObject]
    strict: bool | None
    description: str | None


@_OPEN
class TextConfig(TypedDict, total=False):
    format: (
        Annotated[TextFormat | JsonObjectFormat | JsonSchemaFormat, Discriminator("type")] | None
    )
    verbosity: NonEmpty | None


@_OPEN
class Reasoning(TypedDict, total=False):
    effort: NonEmpty | None
    summary: NonEmpty | None


@_OPEN
class Prompt(TypedDict, total=False):
    id: Required[NonEmpty]
    version: str | None
    variables: JsonObject | None


@_OPEN
class ConversationRef(TypedDict, total=False):
    id: Required[NonEmpty]


Tokens = Annotated[int, Field(ge=1, le=MOST_TOKENS)]
Penalty = Annotated[float, Field(ge=-2, le=2)]
MetadataKey = Annotated[str, Field(max_length=64)]
MetadataValue = Annotated[str, Field(max_length=512)]


@_OPEN
class Body(TypedDict, total=False):
    """Every field that :mod:`~gateway.northbound.openai_responses.fields` gives a meaning."""

    model: NonEmpty
    input: _text_or(FastList[Item]) | None  # type: ignore[valid-type]
    instructions: str | None
    tools: FastList[Tool] | None
    tool_choice: Choice | None
    parallel_tool_calls: bool | None
    max_output_tokens: Tokens | None
    max_tool_calls: Tokens | None
    temperature: Annotated[float, Field(ge=0, le=2)] | None
    top_p: Annotated[float, Field(ge=0, le=1)] | None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None
    presence_penalty: Penalty | None
    frequency_penalty: Penalty | None
    text: TextConfig | None
    reasoning: Reasoning | None
    include: FastList[str] | None
    prompt: Prompt | None
    metadata: Annotated[dict[MetadataKey, MetadataValue], Field(max_length=16)] | None
    user: str | None
    safety_identifier: str | None
    service_tier: NonEmpty | None
    prompt_cache_key: str | None
    prompt_cache_options: JsonObject | None
    prompt_cache_retention: NonEmpty | None
    truncation: Literal["auto", "disabled"] | None
    stream: bool | None
    store: bool | None
    background: bool | None
    previous_response_id: NonEmpty | None
    conversation: _text_or(ConversationRef) | None  # type: ignore[valid-type]


BODY = TypeAdapter(Body)
