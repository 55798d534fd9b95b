"""An agent as it is written: in a request, in ``PUT /agents/{name}``, in a file. One shape.

Whether its model, tools and hand-overs exist is for whoever resolves it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal, Required

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from adapters.canonical.faults import Fault
from adapters.canonical.parts import NO_EXTRAS
from adapters.canonical.plain import plain
from adapters.canonical.request import Reasoning, Sampling
from gateway.northbound.body import validated
from gateway.runs.spec import MAX_TURNS, AgentSpec, Approvals, Budget, OnViolation, Rule
from gateway.settings.bounds import LONGEST, fit_usd
from gateway.settings.money import NANO, nano
from gateway.settings.scalars import Count
from gateway.tools.base import NO_ARGUMENTS, Policy, ToolSpec, matches

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
TOOL_NAME = r"^[A-Za-z0-9_-]{1,64}$"
_STRICT = with_config(ConfigDict(extra="forbid", defer_build=True))

Name = Annotated[str, Field(pattern=NAME)]


@_STRICT
class BudgetBody(TypedDict, total=False):
    """A budget; absent or null is unlimited, 0 lets nothing through."""

    usd: Annotated[Decimal, AfterValidator(fit_usd)] | None
    tokens: Count | None
    tool_calls: Count | None
    seconds: Annotated[float, Field(ge=0, le=LONGEST)] | None


@_STRICT
class ClientTool(TypedDict, total=False):
    """A tool that the caller's own program does; the run waits for its result."""

    type: Literal["function"]
    name: Required[Annotated[str, Field(pattern=TOOL_NAME)]]
    description: str
    parameters: dict[str, Any] | None


@_STRICT
class ApprovalsBody(TypedDict, total=False):
    """How long approvals may take, and what counts then."""

    expires_in: Annotated[float, Field(gt=0, le=2_592_000)]
    default: Literal["deny", "approve"]


@_STRICT
class RuleBody(TypedDict, total=False):
    """A rule of the contract, in words."""

    rule: Required[Annotated[str, Field(max_length=500)]]
    on_violation: Literal["block", "fail"]


@_STRICT
class ReasoningBody(TypedDict, total=False):
    """How much the model may think."""

    effort: str
    budget_tokens: Annotated[int, Field(ge=1)]


@_STRICT
class AgentBody(TypedDict, total=False):
    """An agent. ``name`` may be left out where the place says it."""

    name: Name
    model: Required[Annotated[str, Field(min_length=1, max_length=200)]]
    description: str | None
    instructions: str | None
    prompt: str | None
    tools: Annotated[list[str | ClientTool], Field(max_length=200)]
    tool_policy: dict[str, Policy]
    approvals: ApprovalsBody
    handoffs: Annotated[list[Name], Field(max_length=50)]
    output_schema: dict[str, Any] | None
    max_turns: Annotated[int, Field(ge=1, le=1000)]
    parallel_tools: bool
    context: Literal["refuse", "trim_history", "truncate_tool_results"] | None
    temperature: Annotated[float, Field(ge=0, le=2)] | None
    max_output_tokens: Annotated[int, Field(ge=1)] | None
    reasoning: ReasoningBody | None
    budget: BudgetBody
    on_budget: Literal["incomplete", "wait"] | None
    contract: Annotated[list[str | RuleBody], Field(max_length=50)]


AGENT = TypeAdapter(AgentBody)


def parse_agent(given: Mapping[str, Any], name: str | None = None) -> AgentSpec:
    """The agent that ``given`` describes.

    :param name: its name, where ``given`` has none.
    :raises Fault: ``bad_request`` with ``param``.
    """
    return agent_spec(validated(AGENT, given), name)


def agent_spec(body: Mapping[str, Any], name: str | None = None) -> AgentSpec:
    """The agent of a body that has passed its shape.

    :raises Fault: ``bad_request`` for a name, a tool or a rule that is none.
    """
    tools = body.get("tools", ())
    _check_tools(tools, body.get("tool_policy", NO_EXTRAS))
    if body.get("prompt") is not None and body.get("instructions") is not None:
        text = "An agent has instructions or a prompt, not both. Put them into the prompt."
        raise Fault("bad_request", text, param="prompt")
    return AgentSpec(
        name=_name(body, name),
        model=body["model"],
        description=body.get("description"),
        instructions=body.get("instructions"),
        prompt=body.get("prompt"),
        tools=tuple(tool for tool in tools if isinstance(tool, str)),
        client_tools=tuple(_client_tool(tool) for tool in tools if not isinstance(tool, str)),
        tool_policy=body.get("tool_policy", NO_EXTRAS),
        approvals=Approvals(**body.get("approvals", {})),
        handoffs=tuple(body.get("handoffs", ())),
        output_schema=body.get("output_schema"),
        max_turns=body.get("max_turns", MAX_TURNS),
        parallel_tools=body.get("parallel_tools", True),
        context=body.get("context"),
        sampling=Sampling(
            temperature=body.get("temperature"), max_output_tokens=body.get("max_output_tokens")
        ),
        reasoning=None if body.get("reasoning") is None else Reasoning(**body["reasoning"]),
        budget=budget(body.get("budget", {})),
        on_budget=body.get("on_budget"),
        contract=rules(body.get("contract", ())),
    )


def _name(body: Mapping[str, Any], name: str | None) -> str:
    own = body.get("name")
    if own is not None and name is not None and own != name:
        raise Fault("bad_request", f"The agent is called {name!r} here.", param="name")
    found = own if own is not None else name
    if found is None or re.fullmatch(NAME, found) is None:
        text = "An agent's name has letters, digits, '.', '_' and '-', and at most 64 of them."
        raise Fault("bad_request", text, param="name")
    return str(found)


def _check_tools(tools: Sequence[Any], policy: Mapping[str, Any]) -> None:
    """No two tools of one name, and no word about a tool that the agent has not: it would be a
    ban or an approval that nobody keeps."""
    names = [tool if isinstance(tool, str) else tool["name"] for tool in tools]
    double = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if double is not None:
        raise Fault("bad_request", f"The tool {double[:100]!r} is listed twice.", param="tools")
    for word in policy:
        if not any(matches(name, word) or matches(word, name) for name in names):
            text = f"tool_policy speaks of {word[:100]!r}, which is none of the agent's tools."
            raise Fault("bad_request", text, param="tool_policy")


def _client_tool(tool: Mapping[str, Any]) -> ToolSpec:
    parameters = tool.get("parameters")
    return ToolSpec(
        name=tool["name"],
        description=tool.get("description", ""),
        parameters=NO_ARGUMENTS if parameters is None else parameters,
        kind="client",
    )


def budget(body: Mapping[str, Any]) -> Budget:
    """The budget of a body that has passed its shape."""
    usd = body.get("usd")
    return Budget(
        nano=None if usd is None else nano(Decimal(usd)),
        tokens=body.get("tokens"),
        tool_calls=body.get("tool_calls"),
        seconds=None if body.get("seconds") is None else float(body["seconds"]),
    )


_REQUIRE = re.compile(r"require (\S+) before (\S+)")
_AT_MOST = re.compile(r"at_most (\d{1,9}) (\S+)")
CLAIMS = "claims cite tool call ids or are marked as assumptions"


def rules(given: Sequence[Any]) -> tuple[Rule, ...]:
    """The rules of a contract; see :class:`gateway.runs.spec.Rule`.

    :raises Fault: ``bad_request`` for words that are no rule.
    """
    return tuple(_rule(number, one) for number, one in enumerate(given))


def _rule(number: int, given: str | Mapping[str, Any]) -> Rule:
    words = given if isinstance(given, str) else given["rule"]
    on: OnViolation = "block" if isinstance(given, str) else given.get("on_violation", "block")
    text = " ".join(words.split())
    if found := _REQUIRE.fullmatch(text):
        return Rule("require", tool=found[1], before=found[2], on_violation=on)
    if found := _AT_MOST.fullmatch(text):
        return Rule("at_most", tool=found[2], count=int(found[1]), on_violation=on)
    if text == CLAIMS:
        return Rule("claims", on_violation=on)
    raise Fault(
        "bad_request",
        "A rule of a contract is one of: 'require TOOL before TOOL', 'at_most N TOOL', "
        f"'{CLAIMS}'.",
        param=f"contract[{number}]",
    )


def agent_body(agent: AgentSpec) -> dict[str, Any]:
    """The agent as it is written, without what is as it would be anyhow: what is read can be kept
    again."""
    body: dict[str, Any] = plain(agent)
    body |= body.pop("sampling", {})
    body.pop("client_tools", None)
    otherwise = {
        "tools": [*agent.tools, *map(_client_body, agent.client_tools)],
        "budget": _budget_body(agent.budget),
        "contract": list(map(_rule_body, agent.contract)),
    }
    return body | {name: value for name, value in otherwise.items() if value}


def _client_body(tool: ToolSpec) -> dict[str, Any]:
    described = {"description": tool.description} if tool.description else {}
    return {"name": tool.name, **described, "parameters": plain(tool.parameters)}


def _budget_body(amounts: Budget) -> dict[str, Any]:
    usd = None if amounts.nano is None else amounts.nano / NANO
    found = {
        "usd": usd,
        "tokens": amounts.tokens,
        "tool_calls": amounts.tool_calls,
        "seconds": amounts.seconds,
    }
    return {name: amount for name, amount in found.items() if amount is not None}


def _rule_body(rule: Rule) -> str | dict[str, Any]:
    words = {
        "require": f"require {rule.tool} before {rule.before}",
        "at_most": f"at_most {rule.count} {rule.tool}",
        "claims": CLAIMS,
    }[rule.kind]
    return words if rule.on_violation == "block" else {"rule": words, "on_violation": "fail"}
