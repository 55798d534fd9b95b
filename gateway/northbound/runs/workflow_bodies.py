"""The body of ``POST /runs`` for a workflow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, Literal, Required

from pydantic import ConfigDict, Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from adapters.canonical.faults import Fault
from adapters.canonical.parts import NO_EXTRAS
from adapters.canonical.record import record
from adapters.canonical.request import Message
from gateway.northbound.base import DEFAULT_LIMITS
from gateway.northbound.body import read_object, validated
from gateway.northbound.openai_responses.shapes import MetadataKey, MetadataValue
from gateway.northbound.runs.agents import AgentBody, BudgetBody, Name, agent_spec, budget
from gateway.runs.spec import NO_BUDGET, AgentSpec, Budget, OnBudget

Mode = Literal["launch", "polish", "production"]


@with_config(ConfigDict(extra="forbid", defer_build=True))
class WorkflowRunBody(TypedDict, total=False):
    """``workflow`` is the name of one in the configuration, or a whole one; ``settings`` are those
    that it leaves open. ``mode``, ``plan_id`` and ``instruction`` are for its team's plan."""

    workflow: Required[Name | dict[str, Any]]
    input: Any
    settings: dict[str, Any]
    agents: Annotated[list[AgentBody], Field(max_length=50)]
    mode: Mode
    plan_id: Annotated[str, Field(min_length=1, max_length=100)]
    instruction: Annotated[str, Field(min_length=1, max_length=100_000)]
    budget: BudgetBody
    on_budget: Literal["incomplete", "wait"]
    on_disconnect: Literal["continue", "cancel"]
    metadata: Annotated[dict[MetadataKey, MetadataValue], Field(max_length=16)]
    user: str
    stream: bool


_RUN = TypeAdapter(WorkflowRunBody)


@record(frozen=True, slots=True)
class NewWorkflow:
    """What a caller wants run. ``history`` is the conversation before, where there is one."""

    workflow: str | Mapping[str, Any]
    input: Any = None
    settings: Mapping[str, Any] = NO_EXTRAS
    agents: tuple[AgentSpec, ...] = ()
    history: tuple[Message, ...] = ()
    mode: Mode = "launch"
    plan_id: str | None = None
    instruction: str | None = None
    budget: Budget = field(default_factory=lambda: NO_BUDGET)
    on_budget: OnBudget | None = None
    on_disconnect: Literal["continue", "cancel"] = "continue"
    metadata: Mapping[str, str] = NO_EXTRAS
    end_user: str | None = None
    stream: bool = False


def is_workflow(body: bytes) -> bool:
    """Whether the body of ``POST /runs`` speaks of a workflow.

    :raises Fault: ``bad_request`` where it is no JSON object.
    """
    return "workflow" in read_object(body, DEFAULT_LIMITS)


def parse_workflow_run(body: bytes) -> NewWorkflow:
    """Understand ``POST /runs`` for a workflow.

    :raises Fault: ``bad_request`` with ``param``.
    """
    given = validated(_RUN, read_object(body, DEFAULT_LIMITS))
    mode = given.get("mode", "launch")
    _fits(mode, given)
    return NewWorkflow(
        workflow=given["workflow"],
        input=given.get("input"),
        settings=given.get("settings", NO_EXTRAS),
        agents=tuple(agent_spec(one) for one in given.get("agents", ())),
        mode=mode,
        plan_id=given.get("plan_id"),
        instruction=given.get("instruction"),
        budget=budget(given.get("budget", {})),
        on_budget=given.get("on_budget"),
        on_disconnect=given.get("on_disconnect", "continue"),
        metadata=given.get("metadata", NO_EXTRAS),
        end_user=given.get("user"),
        stream=given.get("stream", False),
    )


WANTED: Mapping[str, tuple[str, ...]] = {
    "launch": (),
    "polish": ("plan_id", "instruction"),
    "production": ("plan_id",),
}
"""By mode: what it needs."""


def _fits(mode: str, given: Mapping[str, Any]) -> None:
    for name in ("plan_id", "instruction"):
        if (name in given) != (name in WANTED[mode]):
            word = "needs" if name in WANTED[mode] else "takes no"
            raise Fault("bad_request", f"mode {mode!r} {word} {name}.", param=name)
