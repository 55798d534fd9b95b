"""Agents as callers write them: what must be there, what is kept, what may be used how."""

from __future__ import annotations

from typing import Any

from tests.harness import KEY, Answer, Harness, alias

SCRIPTED = alias("scripted", ("openai", "script"), retries=0)


def agent(**fields: Any) -> dict[str, Any]:
    return {"agent": {"name": "helper", "model": "scripted", **fields}, "input": "go"}


async def put(g: Harness, name: str, body: Any) -> Answer:
    headers = {"authorization": f"Bearer {KEY}"}
    async with g.http.put(f"{g.url}/agents/{name}", json=body, headers=headers) as reply:
        return Answer(reply.status, dict(reply.headers), await reply.read())


WHOLE: dict[str, Any] = {
    "model": "scripted",
    "description": "d",
    "instructions": "i",
    "tools": ["calculator", "agent:fixed", {"name": "mine", "parameters": {"type": "object"}}],
    "tool_policy": {"calculator": "approve"},
    "approvals": {"expires_in": 60.0, "default": "approve"},
    "handoffs": ["fixed"],
    "output_schema": {"type": "object"},
    "max_turns": 4,
    "parallel_tools": False,
    "context": "trim_history",
    "temperature": 0.5,
    "max_output_tokens": 99,
    "reasoning": {"effort": "low"},
    "budget": {"usd": 0.1, "tokens": 10, "tool_calls": 0, "seconds": 5.0},
    "on_budget": "wait",
    "contract": [
        "at_most 2 calculator",
        {"rule": "require mine before calculator", "on_violation": "fail"},
        "claims cite tool call ids or are marked as assumptions",
    ],
}
