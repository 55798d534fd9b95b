"""Workflows: those of the configuration, and those that come with a request; made ready to run.

A workflow is checked whole before a run exists: its shape, its graph, its agents, models and tools,
and the input that it is given. The run then carries all of it.
"""

from __future__ import annotations

import difflib
import hashlib
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from adapters.canonical.faults import Fault
from adapters.canonical.plain import parsed
from gateway.northbound.runs.agents import budget
from gateway.northbound.runs.workflow_bodies import NewWorkflow
from gateway.policy.auth import Principal
from gateway.runs.arguments import Check
from gateway.runs.budget import least
from gateway.runs.spec import AgentSpec, Flow, Plan, RunSpec
from gateway.runs.workflow_check import Flaw
from gateway.runs.workflow_spec import WorkflowSpec, set_to, teams
from gateway.services.agents import (
    MAX_REACHED,
    Agents,
    file_agents,
    fit,
    fit_model,
    permitted,
)
from gateway.services.runs import Reached, Runs
from gateway.services.workflow_compile import Compiled, compiled
from gateway.services.workflow_flaws import World, agent_flaws, flaws, mentioned, refused
from gateway.services.workflow_tools import tool_of
from gateway.settings.problems import Problem
from gateway.settings.snapshot import Snapshot
from gateway.store.runs import AgentRow, RunRow
from gateway.structured.check import Schemas
from gateway.tools.base import Registry
from gateway.tools.registry import known

MAX_FILE = 1_000_000
"""Bytes of a workflow's file."""

Written = dict[str, Mapping[str, Any]]
"""Workflows as they are written, by name."""


def file_workflows(snapshot: Snapshot) -> tuple[Written, list[Problem]]:
    """The configuration's workflows, from its tables and its folder, and which can't be read."""
    found: Written = {}
    problems: list[Problem] = []
    for name, table in snapshot.extra.get("workflows", {}).items():
        found[name] = {key: value for key, value in table.items() if value is not None}
    folder = snapshot.extra.get("runs", {}).get("workflows_dir")
    for file in sorted((Path(snapshot.base_dir) / folder).glob("*.toml")) if folder else ():
        where = f"workflows/{file.name}"
        try:
            with file.open("rb") as opened:
                read = tomllib.loads(opened.read(MAX_FILE).decode())
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
            problems.append(Problem(where, f"can't be read: {error}"))
            continue
        if file.stem in found:
            problems.append(Problem(where, f"there are two workflows called {file.stem!r}"))
        found[file.stem] = read
    return found, problems


def check_workflows(snapshot: Snapshot) -> list[Problem]:
    """What is wrong with the configuration's workflows, and with what its agents have for tools."""
    written, problems = file_workflows(snapshot)
    agents = file_agents(snapshot)[0]
    world = World(agents, chat_models(snapshot), known(snapshot), Schemas())
    for name, body in written.items():
        where = f"workflows.{name}"
        found = flaws(compiled(body, name, written.get), world)
        problems += [Problem(f"{where}.{f.path}".rstrip("."), f.message) for f in found]
    for name, agent in agents.items():
        found = [*agent_flaws(agent, f"agents.{name}", world), *_loose_flows(agent, written)]
        problems += [Problem(flaw.path, flaw.message) for flaw in found if "model" not in flaw.path]
    return problems


def chat_models(snapshot: Snapshot) -> frozenset[str]:
    """The aliases that a node or an agent may talk to."""
    return frozenset(name for name, alias in snapshot.aliases.items() if alias.kind == "chat")


def _loose_flows(agent: AgentSpec, written: Written) -> Iterator[Flaw]:
    """Workflows and nodes that an agent has for tools and that are not there."""
    for reference in _flow_tools(agent):
        try:
            tool_of(reference, written)
        except Fault as fault:
            yield Flaw(f"agents.{agent.name}.tools", fault.message)


class Workflows:
    """The workflows that callers may run.

    :param runs: where they are run.
    """

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self.written: Written = {}
        """The configuration's workflows."""
        self._made: dict[str, Compiled] = {}
        runs.beyond = self.beyond

    def use(self, snapshot: Snapshot) -> None:
        """Take the workflows of a configuration."""
        self.written = file_workflows(snapshot)[0]
        self._made = {}

    async def create(
        self, principal: Principal, asked: NewWorkflow, body: bytes, key: str | None = None
    ) -> RunRow:
        """Begin a run of a workflow.

        :raises Fault: ``bad_request`` whose message lists everything that is wrong, with paths.
        """
        spec = await self.ready(principal, asked)
        digest = hashlib.sha256(body).digest()
        return await self._runs.begin(principal, spec, key=key, digest=digest)

    async def ready(self, principal: Principal, asked: NewWorkflow) -> RunSpec:
        """The run that ``asked`` describes, with everything in it."""
        made = self.compiled(asked.workflow)
        reached, missing = await self._reached(self._runs.agents(principal), made, asked.agents)
        flow, chosen = _chosen(made.workflow, asked.settings, self._runs.bench.check)
        await self._registry.ready([tool for agent in reached for tool in agent.tools])
        found = flaws(replace(made, workflow=flow), self._world(reached))
        found = [*found, *missing, *chosen, *self._misfit(flow, asked.input)]
        if found:
            raise refused(found)
        plan = await self._plan(principal, flow, asked)
        reached, flows = await self.beyond(
            principal, (*reached, *_of_plan(plan, reached)), asked.agents
        )
        for agent in reached:
            fit(agent, principal, self._snapshot, self._registry)
        for model in _to_be_used(flow):
            fit_model(model, "a team's factory", principal, self._snapshot)
        return RunSpec(
            kind="workflow",
            agent=flow.name,
            agents=reached,
            history=asked.history,
            workflow=flow,
            value=asked.input,
            plan=plan,
            tools=flows,
            budget=least(asked.budget, budget(made.budget)),
            on_budget=asked.on_budget or self._snapshot.extra["runs"]["on_budget"],
            on_disconnect=asked.on_disconnect,
            metadata=asked.metadata,
            end_user=asked.end_user,
        )

    def compiled(self, workflow: str | Mapping[str, Any]) -> Compiled:
        """A workflow by its name, or the one given.

        :raises Fault: ``not_found`` for an unknown name.
        """
        written = self.written
        if not isinstance(workflow, str):
            return compiled(workflow, None, written.get)
        if workflow not in written:
            near = difflib.get_close_matches(workflow[:100], list(written), n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise Fault("not_found", f"There is no such workflow here.{hint}", param="workflow")
        if workflow not in self._made:
            self._made[workflow] = compiled(written[workflow], workflow, written.get)
        return self._made[workflow]

    async def usable(self, principal: Principal) -> list[str]:
        """The configuration's workflows whose agents, models and tools this key may use."""
        agents, found = self._runs.agents(principal), []
        for name in self.written:
            made = self.compiled(name)
            reached, _ = await self._reached(agents, made, ())
            models = all(principal.may_use(model) for model in _to_be_used(made.workflow))
            if models and all(permitted(agent, principal) for agent in reached):
                found.append(name)
        return found

    async def beyond(
        self, principal: Principal, reached: Reached, inline: Reached
    ) -> tuple[Reached, tuple[Flow, ...]]:
        """The workflows and nodes that agents have for tools, and the agents behind those.

        :raises Fault: ``bad_request`` for one that is not there, or is not whole.
        """
        flows: dict[str, Flow] = {}
        agents = {agent.name: agent for agent in reached}
        waiting = list(reached)
        while waiting:
            for reference in _flow_tools(waiting.pop()):
                if reference in flows:
                    continue
                made = tool_of(reference, self.written)
                more, missing = await self._reached(self._runs.agents(principal), made, inline)
                found = [*flaws(made, self._world(more)), *missing]
                if found:
                    raise refused(Flaw(f"{reference}: {one.path}", one.message) for one in found)
                flows[reference] = Flow(reference, made.workflow, budget(made.budget))
                waiting += [agent for agent in more if agent.name not in agents]
                agents |= {agent.name: agent for agent in more}
        return tuple(agents.values()), tuple(flows.values())

    # plans

    async def plan(self, project: str, plan_id: str, version: int | None = None) -> AgentRow:
        """A stored plan, by default its newest version.

        :raises Fault: ``not_found``.
        """
        row = await self._runs.bench.ledger.store.agent(project, f"plan:{plan_id}", version)
        if row is None or row.deleted:
            raise Fault("not_found", "There is no plan of this id here.", param="plan_id")
        return row

    async def _plan(
        self, principal: Principal, flow: WorkflowSpec, asked: NewWorkflow
    ) -> Plan | None:
        team = next((node.id for node in flow.nodes if node.team is not None), None)
        if team is None:
            if asked.mode != "launch":
                text = f"mode {asked.mode!r} is for a workflow with a team."
                raise Fault("bad_request", text, param="mode")
            return None
        if asked.plan_id is None:
            return Plan(id=self._runs.bench.ledger.clock.new_id("plan_"), node=team)
        row = await self.plan(principal.project, asked.plan_id)
        if row.spec["workflow"] != flow.name:
            text = f"This plan is of the workflow {row.spec['workflow']!r}."
            raise Fault("bad_request", text, param="plan_id")
        return Plan(asked.mode, asked.plan_id, team, row.version, asked.instruction, row.spec)

    # what it needs

    @property
    def _snapshot(self) -> Snapshot:
        return self._runs.bench.runtime().snapshot

    @property
    def _registry(self) -> Registry:
        return self._runs.bench.tools()

    def _world(self, agents: Iterable[AgentSpec]) -> World:
        known = {agent.name: agent for agent in agents}
        models, schemas = chat_models(self._snapshot), self._runs.bench.runtime().schemas
        return World(known, models, self._registry, schemas)

    def _misfit(self, flow: WorkflowSpec, value: Any) -> list[Flaw]:
        if flow.input_schema is None:
            return []
        return [Flaw("input", text) for text in self._runs.bench.check(flow.input_schema, value)]

    async def _reached(
        self, agents: Agents, made: Compiled, inline: Iterable[AgentSpec]
    ) -> tuple[tuple[AgentSpec, ...], list[Flaw]]:
        """The workflow's own agents and all that any of them can reach, as far as they can be
        found; and what is wrong with the reach of those that are found."""
        own = {agent.name: agent for agent in (*inline, *made.agents)}
        found: dict[str, AgentSpec] = {agent.name: agent for agent in made.agents}
        missing: list[Flaw] = []
        for name, place in mentioned(made):
            if name in found:
                continue
            try:
                first = own[name] if name in own else (await agents.get(name))[0]
                found |= {agent.name: agent for agent in await agents.reach(first, own.values())}
            except Fault as fault:
                if fault.kind != "not_found":  # else told with the other flaws
                    missing.append(Flaw(place, fault.message))
        if len([name for name in found if ":" not in name]) > MAX_REACHED:
            missing.append(Flaw("nodes", f"more than {MAX_REACHED} agents are reached"))
        return tuple(found.values()), missing


def _to_be_used(flow: WorkflowSpec) -> list[str]:
    """The models of agents that are yet to be made."""
    return [model for team in teams(flow) for model in team.models]


def _flow_tools(agent: AgentSpec) -> list[str]:
    return [name for name in agent.tools if name.startswith(("workflow:", "node:"))]


def _of_plan(plan: Plan | None, known: Iterable[AgentSpec]) -> list[AgentSpec]:
    """The agents that a stored plan brings along."""
    stored = () if plan is None or plan.stored is None else plan.stored["agents"]
    names = {agent.name for agent in known}
    return [parsed(AgentSpec, one) for one in stored if one["name"] not in names]


def _chosen(
    flow: WorkflowSpec, given: Mapping[str, Any], check_value: Check
) -> tuple[WorkflowSpec, list[Flaw]]:
    """The workflow with the settings that its caller chose."""
    found: list[Flaw] = []
    fitting: dict[str, Any] = {}
    for name, value in given.items():
        setting = flow.settings.get(name)
        if setting is None or not setting["open"]:
            found.append(Flaw(f"settings.{name}", "there is no open setting of this name"))
            continue
        wrong = check_value(setting["schema"], value)
        found += [Flaw(f"settings.{name}", text) for text in wrong]
        if not wrong:
            fitting[name] = value
    return set_to(flow, fitting), found
