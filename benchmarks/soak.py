"""Mixed load with faults and callers that leave, for a while; then: is anything left over?

``make soak`` runs 30 minutes, ``SOAK_MINUTES=2`` less. A real gateway and a real simulator run
as processes of their own. Fails (exit code 1) if memory grows, or a file, a request in flight
or a reservation stays behind. Needs Linux.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import re
import sqlite3
import statistics
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.load import request
from benchmarks.servers import free_port, process, rss_bytes

CONFIG = """
[server]
port = {port}
[store]
url = "sqlite:///{folder}/soak.db"
[observe]
log_level = "error"
[providers.openai]
dialect = "openai-responses"
base_url = "{upstream}/v1"
api_key = "${{UPSTREAM_KEY}}"
[providers.anthropic]
dialect = "anthropic-messages"
base_url = "{upstream}"
api_key = "${{UPSTREAM_KEY}}"
[providers.chat]
dialect = "openai-chat"
base_url = "{upstream}/v1"
api_key = "${{UPSTREAM_KEY}}"
[[keys]]
name = "bench"
key = "${{BENCH_KEY}}"
role = "admin"
limits = {{ rpm = 100000000, tpm = 100000000000, concurrent = 10000, usd_per_day = 1000000.0 }}
"""
MODELS = (
    "echo",
    "reasoning+echo",
    "paced-30-10",
    "burst-50",
    "fault-once-500",
    "fault-status-503",
    "fault-status-429-retry-after-0",
    "fault-cut-after-3",
    "fault-malformed-after-2",
    "fault-html-200",
    "fault-error-midstream-2",
)
PROVIDERS = ("openai", "anthropic", "chat")
LAG_BAR = 0.020
"""Seconds: the event loop's lag at the 99th percentile."""
GROWTH_BAR = 1.05
"""The last quarter's median memory over that of the quarter after warming up."""


@dataclass(frozen=True, slots=True)
class Bars:
    """What must hold: ``lag`` in seconds, ``growth`` of memory as a ratio."""

    lag: float
    growth: float


@dataclass(slots=True)
class Tally:
    """What came of the calls, and how the gateway's process looked meanwhile."""

    calls: int = 0
    left: int = 0
    statuses: dict[str, int] = field(default_factory=dict)
    rss: list[int] = field(default_factory=list)
    files: list[int] = field(default_factory=list)


def aliases() -> str:
    """One alias for each model at each provider, failing over to a sound one."""
    lines = []
    for provider in PROVIDERS:
        for model in MODELS:
            lines += [
                f'[models."{provider}/{model}"]',
                "retries = 1",
                f'targets = [{{ provider = "{provider}", model = "{model}" }}, '
                f'{{ provider = "anthropic", model = "echo" }}]',
                "breaker = { streak = 1000000, minimum = 1000000 }",
            ]
    return "\n".join(lines)


async def one(port: int, tally: Tally, chance: random.Random) -> None:
    """One call: streamed or not, read to its end or left on the way."""
    alias = f"{chance.choice(PROVIDERS)}/{chance.choice(MODELS)}"
    stream = chance.random() < 0.7
    leave = chance.random() < 0.2
    body = {
        "model": alias,
        "stream": stream,
        "messages": [{"role": "user", "content": "word " * chance.randint(1, 400)}],
    }
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request("/v1/chat/completions", json.dumps(body).encode()))
        if leave:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(chance.random() * 0.2):
                    await reader.read(1 << 20)
            tally.left += 1
            return
        head = await reader.readuntil(b"\r\n\r\n")
        status = head.split(b" ", 2)[1].decode()
        tally.statuses[status] = tally.statuses.get(status, 0) + 1
        await _drain(reader, head)
        tally.calls += 1
    finally:
        writer.close()


async def _drain(reader: asyncio.StreamReader, head: bytes) -> None:
    found = re.search(rb"content-length: (\d+)", head.lower())
    if found:
        await reader.readexactly(int(found.group(1)))
        return
    while size := int(await reader.readuntil(b"\r\n"), 16):
        await reader.readexactly(size + 2)


async def load(port: int, pid: int, seconds: float, workers: int) -> Tally:
    """Call from ``workers`` callers at once until the time is over."""
    tally = Tally()
    end = time.monotonic() + seconds

    async def worker(seed: int) -> None:
        chance = random.Random(seed)
        while time.monotonic() < end:
            await one(port, tally, chance)
            await asyncio.sleep(chance.random() * 0.02)

    async def watch() -> None:
        while time.monotonic() < end:
            tally.rss.append(rss_bytes(pid))
            tally.files.append(len(os.listdir(f"/proc/{pid}/fd")))
            sys.stderr.write(
                f"\r{end - time.monotonic():6.0f} s left  {tally.calls} calls  {tally.left} left "
                f"early  {tally.rss[-1] / 1e6:.0f} MB  {tally.files[-1]} files "
            )
            await asyncio.sleep(min(2.0, seconds / 40))

    await asyncio.gather(watch(), *(worker(n) for n in range(workers)))
    sys.stderr.write("\n")
    return tally


def metrics(port: int) -> str:
    """The gateway's own account."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as reply:
        text: str = reply.read().decode()
        return text


def lag_p99(text: str) -> float:
    """The bound of the bucket that holds the 99th percentile of the loop's lag."""
    buckets = [
        (float(bound), float(count))
        for bound, count in re.findall(
            r'gateway_event_loop_lag_seconds_bucket\{le="([^"]+)"\} (\S+)', text
        )
    ]
    total = buckets[-1][1]
    return next(bound for bound, count in buckets if count >= 0.99 * total)


def leftovers(folder: str) -> dict[str, int]:
    """Rows that should be settled by now, and reservations that should be released."""
    with contextlib.closing(sqlite3.connect(f"file:{folder}/soak.db?mode=ro", uri=True)) as books:
        count = "SELECT count(*) FROM {} WHERE status = 'open'"
        held = "SELECT sum(reserved_nano), sum(in_flight) FROM accounts"
        nano, slots = books.execute(held).fetchone()
        rows = {
            table: books.execute(count.format(table)).fetchone()[0]
            for table in ("requests", "attempts")
        }
        return {**rows, "reserved_nano": nano, "slots": slots}


def verdicts(
    tally: Tally, text: str, open_rows: dict[str, int], files: int, bars: Bars
) -> dict[str, bool]:
    """Each thing that must hold, and whether it does."""
    in_flight = sum(
        float(n) for n in re.findall(r"gateway_requests_in_flight\{[^}]*\} (\S+)", text)
    )
    quarter = max(1, len(tally.rss) // 4)
    grown = statistics.median(tally.rss[-quarter:]) / statistics.median(
        tally.rss[quarter : 2 * quarter]
    )
    lag = lag_p99(text)
    return {
        f"memory grew {(grown - 1) * 100:+.1f} % ({(bars.growth - 1) * 100:.0f} % at most)": grown
        <= bars.growth,
        f"{in_flight:.0f} requests in flight (none)": in_flight == 0,
        f"left in the books: {open_rows} (nothing)": not any(open_rows.values()),
        f"{files} files open, {max(tally.files)} at the most under load": files
        <= max(60, min(tally.files) + 20),
        f"event loop lag p99 <= {lag * 1000:.0f} ms ({bars.lag * 1000:.0f} at most)": lag
        <= bars.lag,
    }


async def soak(seconds: float, workers: int, bars: Bars) -> bool:
    """The whole of it; whether everything held."""
    upstream, port = free_port(), free_port()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "soak.toml"
        head = CONFIG.format(port=port, folder=folder, upstream=f"http://127.0.0.1:{upstream}")
        path.write_text(head + aliases())
        with (
            process(upstream, "-m", "gateway", "simulate", "--port", str(upstream)),
            process(
                port,
                *("-m", "gateway", "serve", "--config", str(path)),
                UPSTREAM_KEY="upstream",
                BENCH_KEY="bench-key",
            ) as pid,
        ):
            tally = await load(port, pid, seconds, workers)
            await asyncio.sleep(3)
            found = verdicts(
                tally, metrics(port), leftovers(folder), len(os.listdir(f"/proc/{pid}/fd")), bars
            )
    sys.stdout.write(f"{tally.calls} calls answered {tally.statuses}, {tally.left} left early\n")
    for line, held in found.items():
        sys.stdout.write(f"{'ok  ' if held else 'FAIL'} {line}\n")
    return all(found.values())


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    minutes = float(os.environ.get("SOAK_MINUTES", "30"))
    parser.add_argument("--minutes", type=float, default=minutes)
    parser.add_argument("--workers", type=int, default=24)
    parser.add_argument("--lag", type=float, default=LAG_BAR, help="seconds, at p99")
    parser.add_argument("--growth", type=float, default=GROWTH_BAR, help="of memory, a ratio")
    options = parser.parse_args()
    bars = Bars(options.lag, options.growth)
    held = asyncio.run(soak(options.minutes * 60, options.workers, bars))
    raise SystemExit(0 if held else 1)


if __name__ == "__main__":
    main()
