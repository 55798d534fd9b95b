"""Workflows of agents that ask one another, and tools, for whatever a seed says, on budgets that do
or do not suffice: each comes to its end, none overspends, and each tape can be played again."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from adapters.simulator import Answer, Call, Say, Usage
from adapters.simulator.script import Scripts
from adapters.simulator.words import Ask
from gateway.runs.rewind import replay
from tests.harness import KEY, Harness, alias, gateway
from tests.runs.following import begin, read, watch
from tests.runs.tools import slow, spy, use

SCRIPTED = alias("scripted", ("openai", "script"), retries=0)
TURN = 100
"""Tokens of each turn here."""
FLOWS = 72
AT_ONCE = 6
TOKENS = (None, 1, 150, 300, 301, 500, 800, 1500, 3000)
TOOL_CALLS = (None, 0, 1, 2, 3, 5, 8, 20)


def turn(*parts: Any) -> Answer:
    return Answer(parts, usage=Usage(prompt=TURN - 10, output=10))


@dataclass
class Storm:
    """What each conversation says, by the name of its plan, which its prompt holds."""

    dice: Random
    plans: dict[str, list[Answer]] = field(default_factory=dict)

    def answer(self, ask: Ask) -> Answer:
        found = re.search(r"plan:(\d+)", ask.prompt)
        assert found is not None
        return self.plans[found[1]][ask.turn]

    def _plan(self, *turns: Answer) -> str:
        name = str(len(self.plans))
        self.plans[name] = [*turns, turn(Say("done"))]
        return f"plan:{name}"

    def _child(self) -> str:
        few, turns = self.dice.randint(1, 3), self.dice.randint(0, 3)
        return self._plan(
            *(turn(*(Call("t", "{}", id=f"t{n}{k}") for k in range(few))) for n in range(turns))
        )

    def _lead(self) -> str:
        return self._plan(*(turn(*self._calls()) for _ in range(self.dice.randint(0, 3))))

    def _calls(self) -> list[Call]:
        """Of a turn; all are called the same, as by a server that counts from 0."""
        wanted = [self.dice.random() < 0.7 for _ in range(self.dice.randint(1, 4))]
        return [
            Call("agent_child", json.dumps({"input": self._child()}), id=f"call_{n}")
            if is_child
            else Call("t", "{}", id=f"call_{n}")
            for n, is_child in enumerate(wanted)
        ]

    def _agent(self, name: str, *tools: str) -> dict[str, Any]:
        together = self.dice.random() < 0.6
        return {"name": name, "model": "scripted", "tools": tools, "parallel_tools": together}

    def flow(self) -> dict[str, Any]:
        names = [f"a{n}" for n in range(self.dice.randint(1, 5))]
        nodes: dict[str, Any] = {}
        for name in names:
            agent = self._agent(name, "agent:child", "t")
            after = [list(nodes)[-1]] if nodes and self.dice.random() < 0.3 else []
            nodes[name] = {"kind": "agent", "agent": agent, "prompt": self._lead(), "needs": after}
        budget = {"tokens": self.dice.choice(TOKENS), "tool_calls": self.dice.choice(TOOL_CALLS)}
        output = [{"from": f"/nodes/{name}"} for name in names]
        return {
            "workflow": {"nodes": nodes, "output": output},
            "agents": [self._agent("child", "t")],
            "budget": budget,
        }


async def test_no_budget_is_overspent_and_nobody_waits_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storm = Storm(Random(7))
    monkeypatch.setattr(Scripts, "next", lambda scripts, ask: storm.answer(ask))
    flows, gate, ends = (
        [storm.flow() for _ in range(FLOWS)],
        asyncio.Semaphore(AT_ONCE),
        Counter[str](),
    )

    async def one(flow: dict[str, Any]) -> None:
        async with gate:
            ends[await checked(g, flow)] += 1

    async with gateway(tmp_path, SCRIPTED) as g:
        use(g, spy("t", slow(0.01)))
        await asyncio.gather(*map(one, flows))
    assert ends["completed"] > 3
    assert ends["incomplete"] > 3


async def checked(g: Harness, flow: dict[str, Any]) -> str:
    run_id = await begin(g, flow)
    await watch(g, run_id, seconds=30)
    run = await read(g, run_id)
    children = (await g.get(f"/runs?parent={run_id}&limit=100", key=KEY)).json()["data"]
    used, budget = run["usage"], flow["budget"]
    if budget["tool_calls"] is not None:
        assert used["tool_calls"] <= budget["tool_calls"], flow
    if budget["tokens"] is not None:
        under_way = len(flow["workflow"]["nodes"]) + len(children)
        assert used["total_tokens"] <= budget["tokens"] + under_way * TURN, flow
    assert all(child["ended_at"] is not None for child in children)
    assert replay(await g.state.runs.bench.ledger.read(run_id, 0), g.state.runs.bench.check) is None
    assert run.get("reason") in (None, "budget")
    return str(run["status"])
