"""Resident memory while many slow streams are open."""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import tempfile
from collections.abc import Callable, Sequence

from benchmarks.bars import Figure
from benchmarks.cpu import Side, Tell
from benchmarks.mock import WORD
from benchmarks.scenarios import Scenario, config
from benchmarks.servers import Unfit, floor, gateway, mock, rss_bytes

SLOW = Scenario("slow stream", "paced-120-1000", "chat", "call", None, 0, 0)
BAR = 40.0
"""Kilobytes that an open stream may hold."""
GROWTH_BAR = 1.0
"""Per cent that open streams may hold more after minutes: what an allocator's pages come to. One
leaked object of 100 bytes a chunk would be 40 per cent."""
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]
FEW, MANY = 200, 1000
WAVE = 16
"""Streams that are opened at once: what many requests need at the same moment while they begin
is not what an open stream holds."""
SETTLE = 4.0
"""Seconds between the last stream's first bytes and the look at the memory."""


async def memory(rounds: int, tell: Tell) -> list[Figure]:
    """The table's lines; what a stream holds. In each round both servers are started anew."""
    tell(
        f"| | idle MB | {FEW} streams | {MANY} streams | kB a stream (range) | bar | |\n"
        "| --- | --: | --: | --: | --: | --: | --- |"
    )
    lows: list[Sequence[int]] = []
    highs: list[Sequence[int]] = []
    with tempfile.TemporaryDirectory() as folder, mock() as upstream:
        for _ in range(rounds):
            with floor(upstream) as low:
                lows.append(await _grown(low, SLOW.payload(SLOW.model)))
            with gateway(config(upstream, [SLOW]), folder) as high:
                highs.append(await _grown(high, SLOW.payload(SLOW.alias)))
    _tell_row("floor", lows, None, tell)
    return [_tell_row("gateway", highs, BAR, tell)]


async def _grown(side: Side, payload: bytes) -> Sequence[int]:
    """Bytes held idle, with few streams and with many."""
    pid, port = side
    idle = rss_bytes(pid)
    return idle, *await sizes(lambda: rss_bytes(pid), port, payload, (FEW, MANY))


def _tell_row(name: str, taken: Sequence[Sequence[int]], most: float | None, tell: Tell) -> Figure:
    """A line of the table, of several rounds; its figure."""
    held = " | ".join(
        f"{statistics.median(column) / 1e6:.0f}" for column in zip(*taken, strict=True)
    )
    each = [(many - few) / (MANY - FEW) / 1000 for _, few, many in taken]
    figure = Figure("an open stream", statistics.median(each), most, " kB")
    tell(
        f"| {name} | {held} | {figure.value:.1f} ({min(each):.1f} to {max(each):.1f}) "
        f"| {figure.cells} |"
    )
    return figure


async def sizes(
    size: Callable[[], int],
    port: int,
    payload: bytes,
    numbers: Sequence[int],
    settle: float = SETTLE,
) -> list[int]:
    """What ``size`` says while each of these ``numbers`` of streams is open, ``settle`` seconds
    after the last was."""
    seen: list[int] = []
    streams: list[Stream] = []
    try:
        for number in numbers:
            await _open(port, payload, streams, number)
            await asyncio.sleep(settle)
            seen.append(size())
    finally:
        for _, writer in streams:
            writer.transport.abort()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
    return seen


async def held(tell: Tell, minutes: float = 10.0) -> list[Figure]:
    """What slow streams hold more after they were open for long; each goes on saying a word a
    second."""
    lasting = Scenario(
        "lasting stream", f"paced-{int(minutes * 60) + 120}-1000", "chat", "call", None, 0, 0
    )
    tell(
        f"| {MANY} streams | MB after half a minute | after {minutes:g} minutes | growth "
        "| bar | |\n"
        "| --- | --: | --: | --: | --: | --- |"
    )
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        upstream = stack.enter_context(mock())
        pid, port = stack.enter_context(gateway(config(upstream, [lasting]), folder))
        payload = lasting.payload(lasting.alias)
        streams: list[Stream] = []
        await _open(port, payload, streams, MANY)
        readers = [asyncio.create_task(_read(stream)) for stream in streams]
        await asyncio.sleep(30)
        before = rss_bytes(pid)
        await asyncio.sleep(minutes * 60 - 30)
        after = rss_bytes(pid)
        for reader in readers:
            reader.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
    figure = Figure("growth of open streams", 100 * (after / before - 1), GROWTH_BAR, " %")
    tell(
        f"| gateway | {before / 1e6:.1f} | {after / 1e6:.1f} | {figure.value:+.1f} % "
        f"| {figure.cells} |"
    )
    return [figure]


async def _read(stream: Stream) -> None:
    """Take what comes, until cancelled."""
    reader, writer = stream
    try:
        while await reader.read(1 << 16):
            pass
    finally:
        writer.transport.abort()


async def _open(port: int, payload: bytes, streams: list[Stream], number: int) -> None:
    """Add streams, whose first content has come, until there is such a ``number``."""
    while len(streams) < number:
        wave = min(WAVE, number - len(streams))
        opened = await asyncio.gather(
            *(_opened(port, payload) for _ in range(wave)), return_exceptions=True
        )
        streams += [stream for stream in opened if not isinstance(stream, BaseException)]
        for fault in opened:
            if isinstance(fault, BaseException):
                raise fault


async def _opened(port: int, payload: bytes) -> Stream:
    """A stream whose first content has come."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(payload)
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise Unfit(f"a slow stream was refused: {head[:60]!r}")
        await reader.readuntil(WORD.encode())
    except BaseException as fault:
        writer.transport.abort()
        if isinstance(fault, OSError | EOFError):
            raise Unfit(f"a slow stream broke off: {fault}") from fault
        raise
    return reader, writer
