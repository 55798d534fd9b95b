"""How a workflow is written: in a request, in ``[workflows.NAME]``, in a file. One shape.

Whether the graph makes sense is for :mod:`gateway.runs.workflow_check`; a test holds the kinds
here equal to those of :mod:`gateway.runs.workflow_spec`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Required

from pydantic import ConfigDict, Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from gateway.northbound.runs.agents import AgentBody, BudgetBody, Name
from gateway.tools.base import Policy

_STRICT = with_config(ConfigDict(extra="forbid", defer_build=True))

NODE_ID = r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$"
NodeId = Annotated[str, Field(pattern=NODE_ID)]
Model = Annotated[str, Field(min_length=1, max_length=200)]
Condition = Annotated[dict[str, Any], Field(min_length=1)]
Text = Annotated[str, Field(max_length=1_000_000)]
Schema = dict[str, Any]


@_STRICT
class Common(TypedDict, total=False):
    """What every node may have."""

    needs: list[NodeId]
    join: Literal["all", "any"]
    retries: Annotated[int, Field(ge=0, le=10)]
    backoff: Annotated[float, Field(ge=0, le=60)]
    timeout: Annotated[float, Field(gt=0)]
    on_error: Literal["fail", "skip", "default_value"]
    default_value: Any
    description: str


@_STRICT
class Example(TypedDict):
    """One exchange that a call is shown before the prompt."""

    input: Text
    output: Text


@_STRICT
class CallBody(Common, total=False):
    """One model call."""

    kind: Required[Literal["call"]]
    model: Required[Model]
    prompt: Required[Text | dict[str, Any]]
    instructions: Text
    examples: Annotated[list[Example], Field(max_length=100)]
    history: str
    output_schema: Schema
    temperature: Annotated[float, Field(ge=0, le=2)]
    max_output_tokens: Annotated[int, Field(ge=1)]


@_STRICT
class AgentNodeBody(Common, total=False):
    """An agent's whole loop."""

    kind: Required[Literal["agent"]]
    agent: Required[Name | AgentBody]
    prompt: Required[Text | dict[str, Any]]
    history: str


@_STRICT
class ToolBody(Common, total=False):
    """One tool call."""

    kind: Required[Literal["tool"]]
    tool: Required[Annotated[str, Field(min_length=1, max_length=200)]]
    arguments: dict[str, Any]
    policy: Policy


@_STRICT
class CaseBody(TypedDict):
    """If ``when`` holds, the nodes ``to`` run."""

    when: Condition
    to: list[NodeId]


Branch = TypedDict(
    "Branch",
    {"cases": Required[Annotated[list[CaseBody], Field(min_length=1)]], "else": list[NodeId]},
    total=False,
)


@_STRICT
class BranchBody(Common, Branch, total=False):
    """The first case that holds; ``else`` where none does."""

    kind: Required[Literal["branch"]]


@_STRICT
class Body(Common, total=False):
    """What is done again: a graph, a workflow by its name, or a single node."""

    body: dict[str, Any]
    workflow: Name
    node: dict[str, Any]


@_STRICT
class MapBody(Body, total=False):
    """The body for each item of a list."""

    kind: Required[Literal["map"]]
    over: Required[Any]
    concurrency: Annotated[int, Field(ge=1, le=1000)]


@_STRICT
class LoopBody(Body, total=False):
    """The body, a number of times or until a condition holds."""

    kind: Required[Literal["loop"]]
    input: Any
    times: Annotated[int, Field(ge=1, le=1000)]
    until: Condition
    max: Annotated[int, Field(ge=1, le=1000)]
    on_max: Literal["fail", "finish"]
    history: Annotated[int, Field(ge=0, le=100)]


@_STRICT
class ApprovalBody(Common, total=False):
    """A person."""

    kind: Required[Literal["approval"]]
    message: Required[Text | dict[str, Any]]
    show: Any
    form: Literal["yes_no", "text", "schema"]
    schema: Schema
    on_deny: Literal["skip", "continue"]
    expires_in: Annotated[float, Field(gt=0, le=2_592_000)]
    default: Literal["deny", "approve"]


@_STRICT
class FactoryBody(TypedDict, total=False):
    """Who makes new agents, and out of what."""

    agent: Required[Name | AgentBody]
    models: Required[Annotated[list[Model], Field(min_length=1)]]
    tools: list[str]


@_STRICT
class TeamBody(Common, total=False):
    """Agents that share the work."""

    kind: Required[Literal["team"]]
    input: Any
    coordinator: Required[Name | AgentBody]
    planner: Required[Name | AgentBody]
    publisher: Required[Name | AgentBody]
    members: Required[Annotated[list[Name | AgentBody], Field(min_length=1, max_length=50)]]
    factory: FactoryBody
    rounds: Annotated[int, Field(ge=1, le=100)]


@_STRICT
class NestedBody(Common, total=False):
    """Another workflow."""

    kind: Required[Literal["workflow"]]
    workflow: Required[Name | dict[str, Any]]
    input: Any


@_STRICT
class OutputBody(Common, total=False):
    """What the workflow gives back."""

    kind: Required[Literal["output"]]
    value: Required[Any]
    schema: Schema


NodeBody = Annotated[
    CallBody
    | AgentNodeBody
    | ToolBody
    | BranchBody
    | MapBody
    | LoopBody
    | ApprovalBody
    | TeamBody
    | NestedBody
    | OutputBody,
    Field(discriminator="kind"),
]


@_STRICT
class SettingBody(TypedDict, total=False):
    """A value that nodes can refer to; an open one may be set by who starts the workflow."""

    default: Any
    schema: Schema
    open: bool


@_STRICT
class WorkflowBody(TypedDict, total=False):
    """A workflow. ``output`` is short for an output node of that value."""

    name: Name
    description: str | None
    input_schema: Schema | None
    settings: dict[NodeId, SettingBody]
    nodes: Required[Annotated[dict[NodeId, NodeBody], Field(min_length=1, max_length=500)]]
    output: Any
    budget: BudgetBody


WORKFLOW = TypeAdapter(WorkflowBody)
