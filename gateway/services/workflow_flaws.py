"""Everything that is wrong with a workflow in the world that it is to run in: one list, with paths.

The same for a workflow of the configuration and for one that comes with a request; they differ
only in who can be found. What the caller's key may not do is no flaw of the workflow and is said
elsewhere.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from adapters.canonical.faults import Fault
from adapters.canonical.record import record
from gateway.runs.bench import schema_check
from gateway.runs.spec import AgentSpec
from gateway.runs.workflow_check import Flaw, Known, check
from gateway.runs.workflow_spec import NodeSpec, WorkflowSpec
from gateway.services.agents import references
from gateway.services.workflow_compile import Compiled, Wanted
from gateway.structured.bounds import SchemaRefused
from gateway.structured.check import Schemas
from gateway.tools.base import Registry

TOOL = "tool:"
"""The head of the names of agents that stand for a single tool."""


MAX_TOLD = 20
"""Flaws that a caller is told at once; an error's body is bounded. ``gateway check`` tells all."""


@record(frozen=True, slots=True)
class World:
    """What a workflow may rely on: agents by name, chat models, tools."""

    agents: Mapping[str, AgentSpec]
    models: Collection[str]
    tools: Registry
    schemas: Schemas

    def unusable(self, schema: Mapping[str, Any]) -> str | None:
        """Why a JSON Schema can't be used."""
        try:
            self.schemas.checker(schema)
        except SchemaRefused as why:
            return str(why)
        return None


def flaws(made: Compiled, world: World) -> list[Flaw]:
    """All of them, each once."""
    found = [*made.flaws]
    if made.workflow.nodes:
        found += check(made.workflow, _known(made, world))
        found += _missing(made, world)
        for agent in made.agents:
            found += agent_flaws(agent, made.places[agent.name], world)
        found += _teams(made.workflow, world, "")
    return list(dict.fromkeys(found))


def refused(found: Iterable[Flaw]) -> Fault:
    """The fault that tells a caller of them."""
    listed = list(found)
    told = listed[:MAX_TOLD]
    lines = [": ".join(part for part in flaw if part).rstrip(".") for flaw in told]
    if len(listed) > len(told):
        lines.append(f"and {len(listed) - len(told)} more, told when these are mended")
    return Fault(
        "bad_request",
        f"The workflow can't run: {'; '.join(lines)}.",
        param=listed[0].path or "workflow",
        code="invalid_workflow",
        data={"errors": [{"path": flaw.path, "message": flaw.message} for flaw in told]},
    )


def agent_flaws(agent: AgentSpec, place: str, world: World) -> Iterator[Flaw]:
    """What an agent relies on and can't have."""
    single = agent.name.startswith(TOOL)
    if agent.model and agent.model not in world.models:
        yield Flaw(f"{place}.model", f"there is no chat model {agent.model!r}{_near(agent, world)}")
    for name in agent.tools:
        text = _no_tool(name, world.tools, single=single)
        if text is not None:
            yield Flaw(place if single else f"{place}.tools", text)
    why = None if agent.output_schema is None else world.unusable(agent.output_schema)
    if why is not None:
        yield Flaw(f"{place}.output_schema", f"the schema can't be used: {why}")


def _near(agent: AgentSpec, world: World) -> str:
    near = difflib.get_close_matches(agent.model[:200], list(world.models), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _no_tool(name: str, tools: Registry, *, single: bool) -> str | None:
    """Why there is no such tool; those of an MCP server may still come."""
    if ":" in name:
        text = f"{name!r} is no tool of its own; a node of that kind does the same"
        return text if single else None
    if single and name.endswith("*"):
        return "names one tool, not several"
    if tools.promised(name):
        return None
    try:
        tools.specs([name])
    except Fault as fault:
        return fault.message
    return None


def _known(made: Compiled, world: World) -> Known:
    """What the check of the graph may know of agents and tools."""
    agents = {**world.agents, **{agent.name: agent for agent in made.agents}}
    parameters: dict[str, Any] = {}
    for agent in made.agents:
        for name in agent.tools if agent.name.startswith(TOOL) else ():
            tool = world.tools.get(name)
            if tool is not None:
                parameters[name] = tool.spec.parameters
    answers = {name: agent.output_schema for name, agent in agents.items()}
    return Known(answers, parameters, world.unusable, schema_check(world.schemas))


def mentioned(made: Compiled) -> list[Wanted]:
    """Every agent that a workflow names, by itself or as what its own agents can reach."""
    reached = [
        Wanted(name, made.places[agent.name]) for agent in made.agents for name in references(agent)
    ]
    return list(dict.fromkeys((*made.wanted, *reached)))


def _missing(made: Compiled, world: World) -> Iterator[Flaw]:
    """Agents that are named and are nowhere."""
    own = {agent.name for agent in made.agents}
    for name, place in mentioned(made):
        if name not in own and name not in world.agents:
            near = difflib.get_close_matches(name, [*own, *world.agents], n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            yield Flaw(place, f"there is no agent {name!r}{hint}")


def _teams(flow: WorkflowSpec, world: World, path: str) -> Iterator[Flaw]:
    """What a factory may use must be there."""
    for node in flow.nodes:
        place = f"{path}nodes.{node.id}"
        yield from _factory(node, world, place)
        for inner, body in flow.bodies():
            if inner == node.id:
                work = node.map or node.loop
                form = "workflow" if work is None else work.form
                yield from _teams(body, world, f"{place}.{form}.")


def _factory(node: NodeSpec, world: World, place: str) -> Iterator[Flaw]:
    if node.team is None:
        return
    for name in node.team.models:
        if name not in world.models:
            yield Flaw(f"{place}.factory.models", f"there is no chat model {name!r}")
    for tool in node.team.tools:
        text = None if ":" in tool else _no_tool(tool, world.tools, single=False)
        if text is not None:
            yield Flaw(f"{place}.factory.tools", text)
