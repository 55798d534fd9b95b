"""A call takes no more steps than it did: how often a function of ours is entered while it is
served. Time on a shared machine says little, and what a change adds to each call is a few
microseconds; the number of steps is the same in every run, and shows it."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import gateway
from benchmarks.load import drive
from benchmarks.scenarios import MESSAGES, Scenario, config
from benchmarks.servers import mock
from gateway.app import running
from gateway.settings.load import Overrides, load
from tests.harness import served

OWN = tuple(str(Path(gateway.__file__).parents[1] / room) + "/" for room in ("gateway", "adapters"))
ENVIRONMENT = {"UPSTREAM_KEY": "upstream", "BENCH_KEY": "bench-key"}

WHOLE = Scenario("chat", "whole", "chat", "call", None, 50, 1)
PACED = Scenario("20 chunks", "paced-20-5", "chat", "call", None, 16, 4)
CEILINGS = {
    WHOLE: 285,
    replace(WHOLE, name="chat to Messages", southbound="messages"): 300,
    replace(WHOLE, name="Messages to Responses", southbound="responses", path=MESSAGES): 310,
    PACED: 1020,
    replace(PACED, name="20 chunks to Messages", southbound="messages"): 1390,
}
"""What is asked, and the most steps that it may take: what it took on 1 December 2026, and 15 %.
A change that needs more has to say here for what; one that saves many lowers them."""


@pytest.fixture
async def port(tmp_path: Path) -> AsyncIterator[int]:
    """A gateway in this event loop, with all that the bench switches on; its port."""
    async with AsyncExitStack() as stack:
        upstream = stack.enter_context(mock())
        path = tmp_path / "gateway.toml"
        text = config(upstream, CEILINGS)
        path.write_text(text.replace("PORT", "0").replace("FOLDER", str(tmp_path / "gateway")))
        settings = load(path, ENVIRONMENT, Overrides())
        app, _ = await stack.enter_async_context(running(settings, lambda: settings))
        url = await stack.enter_async_context(served(app))
        yield int(url.rpartition(":")[2])


async def steps(port: int, scenario: Scenario) -> float:
    """How often a call enters a function of ours, or goes on in one, in the event loop's thread."""
    taken = 0

    def count(frame: FrameType, event: str, _: Any) -> None:
        nonlocal taken
        taken += event == "call" and frame.f_code.co_filename.startswith(OWN)

    payload = scenario.payload(scenario.alias)
    await drive(port, payload, scenario.calls // 4, scenario.concurrency)
    sys.setprofile(count)
    try:
        result = await drive(port, payload, scenario.calls, scenario.concurrency)
    finally:
        sys.setprofile(None)
    assert (len(result.whole), result.failed) == (scenario.calls, 0)
    return taken / scenario.calls


async def test_a_call_takes_no_more_steps(port: int) -> None:
    taken = {scenario: await steps(port, scenario) for scenario in CEILINGS}
    told = {scenario.name: (round(taken[scenario]), most) for scenario, most in CEILINGS.items()}
    assert all(taken[one] <= most for one, most in CEILINGS.items()), f"taken, and allowed: {told}"
    assert all(taken[one] > most / 2 for one, most in CEILINGS.items()), f"lower them: {told}"
