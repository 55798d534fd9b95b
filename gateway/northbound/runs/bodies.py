"""The bodies of ``/runs``: a new run, an answer to a question, a top-up, a fork."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal, Required

from pydantic import ConfigDict, Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from adapters.canonical.faults import Fault
from adapters.canonical.parts import NO_EXTRAS, Part, Text
from adapters.canonical.record import record
from adapters.canonical.request import Message
from adapters.wire.json import dumps
from gateway.northbound.base import DEFAULT_LIMITS
from gateway.northbound.body import read_object, validated
from gateway.northbound.openai_responses.items import ItemReader
from gateway.northbound.openai_responses.shapes import FastList, Item, MetadataKey, MetadataValue
from gateway.northbound.runs.agents import AgentBody, BudgetBody, Name, agent_spec, budget
from gateway.runs.spec import Action, AgentSpec, Answer, Budget, OnBudget

_STRICT = with_config(ConfigDict(extra="forbid", defer_build=True))

INLINE = "agent"
"""What an inline agent without a name is called."""


@_STRICT
class RunBody(TypedDict, total=False):
    """The body of ``POST /runs``. ``agent`` is the name of a stored agent or a whole one;
    ``agents`` are further inline ones, for hand-overs and as tools. Null is left out."""

    agent: Name | AgentBody
    agents: Annotated[list[AgentBody], Field(max_length=50)]
    workflow: str | dict[str, Any]
    input: Required[str | FastList[Item]]
    budget: BudgetBody | None
    on_budget: Literal["incomplete", "wait"] | None
    on_disconnect: Literal["continue", "cancel"] | None
    metadata: Annotated[dict[MetadataKey, MetadataValue], Field(max_length=16)] | None
    previous_run_id: str | None
    user: str | None
    stream: bool | None


@_STRICT
class AnswerBody(TypedDict, total=False):
    """The body of ``POST /runs/{id}/interrupts/{interrupt_id}``; which fields belong to which
    action is said by :data:`BELONGS`."""

    action: Required[
        Literal["approve", "deny", "edit", "result", "top_up", "stop", "rerun", "error", "fail"]
    ]
    arguments: dict[str, Any]
    arguments_hash: str
    content: str | list[dict[str, Any]]
    structured: Any
    is_error: bool
    reason: Annotated[str, Field(max_length=2_000)]
    budget: BudgetBody


@_STRICT
class ForkBody(TypedDict, total=False):
    """The body of ``POST /runs/{id}/fork``: what is different in the new run."""

    model: str
    instructions: str
    input: str | FastList[Item]
    tool_results: Annotated[list[dict[str, Any]], Field(max_length=100)]
    metadata: Annotated[dict[MetadataKey, MetadataValue], Field(max_length=16)]


_RUN = TypeAdapter(RunBody)
_ANSWER = TypeAdapter(AnswerBody)
_FORK = TypeAdapter(ForkBody)
_BUDGET = TypeAdapter(BudgetBody)


@record(frozen=True, slots=True)
class NewRun:
    """What a caller wants run. ``agent`` is a name or a whole agent."""

    agent: str | AgentSpec
    input: tuple[Message, ...]
    agents: tuple[AgentSpec, ...] = ()
    budget: Budget = Budget()
    on_budget: OnBudget | None = None
    on_disconnect: Literal["continue", "cancel"] = "continue"
    metadata: Mapping[str, str] = NO_EXTRAS
    previous_run_id: str | None = None
    end_user: str | None = None
    stream: bool = False


@record(frozen=True, slots=True)
class Fork:
    """What a fork changes. ``results`` are by call id."""

    model: str | None = None
    instructions: str | None = None
    input: tuple[Message, ...] | None = None
    results: Mapping[str, tuple[Text, ...]] = NO_EXTRAS
    metadata: Mapping[str, str] | None = None


def parse_run(body: bytes) -> NewRun:
    """Understand ``POST /runs``.

    :raises Fault: ``bad_request`` with ``param``.
    """
    read = validated(_RUN, read_object(body, DEFAULT_LIMITS))
    given = {name: value for name, value in read.items() if value is not None}
    agent = given.get("agent")
    if agent is None:
        raise Fault("bad_request", "agent is required: a name, or a whole agent.", param="agent")
    return NewRun(
        agent=agent if isinstance(agent, str) else agent_spec({"name": INLINE, **agent}),
        input=_messages(given["input"]),
        agents=tuple(agent_spec(one) for one in given.get("agents", ())),
        budget=budget(given.get("budget", {})),
        on_budget=given.get("on_budget"),
        on_disconnect=given.get("on_disconnect", "continue"),
        metadata=given.get("metadata", NO_EXTRAS),
        previous_run_id=given.get("previous_run_id"),
        end_user=given.get("user"),
        stream=given.get("stream", False),
    )


def _messages(given: str | list[Mapping[str, Any]]) -> tuple[Message, ...]:
    """The input as messages: a text is the user's, a list is what ``/v1/responses`` takes."""
    if isinstance(given, str):
        messages: tuple[Message, ...] = (Message("user", (Text(given),)),)
    else:
        reader = ItemReader()
        messages = reader.read(given)
        reader.check_calls(remembered=False)
    if not any(_says_something(part) for message in messages for part in message.parts):
        raise Fault("bad_request", "input is empty: say what the agent is to do.", param="input")
    return messages


def _says_something(part: Part) -> bool:
    return not isinstance(part, Text) or part.text.strip() != ""


BELONGS: Mapping[Action, tuple[str, ...]] = {
    "approve": ("arguments_hash", "reason"),
    "deny": ("arguments_hash", "reason"),
    "edit": ("arguments_hash", "arguments"),
    "result": ("content", "structured", "is_error"),
    "top_up": ("budget",),
    "stop": (),
    "rerun": (),
    "error": ("reason",),
    "fail": ("reason",),
}
"""By action: what may go with it. Anything else would be a wish that nobody hears."""


def parse_answer(body: bytes) -> Answer:
    """Understand an answer to an interrupt.

    :raises Fault: ``bad_request`` with ``param``.
    """
    given = validated(_ANSWER, read_object(body, DEFAULT_LIMITS))
    action, content = given["action"], given.get("content")
    foreign = next((name for name in given if name not in ("action", *BELONGS[action])), None)
    if foreign is not None:
        takes = " and ".join(BELONGS[action]) or "nothing more"
        raise Fault("bad_request", f"{action} takes {takes}, not {foreign}.", param=foreign)
    if action == "result" and content is None and "structured" not in given:
        raise Fault("bad_request", "result needs content: what came of the call.", param="content")
    added = _amounts(given.get("budget", {}))
    if action == "top_up" and not any(float(amount) for amount in added.values()):
        raise Fault("bad_request", "top_up needs a budget: what is added.", param="budget")
    return Answer(
        action=action,
        arguments=given.get("arguments"),
        arguments_hash=given.get("arguments_hash"),
        content=_content(content, given),
        structured=given.get("structured"),
        is_error=given.get("is_error", False),
        reason=given.get("reason"),
        added=added,
    )


def _content(content: Any, given: Mapping[str, Any]) -> tuple[Text, ...]:
    """A result's texts; a structured one without words is its own words."""
    if content is None:
        return () if given.get("structured") is None else (Text(_json(given["structured"])),)
    if isinstance(content, str):
        return (Text(content),)
    texts = [part.get("text") for part in content]
    if not all(isinstance(text, str) for text in texts):
        text = "content is a text, or a list of {type: 'text', text: …}."
        raise Fault("bad_request", text, param="content")
    return tuple(Text(str(text)) for text in texts)


def _json(value: Any) -> str:
    return dumps(value).decode()


def parse_top_up(body: bytes) -> Mapping[str, Any]:
    """What ``POST /runs/{id}/budget`` adds, as the ledger tells it.

    :raises Fault: ``bad_request`` with ``param``.
    """
    added = _amounts(validated(_BUDGET, read_object(body, DEFAULT_LIMITS)))
    if not any(float(amount) for amount in added.values()):
        text = "Say what is added: some of usd, tokens, tool_calls, seconds."
        raise Fault("bad_request", text)
    return added


def _amounts(given: Mapping[str, Any]) -> dict[str, Any]:
    """Budget fields as plain numbers; dollars stay exact text."""
    shown = {}
    for name, value in given.items():
        if value is not None:
            shown[name] = f"{value:f}" if isinstance(value, Decimal) else value
    return shown


def parse_fork(body: bytes) -> Fork:
    """Understand what a fork changes; an empty body changes nothing.

    :raises Fault: ``bad_request`` with ``param``.
    """
    given = validated(_FORK, read_object(body or b"{}", DEFAULT_LIMITS))
    results = {}
    for number, one in enumerate(given.get("tool_results", ())):
        call_id, content = one.get("call_id"), one.get("content")
        if not isinstance(call_id, str) or not isinstance(content, str):
            text = "A tool result is {call_id, content}, both texts."
            raise Fault("bad_request", text, param=f"tool_results[{number}]")
        results[call_id] = (Text(content),)
    changed = given.get("input")
    return Fork(
        model=given.get("model"),
        instructions=given.get("instructions"),
        input=None if changed is None else _messages(changed),
        results=results,
        metadata=given.get("metadata"),
    )
