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
from gateway.runs.binding import OUTER, Scope, bind, holds, look, shown
from gateway.runs.commands import NOBODY, spoken
from gateway.runs.events import draft
from gateway.runs.looping import merged, remembered
from gateway.runs.state import Node
from gateway.runs.walk import Result, Spot, Walk, Work, under
from gateway.runs.workflow_spec import MAX_ITEMS, Approval, Form, Loop

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


# graphs within the graph


def around(spot: Spot, form: Form) -> dict[str, Any]:
    """What the graph within a node can refer to of the one around it; a workflow that has a name
    of its own can't."""
    return {} if form == "workflow" else {OUTER: spot.scope, "workflow": spot.scope["workflow"]}


class MapWork:
    """One graph for each item; at the first that fails no further one begins."""

    def begin(self, walk: Walk, spot: Spot) -> None:
        assert spot.node.map is not None
        items = bind(spot.node.map.over, spot.scope)
        walk.start(spot, items)
        if not isinstance(items, list | tuple) or len(items) > MAX_ITEMS:
            text = f"'over' must give a list of at most {MAX_ITEMS} items."
            walk.finish(spot, _new(spot), error={"kind": "unbound", "message": text})

    def go_on(self, walk: Walk, spot: Spot, state: Node) -> None:
        work = spot.node.map
        assert work is not None
        results: list[Result] = []
        active, error = 0, None
        for index, item in enumerate(state.input):
            place = under(state.place, str(index))
            full = active >= work.concurrency or error is not None
            if full and not walk.begun(place, work.body):
                break  # items begin in order
            given = {"input": item, "item": item, "index": index, **around(spot, work.form)}
            result = walk.graph(place, work.body, given)
            if result is None:
                active += 1
            else:
                results.append(result)
                error = error or result.error
        if active:
            return
        if error is not None:
            walk.finish(spot, state, error=error)
        elif len(results) == len(state.input):
            walk.finish(spot, state, [result.output for result in results])


class LoopWork:
    """A graph again and again, each turn's output over the next one's input."""

    def begin(self, walk: Walk, spot: Spot) -> None:
        assert spot.node.loop is not None
        walk.start(spot, bind(spot.node.loop.input, spot.scope))

    def go_on(self, walk: Walk, spot: Spot, state: Node) -> None:
        loop = spot.node.loop
        assert loop is not None
        given = state.input
        turns: list[Mapping[str, Any]] = []
        last = Result()
        for turn in range(1, loop.max + 1):
            place = under(state.place, str(turn))
            history = remembered(turns, loop.history)
            scope = {"input": given, "index": turn, "loop_history": history}
            scope |= around(spot, loop.form)
            result = walk.graph(place, loop.body, scope)
            if result is None:
                return
            if result.error is not None:
                walk.finish(spot, state, error=result.error)
                return
            if self._enough(walk, loop, turn, result, given):
                walk.finish(spot, state, result.output)
                return
            turns.append(_outputs(walk, place, loop))
            given, last = merged(given, result.output), result
        self._bound_met(walk, spot, state, loop, last)

    def _enough(self, walk: Walk, loop: Loop, turn: int, result: Result, given: Any) -> bool:
        if loop.until is None:
            return turn == loop.times
        scope = {"output": result.output, "input": given, "index": turn}
        return holds(loop.until, scope, walk.check)

    def _bound_met(self, walk: Walk, spot: Spot, state: Node, loop: Loop, last: Result) -> None:
        if loop.on_max == "finish":
            walk.finish(spot, state, last.output)
            return
        text = f"The loop's condition was not met within its {loop.max} turns."
        walk.finish(spot, state, error={"kind": "max_turns", "message": text})


def _outputs(walk: Walk, place: str, loop: Loop) -> dict[str, Any]:
    """What the nodes of one turn gave, the output node's left out: it only repeats them."""
    found = {}
    for node in loop.body.nodes:
        state = walk.run.nodes.get(under(place, node.id))
        if state is not None and state.status == "completed" and node.kind != "output":
            found[node.id] = state.output
    return found


class NestedWork:
    """Another workflow."""

    def begin(self, walk: Walk, spot: Spot) -> None:
        assert spot.node.workflow is not None
        walk.start(spot, bind(spot.node.workflow.input, spot.scope))

    def go_on(self, walk: Walk, spot: Spot, state: Node) -> None:
        assert spot.node.workflow is not None
        result = walk.graph(state.place, spot.node.workflow.workflow, {"input": state.input})
        if result is not None:
            walk.finish(spot, state, result.output, result.error)


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
