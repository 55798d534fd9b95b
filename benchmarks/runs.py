"""What a run's event stream costs, with one reader and with many."""

from __future__ import annotations

import asyncio
import json
import re
import statistics
import tempfile
import time
from dataclasses import dataclass, field

from benchmarks.cpu import Side, Tell, measure
from benchmarks.load import request
from benchmarks.scenarios import CHAT, PACED, Scenario, config
from benchmarks.servers import cpu_seconds, floor, gateway, mock

READERS = (1, 100)
MODEL = "paced-300-10"
"""Three seconds of one delta every 10 ms; the run puts together what comes within 50 ms."""

_AT = re.compile(rb'"at":([\d.]+)')
_CHUNK = Scenario("paced chunk", PACED, "chat", "chunk", None, 32, 16)


@dataclass(slots=True)
class Read:
    """What readers got: frames, and the seconds from each event's time to its reader."""

    frames: int = 0
    late: list[float] = field(default_factory=list)


def run_request(model: str, *, stream: bool) -> bytes:
    """The bytes that begin a run of one turn with ``model``."""
    agent = {"model": model, "instructions": "Be brief."}
    body = {"agent": agent, "input": "word " * 40, "stream": stream}
    return request("/runs", json.dumps(body).encode())


async def subscribers(rounds: int, tell: Tell) -> None:
    """The table, a line for each number of readers."""
    tell(
        "| readers | events a run | µs an event, all in all | µs for each further reader "
        "| ratio of that to a floor's chunk | ms until read: p50 | p99 |\n"
        "| --- | --: | --: | --: | --: | --: | --: |"
    )
    spec = Scenario("run", MODEL, "chat", "call", None, 0, 0, path=CHAT)
    with tempfile.TemporaryDirectory() as folder, mock() as upstream, floor(upstream) as low:
        base = [(await measure(low, _CHUNK, _CHUNK.model)).micros for _ in range(rounds)]
        with gateway(config(upstream, [spec]), folder) as high:
            alone = 0.0
            for readers in READERS:
                micros, read = await _followed(high, spec.alias, readers, rounds)
                alone = alone or micros
                events = read.frames / readers / rounds
                further = "| "
                if readers > 1:
                    each = (micros - alone) / (readers - 1)
                    further = f"{each:.0f} | {each / statistics.median(base):.2f}"
                late = sorted(read.late)
                tell(
                    f"| {readers} | {events:.0f} | {micros:.0f} | {further} "
                    f"| {1000 * statistics.median(late):.1f} "
                    f"| {1000 * late[int(len(late) * 0.99)]:.1f} |"
                )


async def _followed(side: Side, model: str, readers: int, rounds: int) -> tuple[float, Read]:
    """Microseconds of CPU for each event of a run with so many readers, model and ledger
    included; the median of several runs."""
    pid, port = side
    read, micros = Read(), []
    for _ in range(rounds):
        run_id = await _begun(port, run_request(model, stream=False))
        before, frames = cpu_seconds(pid), read.frames
        await asyncio.gather(*(_follow(port, run_id, read) for _ in range(readers)))
        events = (read.frames - frames) / readers
        micros.append((cpu_seconds(pid) - before) * 1e6 / events)
    return statistics.median(micros), read


async def _begun(port: int, payload: bytes) -> str:
    """The id of a run that has begun."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(payload)
    head = await reader.readuntil(b"\r\n\r\n")
    found = re.search(rb"location: /runs/(\S+)", head)
    writer.close()
    if found is None:
        raise SystemExit(f"a run was refused: {head[:60]!r}")
    return found[1].decode()


async def _follow(port: int, run_id: str, read: Read) -> None:
    """Read a run's events to their end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    writer.write(
        f"GET /runs/{run_id}/events HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer bench-key\r\n"
        "accept: text/event-stream\r\nconnection: close\r\n\r\n".encode()
    )
    async for line in reader:
        if line.startswith(b"data: "):
            read.frames += 1
            at = _AT.search(line)
            if at is not None:
                read.late.append(time.time() - float(at[1]))
    writer.close()
