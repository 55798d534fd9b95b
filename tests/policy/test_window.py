"""The context budget: what is refused, what is trimmed, and what must never be touched."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.canonical.facts import Facts
from adapters.canonical.faults import Fault
from adapters.canonical.pairing import check_results
from adapters.canonical.parts import Media, Text, ToolCall, ToolResult, Url
from adapters.canonical.request import Message, Request
from gateway.policy.tokens import estimate
from gateway.policy.window import POLICIES, SHORTEST_RESULT, Fit, Policy, fit

WORDS = "The committee reads every word of the report before it votes. "


def facts(window: int | None) -> Facts:
    return Facts("model-x", family="openai", window=window)


def user(text: str) -> Message:
    return Message("user", (Text(text),))


def turn(number: int, words: int = 20, results: int = 0) -> list[Message]:
    """A user's question, ``results`` tool calls with their results, and the answer."""
    made = [user(f"question {number}: {WORDS * words}")]
    for n in range(results):
        call = f"call_{number}_{n}"
        made.append(Message("assistant", (ToolCall(call, "look", '{"at":"it"}'),)))
        made.append(Message("tool", (ToolResult(call, (Text(WORDS * words),)),)))
    made.append(Message("assistant", (Text(f"answer {number}: {WORDS * words}"),)))
    return made


def talk(turns: int, words: int = 20, results: int = 0) -> Request:
    messages = [Message("system", (Text("Answer briefly."),))]
    for number in range(turns):
        messages += turn(number, words, results)
    messages.append(user("the last question"))
    return Request("m", tuple(messages), "openai-chat")


def texts(request: Request) -> list[str]:
    return [p.text for m in request.messages for p in m.parts if isinstance(p, Text)]


@pytest.mark.parametrize("policy", POLICIES)
def test_what_fits_is_not_touched(policy: Policy) -> None:
    request = talk(3)
    assert fit(request, facts(100_000), policy, 1000) == Fit(request, {})
    assert fit(request, facts(None), policy, 10**9).request is request


def test_refuse_names_the_numbers() -> None:
    request = talk(50)
    counted = estimate(request, facts(None))
    with pytest.raises(Fault, match=r"model-x is 4096 tokens") as caught:
        fit(request, facts(4096), "refuse", 512)
    fault = caught.value
    assert (fault.kind, fault.status) == ("context_overflow", 400)
    assert f"about {counted.tokens} input tokens" in fault.message
    assert "512 for the answer" in fault.message
    assert fault.data == {
        "estimated_input_tokens": counted.tokens,
        "error_bound": counted.bound,
        "reserved_output_tokens": 512,
        "context_window": 4096,
    }


def test_nothing_is_refused_on_a_guess() -> None:
    request = talk(10)
    counted = estimate(request, facts(None))
    at_the_edge = facts(counted.tokens - counted.bound)
    assert fit(request, at_the_edge, "refuse").request is request
    with pytest.raises(Fault):
        fit(request, facts(counted.tokens - counted.bound - 1), "refuse")


def test_the_oldest_whole_turns_go_first() -> None:
    request = talk(20, results=1)
    limit = 6000
    found = fit(request, facts(limit), "trim_history", 500)
    kept = texts(found.request)
    assert kept[0] == "Answer briefly."
    assert kept[-1] == "the last question"
    numbers = sorted({int(text.split()[1].rstrip(":")) for text in kept[1:-1]})
    assert numbers == list(range(20 - len(numbers), 20)), "a suffix of whole turns"
    assert found.trimmed == {
        "turns": 20 - len(numbers),
        "messages": len(request.messages) - len(found.request.messages),
    }
    counted = estimate(found.request, facts(None))
    assert counted.tokens + counted.bound + 500 <= limit
    check_results(found.request)
    one_more = replace(
        request, messages=(request.messages[0], *request.messages[-4 * len(numbers) - 5 :])
    )
    again = estimate(one_more, facts(None))
    assert again.tokens + again.bound + 500 > limit, "no more was dropped than had to be"


def test_system_messages_amid_the_talk_stay() -> None:
    request = talk(10)
    messages = list(request.messages)
    messages.insert(5, Message("developer", (Text("From here on in French."),)))
    found = fit(replace(request, messages=tuple(messages)), facts(1500), "trim_history")
    assert "From here on in French." in texts(found.request)
    assert found.trimmed["turns"] > 0


def test_a_last_turn_that_is_too_long_is_refused_after_trimming() -> None:
    request = replace(talk(3), messages=(*talk(3).messages[:-1], user(WORDS * 2000)))
    with pytest.raises(Fault, match="after everything that may be trimmed was"):
        fit(request, facts(4096), "trim_history")


def test_tool_results_in_user_messages_do_not_begin_a_turn() -> None:
    call = Message("assistant", (ToolCall("c", "look", "{}"),))
    result = Message("user", (ToolResult("c", (Text(WORDS * 30),)), Text("and then?")))
    messages = (user(WORDS * 200), call, result, user("last"))
    found = fit(Request("m", messages, "anthropic-messages"), facts(1000), "trim_history")
    assert texts(found.request) == ["last"]


def test_long_tool_results_keep_head_and_tail_and_the_cut_is_marked() -> None:
    lines = [f"line {n}: {WORDS}" for n in range(400)]
    long = "\n".join(lines)
    messages = (
        user("read it"),
        Message("assistant", (ToolCall("a", "read", "{}"), ToolCall("b", "read", "{}"))),
        Message("tool", (ToolResult("a", (Text(long), Media("image", Url("https://x")))),)),
        Message("tool", (ToolResult("b", (Text("short result"),)),)),
    )
    request = Request("m", messages, "openai-chat")
    found = fit(request, facts(6000), "truncate_tool_results", 500)
    first, second = (m.parts[0] for m in found.request.messages[2:])
    assert isinstance(first, ToolResult)
    assert second == messages[3].parts[0]
    text, picture = first.content
    assert isinstance(text, Text)
    assert picture == Media("image", Url("https://x"))
    assert text.text.startswith("line 0:")
    assert text.text.endswith(lines[-1])
    left_out = found.trimmed["characters"]
    assert f"[... {left_out} characters left out ...]" in text.text
    mark = f"\n[... {left_out} characters left out ...]\n"
    assert len(text.text) == len(long) - left_out + len(mark)
    assert found.trimmed["tool_results"] == 1
    counted = estimate(found.request, facts(None))
    assert counted.tokens + counted.bound + 500 <= 6000


def test_where_cutting_results_is_not_enough_the_request_is_refused() -> None:
    with pytest.raises(Fault, match="context window"):
        fit(talk(100), facts(2000), "truncate_tool_results")
    with pytest.raises(Fault, match="trimmed was"):
        fit(talk(100, results=1), facts(2000), "truncate_tool_results")


@settings(max_examples=60, deadline=None)
@given(
    shape=st.lists(st.tuples(st.integers(1, 60), st.integers(0, 3)), min_size=1, max_size=12),
    window=st.integers(300, 12_000),
    policy=st.sampled_from(sorted(POLICIES)),
)
def test_whatever_is_trimmed_the_conversation_stays_whole(
    shape: list[tuple[int, int]], window: int, policy: Policy
) -> None:
    messages = [Message("system", (Text("Answer briefly."),))]
    for number, (words, results) in enumerate(shape):
        messages += turn(number, words, results)
    messages.append(user("the last question"))
    request = Request("m", tuple(messages), "openai-chat")
    counted = estimate(request, facts(None))
    found: Fit | None = None
    with contextlib.suppress(Fault):
        found = fit(request, facts(window), policy)
    if found is None:
        assert counted.tokens - counted.bound > window, "refused, though it might have fitted"
        return
    check_results(found.request)
    assert found.request.messages[0] == request.messages[0]
    assert found.request.messages[-1] == request.messages[-1]
    after = estimate(found.request, facts(None))
    assert after.tokens - after.bound <= window
    assert bool(found.trimmed) == (found.request != request)
    if policy == "truncate_tool_results":
        assert len(found.request.messages) == len(request.messages)
        for message in found.request.messages:
            for part in message.parts:
                if isinstance(part, ToolResult):
                    assert isinstance(part.content[0], Text)
                    assert len(part.content[0].text) >= min(SHORTEST_RESULT, len(WORDS))
