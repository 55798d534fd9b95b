"""The response object around an answer: the caller's own settings echoed, every field present.

OpenResponses wants all fields of its ``ResponseResource`` in every answer, nullable ones as
``null`` and settings that nobody gave at the API's documented defaults. Pure; must not know how
the output came about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from adapters.canonical.events import Failed, Finished, Reason, Terminal, Usage
from adapters.canonical.parts import NO_EXTRAS, Dialect
from adapters.canonical.record import record
from adapters.wire.openai_responses import DIALECT, usage_object
from gateway.northbound import errors
from gateway.northbound.base import Envelope

UNSAID: Mapping[str, Any] = {
    "background": False,
    "completed_at": None,
    "conversation": None,
    "error": None,
    "frequency_penalty": 0.0,
    "incomplete_details": None,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "presence_penalty": 0.0,
    "previous_response_id": None,
    "prompt": None,
    "prompt_cache_key": None,
    "prompt_cache_retention": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": "default",
    "store": False,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}
"""What each field says where neither the caller nor the provider said anything."""

ECHOED = frozenset(UNSAID) - {"completed_at", "error", "incomplete_details"}
"""Request fields that the answer repeats."""

MCP_LOGIN = ("headers", "authorization")
"""Fields of an ``mcp`` tool that hold a caller's secrets."""

_REPORTED = ("completed_at", "service_tier")
"""What a provider of any dialect may report, and then knows better."""

INCOMPLETE: Mapping[Reason, str] = {
    "length": "max_output_tokens",
    "context_window": "max_output_tokens",
    "content_filter": "content_filter",
    "refusal": "content_filter",
    "pause": "pause",
    "unknown": "unknown",
}
"""Why an answer is not complete. A refusal in the model's own words is complete; one without
any is the provider's filter."""


@record(slots=True)
class Answer:
    """What is known of an answer so far, apart from its output."""

    id: str
    created: int
    model: str
    echo: Mapping[str, Any]
    dialect: Dialect | None = None
    usage: Usage | None = None
    reported: Mapping[str, Any] = NO_EXTRAS
    wall: Callable[[], float] | None = None

    @classmethod
    def of(cls, envelope: Envelope) -> Answer:
        """The answer before anything is known of it."""
        echo = _echo(envelope.style.echo)
        return cls(envelope.id, envelope.created, envelope.alias, echo, wall=envelope.wall)

    def resource(
        self, status: str, output: list[Any], details: Mapping[str, Any] = NO_EXTRAS
    ) -> dict[str, Any]:
        """The response object; ``details`` are ``error`` or ``incomplete_details``."""
        reported = {n: self.reported[n] for n in _REPORTED if self.reported.get(n) is not None}
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "model": self.model,
            "output": output,
            "usage": self._usage() if status not in ("queued", "in_progress") else None,
            **UNSAID,
            **self.echo,
            **self._completed(status),
            **reported,
            **details,
        }

    def _completed(self, status: str) -> Mapping[str, Any]:
        """When it was complete: now, unless the provider says."""
        if status != "completed" or self.wall is None:
            return NO_EXTRAS
        return {"completed_at": int(self.wall())}

    def _usage(self) -> Mapping[str, Any] | None:
        """The counts: the provider's own object in the same dialect, unless they made no sense;
        nothing where a total is not known, because 0 would be a lie."""
        usage = self.usage
        if usage is None:
            return None
        if self.dialect == DIALECT and usage.raw is not None and not usage.invalid:
            return usage.raw
        if usage.input is None or usage.output is None:
            return None
        return usage_object(usage)


def ending(terminal: Terminal, *, refused: bool) -> tuple[str, dict[str, Any]]:
    """The status of an ended answer, and the field that explains it."""
    if isinstance(terminal, Failed):
        error = errors.error_object(terminal.fault, DIALECT)
        return "failed", {"error": {"code": error["code"], "message": error["message"]}}
    return _finished(terminal, refused)


def _finished(terminal: Finished, refused: bool) -> tuple[str, dict[str, Any]]:
    reason = INCOMPLETE.get(terminal.reason)
    if reason is None or (terminal.reason == "refusal" and refused):
        return "completed", {}
    if terminal.reason in ("pause", "unknown"):
        reason = terminal.raw_reason or reason
    return "incomplete", {"incomplete_details": {"reason": reason}}


def _echo(given: Mapping[str, Any]) -> dict[str, Any]:
    echo = dict(given)
    if "tools" in echo:
        echo["tools"] = [_tool(tool) for tool in echo["tools"]]
    if "reasoning" in echo:
        echo["reasoning"] = {**UNSAID["reasoning"], **echo["reasoning"]}
    if "text" in echo:
        echo["text"] = _text(echo["text"])
    if isinstance(echo.get("conversation"), str):
        echo["conversation"] = {"id": echo["conversation"]}
    return echo


def _tool(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    if tool["type"] != "function":
        # How a provider signs in at the caller's MCP server is nobody's to read again.
        return {name: value for name, value in tool.items() if name not in MCP_LOGIN}
    return {"description": None, "parameters": None, "strict": None, **tool}


def _text(text: Mapping[str, Any]) -> dict[str, Any]:
    form = text.get("format")
    if form is None:
        return {**text, **UNSAID["text"]}
    if form["type"] == "json_schema":
        form = {"description": None, "strict": None, **form}
    return {**text, "format": form}
