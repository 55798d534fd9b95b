"""May this tool call be made? The checks between a model's wish and a tool, as one table. Pure.

Each check gives the events that settle or hold up the call, or ``None`` to let it on to the
next. A call that passes them all may be made.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from adapters.canonical.record import record
from gateway.runs import contract
from gateway.runs.arguments import Check, Refused, digest, read
from gateway.runs.asking import child_name, handoff_target, offered
from gateway.runs.ending import said
from gateway.runs.events import Draft, draft
from gateway.runs.spec import AgentSpec
from gateway.runs.state import Call, Run, Thread
from gateway.tools.base import Policy, ToolSpec, matches

Drafts = tuple[Draft, ...]

_PLAIN = re.compile(r"[A-Za-z0-9_.:-]{1,100}")

CUT = "The answer was cut by its token limit, so this call may be incomplete. Make it again."
SUPERSEDED = "The conversation was already given to another agent in this turn."


@record(frozen=True, slots=True)
class Case:
    """A call before its judge."""

    run: Run
    thread: Thread
    call: Call
    agent: AgentSpec
    at: float
    check: Check

    @property
    def tool(self) -> ToolSpec | None:
        """The tool that is called, as the agent was given it."""
        return find_tool(self.run, self.call)

    def event(self, type: str, **data: Any) -> Draft:
        """An event about this call."""
        call = self.call
        return draft(type, step=call.step, agent=call.agent, call_id=call.call_id, **data)

    def failed(self, kind: str, text: str) -> Drafts:
        """The call ends in an error that the model is told."""
        return (self.event("tool.failed", kind=kind, content=said(text)),)

    def skipped(self, reason: str, text: str) -> Drafts:
        """The call is not made, and the model is told why."""
        return (self.event("tool.skipped", reason=reason, content=said(text)),)


def judged(case: Case) -> Drafts:
    """The events that settle or hold up the call; none if it may be made."""
    for rule in CHECKS:
        drafts = rule(case)
        if drafts is not None:
            return drafts
    return ()


def find_tool(run: Run, call: Call) -> ToolSpec | None:
    """The tool behind a call, as the agent was given it."""
    return next((t for t in run.tools.get(call.agent, ()) if t.name == call.name), None)


def policy(agent: AgentSpec, tool: ToolSpec) -> Policy:
    """The agent's word on a tool, else the tool's own, else leave to use it. Of several words of
    the agent the one that names the tool counts, else the longest. A tool whose definition has
    changed since it was pinned needs a person again, whoever allowed it."""
    words = [word for word in agent.tool_policy if matches(_called(word), tool.name)]
    own = agent.tool_policy[max(words, key=_weight)] if words else None
    word: Policy = own or tool.policy or "allow"
    return "approve" if tool.changed and word == "allow" else word


def _called(word: str) -> str:
    """The name of the tool that a word of a policy means: ``agent:NAME`` has another one."""
    return child_name(word) if ":" in word else word


def _weight(word: str) -> tuple[bool, int]:
    return not word.endswith("*"), len(word)


def interrupt_id(prefix: str, call: Call) -> str:
    """The id of a question about a call, fit for a path whatever the provider calls the call; a
    call can be asked about more than once."""
    if call.interrupt is not None:
        return f"{call.interrupt}.again"
    plain_id = _PLAIN.fullmatch(call.call_id) is not None
    return f"{prefix}_{call.call_id if plain_id else digest(call.call_id)[:24]}"


# the checks


def _in_doubt(case: Case) -> Drafts | None:
    if case.call.phase != "lost":
        return None
    call = case.call
    return (
        case.event(
            "tool.in_doubt",
            interrupt_id=interrupt_id("doubt", call),
            tool=call.name,
            arguments=call.arguments,
            idempotency_key=f"{case.run.id}:{call.call_id}",
        ),
    )


def _handed_over(case: Case) -> Drafts | None:
    target = handoff_target(case.agent, case.call.name)
    if target is None:
        return None
    for earlier in case.run.asked(case.thread):
        if earlier.call_id == case.call.call_id:
            break
        if handoff_target(case.agent, earlier.name) is not None:
            return case.skipped("superseded", SUPERSEDED)
    done = draft("agent.finished", agent=case.agent.name, outcome="handed_over")
    return case.event("agent.handoff", to=target), done


def _unknown(case: Case) -> Drafts | None:
    if case.tool is not None:
        return None
    names = [tool.name for tool in offered(case.run, case.agent)]
    listed = f" There are: {', '.join(names[:50])}." if names else " There are none."
    return case.failed("unknown_tool", f"There is no tool {case.call.name[:100]!r}.{listed}")


def _cut_short(case: Case) -> Drafts | None:
    """The last call of an answer that ran into its limit can't be trusted, valid or not."""
    last = case.thread.asked[-1] == case.call.call_id
    if case.thread.reason == "length" and last:
        return case.failed("invalid_arguments", CUT)
    return None


def _malformed(case: Case) -> Drafts | None:
    tool = case.tool
    if tool is None:
        return None
    try:
        read(case.call.arguments, tool.parameters, case.check)
    except Refused as refused:
        return case.failed("invalid_arguments", str(refused))
    return None


def _forbidden(case: Case) -> Drafts | None:
    tool = case.tool
    if tool is None or policy(case.agent, tool) != "deny":
        return None
    return case.skipped("policy", f"The tool {tool.name} may not be used here.")


def _out_of_contract(case: Case) -> Drafts | None:
    rule = contract.broken_by_call(case.agent.contract, case.run, case.call)
    if rule is None:
        return None
    action = rule.on_violation
    why = contract.told(rule)
    told = {"rule": contract.shown(rule), "action": action, "message": why}
    violated = case.event("contract.violated", **told)
    return violated, *case.skipped("contract", f"Not allowed: {why}")


def _for_the_caller(case: Case) -> Drafts | None:
    tool = case.tool
    if tool is None or tool.kind != "client":
        return None
    return (
        case.event(
            "input.requested",
            interrupt_id=interrupt_id("input", case.call),
            tool=tool.name,
            arguments=read(case.call.arguments, tool.parameters, case.check),
        ),
    )


def _needs_approval(case: Case) -> Drafts | None:
    tool = case.tool
    if tool is None or policy(case.agent, tool) != "approve":
        return None
    return (approval(case, tool),)


def approval(case: Case, tool: ToolSpec) -> Draft:
    """The question whether the call may be made: what is asked, and what an answer is bound to."""
    arguments = read(case.call.arguments, tool.parameters, case.check)
    return case.event(
        "approval.requested",
        interrupt_id=interrupt_id("approval", case.call),
        tool=tool.name,
        arguments=arguments,
        arguments_hash=digest(arguments),
        schema_hash=tool.schema_hash,
        expires_at=case.at + case.agent.approvals.expires_in,
        default=case.agent.approvals.default,
    )


CHECKS: tuple[Callable[[Case], Drafts | None], ...] = (
    _in_doubt,
    _handed_over,
    _unknown,
    _cut_short,
    _malformed,
    _forbidden,
    _out_of_contract,
    _needs_approval,
    _for_the_caller,
)
"""In this order: nobody is asked to agree to a call that could not be made."""
