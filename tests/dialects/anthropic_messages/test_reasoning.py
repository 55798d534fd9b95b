"""Thinking in its two forms, and what it gives way to."""

from __future__ import annotations

import pytest

from adapters.canonical.facts import CAPABILITIES, Facts
from adapters.canonical.faults import Fault
from adapters.canonical.parts import Text, Thinking, ToolCall, ToolResult
from adapters.canonical.request import FunctionTool, Message, Reasoning, Sampling, ToolChoice

OWN = "anthropic-messages"
NEVER_THINKS = Facts("plain", max_output=8_000, thinking="none")
ALWAYS_THINKS = Facts("deep", max_output=8_000, thinking="adaptive", efforts=("low", "high"))


def thinking(sent):
    return sent.body.get("thinking"), sent.body.get("output_config", {}).get("effort")


@pytest.mark.parametrize(
    ("effort", "sent"),
    [
        ("minimal", "low"),
        ("low", "low"),
        ("high", "high"),
        ("xhigh", "high"),
        ("max", "max"),
    ],
)
def test_effort_on_adaptive_models(ask, send, modern, effort, sent):
    result = send(ask(reasoning=Reasoning(effort=effort)), modern)
    assert thinking(result) == ({"type": "adaptive"}, sent)
    changed = (f"reasoning_effort={effort}->{sent}",) if effort != sent else ()
    assert result.adjusted == changed


@pytest.mark.parametrize(
    ("effort", "budget"), [("minimal", 2_048), ("low", 2_048), ("high", 16_384), ("max", 32_768)]
)
def test_effort_on_budget_models(ask, send, older, effort, budget):
    result = send(ask(reasoning=Reasoning(effort=effort)), older)
    assert thinking(result) == ({"type": "enabled", "budget_tokens": budget}, None)


@pytest.mark.parametrize(
    ("limit", "budget"), [(16_385, 16_384), (8_000, 6_000), (2_000, 1_024), (1_025, 1_024)]
)
def test_the_budget_gives_way_to_max_tokens(ask, send, older, limit, budget):
    request = ask(reasoning=Reasoning(effort="high"), sampling=Sampling(limit))
    sent = send(request, older)
    assert sent.body["max_tokens"] == limit
    assert sent.body["thinking"]["budget_tokens"] == budget < limit
    assert bool(sent.adjusted) == (budget != 16_384)


def test_no_room_for_a_budget_means_no_thinking(ask, send, older):
    sent = send(ask(reasoning=Reasoning(effort="high"), sampling=Sampling(1_024)), older)
    assert thinking(sent) == (None, None)
    assert sent.dropped == ("reasoning_effort",)


def test_an_unknown_model_gets_room_for_its_budget(ask, send):
    sent = send(ask(reasoning=Reasoning(effort="high")), Facts("unknown"))
    assert sent.body["max_tokens"] == 16_384 + 4_096
    assert sent.injected == ("max_tokens=20480",)


def test_an_effort_that_does_not_exist_is_refused(ask, send, modern):
    with pytest.raises(Fault) as caught:
        send(ask(reasoning=Reasoning(effort="ultra")), modern)
    assert (caught.value.kind, caught.value.param) == ("bad_request", "reasoning_effort")


def test_none_switches_thinking_off(ask, send, modern, older):
    sent = send(ask(reasoning=Reasoning(effort="none")), older)
    assert thinking(sent) == ({"type": "disabled"}, None)
    assert thinking(send(ask(reasoning=Reasoning(effort="none")), NEVER_THINKS)) == (None, None)
    always = send(ask(reasoning=Reasoning(effort="none")), ALWAYS_THINKS)
    assert thinking(always) == (None, "low")
    assert always.adjusted == ("reasoning_effort=none->low",)


def test_a_model_that_does_not_think_drops_the_wish(ask, send):
    sent = send(ask(reasoning=Reasoning(effort="high")), NEVER_THINKS)
    assert (thinking(sent), sent.dropped) == ((None, None), ("reasoning_effort",))


def test_the_other_form_is_converted_and_named(ask, send, modern, older):
    budget = Reasoning(mode="enabled", budget_tokens=10_000)
    sent = send(ask(reasoning=budget, origin=OWN), modern)
    assert thinking(sent) == ({"type": "adaptive"}, "high")
    assert sent.adjusted == (
        "thinking.type=enabled->adaptive",
        "thinking.budget_tokens=10000->high",
    )
    adaptive = Reasoning(mode="adaptive", effort="low")
    sent = send(ask(reasoning=adaptive, origin=OWN), older)
    assert sent.body["thinking"] == {"type": "enabled", "budget_tokens": 2_048}
    assert sent.adjusted == ("thinking.type=adaptive->enabled",)


def test_what_its_own_callers_wrote_stays(ask, send, modern, older):
    own = Reasoning(
        mode="enabled", budget_tokens=31_999, display="omitted", extras={"block_binding": {}}
    )
    sent = send(ask(reasoning=own, origin=OWN, sampling=Sampling(32_000)), older)
    assert sent.body["thinking"] == {
        "type": "enabled",
        "budget_tokens": 31_999,
        "display": "omitted",
        "block_binding": {},
    }
    between = send(ask(reasoning=Reasoning(mode="between_tools"), origin=OWN), modern)
    assert between.body["thinking"] == {"type": "between_tools"}
    effort = send(ask(reasoning=Reasoning(effort="medium"), origin=OWN), modern)
    assert thinking(effort) == (None, "medium")


def test_a_budget_under_the_minimum_is_refused(ask, send, older):
    with pytest.raises(Fault) as caught:
        send(ask(reasoning=Reasoning(mode="enabled", budget_tokens=0), origin=OWN), older)
    assert caught.value.param == "thinking.budget_tokens"


@pytest.mark.parametrize("summary", ["auto", "concise", "detailed"])
def test_a_summary_asks_to_see_the_thinking(ask, send, modern, summary):
    request = ask(reasoning=Reasoning(effort="high", summary=summary), origin="openai-responses")
    assert send(request, modern).body["thinking"] == {"type": "adaptive", "display": "summarized"}


def test_a_forced_tool_rules_out_thinking(ask, send, modern, older):
    tool = FunctionTool("f", parameters={"type": "object"})
    for facts, effort in ((modern, "high"), (older, None)):
        request = ask(
            reasoning=Reasoning(effort="high"), tools=(tool,), tool_choice=ToolChoice("required")
        )
        sent = send(request, facts)
        assert thinking(sent) == (None, effort)
        assert sent.dropped == ("reasoning_effort",)


def test_a_prefilled_answer_rules_out_thinking(ask, send, older):
    talk = (Message("user", (Text("a"),)), Message("assistant", (Text("b"),)))
    sent = send(ask(*talk, reasoning=Reasoning(effort="low")), older)
    assert (thinking(sent), sent.dropped) == ((None, None), ("reasoning_effort",))


SIGNED = Thinking("t", signature="s", dialect=OWN)


def loop(*first, later=()):
    """A user's question, a first round of tool use, and a second one."""
    return (
        Message("user", (Text("go"),)),
        Message("assistant", (*first, ToolCall("c1", "f", "{}"))),
        Message("tool", (ToolResult("c1", (Text("1"),)),)),
        Message("assistant", (*later, ToolCall("c2", "f", "{}"))),
        Message("tool", (ToolResult("c2", (Text("2"),)),)),
    )


@pytest.mark.parametrize(
    ("talk", "thinks"),
    [
        (loop(SIGNED), True),  # without interleaving only the first round opens with thinking
        (loop(), False),
        (loop(later=(SIGNED,)), False),
        (loop(Thinking("foreign", dialect="openai-chat")), False),
        ((*loop(), Message("user", (Text("next"),))), True),
    ],
)
def test_tool_results_whose_round_began_without_thinking(ask, send, older, modern, talk, thinks):
    if not talk[-1].parts or isinstance(talk[-1].parts[0], Text):
        talk = (*talk[:-1], Message("assistant", (Text("done"),)), talk[-1])
    request = ask(*talk, reasoning=Reasoning(effort="low"))
    assert ("thinking" in send(request, older).body) == thinks
    assert ("reasoning_effort" in send(request, older).dropped) == (not thinks)
    assert send(request, modern).body["thinking"] == {"type": "adaptive"}


def test_capabilities_decide_not_names(ask, send):
    blunt = Facts("x", capabilities=CAPABILITIES - {"reasoning"})
    assert send(ask(reasoning=Reasoning(effort="low")), blunt).dropped == ("reasoning_effort",)
