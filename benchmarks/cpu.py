"""CPU per call and per chunk: each scenario in turn, floor then gateway, several rounds."""

from __future__ import annotations

import contextlib
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.bars import Figure
from benchmarks.load import Result, drive
from benchmarks.scenarios import Scenario, config
from benchmarks.servers import Unfit, cpu_seconds, floor, gateway, mock

Side = tuple[int, int]
"""A server's pid and port."""
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Measured:
    """One side of one round: microseconds of CPU a unit, and the callers' times."""

    micros: float
    result: Result


async def measure(side: Side, scenario: Scenario, model: str) -> Measured:
    """Run a scenario against one server."""
    pid, port = side
    payload = scenario.payload(model)
    await drive(port, payload, scenario.concurrency * 2, scenario.concurrency)
    before = cpu_seconds(pid)
    result = await drive(port, payload, scenario.calls, scenario.concurrency)
    if result.failed:
        raise Unfit(f"{scenario.name}: {result.failed} calls failed")
    spent = cpu_seconds(pid) - before
    return Measured(spent * 1e6 / scenario.units, result)


async def micros_of(side: Side, payload: bytes, number: int, at_once: int) -> float:
    """Microseconds of CPU that each of ``number`` requests costs a server."""
    pid, port = side
    before = cpu_seconds(pid)
    result = await drive(port, payload, number, at_once)
    if result.failed:
        raise Unfit(f"{result.failed} requests failed")
    return (cpu_seconds(pid) - before) * 1e6 / number


async def table(scenarios: tuple[Scenario, ...], rounds: int, tell: Tell) -> list[Figure]:
    """All scenarios, a line each; their ratios."""
    tell(
        "| scenario | per | floor µs | gateway µs | ratio (range) | bar | |\n"
        "| --- | --- | --: | --: | --: | --: | --- |"
    )
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        upstream = stack.enter_context(mock())
        low = stack.enter_context(floor(upstream))
        high = stack.enter_context(gateway(config(upstream, scenarios), folder))
        return [await _row(scenario, low, high, rounds, tell) for scenario in scenarios]


async def _row(scenario: Scenario, low: Side, high: Side, rounds: int, tell: Tell) -> Figure:
    floors, gates = [], []
    for _ in range(rounds):
        floors.append((await measure(low, scenario, scenario.model)).micros)
        gates.append((await measure(high, scenario, scenario.alias)).micros)
    ratios = [gate / base for gate, base in zip(gates, floors, strict=True)]
    figure = Figure(scenario.name, statistics.median(ratios), scenario.bar)
    tell(
        f"| {scenario.name} | {scenario.per} | {statistics.median(floors):.1f} "
        f"| {statistics.median(gates):.1f} "
        f"| {figure.value:.2f} ({min(ratios):.2f} to {max(ratios):.2f}) | {figure.cells} |"
    )
    return figure
