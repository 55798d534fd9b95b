"""Resident memory while many slow streams are open."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile

from benchmarks.cpu import Side, Tell
from benchmarks.scenarios import Scenario, config
from benchmarks.servers import floor, gateway, mock, rss_bytes

SLOW = Scenario("slow stream", "paced-120-1000", "chat", "call", 0, 0, 0)
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]
FEW, MANY = 200, 1000
WAVE = 16
"""Streams that are opened at once: what many requests need at the same moment while they begin
is not what an open stream holds."""
SETTLE = 4.0
"""Seconds between the last stream's first bytes and the look at the memory."""


async def memory(tell: Tell) -> None:
    """The table's lines."""
    tell(
        f"| | idle MB | {FEW} streams | {MANY} streams | kB a stream |\n"
        "| --- | --: | --: | --: | --: |"
    )
    with tempfile.TemporaryDirectory() as folder, mock() as upstream:
        with floor(upstream) as low:
            tell(await _grown("floor", low, SLOW.payload(SLOW.model)))
        with gateway(config(upstream, [SLOW]), folder) as high:
            tell(await _grown("gateway", high, SLOW.payload(SLOW.alias)))


async def _grown(name: str, side: Side, payload: bytes) -> str:
    pid, port = side
    sizes = [rss_bytes(pid)]
    open_streams: list[Stream] = []
    try:
        for wanted in (FEW, MANY):
            open_streams += await _open(port, payload, wanted - len(open_streams))
            await asyncio.sleep(SETTLE)
            sizes.append(rss_bytes(pid))
    finally:
        for _, writer in open_streams:
            writer.transport.abort()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
    idle, few, many = sizes
    each = (many - few) / (MANY - FEW) / 1000
    return f"| {name} | {idle / 1e6:.0f} | {few / 1e6:.0f} | {many / 1e6:.0f} | {each:.1f} |"


async def held(tell: Tell, minutes: float = 10.0) -> None:
    """What slow streams hold more after they were open for long; each goes on saying a word a
    second."""
    lasting = Scenario(
        "lasting stream", f"paced-{int(minutes * 60) + 120}-1000", "chat", "call", 0, 0, 0
    )
    tell(
        f"| {MANY} streams | MB after half a minute | after {minutes:g} minutes | growth |\n"
        "| --- | --: | --: | --: |"
    )
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        upstream = stack.enter_context(mock())
        pid, port = stack.enter_context(gateway(config(upstream, [lasting]), folder))
        payload = lasting.payload(lasting.alias)
        streams = await _open(port, payload, MANY)
        readers = [asyncio.create_task(_read(stream)) for stream in streams]
        await asyncio.sleep(30)
        before = rss_bytes(pid)
        await asyncio.sleep(minutes * 60 - 30)
        after = rss_bytes(pid)
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
    share = (after - before) / before
    tell(f"| gateway | {before / 1e6:.1f} | {after / 1e6:.1f} | {100 * share:+.1f} % |")


async def _read(stream: Stream) -> None:
    """Take what comes, until cancelled."""
    reader, writer = stream
    try:
        while await reader.read(1 << 16):
            pass
    finally:
        writer.transport.abort()


async def _open(port: int, payload: bytes, number: int) -> list[Stream]:
    """So many streams, whose first content has come."""
    streams: list[Stream] = []
    while len(streams) < number:
        wave = min(WAVE, number - len(streams))
        streams += await asyncio.gather(*(_opened(port, payload) for _ in range(wave)))
    return streams


async def _opened(port: int, payload: bytes) -> Stream:
    """A stream whose first content has come."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(payload)
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise SystemExit(f"a slow stream was refused: {head[:60]!r}")
    await reader.readuntil(b'"content":"word')
    return reader, writer
