"""Run the scenarios and print ratios: the gateway's CPU over the floor's, in the same run.

CPU is the process's own time from ``/proc`` (all threads), so a busy machine blurs it but does
not bend it. Every scenario is run in turn, floor then gateway, ``--rounds`` times; medians and
ranges are shown. Needs Linux.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.load import Result, drive, request

TICK = os.sysconf("SC_CLK_TCK")
CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"

CONFIG = """
[server]
port = {port}
[store]
url = "sqlite:///{folder}/bench.db"
[observe]
log_level = "error"
[providers.chat]
dialect = "openai-chat"
base_url = "{upstream}/v1"
api_key = "${{UPSTREAM_KEY}}"
[providers.responses]
dialect = "openai-responses"
base_url = "{upstream}/v1"
api_key = "${{UPSTREAM_KEY}}"
[providers.messages]
dialect = "anthropic-messages"
base_url = "{upstream}"
api_key = "${{UPSTREAM_KEY}}"
[[keys]]
name = "bench"
key = "${{BENCH_KEY}}"
limits = {{ rpm = 100000000, tpm = 100000000000, concurrent = 10000, usd_per_day = 1000000.0 }}
"""
ALIAS = """
[models."{dialect}/{model}"]
targets = [{{ provider = "{dialect}", model = "{model}" }}]
"""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One row of the table. ``per`` is what the CPU is divided by; ``bar`` the ratio aimed at."""

    name: str
    model: str
    southbound: str
    per: str
    bar: float
    calls: int
    concurrency: int
    prompt: int = 1_000
    path: str = CHAT

    @property
    def chunks(self) -> int:
        """Deltas an answer has."""
        return int(self.model.split("-")[1]) if "-" in self.model else 1

    @property
    def units(self) -> int:
        """What the CPU is divided by."""
        return self.calls * (self.chunks if self.per == "chunk" else 1)

    def payload(self, model: str) -> bytes:
        """The call's bytes; ``model`` is an alias or, for the floor, the mock's own word."""
        body = {
            "model": model,
            "max_tokens": 200,
            "messages": [{"role": "user", "content": "word " * (self.prompt // 5)}],
        }
        if self.model != "whole":
            body["stream"] = True
        return request(self.path, json.dumps(body).encode())


SCENARIOS = (
    Scenario("call, same dialect", "whole", "chat", "call", 1.7, 1500, 16),
    Scenario("call, to Messages", "whole", "messages", "call", 1.7, 1500, 16),
    Scenario("call, to Responses", "whole", "responses", "call", 1.7, 1500, 16),
    Scenario("call, 100 kB prompt", "whole", "chat", "call", 1.5, 400, 16, prompt=100_000),
    Scenario("paced chunk, same dialect", "paced-100-10", "chat", "chunk", 1.4, 64, 16),
    Scenario("paced chunk, to Messages", "paced-100-10", "messages", "chunk", 1.8, 64, 16),
    Scenario("paced chunk, to Responses", "paced-100-10", "responses", "chunk", 1.8, 64, 16),
    Scenario("burst chunk, same dialect", "burst-500", "chat", "chunk", 1.5, 64, 16),
)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far, all threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def rss_bytes(pid: int) -> int:
    """Resident memory of a process."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextlib.contextmanager
def process(port: int, *command: str, **environment: str) -> Iterator[int]:
    """A server process that answers on ``port``; its pid."""
    running = subprocess.Popen(
        [sys.executable, *command], env={**os.environ, **environment}, stdout=subprocess.DEVNULL
    )
    try:
        end = time.monotonic() + 20
        while time.monotonic() < end:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            if running.poll() is not None:
                raise SystemExit(f"{' '.join(command)} ended with {running.returncode}")
            time.sleep(0.02)
        yield running.pid
    finally:
        running.terminate()
        running.wait(10)


@dataclass(frozen=True, slots=True)
class Measured:
    """One side of one round: microseconds of CPU a unit, and the callers' times."""

    micros: float
    result: Result


async def measure(pid: int, port: int, scenario: Scenario, model: str) -> Measured:
    """Run a scenario against one server."""
    payload = scenario.payload(model)
    await drive(port, payload, scenario.concurrency * 2, scenario.concurrency)
    before = cpu_seconds(pid)
    result = await drive(port, payload, scenario.calls, scenario.concurrency)
    if result.failed:
        raise SystemExit(f"{scenario.name}: {result.failed} calls failed")
    spent = cpu_seconds(pid) - before
    return Measured(spent * 1e6 / scenario.units, result)


def config(folder: str, port: int, upstream: str, scenarios: tuple[Scenario, ...]) -> str:
    """The gateway's configuration for the bench."""
    pairs = dict.fromkeys((s.southbound, s.model) for s in scenarios)
    aliases = "".join(ALIAS.format(dialect=d, model=m) for d, m in pairs)
    return CONFIG.format(folder=folder, port=port, upstream=upstream) + aliases


async def bench(scenarios: tuple[Scenario, ...], rounds: int) -> list[str]:
    """All scenarios; the table's lines."""
    mock, floor, gate = free_port(), free_port(), free_port()
    upstream = f"http://127.0.0.1:{mock}"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.toml"
        path.write_text(config(folder, gate, upstream, scenarios))
        with (
            process(mock, "-m", "benchmarks.mock", str(mock)),
            process(floor, "-m", "benchmarks.floor", str(floor), upstream) as floor_pid,
            process(
                gate,
                *("-m", "gateway", "serve", "--config", str(path)),
                UPSTREAM_KEY="upstream",
                BENCH_KEY="bench-key",
            ) as gate_pid,
        ):
            sides = ((floor_pid, floor), (gate_pid, gate))
            return [await row(scenario, sides, rounds) for scenario in scenarios]


async def row(
    scenario: Scenario, sides: tuple[tuple[int, int], tuple[int, int]], rounds: int
) -> str:
    """One scenario, its line of the table; printed when it is known."""
    (floor_pid, floor), (gate_pid, gate) = sides
    floors, gates, ratios, added = [], [], [], []
    for _ in range(rounds):
        low = await measure(floor_pid, floor, scenario, scenario.model)
        high = await measure(gate_pid, gate, scenario, f"{scenario.southbound}/{scenario.model}")
        floors.append(low.micros)
        gates.append(high.micros)
        ratios.append(high.micros / low.micros)
        added.append(statistics.median(high.result.first) - statistics.median(low.result.first))
    ratio = statistics.median(ratios)
    line = (
        f"{scenario.name:<28} {scenario.per:<6}{statistics.median(floors):>8.0f}"
        f"{statistics.median(gates):>9.0f}{ratio:>7.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
        f"{scenario.bar:>6.1f}  {'ok' if ratio <= scenario.bar else 'over':<5}"
        f"{statistics.median(added) * 1000:>7.2f}"
    )
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
    return line


HEAD = (
    f"{'scenario':<28} {'per':<6}{'floor':>8}{'gateway':>9}{'ratio':>7} {'(range)':<11}"
    f"{'bar':>6}  {'':<5}{'+ttfb ms':>7}"
)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", help="run scenarios whose name contains this")
    options = parser.parse_args()
    chosen = tuple(s for s in SCENARIOS if not options.only or options.only in s.name)
    sys.stdout.write(f"CPU microseconds a unit, median of {options.rounds} rounds\n{HEAD}\n")
    asyncio.run(bench(chosen, options.rounds))


if __name__ == "__main__":
    main()
