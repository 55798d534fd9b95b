"""CPU per call and per chunk: each scenario in turn, floor then gateway, several rounds."""

from __future__ import annotations

import contextlib
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.load import Result, drive
from benchmarks.scenarios import SCENARIOS, Scenario, config
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


async def table(scenarios: tuple[Scenario, ...], rounds: int, tell: Tell) -> None:
    """All scenarios, a line each."""
    tell(
        "| scenario | per | floor µs | gateway µs | ratio (range) | bar | |\n"
        "| --- | --- | --: | --: | --: | --: | --- |"
    )
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        upstream = stack.enter_context(mock())
        low = stack.enter_context(floor(upstream))
        high = stack.enter_context(gateway(config(upstream, scenarios), folder))
        for scenario in scenarios:
            tell(await _row(scenario, low, high, rounds))


async def _row(scenario: Scenario, low: Side, high: Side, rounds: int) -> str:
    floors, gates = [], []
    for _ in range(rounds):
        floors.append((await measure(low, scenario, scenario.model)).micros)
        gates.append((await measure(high, scenario, scenario.alias)).micros)
    ratios = [gate / base for gate, base in zip(gates, floors, strict=True)]
    ratio = statistics.median(ratios)
    return (
        f"| {scenario.name} | {scenario.per} | {statistics.median(floors):.1f} "
        f"| {statistics.median(gates):.1f} | {ratio:.2f} ({min(ratios):.2f} to {max(ratios):.2f}) "
        f"| {scenario.bar} | {'ok' if ratio <= scenario.bar else 'over'} |"
    )


FEATURES: tuple[tuple[str, dict[str, str]], ...] = (
    ("keys, limits, budget, ledger, metrics", {}),
    ("a log line for each call as well", {"log_level": "info"}),
    ("redaction as well", {"redaction": "mask"}),
    ("durability full as well", {"durability": "full"}),
)


async def features(rounds: int, tell: Tell) -> None:
    """The price of what can be switched on, on a call of the same dialect."""
    scenario = SCENARIOS[0]
    tell("| switched on | µs a call | ratio to floor |\n| --- | --: | --: |")
    with tempfile.TemporaryDirectory() as folder, mock() as upstream, floor(upstream) as low:
        for name, chosen in FEATURES:
            with gateway(config(upstream, [scenario], **chosen), folder) as high:
                floors, gates = [], []
                for _ in range(rounds):
                    floors.append((await measure(low, scenario, scenario.model)).micros)
                    gates.append((await measure(high, scenario, scenario.alias)).micros)
            gate, base = statistics.median(gates), statistics.median(floors)
            tell(f"| {name} | {gate:.0f} | {gate / base:.2f} |")
