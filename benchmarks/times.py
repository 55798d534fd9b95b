"""What callers wait longer than at the floor, at several numbers of callers; and the start."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from benchmarks.cpu import Side, Tell
from benchmarks.load import drive
from benchmarks.scenarios import Scenario, config
from benchmarks.servers import Unfit, floor, gateway, mock

CONCURRENCY = (1, 16, 64, 256)
QUIET = 0.05
"""Seconds that each of 16 callers rests between two calls, so that no queue forms."""

Starter = Callable[[], AbstractContextManager[Side]]

CALL = Scenario("call", "whole", "chat", "call", 0, 0, 0)
STREAM = Scenario("stream", "burst-20", "chat", "call", 0, 0, 0)


async def latency(tell: Tell) -> None:
    """Milliseconds added to a call, and to a stream's first bytes."""
    tell(
        "| durability | callers | call: p50 | p99 | first bytes of a stream: p50 | p99 |\n"
        "| --- | --- | --: | --: | --: | --: |"
    )
    with tempfile.TemporaryDirectory() as folder, mock() as upstream, floor(upstream) as low:
        for durability in ("normal", "full"):
            settings = config(upstream, (CALL, STREAM), durability=durability)
            with gateway(settings, folder) as high:
                tell(await _added(durability, low, high, 16, QUIET))
                for callers in CONCURRENCY:
                    tell(await _added(durability, low, high, callers, 0.0))


async def _added(durability: str, low: Side, high: Side, callers: int, pause: float) -> str:
    calls = max(400, callers * 12)
    figures: list[float] = []
    for scenario in (CALL, STREAM):
        seconds: list[Sequence[float]] = []
        for side, model in ((low, scenario.model), (high, scenario.alias)):
            payload = scenario.payload(model)
            await drive(side[1], payload, callers * 2, callers)
            result = await drive(side[1], payload, calls, callers, pause)
            if result.failed:
                raise Unfit(f"{scenario.name}: {result.failed} calls failed")
            seconds.append(result.whole if scenario is CALL else result.first)
        base, ours = seconds
        figures += [
            statistics.median(ours) - statistics.median(base),
            _p99(ours) - _p99(base),
        ]
    shown = " | ".join(f"{1000 * seconds:.2f}" for seconds in figures)
    rest = f", each resting {pause * 1000:.0f} ms" if pause else ", never resting"
    return f"| {durability} | {callers}{rest} | {shown} |"


def _p99(values: Sequence[float]) -> float:
    return sorted(values)[int(len(values) * 0.99)]


async def start(tell: Tell, rounds: int = 5) -> None:
    """From starting the process to its first answer."""
    tell("| | seconds to the first answer |\n| --- | --: |")
    with tempfile.TemporaryDirectory() as folder, mock() as upstream:
        starters: tuple[tuple[str, str, Starter], ...] = (
            ("floor", CALL.model, lambda: floor(upstream)),
            ("gateway", CALL.alias, lambda: gateway(config(upstream, [CALL]), folder)),
        )
        for name, model, starter in starters:
            seconds = [await _first_answer(starter, CALL.payload(model)) for _ in range(rounds)]
            tell(f"| {name} | {statistics.median(seconds):.2f} |")


async def _first_answer(starter: Starter, payload: bytes) -> float:
    began = time.perf_counter()
    with starter() as side:
        await drive(side[1], payload, 1, 1)
        return time.perf_counter() - began
