"""What each kind of node does: one class a kind, one row in :data:`WORK`. Pure.

A call and an agent are a conversation, a tool is one call of a conversation in which nobody
speaks; so all three are carried out, recovered and judged like an agent's own turns and calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.canonical.parts import Text
from adapters.canonical.plain import plain
from adapters.wire.json import dumps
from gateway.runs.actions import Ask, End, Finding, LookUpTools
from gateway.runs.agent import (
    Rule,
    Scene,
    answering,
    calling,
    gone_wrong,
    next_turn,
    out_of_budget,
    out_of_turns,
    speaking,
    warned,
)
from gateway.runs.binding import Scope, bind, holds, look, shown
from gateway.runs.commands import NOBODY, spoken
from gateway.runs.events import draft
from gateway.runs.graph_work import LoopWork, MapWork, NestedWork
from gateway.runs.state import Node
from gateway.runs.walk import Spot, Walk, Work
from gateway.runs.workflow_spec import Approval

# conversations


def broken(scene: Scene) -> Finding | None:
    """This conversation can't go on; others can."""
    failure = scene.thread.failure
    return None if failure is None else (End("run.failed", failure),)


def met(scene: Scene) -> Finding | None:
    """Each conversation begins with a look at its agent's tools."""
    thread = scene.thread
    return None if thread.agent in thread.met else (LookUpTools(thread.agent, thread.name),)


def called(scene: Scene) -> Finding | None:
    """The one call of a tool node is over."""
    call = scene.run.asked(scene.thread)[0]
    text = "".join(part.text for part in call.content if isinstance(part, Text))
    if call.outcome == "completed":
        return (End("run.completed", {"output": {"text": text, "value": call.structured}}),)
    kind = "denied" if call.problem == "policy" else str(call.problem)
    return (End("run.failed", {"reason": kind, "error": {"kind": kind, "message": text}}),)


CALL_RULES: tuple[Rule, ...] = (broken, speaking, answering, out_of_budget, warned, next_turn)
TOOL_RULES: tuple[Rule, ...] = (broken, calling, called)
AGENT_RULES: tuple[Rule, ...] = (
    broken,
    speaking,
    met,
    calling,
    answering,
    gone_wrong,
    out_of_turns,
    out_of_budget,
    warned,
    next_turn,
)
"""The agent loop's rules, for a conversation that is one of several."""


def said(role: str, text: str) -> dict[str, Any]:
    """A message in its plain form."""
    return {"role": role, "parts": [plain(Text(text))]}


def opening(
    prompt: Any, scope: Scope, examples: Any = (), history: str | None = None
) -> dict[str, Any]:
    """What a conversation begins with: earlier messages, examples, the prompt.

    :raises Unbound: what they refer to is not there.
    """
    earlier = () if history is None else look(history, scope) or ()
    messages = [said(one["role"], shown(one["content"])) for one in earlier]
    for asked, answered in examples:
        messages += [said("user", asked), said("assistant", answered)]
    bound = bind({"template": prompt} if isinstance(prompt, str) else prompt, scope)
    return {"messages": [*messages, said("user", shown(bound))]}


def value_of(walk: Walk, state: Node) -> Any:
    """How the output of a conversation is made: typed where its agent has a schema."""
    thread = walk.run.threads[state.place]
    typed = walk.run.spec.find(thread.agent).output_schema is not None
    return lambda output: output["value"] if typed else output["text"]


class CallWork:
    """One model call."""

    def begin(self, walk: Walk, spot: Spot) -> None:
        call = spot.node.call
        assert call is not None
        given = opening(call.prompt, spot.scope, call.examples, call.history)
        walk.start(spot, given, agent=call.agent)

    def go_on(self, walk: Walk, spot: Spot, state: Node) -> None:
        walk.converse(spot, state, CALL_RULES, value_of(walk, state))


class AgentWork:
    """An agent's whole loop, in the run's own ledger."""

    def begin(self, walk: Walk, spot: Spot) -> None:
        agent = spot.node.agent
        assert agent is not None
        walk.start(spot, opening(agent.prompt, spot.scope, (), agent.history), agent=agent.agent)

    def go_on(self, walk: Walk, spot: Spot, state: Node) -> None:
        walk.converse(spot, state, AGENT_RULES, value_of(walk, state))


class ToolWork:
    """One call of a tool: looked up, judged, intended, made, like a model's own."""

    def begin(self, walk: Walk, spot: Spot) -> None:
        tool = spot.node.tool
        assert tool is not None
        walk.start(spot, bind(tool.arguments, spot.scope), agent=tool.agent)

    def go_on(self, walk: Walk, spot: Spot, state: Node) -> None:
        tool, thread = spot.node.tool, walk.run.threads[state.place]
        assert tool is not None
        if thread.agent not in thread.met:
            walk.effects.append(LookUpTools(thread.agent, thread.name))
        elif not thread.asked:
            told = {"call_id": state.place, "tool": tool.tool}
            arguments = dumps(state.input or {}).decode()
            step = f"{state.place}/1"
            walk.drafts.append(
                draft("tool.requested", step=step, agent=tool.agent, **told, arguments=arguments)
            )
        else:
            walk.converse(spot, state, TOOL_RULES, _told_by_tool)


def _told_by_tool(output: Mapping[str, Any]) -> Any:
    return output["text"] if output["value"] is None else output["value"]


# what is decided at once


class BranchWork:
    """The first case that holds decides which nodes run."""

    def begin(self, walk: Walk, spot: Spot) -> None:
        branch = spot.node.branch
        assert branch is not None
        chosen: tuple[int | None, tuple[str, ...]] = (None, branch.otherwise)
        for number, case in enumerate(branch.cases):
            if holds(case.when, spot.scope, walk.check):
                chosen = (number, case.to)
                break
        walk.start(spot, None)
        number_, to = chosen
        walk.finish(spot, _new(spot), {"case": number_, "to": list(to)})

    def go_on(self, walk: Walk, spot: Spot, state: Node) -> None:
        """It is over when it has begun."""


class OutputWork:
    """What the graph gives back."""

    def begin(self, walk: Walk, spot: Spot) -> None:
        output = spot.node.output
        assert output is not None
        value = bind(output.value, spot.scope)
        problems = [] if output.schema is None else walk.check(output.schema, value)
        walk.start(spot, None)
        if problems:
            text = f"The output does not fit its schema: {'; '.join(problems[:5])}."
            walk.finish(spot, _new(spot), error={"kind": "output_invalid", "message": text})
        else:
            walk.finish(spot, _new(spot), value)

    def go_on(self, walk: Walk, spot: Spot, state: Node) -> None:
        """It is over when it has begun; but a second try comes to the same."""
        walk.fail(spot, state, {"kind": "output_invalid", "message": "The output does not fit."})


def _new(spot: Spot) -> Node:
    return Node(spot.path, spot.node.kind, "running")


# people

YES_NO: Mapping[str, Any] = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "comment": {"type": "string"}},
    "required": ["approved"],
    "additionalProperties": False,
}


def form(approval: Approval) -> Mapping[str, Any]:
    """The schema of what a person is to say."""
    if approval.form == "yes_no":
        return YES_NO
    return {"type": "string"} if approval.form == "text" else approval.schema or {}


class ApprovalWork:
    """A person is asked; the run may go on elsewhere meanwhile."""

    def begin(self, walk: Walk, spot: Spot) -> None:
        approval = spot.node.approval
        assert approval is not None
        message = approval.message
        bound = bind({"template": message} if isinstance(message, str) else message, spot.scope)
        shows = {"message": shown(bound), "show": bind(approval.show, spot.scope)}
        walk.start(spot, shows)

    def go_on(self, walk: Walk, spot: Spot, state: Node) -> None:
        approval = spot.node.approval
        assert approval is not None
        iid = f"node.{state.place.replace('/', '.')}"
        if iid not in walk.run.interrupts:
            walk.drafts.append(
                draft(
                    "input.requested",
                    step=spot.path,
                    interrupt_id=iid,
                    tool="approval",
                    node=spot.path,
                    arguments=state.input,
                    schema=dict(form(approval)),
                    expires_at=walk.at + approval.expires_in,
                    **({"default": approval.default} if approval.form == "yes_no" else {}),
                )
            )
        elif state.answer is None:
            walk.asks.append(Ask("approval"))
        else:
            self._answered(walk, spot, state, approval)

    def _answered(self, walk: Walk, spot: Spot, state: Node, approval: Approval) -> None:
        value = spoken(state.answer or {})
        if value is NOBODY:
            text = f"Nobody answered within {approval.expires_in:g} s."
            walk.finish(spot, state, error={"kind": "expired", "message": text})
            return
        denied = approval.form == "yes_no" and not value["approved"]
        if denied and approval.on_deny == "skip":
            walk.skip(spot, "denied")
        else:
            walk.finish(spot, state, value)


WORK: Mapping[str, Work] = {
    "call": CallWork(),
    "agent": AgentWork(),
    "tool": ToolWork(),
    "branch": BranchWork(),
    "output": OutputWork(),
    "approval": ApprovalWork(),
    "map": MapWork(),
    "loop": LoopWork(),
    "workflow": NestedWork(),
}
