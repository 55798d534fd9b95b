"""Workflows: those of the configuration, and those that come with a request; made ready to run.

A workflow is checked whole before a run exists: its shape, its graph, its agents, models and tools,
and the input that it is given. The run then carries all of it.
"""

from __future__ import annotations

import difflib
import hashlib
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from adapters.canonical.faults import Fault
from adapters.canonical.plain import parsed
from gateway.northbound.runs.agents import budget
from gateway.northbound.runs.workflow_bodies import NewWorkflow
from gateway.policy.auth import Principal
from gateway.runs.binding import shown
from gateway.runs.budget import least
from gateway.runs.spec import AgentSpec, Flow, Plan, RunSpec
from gateway.runs.workflow_check import Flaw, Known, check
from gateway.runs.workflow_spec import WorkflowSpec, set_to
from gateway.services.agents import MAX_REACHED, Agents, file_agents, fit, references
from gateway.services.runs import Reached, Runs
from gateway.services.workflow_compile import Compiled, compiled
from gateway.services.workflow_tools import tool_of
from gateway.settings.problems import Problem
from gateway.settings.snapshot import Snapshot
from gateway.store.runs import AgentRow, RunRow
from gateway.tools.base import Registry

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
    """What is wrong with the configuration's workflows."""
    written, problems = file_workflows(snapshot)
    agents = file_agents(snapshot)[0]
    for name, body in written.items():
        where = f"workflows.{name}"
        try:
            ready = compiled(body, name, written.get)
        except Fault as fault:
            place = f"{where}.{fault.param}" if fault.param else where
            problems.append(Problem(place, fault.message))
            continue
        flaws = [*ready.flaws, *check(ready.workflow, _known(ready, agents, None))]
        flaws += [Flaw("", f"there is no agent {n!r}") for n in ready.wanted if n not in agents]
        flaws += [Flaw("", text) for text in _unknown_models(ready, snapshot)]
        problems += [Problem(f"{where}.{f.path}".rstrip("."), f.message) for f in flaws]
    return [*problems, *_loose_tools(agents, written)]


def _loose_tools(agents: Mapping[str, AgentSpec], written: Written) -> list[Problem]:
    """Workflows and nodes that agents have for tools and that are not there."""
    problems = []
    for name, agent in agents.items():
        for reference in _flow_tools(agent):
            try:
                tool_of(reference, written)
            except Fault as fault:
                problems.append(Problem(f"agents.{name}.tools", fault.message))
    return problems


def _unknown_models(ready: Compiled, snapshot: Snapshot) -> list[str]:
    models = {agent.model for agent in ready.agents if not agent.name.startswith(TOOL)}
    return [f"{model!r} is no model of this file" for model in models - set(snapshot.aliases)]


TOOL = "tool:"
"""The head of the names of agents that stand for a single tool."""


def _known(ready: Compiled, others: Mapping[str, AgentSpec], registry: Registry | None) -> Known:
    """What the check may know of agents and tools."""
    agents = {**others, **{agent.name: agent for agent in ready.agents}}
    answers = {name: agent.output_schema for name, agent in agents.items()}
    parameters: dict[str, Any] = {}
    for agent in ready.agents if registry is not None else ():
        for name in agent.tools if agent.name.startswith(TOOL) else ():
            tool = None if registry is None else registry.get(name)
            if tool is not None:
                parameters[name] = tool.spec.parameters
    return Known(answers, parameters)


class Workflows:
    """The workflows that callers may run.

    :param runs: where they are run.
    """

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._files: tuple[str, Written] = ("", {})
        runs.beyond = self.beyond

    @property
    def written(self) -> Written:
        """The configuration's workflows."""
        snapshot = self._runs.bench.runtime().snapshot
        if self._files[0] != snapshot.hash:
            self._files = (snapshot.hash, file_workflows(snapshot)[0])
        return self._files[1]

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
        agents = self._runs.agents(principal)
        reached = await self._reached(agents, made, asked.agents)
        known = _known(made, {agent.name: agent for agent in reached}, self._registry)
        flow, flaws = _chosen(made.workflow, asked.settings, self._check)
        flaws = [*made.flaws, *check(flow, known), *flaws, *self._misfit(flow, asked.input)]
        if flaws:
            raise _refused(flaws)
        plan = await self._plan(principal, flow, asked)
        reached, flows = await self.beyond(
            principal, (*reached, *_of_plan(plan, reached)), asked.agents
        )
        for agent in reached:
            fit(agent, principal, self._runs.bench.runtime().snapshot, self._registry)
        settings = self._runs.bench.runtime().snapshot.extra["runs"]["on_budget"]
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
            on_budget=asked.on_budget or settings,
            on_disconnect=asked.on_disconnect,
            metadata=asked.metadata,
            end_user=asked.end_user,
        )

    def compiled(self, workflow: str | Mapping[str, Any]) -> Compiled:
        """A workflow by its name, or the one given.

        :raises Fault: ``not_found`` for an unknown name, ``bad_request`` for a wrong shape.
        """
        written = self.written
        if not isinstance(workflow, str):
            try:
                return compiled(workflow, None, written.get)
            except Fault as fault:
                param = f"workflow.{fault.param}" if fault.param else "workflow"
                raise Fault("bad_request", fault.message, param=param) from None
        if workflow not in written:
            near = difflib.get_close_matches(workflow[:100], list(written), n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise Fault("not_found", f"There is no such workflow here.{hint}", param="workflow")
        return compiled(written[workflow], workflow, written.get)

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
                more = await self._reached(self._runs.agents(principal), made, inline)
                known = _known(made, {agent.name: agent for agent in more}, self._registry)
                flaws = [*made.flaws, *check(made.workflow, known)]
                if flaws:
                    raise _refused(flaws)
                flows[reference] = Flow(reference, made.workflow)
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
        if not any(node.team is not None for node in flow.nodes):
            if asked.mode != "launch":
                text = f"mode {asked.mode!r} is for a workflow with a team."
                raise Fault("bad_request", text, param="mode")
            return None
        if asked.plan_id is None:
            return Plan(id=self._runs.bench.ledger.clock.new_id("plan_"))
        row = await self.plan(principal.project, asked.plan_id)
        if row.spec["workflow"] != flow.name:
            text = f"This plan is of the workflow {row.spec['workflow']!r}."
            raise Fault("bad_request", text, param="plan_id")
        version = row.version + (1 if asked.mode == "polish" else 0)
        return Plan(asked.mode, asked.plan_id, version, asked.instruction, row.spec)

    # what it needs

    @property
    def _registry(self) -> Registry:
        return self._runs.bench.tools()

    @property
    def _check(self) -> Any:
        return self._runs.bench.check

    def _misfit(self, flow: WorkflowSpec, value: Any) -> list[Flaw]:
        if flow.input_schema is None:
            return []
        return [Flaw("input", text) for text in self._check(flow.input_schema, value)]

    async def _reached(
        self, agents: Agents, made: Compiled, inline: Iterable[AgentSpec]
    ) -> tuple[AgentSpec, ...]:
        """The workflow's own agents, and all that any of them can reach."""
        own = {agent.name: agent for agent in (*inline, *made.agents)}
        found: dict[str, AgentSpec] = {agent.name: agent for agent in made.agents}
        beyond = [name for agent in own.values() for name in references(agent)]
        for name in dict.fromkeys((*made.wanted, *beyond)):
            if name in found:
                continue
            first = own[name] if name in own else await _named(agents, name)
            found |= {agent.name: agent for agent in await agents.reach(first, own.values())}
        if len([name for name in found if ":" not in name]) > MAX_REACHED:
            raise _refused([Flaw("nodes", f"more than {MAX_REACHED} agents are reached")])
        return tuple(found.values())


def _flow_tools(agent: AgentSpec) -> list[str]:
    return [name for name in agent.tools if name.startswith(("workflow:", "node:"))]


def _of_plan(plan: Plan | None, known: Iterable[AgentSpec]) -> list[AgentSpec]:
    """The agents that a stored plan brings along."""
    stored = () if plan is None or plan.stored is None else plan.stored["agents"]
    names = {agent.name for agent in known}
    return [parsed(AgentSpec, one) for one in stored if one["name"] not in names]


async def _named(agents: Agents, name: str) -> AgentSpec:
    try:
        return (await agents.get(name))[0]
    except Fault as fault:
        raise Fault("bad_request", f"{fault.message} ({name!r})", param="workflow") from None


def _chosen(
    flow: WorkflowSpec, given: Mapping[str, Any], check_value: Any
) -> tuple[WorkflowSpec, list[Flaw]]:
    """The workflow with the settings that its caller chose."""
    flaws: list[Flaw] = []
    for name, value in given.items():
        setting = flow.settings.get(name)
        if setting is None or not setting["open"]:
            flaws.append(Flaw(f"settings.{name}", "there is no open setting of this name"))
            continue
        problems = check_value(setting["schema"], value)
        flaws += [Flaw(f"settings.{name}", text) for text in problems]
    return set_to(flow, given), flaws


def _refused(flaws: Iterable[Flaw]) -> Fault:
    listed = list(dict.fromkeys(flaws))
    lines = [f"{flaw.path}: {flaw.message}" if flaw.path else flaw.message for flaw in listed]
    text = shown("; ".join(lines))
    errors = [{"path": flaw.path, "message": flaw.message} for flaw in listed]
    return Fault(
        "bad_request",
        f"The workflow can't run: {text}.",
        param=listed[0].path or "workflow",
        code="invalid_workflow",
        data={"errors": errors},
    )
