"""Agents: those of the configuration, and those that callers keep, with versions.

A name that the configuration has is the configuration's for every project; callers read it and
can't change it. What an agent needs (its model, its tools, the agents that it can reach) is
looked up when a run begins, and the run carries it from then on.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from adapters.canonical.faults import Fault
from adapters.canonical.plain import parsed, plain
from adapters.canonical.request import PromptRef
from gateway.flow.context import Runtime
from gateway.flow.prompting import named
from gateway.northbound.runs.agents import parse_agent
from gateway.policy.auth import Principal
from gateway.policy.prompts.variables import required
from gateway.runs.asking import child_name, handoff_name
from gateway.runs.spec import AgentSpec
from gateway.settings.problems import Problem
from gateway.settings.snapshot import Snapshot
from gateway.store.base import Store
from gateway.store.runs import AgentRow
from gateway.structured.bounds import SchemaRefused
from gateway.structured.check import Schemas
from gateway.tools.base import Registry, matches

MAX_REACHED = 50
"""Agents that one run may carry."""
MAX_FILE = 1_000_000
"""Bytes of an agent's file."""

Known = tuple[AgentSpec, AgentRow | None]
"""An agent, and its row if it is not the configuration's."""


def file_agents(snapshot: Snapshot) -> tuple[dict[str, AgentSpec], list[Problem]]:
    """The configuration's agents, from its tables and its folder, and what is wrong with them."""
    found: dict[str, AgentSpec] = {}
    problems: list[Problem] = []
    for name, where, given in _written(snapshot, problems):
        if name in found:
            problems.append(Problem(where, f"there are two agents called {name!r}"))
            continue
        try:
            found[name] = parse_agent(given, name)
        except Fault as fault:
            place = f"{where}.{fault.param}" if fault.param else where
            problems.append(Problem(place, fault.message))
    for name, agent in found.items():
        problems += _loose_ends(name, agent, found, snapshot)
    return found, problems


def check_agents(snapshot: Snapshot) -> list[Problem]:
    """What is wrong with the configuration's agents."""
    return file_agents(snapshot)[1]


def _written(
    snapshot: Snapshot, problems: list[Problem]
) -> Iterable[tuple[str, str, Mapping[str, Any]]]:
    """Name, place and body of each agent."""
    for name, table in snapshot.extra.get("agents", {}).items():
        yield name, f"agents.{name}", _said(table)
    folder = snapshot.extra.get("runs", {}).get("agents_dir")
    for file in sorted((Path(snapshot.base_dir) / folder).glob("*.toml")) if folder else ():
        try:
            with file.open("rb") as opened:
                yield (
                    file.stem,
                    f"agents/{file.name}",
                    tomllib.loads(opened.read(MAX_FILE).decode()),
                )
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
            problems.append(Problem(f"agents/{file.name}", f"can't be read: {error}"))


def _said(table: Mapping[str, Any]) -> dict[str, Any]:
    """A table without what was left out of the file."""
    said = {name: value for name, value in table.items() if value is not None}
    said["budget"] = {n: v for n, v in said.get("budget", {}).items() if v is not None}
    return said


def _loose_ends(
    name: str, agent: AgentSpec, known: Mapping[str, AgentSpec], snapshot: Snapshot
) -> list[Problem]:
    where = f"agents.{name}"
    problems = []
    if agent.model not in snapshot.aliases:
        problems.append(Problem(f"{where}.model", f"{agent.model!r} is no model of this file"))
    for other in references(agent):
        if other not in known:
            problems.append(Problem(where, f"refers to {other!r}, which is no agent of this file"))
    flaw = idle_rule(agent, known.values())
    return problems if flaw is None else [*problems, Problem(f"{where}.contract", flaw)]


def idle_rule(agent: AgentSpec, everybody: Iterable[AgentSpec]) -> str | None:
    """Why a rule of the agent's contract could never be kept or broken: it speaks of a tool that
    nobody has. What must come before may be done by another of ``everybody``."""
    own, all_names = _callable(agent), [name for one in everybody for name in _callable(one)]
    for number, rule in enumerate(agent.contract):
        where = f"contract[{number}] speaks of"
        mine = rule.before if rule.kind == "require" else rule.tool
        if mine is not None and not any(matches(name, mine) for name in own):
            return f"{where} {mine!r}, which is no tool of this agent"
        if rule.kind == "require" and not any(matches(n, str(rule.tool)) for n in all_names):
            return f"{where} {rule.tool!r}, which is no tool of any agent here"
    return None


def _callable(agent: AgentSpec) -> list[str]:
    """What the agent's model can call, by its names there."""
    tools = [child_name(name) if ":" in name else name for name in agent.tools]
    return [*tools, *(t.name for t in agent.client_tools), *map(handoff_name, agent.handoffs)]


def references(agent: AgentSpec) -> list[str]:
    """The agents that ``agent`` may hand over to or call."""
    called = [name.removeprefix("agent:") for name in agent.tools if name.startswith("agent:")]
    return list(dict.fromkeys((*agent.handoffs, *called)))


class Agents:
    """The agents of one project, as a caller sees them."""

    def __init__(self, store: Store, files: Mapping[str, AgentSpec], project: str) -> None:
        self._store = store
        self._files = files
        self._project = project

    async def list(self) -> list[Known]:
        """All of them, by name; the configuration's first."""
        rows = await self._store.agents(self._project)
        own: list[Known] = [(agent, None) for agent in self._files.values()]
        return own + [(_spec(row), row) for row in rows if _is_own(row, self._files)]

    async def get(self, name: str, version: int | None = None) -> Known:
        """An agent, by default its newest version.

        :raises Fault: ``not_found``, with the nearest name.
        """
        if name in self._files and version is None:
            return self._files[name], None
        other = name in self._files or ":" in name
        row = None if other else await self._store.agent(self._project, name, version)
        if row is not None and not row.deleted:
            return _spec(row), row
        names = [agent.name for agent, _ in await self.list()]
        near = difflib.get_close_matches(name[:100], names, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise Fault("not_found", f"There is no such agent here.{hint} GET /agents lists them.")

    async def put(self, spec: AgentSpec, now: float) -> AgentRow:
        """Keep a new version.

        :raises Fault: ``conflict`` for an agent of the configuration.
        """
        self._changeable(spec.name)
        while True:
            newest = await self._store.agent(self._project, spec.name, None)
            version = 1 if newest is None else newest.version + 1
            row = AgentRow(self._project, spec.name, version, now, plain(spec))
            if await self._store.put_agent(row):
                return row

    async def delete(self, name: str) -> None:
        """Forget an agent; runs that have it go on.

        :raises Fault: ``conflict`` for one of the configuration, ``not_found`` for none.
        """
        self._changeable(name)
        if not await self._store.delete_agent(self._project, name):
            raise Fault("not_found", "There is no such agent here. GET /agents lists them.")

    def _changeable(self, name: str) -> None:
        if name in self._files:
            raise Fault(
                "conflict",
                "This agent stands in the gateway's configuration and is read-only here. Choose "
                "another name, or ask the operator to change the file.",
            )

    async def reach(
        self, first: AgentSpec, inline: Iterable[AgentSpec] = ()
    ) -> tuple[AgentSpec, ...]:
        """``first`` and every agent that it can reach.

        :raises Fault: ``bad_request`` for an unknown one, or too many.
        """
        known = {agent.name: agent for agent in inline}
        found: dict[str, AgentSpec] = {first.name: first}
        waiting = references(first)
        while waiting:
            name = waiting.pop()
            if name in found:
                continue
            try:
                agent = known[name] if name in known else (await self.get(name))[0]
            except Fault as fault:
                text = f"The agent {name!r} can be reached but not found. {fault.message}"
                raise Fault("bad_request", text, param="agent") from None
            found[name] = agent
            waiting += references(agent)
            if len(found) > MAX_REACHED:
                text = f"A run can reach {MAX_REACHED} agents at most."
                raise Fault("bad_request", text, param="agent")
        return tuple(found.values())


async def known_tools(agents: Iterable[AgentSpec], registry: Registry) -> None:
    """Before :func:`fit`: wait until the tools of ``agents`` are known, as far as they can be."""
    await registry.ready([name for agent in agents for name in agent.tools])


def fit(agent: AgentSpec, principal: Principal, snapshot: Snapshot, registry: Registry) -> None:
    """Check that this key can run ``agent`` here and now. A tool of a server that is away is taken
    on trust: a run begins without it.

    :raises Fault: ``unknown_model``, ``forbidden`` or ``bad_request``, naming the agent.
    """
    place = f"agent {agent.name!r}"
    if agent.model:  # else it stands for a single tool, and nobody speaks
        fit_model(agent.model, place, principal, snapshot)
    named_tools = [name for name in agent.tools if ":" not in name]
    tools = registry.specs([name for name in named_tools if not registry.awaited(name)])
    allowed = principal.tools
    barred = [t.name for t in tools if not _may(allowed, t.name)]
    if barred:
        text = f"The key {principal.key_name!r} may not use the tool {barred[0]!r} of {place}."
        raise Fault("forbidden", text, code="tool_not_allowed", param="tools")
    if agent.output_schema is not None:
        _usable(agent.output_schema, f"The output_schema of {place}", "output_schema")
    for tool in agent.client_tools:
        _usable(tool.parameters, f"The schema of the tool {tool.name!r} of {place}", "tools")


def _usable(schema: Mapping[str, Any], what: str, param: str) -> None:
    try:
        Schemas().checker(schema)
    except SchemaRefused as why:
        raise Fault("bad_request", f"{what} can't be used: {why}.", param=param) from None


def fit_together(agents: Iterable[AgentSpec], runtime: Runtime) -> None:
    """Check what agents of a run are told, and what rules bind them, with all of them at hand.

    :raises Fault: ``not_found`` or ``bad_request``, naming the agent.
    """
    everybody = tuple(agents)
    for agent in everybody:
        flaw = idle_rule(agent, everybody)
        if flaw is not None:
            text = f"The contract of agent {agent.name!r} can't be kept: {flaw}."
            raise Fault("bad_request", text, param="contract")
        if agent.prompt is not None:
            _promptable(agent, agent.prompt, runtime)


def _promptable(agent: AgentSpec, reference: str, runtime: Runtime) -> None:
    prompt = named(runtime, PromptRef(reference), "openai-responses")
    needed = [] if prompt is None else required(prompt.variables)
    if prompt is not None and needed:
        text = (
            f"The prompt {prompt.reference} of agent {agent.name!r} needs the variable "
            f"{needed[0]!r}, and an agent gives none. Let it have a default."
        )
        raise Fault("bad_request", text, param="prompt")


def permitted(agent: AgentSpec, principal: Principal) -> bool:
    """Whether nothing that ``agent`` is made of is barred to this key."""
    tools = [name for name in agent.tools if ":" not in name]
    may_talk = not agent.model or principal.may_use(agent.model)
    return may_talk and all(_may(principal.tools, name) for name in tools)


def fit_model(model: str, place: str, principal: Principal, snapshot: Snapshot) -> None:
    """Check that this key can talk to ``model``, which is that of ``place``.

    :raises Fault: ``unknown_model`` or ``forbidden``.
    """
    alias = snapshot.aliases.get(model)
    if alias is None or alias.kind != "chat":
        names = [one for one in snapshot.aliases if principal.may_use(one)]
        near = difflib.get_close_matches(model[:200], names, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        text = f"The model of {place} is not known here.{hint} GET /v1/models lists them."
        raise Fault("unknown_model", text, param="model")
    if not principal.may_use(alias.name):
        text = f"The key {principal.key_name!r} may not use the model of {place}."
        raise Fault("forbidden", text, code="model_not_allowed", param="model")


def _is_own(row: AgentRow, files: Mapping[str, AgentSpec]) -> bool:
    """Whether a row is a caller's agent, not hidden by one of the configuration; ``plan:ID`` is a
    plan, kept in the same book."""
    return row.name not in files and ":" not in row.name


def _spec(row: AgentRow) -> AgentSpec:
    return parsed(AgentSpec, row.spec)


def _may(allowed: frozenset[str] | None, tool: str) -> bool:
    return allowed is None or any(matches(word, tool) for word in allowed)
