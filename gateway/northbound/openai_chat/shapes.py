"""The body of ``POST /v1/chat/completions`` as callers send it, checked by Pydantic.

Typed dicts, so that absent, ``null`` and empty stay three things; unknown fields stay in place
and are sorted out by :mod:`gateway.northbound.openai_chat.request`. Strict: ``"5"`` is no
number. Ranges are OpenAI's own (the API reference of chat completions). Must not know the
canonical words.
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


def _text_or(parts: Any) -> Any:
    """Content that is one string or a list of parts, each error under the form that was sent."""
    return Annotated[
        Annotated[str, Tag("string")] | Annotated[parts, Tag("list")], Discriminator(_has_text)
    ]


# --------------------------------------------------------------------------- parts


@_OPEN
class TextPart(TypedDict, total=False):
    type: Required[Literal["text"]]
    text: Required[str]


@_OPEN
class RefusalPart(TypedDict, total=False):
    type: Required[Literal["refusal"]]
    refusal: Required[str]


@_OPEN
class ImageUrl(TypedDict, total=False):
    url: Required[NonEmpty]
    detail: str | None


@_OPEN
class ImagePart(TypedDict, total=False):
    type: Required[Literal["image_url"]]
    image_url: Required[ImageUrl]


@_OPEN
class InputAudio(TypedDict, total=False):
    data: Required[NonEmpty]
    format: Required[NonEmpty]


@_OPEN
class AudioPart(TypedDict, total=False):
    type: Required[Literal["input_audio"]]
    input_audio: Required[InputAudio]


@_OPEN
class FileData(TypedDict, total=False):
    file_data: str | None
    file_id: str | None
    filename: str | None


@_OPEN
class FilePart(TypedDict, total=False):
    type: Required[Literal["file"]]
    file: Required[FileData]


UserPart = Annotated[TextPart | ImagePart | AudioPart | FilePart, Discriminator("type")]
ResultPart = Annotated[TextPart | ImagePart | FilePart, Discriminator("type")]
"""OpenAI documents text only; images and files are what agents do send and others accept."""
AnswerPart = Annotated[TextPart | RefusalPart, Discriminator("type")]

# --------------------------------------------------------------------------- messages


@_OPEN
class NamedCall(TypedDict, total=False):
    name: Required[NonEmpty]
    arguments: Required[str]


@_OPEN
class FunctionCall(TypedDict, total=False):
    id: Required[NonEmpty]
    type: Literal["function"]
    function: Required[NamedCall]


@_OPEN
class CustomInput(TypedDict, total=False):
    name: Required[NonEmpty]
    input: Required[str]


@_OPEN
class CustomCall(TypedDict, total=False):
    id: Required[NonEmpty]
    type: Required[Literal["custom"]]
    custom: Required[CustomInput]


def _call_type(value: Any) -> str:
    # Some servers' calls come back without their type.
    return "custom" if isinstance(value, dict) and value.get("type") == "custom" else "function"


Call = Annotated[
    Annotated[FunctionCall, Tag("function")] | Annotated[CustomCall, Tag("custom")],
    Discriminator(_call_type),
]


@_OPEN
class AudioRef(TypedDict, total=False):
    id: Required[NonEmpty]


@_OPEN
class SystemMessage(TypedDict, total=False):
    role: Required[Literal["system", "developer"]]
    content: Required[_text_or(FastList[TextPart])]  # type: ignore[valid-type]
    name: str | None


@_OPEN
class UserMessage(TypedDict, total=False):
    role: Required[Literal["user"]]
    content: Required[_text_or(FastList[UserPart])]  # type: ignore[valid-type]
    name: str | None


@_OPEN
class AssistantMessage(TypedDict, total=False):
    role: Required[Literal["assistant"]]
    content: _text_or(FastList[AnswerPart]) | None  # type: ignore[valid-type]
    name: str | None
    refusal: str | None
    audio: AudioRef | None
    tool_calls: FastList[Call] | None
    function_call: NamedCall | None
    reasoning_content: str | None
    reasoning: str | None
    reasoning_details: FastList[JsonObject] | None


@_OPEN
class ToolMessage(TypedDict, total=False):
    role: Required[Literal["tool"]]
    content: Required[_text_or(FastList[ResultPart])]  # type: ignore[valid-type]
    tool_call_id: Required[NonEmpty]
    name: str | None


@_OPEN
class FunctionMessage(TypedDict, total=False):
    role: Required[Literal["function"]]
    content: Required[str | None]
    name: Required[NonEmpty]


Message = Annotated[
    SystemMessage | UserMessage | AssistantMessage | ToolMessage | FunctionMessage,
    Discriminator("role"),
]

# --------------------------------------------------------------------------- tools


@_OPEN
class Function(TypedDict, total=False):
    name: Required[NonEmpty]
    description: str | None
    parameters: JsonObject | None
    strict: bool | None


@_OPEN
class FunctionTool(TypedDict, total=False):
    type: Required[Literal["function"]]
    function: Required[Function]


@_OPEN
class Custom(TypedDict, total=False):
    name: Required[NonEmpty]
    description: str | None
    format: JsonObject | None


@_OPEN
class CustomTool(TypedDict, total=False):
    type: Required[Literal["custom"]]
    custom: Required[Custom]


@_OPEN
class OtherTool(TypedDict, total=False):
    type: Required[NonEmpty]


def _tool_type(value: Any) -> str:
    kind = value.get("type") if isinstance(value, dict) else None
    return kind if kind in ("function", "custom") else "other"


Tool = Annotated[
    Annotated[FunctionTool, Tag("function")]
    | Annotated[CustomTool, Tag("custom")]
    | Annotated[OtherTool, Tag("other")],
    Discriminator(_tool_type),
]


@_OPEN
class Named(TypedDict, total=False):
    name: Required[NonEmpty]


@_OPEN
class NamedFunction(TypedDict, total=False):
    type: Required[Literal["function"]]
    function: Required[Named]


@_OPEN
class NamedCustom(TypedDict, total=False):
    type: Required[Literal["custom"]]
    custom: Required[Named]


@_OPEN
class AllowedTools(TypedDict, total=False):
    mode: Required[Literal["auto", "required"]]
    tools: Required[FastList[JsonObject]]


@_OPEN
class Allowed(TypedDict, total=False):
    type: Required[Literal["allowed_tools"]]
    allowed_tools: Required[AllowedTools]


_Choices = Annotated[NamedFunction | NamedCustom | Allowed, Discriminator("type")]


def _word_or(words: Any, shape: Any) -> Any:
    return Annotated[
        Annotated[words, Tag("string")] | Annotated[shape, Tag("list")], Discriminator(_has_text)
    ]


# --------------------------------------------------------------------------- output


@_OPEN
class TextFormat(TypedDict, total=False):
    type: Required[Literal["text"]]


@_OPEN
class JsonObjectFormat(TypedDict, total=False):
    type: Required[Literal["json_object"]]


@_OPEN
class SchemaFormat(TypedDict, total=False):
    name: Required[NonEmpty]
    schema: JsonObject
    strict: bool | None
    description: str | None


@_OPEN
class JsonSchemaFormat(TypedDict, total=False):
    type: Required[Literal["json_schema"]]
    json_schema: Required[SchemaFormat]


Format = Annotated[TextFormat | JsonObjectFormat | JsonSchemaFormat, Discriminator("type")]


@_OPEN
class StreamOptions(TypedDict, total=False):
    include_usage: bool | None


@_OPEN
class Prompt(TypedDict, total=False):
    id: Required[NonEmpty]
    version: str | None
    variables: JsonObject | None


Stops = Annotated[list[str], Field(max_length=4)]
Tokens = Annotated[int, Field(ge=1, le=MOST_TOKENS)]
Penalty = Annotated[float, Field(ge=-2, le=2)]
Bias = Annotated[float, Field(ge=-100, le=100)]
MetadataKey = Annotated[str, Field(max_length=64)]
MetadataValue = Annotated[str, Field(max_length=512)]


@_OPEN
class Body(TypedDict, total=False):
    """Every field that :mod:`~gateway.northbound.openai_chat.fields` calls mapped."""

    model: NonEmpty
    messages: FastList[Message]
    prompt: Prompt | None
    tools: FastList[Tool] | None
    tool_choice: _word_or(Literal["auto", "none", "required"], _Choices) | None  # type: ignore[valid-type]
    parallel_tool_calls: bool | None
    functions: FastList[Function] | None
    function_call: _word_or(Literal["auto", "none"], Named) | None  # type: ignore[valid-type]
    response_format: Format | None
    reasoning_effort: NonEmpty | None
    verbosity: NonEmpty | None
    max_tokens: Tokens | None
    max_completion_tokens: Tokens | None
    temperature: Annotated[float, Field(ge=0, le=2)] | None
    top_p: Annotated[float, Field(ge=0, le=1)] | None
    frequency_penalty: Penalty | None
    presence_penalty: Penalty | None
    seed: int | None
    stop: _text_or(Stops) | None  # type: ignore[valid-type]
    logit_bias: dict[str, Bias] | None
    logprobs: bool | None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None
    n: Tokens | None
    stream: bool | None
    stream_options: StreamOptions | None
    metadata: Annotated[dict[MetadataKey, MetadataValue], Field(max_length=16)] | None
    user: str | None
    safety_identifier: str | None
    service_tier: NonEmpty | None
    store: bool | None
    prompt_cache_key: str | None
    prompt_cache_options: JsonObject | None
    prompt_cache_retention: NonEmpty | None


BODY = TypeAdapter(Body)
