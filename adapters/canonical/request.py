"""What a caller asks for, in the house's own words.

Unset stays unset: ``None`` always means "the caller did not say", and is never filled with a
default here (fault kinds K05 and K07). Must not know any vendor's JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from adapters.canonical.parts import NO_EXTRAS, Dialect, Part, Text
from adapters.canonical.record import record

Role = Literal["system", "developer", "user", "assistant", "tool"]


@record(frozen=True, slots=True)
class Message:
    """One turn. Tool results stand in ``tool`` messages or at the head of ``user`` ones."""

    role: Role
    parts: tuple[Part, ...]
    name: str | None = None
    extras: Mapping[str, Any] = NO_EXTRAS


@record(frozen=True, slots=True)
class FunctionTool:
    """A function the model may call. ``parameters`` is the caller's own JSON Schema object.

    ``None`` parameters mean that the caller gave none; ``strict`` is the caller's word or
    ``None``.
    """

    name: str
    description: str | None = None
    parameters: Mapping[str, Any] | None = None
    strict: bool | None = None
    extras: Mapping[str, Any] = NO_EXTRAS


@record(frozen=True, slots=True)
class OpaqueTool:
    """A tool that only its own dialect understands: server tools, custom grammars, MCP."""

    dialect: Dialect
    type: str
    data: Mapping[str, Any]
    name: str | None = None


Tool = FunctionTool | OpaqueTool


@record(frozen=True, slots=True)
class ToolChoice:
    """``named`` takes ``name``; ``opaque`` carries a vendor's own form in ``data``."""

    mode: Literal["auto", "none", "required", "named", "opaque"]
    name: str | None = None
    data: Any = None


@record(frozen=True, slots=True)
class JsonObject:
    """Any JSON object."""


@record(frozen=True, slots=True)
class JsonSchema:
    """An answer that must fit ``schema``; the caller's object, never changed in place."""

    name: str
    schema: Mapping[str, Any]
    strict: bool | None = None
    description: str | None = None


Output = JsonObject | JsonSchema
"""``None`` in its place means plain text that the caller did not ask for by name."""


@record(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn. ``max_output_tokens`` counts reasoning too, where the model reasons.

    ``limit_name`` is the caller's own name for it where their dialect has two: chat servers
    differ in which one they know (see ``Facts.limit_name``).
    """

    max_output_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    logit_bias: Mapping[str, float] | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    n: int | None = None
    limit_name: str | None = None


@record(frozen=True, slots=True)
class Reasoning:
    """How much the model may think, in whichever of the three vendors' terms the caller used.

    ``effort`` is ``none minimal low medium high xhigh max``; ``budget_tokens`` is Anthropic's
    manual budget; ``mode`` is Anthropic's ``enabled adaptive disabled``; ``summary`` is
    OpenAI's ``auto concise detailed``; ``display`` is Anthropic's.
    """

    effort: str | None = None
    budget_tokens: int | None = None
    mode: str | None = None
    summary: str | None = None
    display: str | None = None
    extras: Mapping[str, Any] = NO_EXTRAS


@record(frozen=True, slots=True)
class Cache:
    """Prompt-caching hints of the request as a whole (block-wise ones stand in part extras)."""

    key: str | None = None
    retention: str | None = None
    options: Mapping[str, Any] | None = None
    control: Mapping[str, Any] | None = None


@record(frozen=True, slots=True)
class PromptRef:
    """A stored prompt template: ``version`` is a number, a label, or unset."""

    id: str
    version: str | None = None
    variables: Mapping[str, Any] = NO_EXTRAS


@record(frozen=True, slots=True)
class Request:
    """One call for one answer.

    ``instructions`` holds only what the caller's dialect keeps apart from the messages
    (Responses ``instructions``, Anthropic ``system``); system messages of a chat stay where
    they stood. ``extras`` are the fields that the canonical words do not know, by their wire
    names: sent on when the southbound dialect is ``origin``, else reported as dropped.
    ``headers`` are the few caller headers that belong to the origin dialect's protocol
    (``anthropic-beta``); never authorisation. ``continues``: a provider of the origin dialect
    holds what came before, so nobody else can answer. ``truncate``: whether the oldest turns may
    be left out where the model's window is too small; ``None`` leaves it to the alias.
    """

    model: str
    messages: tuple[Message, ...]
    origin: Dialect
    instructions: tuple[Text, ...] = ()
    tools: tuple[Tool, ...] | None = None
    tool_choice: ToolChoice | None = None
    parallel_tools: bool | None = None
    output: Output | None = None
    sampling: Sampling = field(default_factory=Sampling)
    reasoning: Reasoning | None = None
    cache: Cache | None = None
    prompt: PromptRef | None = None
    metadata: Mapping[str, Any] | None = None
    end_user: str | None = None
    safety_identifier: str | None = None
    service_tier: str | None = None
    verbosity: str | None = None
    store: bool | None = None
    truncate: bool | None = None
    stream: bool = False
    extras: Mapping[str, Any] = NO_EXTRAS
    headers: Mapping[str, str] = NO_EXTRAS
    continues: bool = False
