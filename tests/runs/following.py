"""Short words for what tests of runs do all the time: begin, follow, wait."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from tests.harness import KEY, Answer, Harness

Event = Mapping[str, Any]


async def watch(
    g: Harness, run_id: str, *, after: int = 0, until: str | None = None, seconds: float = 15.0
) -> list[dict[str, Any]]:
    """The run's events from a place on, to the end or to the first of type ``until``."""
    found: list[dict[str, Any]] = []
    headers = {"authorization": f"Bearer {KEY}", "last-event-id": str(after)}
    async with asyncio.timeout(seconds):
        async with g.http.get(f"{g.url}/runs/{run_id}/events", headers=headers) as reply:
            assert reply.status == 200, await reply.text()
            rest = b""
            async for chunk in reply.content.iter_any():
                *frames, rest = (rest + chunk).split(b"\n\n")
                for frame in frames:
                    _, _, told = frame.partition(b"\ndata: ")
                    if told:
                        found.append(json.loads(told))
                        if found[-1]["type"] == until:
                            return found
    return found


async def begin(g: Harness, body: Mapping[str, Any]) -> str:
    """Begin a run; its id."""
    answer = await g.post("/runs", body)
    assert answer.status == 201, answer.body
    return str(answer.json()["id"])


async def read(g: Harness, run_id: str) -> dict[str, Any]:
    """The run as it stands."""
    answer = await g.get(f"/runs/{run_id}", key=KEY)
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json()
    return found


async def answered(g: Harness, run_id: str, interrupt_id: str, **body: Any) -> Answer:
    """Answer an interrupt."""
    return await g.post(f"/runs/{run_id}/interrupts/{interrupt_id}", body)


async def idle(g: Harness, seconds: float = 5.0) -> None:
    """Wait until no run holds a place in the executor."""
    async with asyncio.timeout(seconds):
        while g.state.runs.supervisor.working:
            await asyncio.sleep(0.01)


def types(events: Sequence[Event]) -> list[str]:
    """The types of events, in order."""
    return [event["type"] for event in events]


def data(events: Sequence[Event], type: str) -> list[Any]:
    """The data of all events of a type."""
    return [event["data"] for event in events if event["type"] == type]
