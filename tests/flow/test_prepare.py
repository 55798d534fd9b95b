"""A request made ready for one target, by the short way and by the long one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from adapters.canonical.facts import Facts, Price, Rate
from adapters.canonical.parts import Dialect, Part, Text, Thinking, ToolCall, ToolResult
from adapters.canonical.request import Message, Request, Sampling
from gateway.flow.context import Prepared
from gateway.flow.count import Counted
from gateway.flow.prepare import prepare
from gateway.flow.seals import Makers
from gateway.settings.snapshot import Alias, Deployment, Provider, Target

DIALECTS: tuple[Dialect, ...] = ("openai-chat", "openai-responses", "anthropic-messages")
FACTS = Facts("m", "openai", temperature_max=1.0, max_output=100, price=Price(Rate(7), Rate(9)))


def ask(*parts: Part, role: Any = "user", **more: Any) -> Request:
    return Request("m", (Message(role, parts),), "openai-chat", **more)


def ready(counted: Counted, dialect: Dialect, facts: Facts = FACTS) -> Prepared:
    target = Target(Deployment(Provider("p", dialect, "http://127.0.0.1:1", None), "up", facts))
    return prepare(counted, target, Alias("m", (target,)), makers=Makers(), strict=False)


PLAIN: Mapping[str, Request] = {
    "one text": ask(Text("hi")),
    "its own limit": ask(
        Text("hi"), sampling=Sampling(500, temperature=2, limit_name="max_tokens")
    ),
    "two texts": ask(Text("hi"), Text("there"), stream=True),
    "a history": replace(
        ask(Text("hi")),
        messages=tuple(Message(r, (Text(r),)) for r in ("system", "user", "assistant", "user")),
    ),
}
MORE: Mapping[str, Request] = {
    "stop sequences": ask(Text("hi"), sampling=Sampling(stop=("END",))),
    "reasoning": ask(Thinking("hm"), Text("hi"), role="assistant"),
    "a continued thread": ask(Text("hi"), continues=True),
    "nothing": ask(),
    "a call": replace(
        ask(Text("hi")),
        messages=(
            Message("assistant", (ToolCall("c", "f", "{}"),)),
            Message("tool", (ToolResult("c", (Text("ok"),)),)),
        ),
    ),
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("kind", PLAIN)
def test_a_plain_request_is_made_ready_as_by_the_long_way(kind: str, dialect: Dialect) -> None:
    short, long = Counted(PLAIN[kind], 2_000), Counted(PLAIN[kind], 2_000)
    assert short.plain
    long.plain = False
    assert ready(short, dialect) == ready(long, dialect)


@pytest.mark.parametrize("kind", MORE)
def test_what_has_more_than_text_is_not_plain(kind: str) -> None:
    assert not Counted(MORE[kind], 2_000).plain


def test_one_look_at_a_request_serves_targets_of_every_family() -> None:
    counted = Counted(ask(Text("How many tokens is this in each family? " * 20)), 2_000)
    found = [
        ready(counted, "openai-chat", replace(FACTS, family=family)).estimated_input
        for family in ("openai", "anthropic", "qwen")
    ]
    assert len(set(found)) == 3
    for family, tokens in zip(("openai", "anthropic", "qwen"), found, strict=True):
        alone = Counted(counted.request, 2_000).estimate(replace(FACTS, family=family))
        assert alone.tokens == tokens
