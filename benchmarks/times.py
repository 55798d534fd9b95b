"""What callers wait longer than at the floor, at several numbers of callers; and the start."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from benchmarks.bars import Figure
from benchmarks.cpu import Side, Tell
from benchmarks.load import drive
from benchmarks.scenarios import Scenario, config
from benchmarks.servers import Unfit, floor, gateway, mock

CONCURRENCY = (1, 16, 64, 256)
QUIET = 0.05
"""Seconds that each of 16 callers rests between two calls, so that no queue forms."""

FIRST_BARS = (("p50", 1.0), ("p99", 5.0))
"""Milliseconds that a stream's first bytes may come later, with 16 callers that rest and
durability normal."""
START_BAR = 0.7
"""Seconds that the first answer may come later after a start."""

Starter = Callable[[], AbstractContextManager[Side]]

CALL = Scenario("call", "whole", "chat", "call", None, 0, 0)
STREAM = Scenario("stream", "burst-20", "chat", "call", None, 0, 0)


async def latency(rounds: int, tell: Tell) -> list[Figure]:
    """Milliseconds added to a call, and to a stream's first bytes: medians and ranges of several
    rounds; those that have a bar."""
    tell(
        "| durability | callers | call: p50 | p99 | first bytes of a stream: p50 | p99 |\n"
        "| --- | --- | --: | --: | --: | --: |"
    )
    with tempfile.TemporaryDirectory() as folder, mock() as upstream, floor(upstream) as low:
        figures: list[Figure] = []
        for durability in ("normal", "full"):
            settings = config(upstream, (CALL, STREAM), durability=durability)
            with gateway(settings, folder) as high:
                quiet = await _row(durability, low, high, (16, QUIET), rounds, tell)
                for callers in CONCURRENCY:
                    await _row(durability, low, high, (callers, 0.0), rounds, tell)
            if durability == "normal":
                figures = [
                    Figure(f"first bytes of a stream, {name}", value, most, " ms")
                    for (name, most), value in zip(FIRST_BARS, quiet[2:], strict=True)
                ]
        return figures


async def _added(low: Side, high: Side, callers: int, pause: float) -> list[float]:
    """Milliseconds: a call's p50 and p99, and those of a stream's first bytes."""
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
            1000 * (statistics.median(ours) - statistics.median(base)),
            1000 * (_p99(ours) - _p99(base)),
        ]
    return figures


async def _row(
    durability: str, low: Side, high: Side, load: tuple[int, float], rounds: int, tell: Tell
) -> list[float]:
    """A line of the table; its medians."""
    callers, pause = load
    taken = [await _added(low, high, callers, pause) for _ in range(rounds)]
    columns = list(zip(*taken, strict=True))
    medians = [statistics.median(column) for column in columns]
    shown = " | ".join(
        f"{median:.2f} ({min(column):.2f} to {max(column):.2f})"
        for median, column in zip(medians, columns, strict=True)
    )
    rest = f", each resting {pause * 1000:.0f} ms" if pause else ", never resting"
    tell(f"| {durability} | {callers}{rest} | {shown} |")
    return medians


def _p99(values: Sequence[float]) -> float:
    return sorted(values)[int(len(values) * 0.99)]


async def start(tell: Tell, rounds: int = 5) -> list[Figure]:
    """From starting the process to its first answer; the seconds more than the floor's."""
    tell("| | seconds to the first answer (range) |\n| --- | --: |")
    with tempfile.TemporaryDirectory() as folder, mock() as upstream:
        starters: tuple[tuple[str, str, Starter], ...] = (
            ("floor", CALL.model, lambda: floor(upstream)),
            ("gateway", CALL.alias, lambda: gateway(config(upstream, [CALL]), folder)),
        )
        medians: list[float] = []
        for name, model, starter in starters:
            seconds = [await _first_answer(starter, CALL.payload(model)) for _ in range(rounds)]
            medians.append(statistics.median(seconds))
            spread = f"({min(seconds):.2f} to {max(seconds):.2f})"
            tell(f"| {name} | {medians[-1]:.2f} {spread} |")
    base, ours = medians
    return [Figure("start, beyond the floor's", ours - base, START_BAR, " s")]


async def _first_answer(starter: Starter, payload: bytes) -> float:
    began = time.perf_counter()
    with starter() as side:
        await drive(side[1], payload, 1, 1)
        return time.perf_counter() - began
