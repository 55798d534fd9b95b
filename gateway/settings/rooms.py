"""The shapes of the tables that rooms above read for themselves.

They land in ``Snapshot.extra`` as plain data. What a prompt, an agent or a workflow means, and
whether it fits together, is for the room that owns it to check; the shape is refused here.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from gateway.settings.scalars import (
    AtLeastOne,
    Count,
    Name,
    Reference,
    Seconds,
    Table,
    Usd,
)

RedactionMode = Literal["off", "mask", "reversible", "block"]
OnBudget = Literal["incomplete", "wait"]
Policy = Literal["allow", "approve", "deny"]


class RunsTable(Table):
    """Agents and workflows: how long runs live, how many at once, where their files are."""

    run_ttl: Seconds = 604_800.0
    on_budget: OnBudget = "incomplete"
    max_concurrent: AtLeastOne = 100
    lease_seconds: Seconds = 15.0
    agents_dir: str | None = None
    workflows_dir: str | None = None


class PatternTable(Table):
    """A pattern of the operator's own; linear-time regular expressions only."""

    kind: Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")]
    pattern: Annotated[str, Field(min_length=1, max_length=1000)]


class RedactionTable(Table):
    """What is masked before anything leaves for a provider, where key and alias are silent."""

    mode: RedactionMode = "off"
    kinds: list[str] | None = None
    patterns: list[PatternTable] = []


class PromptsTable(Table):
    """Where prompt templates are, and what rendering one may cost."""

    dir: str | None = None
    max_bytes: AtLeastOne = 1_000_000
    max_seconds: Seconds = 2.0


class ToolTable(Table):
    """A tool that agents may use: a Python function, an HTTP endpoint, or one built in.

    What is left out of the four lines from ``idempotent`` on, a Python function may have declared
    for itself; :mod:`gateway.tools.base` has the defaults.
    """

    kind: Literal["python", "http", "builtin"]
    description: str | None = None
    function: str | None = None
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    url: Reference | None = None
    headers: dict[str, Reference] = {}
    body: Any = None
    parameters: dict[str, Any] | None = None
    allow_hosts: list[str] | None = None
    allow_private: list[str] = []
    ca_file: str | None = None
    idempotent: bool | None = None
    read_only: bool | None = None
    timeout: Seconds | None = None
    max_output: AtLeastOne | None = None
    policy: Policy | None = None


class McpTable(Table):
    """An MCP server: ``url`` for streamable HTTP, or ``command`` for stdio."""

    url: Reference | None = None
    command: str | None = None
    args: list[str] = []
    env: dict[str, Reference] = {}
    show_stderr: bool = False
    headers: dict[str, Reference] = {}
    allow_private: list[str] = []
    ca_file: str | None = None
    tools: list[str] | None = None
    pins: dict[str, str] = {}
    timeout: Seconds = 30.0
    max_output: AtLeastOne = 50_000
    idempotent: list[str] = []
    policy: Policy | None = None


class BudgetTable(Table):
    """What one run may use. Left out is unlimited."""

    usd: Usd | None = None
    tokens: Count | None = None
    tool_calls: Count | None = None
    seconds: Seconds | None = None


class AgentTable(Table):
    """An agent: a model with instructions and tools, run in a loop until it answers."""

    model: Name
    description: str | None = None
    instructions: str | None = None
    prompt: str | None = None
    tools: list[str] = []
    output_schema: dict[str, Any] | None = None
    max_turns: AtLeastOne = 10
    parallel_tools: bool = True
    tool_policy: dict[str, Policy] = {}
    handoffs: list[str] = []
    context: Literal["refuse", "trim_history", "truncate_tool_results"] | None = None
    budget: BudgetTable = BudgetTable()
    on_budget: OnBudget | None = None
    contract: list[dict[str, Any]] = []


class WorkflowTable(Table):
    """A graph of nodes; what a node may hold is checked by the workflow's own room."""

    description: str | None = None
    input_schema: dict[str, Any] | None = None
    settings: dict[str, dict[str, Any]] | None = None
    nodes: Annotated[dict[str, dict[str, Any]], Field(min_length=1)]
    output: Any = None
    budget: dict[str, Any] | None = None
