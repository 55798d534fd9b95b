"""The worked example of the documentation, run as it stands there."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import openai
import pytest

from adapters.simulator import Say
from tests.harness import Harness, gateway

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "config/examples/ticket-triage.toml"
PAGE = ROOT / "docs/structured-output.md"
ADDRESS = {"openai": "{url}/v1", "anthropic": "{url}"}

ASSIGNED = {
    "summary": "Charged twice in October",
    "priority": "urgent",
    "decision": {"action": "assign", "team": "billing"},
}
ASKED = {
    "summary": "Something is slow",
    "priority": "normal",
    "decision": {"action": "ask", "question": "Which page is slow, and since when?"},
}


@pytest.fixture
async def g(tmp_path: Path) -> AsyncIterator[Harness]:
    """The example's gateway; its simulator is the test's own."""
    text = EXAMPLE.read_text(encoding="utf-8")
    for name, url in ADDRESS.items():
        own = f'base_url = "{url}"\napi_key = "${{KEY_CHAT}}"'
        text = re.sub(rf"(\[providers\.{name}\]\n.*\n)simulator = true", rf"\g<1>{own}", text)
    assert "simulator = true" not in text
    async with gateway(tmp_path, config=text) as running:
        yield running


@pytest.fixture
def triage(g: Harness, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """The page's own function, called as from another process."""
    monkeypatch.chdir(ROOT)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(next(block for block in blocks if "def triage" in block), names)
    client = openai.OpenAI(base_url=g.url + "/v1", api_key="demo", max_retries=0)

    async def call(ticket: str, **how: Any) -> Any:
        return await asyncio.to_thread(names["triage"], client, ticket, **how)

    return call


def says(g: Harness, *values: Any) -> None:
    g.simulator.script("claude-sonnet-4-6", [Say(json.dumps(value)) for value in values])


@pytest.mark.parametrize("value", [ASSIGNED, ASKED], ids=["assigned", "asked back"])
async def test_a_ticket_is_decided(g: Harness, triage: Callable[..., Any], value: Any) -> None:
    says(g, value)
    assert await triage("I was charged twice!") == value


async def test_the_rule_across_two_fields_is_enforced_and_repaired(
    g: Harness, triage: Callable[..., Any]
) -> None:
    says(g, {**ASKED, "priority": "urgent"}, ASSIGNED)
    assert await triage("I was charged twice!") == ASSIGNED
    assert 'at /decision/action: found \\"ask\\"' in g.simulator.log[-1].raw.decode()


async def test_after_two_repairs_there_is_no_decision(
    g: Harness, triage: Callable[..., Any]
) -> None:
    says(g, *[{**ASKED, "priority": "urgent"}] * 3)
    told = await triage("I was charged twice!")
    assert told["decision"] is None
    assert told["code"] == "output_invalid"
    assert told["errors"] == [
        {"pointer": "/decision/action", "found": '"ask"', "wanted": 'exactly "assign"'}
    ]
    assert len(g.simulator.log) == 3


async def test_the_hopeless_model_and_a_refusal_give_none(
    g: Harness, triage: Callable[..., Any]
) -> None:
    told = await triage("Help", model="triage-hopeless")
    assert (told["decision"], told["code"]) == (None, "output_invalid")
    g.simulator.script("claude-sonnet-4-6", ["refusal"])
    assert (await triage("Help"))["decision"] is None


async def test_the_simulator_s_own_answer_passes(g: Harness, triage: Callable[..., Any]) -> None:
    told = await triage("The invoice of 'October' is wrong")
    assert told["decision"]["action"] in ("assign", "ask")
    assert all(attempt.refused is None for attempt in g.simulator.log)
