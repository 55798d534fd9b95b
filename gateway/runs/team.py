"""A team: agents that share a task, as the work of one node. Pure; read ``_worked`` top to bottom.

coordinator (answers, or hands over) -> planner (a checked plan) -> factory (agents that the plan
lacks) -> the plan is kept -> rounds of publisher (who is next, out of the closed set) and member.
What a member says goes into the shared state; what the coordinator says never does. A stored plan
takes the place of coordinator and planner (``production``), or is what the planner changes
(``polish``).

Every step is a node of its own under the team's (``crew/round1-publisher``), so it is written
down, recovered and never repeated like any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from adapters.canonical.plain import plain
from adapters.canonical.record import record
from adapters.wire.json import dumps
from gateway.runs.actions import Keep
from gateway.runs.binding import bind, shown
from gateway.runs.events import Draft, draft
from gateway.runs.node_work import AGENT_RULES, said
from gateway.runs.nodes import PLAN
from gateway.runs.spec import AgentSpec, Plan
from gateway.runs.state import Node
from gateway.runs.walk import INCOMPLETE, Spot, Walk, told_as, under
from gateway.runs.workflow_spec import Team

FINISH = "finish"
"""What a publisher names when the work is done."""
MAX_STEPS = 50
NAME = "^[A-Za-z][A-Za-z0-9_-]{0,31}$"
"""What a new agent may be called."""
MAX_NEW = 5
"""New agents that one plan may ask for."""

Schema = Mapping[str, Any]


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


TEXT: Schema = {"type": "string"}
COORDINATE: Schema = _object(action={"type": "string", "enum": ["answer", "hand_over"]}, text=TEXT)


def plan_schema(team: Team, members: tuple[str, ...]) -> Schema:
    """What a plan looks like: who does what; and which agents are missing, where the team may make
    some."""
    who: Schema = TEXT if team.factory is not None else {"type": "string", "enum": list(members)}
    step = _object(member=who, task=TEXT)
    steps = {"type": "array", "items": step, "minItems": 1, "maxItems": MAX_STEPS}
    if team.factory is None:
        return _object(steps=steps)
    name = {"type": "string", "pattern": NAME}
    wanted = {"type": "array", "items": _object(name=name, purpose=TEXT), "maxItems": MAX_NEW}
    return _object(steps=steps, new_agents=wanted)


def pick_schema(members: tuple[str, ...]) -> Schema:
    """What a publisher decides: one of the members with a task, or the end with the answer."""
    return _object(next={"type": "string", "enum": [*members, FINISH]}, text=TEXT)


def agent_schema(team: Team) -> Schema:
    """What a factory may specify."""
    tools = {"type": "array", "items": {"type": "string", "enum": list(team.tools)}}
    return _object(
        model={"type": "string", "enum": list(team.models)},
        instructions=TEXT,
        **({"tools": tools} if team.tools else {}),
    )


class _NotYet(Exception):
    """A step is under way."""


class _Broken(Exception):
    """A step has failed, or the plan can't be followed."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(error["message"])
        self.error = error


class TeamWork:
    """A node of kind ``team``."""

    def begin(self, walk: Walk, spot: Spot) -> None:
        """Take the task."""
        assert spot.node.team is not None
        walk.start(spot, bind(spot.node.team.input, spot.scope))

    def go_on(self, walk: Walk, spot: Spot, state: Node) -> None:
        """Push the team's next step."""
        assert spot.node.team is not None
        plan = walk.run.spec.plan
        if plan is None or plan.node != spot.path:
            plan = Plan()  # a run has one plan that is kept; other teams plan for themselves
        try:
            output = _Crew(walk, spot, state, spot.node.team, plan).worked()
        except _NotYet:
            return
        except _Broken as broken:
            walk.finish(spot, state, error=broken.error)
            return
        walk.finish(spot, state, output)


@record(frozen=True, slots=True)
class _Crew:
    """A team at work."""

    walk: Walk
    spot: Spot
    state: Node
    team: Team
    plan: Plan

    def worked(self) -> Any:
        """What the team gives back.

        :raises _NotYet: a step is under way. :raises _Broken: it can't.
        """
        task = shown(self.state.input)
        if self.plan.mode == "launch":
            first = self._step("coordinator", self.team.coordinator, task, COORDINATE)
            if first["action"] == "answer":
                return first["text"]
        plan = self._planned(task)
        members = (*self._members, *self._made(plan))
        for step in plan["steps"]:
            if step["member"] not in members:
                text = f"The plan names {step['member']!r}, who is no member of the team."
                raise _Broken({"kind": "output_invalid", "message": text})
        self._kept(plan, members)
        return self._rounds(task, plan, members)

    @property
    def _members(self) -> tuple[str, ...]:
        stored = () if self.plan.stored is None else self.plan.stored.get("agents", ())
        return (*self.team.members, *(one["name"] for one in stored))

    # the plan

    def _planned(self, task: str) -> Any:
        if self.plan.mode == "production" and self.plan.stored is not None:
            return self.plan.stored["plan"]
        prompt = f"Task:\n{task}\n\nMembers:\n{self._introduced()}"
        if self.plan.stored is not None:
            before = dumps(self.plan.stored["plan"]).decode()
            prompt += f"\n\nThe plan so far:\n{before}\n\nChange it so:\n{self.plan.instruction}"
        schema = plan_schema(self.team, self._members)
        return self._step("planner", self.team.planner, prompt, schema)

    def _introduced(self) -> str:
        agents = [self.walk.run.spec.find(name) for name in self._members]
        return "\n".join(f"- {a.name}: {a.description or a.instructions or ''}" for a in agents)

    def _made(self, plan: Mapping[str, Any]) -> Iterator[str]:
        """The agents that the plan asked for, made one after the other."""
        if self.plan.mode == "production" or self.team.factory is None:
            return
        known = {agent.name for agent in self.walk.run.spec.agents}
        for number, wanted in enumerate(plan["new_agents"], 1):
            name = wanted["name"]
            if name in self._members:
                continue
            prompt = f"Specify an agent called {name}. Its purpose:\n{wanted['purpose']}"
            role = f"factory{number}"
            if name in known and under(self.state.place, role) not in self.walk.run.nodes:
                text = f"The plan asks for a new agent {name!r}, but there is one already."
                raise _Broken({"kind": "output_invalid", "message": text})
            given = self._step(role, self.team.factory, prompt, agent_schema(self.team))
            if name not in known:
                self._create(name, wanted["purpose"], given)
                raise _NotYet
            yield name

    def _create(self, name: str, purpose: str, given: Mapping[str, Any]) -> None:
        spec = AgentSpec(
            name,
            given["model"],
            description=purpose,
            instructions=given["instructions"],
            tools=tuple(given.get("tools", ())),
        )
        told = {"spec": plain(spec), "created_by": str(self.team.factory)}
        event = draft("agent.created", step=self.state.place, agent=self.team.factory, **told)
        kept = f"{self.spot.scope['workflow'][:31]}.{name}"  # at most 64 characters
        stored = plain(replace(spec, name=kept))
        self.walk.effects.append(Keep(kept, stored, lambda version: (event,)))

    def _kept(self, plan: Mapping[str, Any], members: tuple[str, ...]) -> None:
        """The plan is stored before it is followed."""
        path = under(self.state.place, "plan")
        if self.plan.mode == "production" or self.plan.id is None or path in self.walk.run.nodes:
            return
        new = [name for name in members if name not in self.team.members]
        agents = [plain(self.walk.run.spec.find(name)) for name in new]
        workflow, run_id = self.spot.scope["workflow"], self.walk.run.id
        stored = {"workflow": workflow, "run_id": run_id, "plan": plan, "agents": agents}
        told = partial(_plan_told, path, self.plan.id)
        keep = Keep(f"plan:{self.plan.id}", stored, told, since=self.plan.version)
        self.walk.effects.append(keep)
        raise _NotYet

    # the rounds

    def _rounds(self, task: str, plan: Mapping[str, Any], members: tuple[str, ...]) -> Any:
        shared: list[dict[str, str]] = []
        for number in range(1, self.team.rounds + 1):
            head = (
                f"Task:\n{task}\n\nPlan:\n{dumps(plan).decode()}\n\nDone so far:\n{_told(shared)}"
            )
            role = f"round{number}-publisher"
            pick = self._step(role, self.team.publisher, head, pick_schema(members))
            if pick["next"] == FINISH:
                return pick["text"] or (shared[-1]["said"] if shared else "")
            prompt = f"{pick['text']}\n\nDone so far:\n{_told(shared)}"
            done = self._step(f"round{number}-member", pick["next"], prompt, None)
            shared.append({"member": pick["next"], "said": shown(done)})
        text = f"The team was not done within its {self.team.rounds} rounds."
        made = {"text": shared[-1]["said"], "value": shared}
        raise _Broken({"kind": INCOMPLETE, "message": text, "output": made})

    # one step

    def _step(self, name: str, agent: str, prompt: str, schema: Schema | None) -> Any:
        """What an agent has said in a step; the step is begun, or pushed on.

        :raises _NotYet: it is not over. :raises _Broken: it has failed.
        """
        path = under(self.state.place, name)
        node = self.walk.run.nodes.get(path)
        plain_rules = {"retries": 0, "timeout": None, "on_error": "fail"}
        spot = told_as(self.spot, path, **plain_rules)
        if node is None:
            given: dict[str, Any] = {"messages": [said("user", prompt)]}
            if schema is not None:
                given["output_schema"] = schema
            kind = name.rpartition("-")[2].rstrip("0123456789")
            if kind == "member":
                self._handed_over(path, agent)
            self.walk.start(spot, given, agent=agent, kind=kind)
            raise _NotYet
        if node.status == "running":
            typed = schema is not None or self.walk.run.spec.find(agent).output_schema is not None
            key = "value" if typed else "text"
            self.walk.converse(spot, node, AGENT_RULES, lambda output: output[key])
            raise _NotYet
        if node.status != "completed":
            raise _Broken(node.error or {"kind": "cancelled", "message": "It was stopped."})
        return node.output

    def _handed_over(self, path: str, to: str) -> None:
        event = draft("agent.handoff", step=path, agent=self.team.publisher, to=to)
        self.walk.drafts.append(event)


def _plan_told(path: str, plan_id: str, version: int) -> tuple[Draft, ...]:
    """The events of a plan that is stored: a step like any other."""
    told: dict[str, Any] = {"node": path, "kind": PLAN}
    about = {"plan_id": plan_id, "version": version}
    return (
        draft("node.started", step=path, **told, input=None),
        draft("node.finished", step=path, **told, status="completed", output=about),
    )


def _told(shared: list[dict[str, str]]) -> str:
    return "\n\n".join(f"{one['member']}: {one['said']}" for one in shared) or "nothing yet"
