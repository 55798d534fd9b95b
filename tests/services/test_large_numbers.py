"""Numbers that the books can't keep are refused where they come in: a key or a run that was
written with one could never be read again, by no gateway on these books."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gateway.runs.budget import more
from gateway.runs.spec import Budget
from tests.harness import ADMIN, KEY, Harness, alias, gateway

HUGE = [10**16, 2**63, 10**30, 10**300, 1e300]


async def refused(g: Harness, path: str, body: Any, key: str) -> str:
    answer = await g.post(path, body, key=key)
    assert answer.status == 400, answer.body
    return str(answer.json()["error"]["param"])


@pytest.mark.parametrize("huge", HUGE, ids=str)
async def test_limits_of_keys(tmp_path: Path, huge: float) -> None:
    async with gateway(tmp_path) as g:
        for name in ("rpm", "tpm", "concurrent", "usd_per_day", "usd_per_month", "usd_total"):
            body = {"name": "k", "limits": {name: huge}}
            assert await refused(g, "/admin/keys", body, ADMIN) == f"limits.{name}"
        body = {"name": "k", "expires_in": huge}
        assert await refused(g, "/admin/keys", body, ADMIN) == "expires_in"
        most = {"rpm": 10**15, "tpm": 10**15, "usd_per_day": 10**9, "usd_total": 10**9}
        made = await g.post(
            "/admin/keys", {"name": "k", "limits": most, "expires_in": 3_153_600_000}, key=ADMIN
        )
        assert made.status == 201
        (key,) = [k for k in (await g.get("/admin/keys")).json()["keys"] if k["name"] == "k"]
        assert key["limits"] == {**most, "usd_per_day": 1e9, "usd_total": 1e9}
        body = {"model": "m-chat", "messages": [{"role": "user", "content": "hi"}]}
        answer = await g.post("/v1/chat/completions", body, key=made.json()["key"])
        assert answer.status == 200, answer.body


@pytest.mark.parametrize("huge", HUGE, ids=str)
async def test_budgets_of_runs(tmp_path: Path, huge: float) -> None:
    async with gateway(tmp_path) as g:
        for name in ("usd", "tokens", "tool_calls", "seconds"):
            body = {
                "agent": {"name": "a", "model": "m-chat"},
                "input": "hi",
                "budget": {name: huge},
            }
            assert await refused(g, "/runs", body, KEY) == f"budget.{name}"
            assert await refused(g, "/runs/x/budget", {name: huge}, KEY) == name


def test_a_budget_that_is_topped_up_for_ever_stays_readable() -> None:
    budget = Budget(nano=0, tokens=0)
    for _ in range(10_000):
        budget = more(budget, {"usd": 10**9, "tokens": 10**15})
    assert (budget.nano, budget.tokens) == (2**63 - 1, 2**63 - 1)


@pytest.mark.parametrize("path", ["/agents/x?version=", "/plans/x?version="])
@pytest.mark.parametrize("version", [0, -1, 2**31, 10**30])
async def test_versions(tmp_path: Path, path: str, version: int) -> None:
    async with gateway(tmp_path) as g:
        answer = await g.get(f"{path}{version}", key=KEY)
        assert answer.status == 400
        assert answer.json()["error"]["param"] == "version"


async def test_an_event_to_fork_from(tmp_path: Path) -> None:
    async with gateway(tmp_path) as g:
        assert (await g.post("/runs/x/fork?from=99999999999999999999", {})).status == 400
        assert (await g.post(f"/runs/x/fork?from={2**63 - 1}", {})).status == 404


BEYOND = 10**400
"""More than a float holds."""
SCHEMA = {"type": "object", "properties": {"x": {"type": "integer", "maximum": BEYOND}}}
TOOL = {"type": "function", "name": "f", "parameters": SCHEMA}


async def test_a_run_with_a_number_beyond_floats_is_worked_on_and_read(tmp_path: Path) -> None:
    """Its row could be written and not read: it was queued for ever."""
    lenient = alias("lenient", ("chat", "recite"))
    async with gateway(tmp_path, lenient) as g:
        agent = {"name": "a", "model": "lenient", "tools": [TOOL]}
        begun = await g.post("/runs", {"agent": agent, "input": "hi"})
        assert begun.status == 201
        async with asyncio.timeout(10):
            while (await g.get("/runs", key=KEY)).json()["data"][0]["status"] == "queued":
                await asyncio.sleep(0.02)


async def test_what_is_kept_with_a_number_beyond_floats_can_be_read(tmp_path: Path) -> None:
    """A prompt with one took the gateway down, and no other started on its books."""
    async with gateway(tmp_path) as g:
        item = {"type": "function_call_output", "call_id": "c", "output": "x", "own": BEYOND}
        made = await g.post("/v1/conversations", {"items": [item]})
        items = await g.get(f"/v1/conversations/{made.json()['id']}/items", key=KEY)
        assert items.json()["data"][0]["own"] == BEYOND
        prompt = {"name": "p", "system": "hi", "output": {"schema": SCHEMA}}
        assert (await g.post("/admin/prompts", prompt, key=ADMIN)).status == 201
    async with gateway(tmp_path) as g:
        kept = await g.get("/admin/prompts/p@1")
        assert kept.json()["output"]["schema"] == SCHEMA
