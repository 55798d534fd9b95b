"""The callers: keep-alive HTTP/1.1 on bare asyncio streams, as cheap as Python allows."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field


@dataclass(slots=True)
class Result:
    """Seconds by call: to the whole answer, and to its first body byte."""

    whole: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    failed: int = 0


def request(path: str, body: bytes) -> bytes:
    """The bytes of one POST."""
    head = (
        f"POST {path} HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n"
        "authorization: Bearer bench-key\r\nx-api-key: bench-key\r\n"
        "anthropic-version: 2023-06-01\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def _answer(reader: asyncio.StreamReader, started: float, result: Result) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        result.failed += 1
    lower = head.lower()
    if b"content-length:" in lower:
        size = int(lower.split(b"content-length:")[1].split(b"\r\n")[0])
        await reader.readexactly(size)
        result.first.append(time.perf_counter() - started)
        return
    first = True
    while True:
        line = await reader.readuntil(b"\r\n")
        if first:
            result.first.append(time.perf_counter() - started)
            first = False
        size = int(line, 16)
        await reader.readexactly(size + 2)
        if size == 0:
            return


async def drive(
    port: int, payload: bytes, calls: int, concurrency: int, pause: float = 0.0
) -> Result:
    """Make ``calls`` calls, ``concurrency`` at a time, each caller resting ``pause`` seconds
    (on average) before its next."""
    result = Result()
    left = iter(range(calls))

    async def worker() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
        for _ in left:
            if pause:
                await asyncio.sleep(random.uniform(0, 2 * pause))
            started = time.perf_counter()
            writer.write(payload)
            await _answer(reader, started, result)
            result.whole.append(time.perf_counter() - started)
        writer.close()

    await asyncio.gather(*(worker() for _ in range(concurrency)))
    return result
