"""The callers: keep-alive HTTP/1.1 on bare asyncio streams, as cheap as Python allows."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(slots=True)
class Result:
    """Seconds by call: to the whole answer, and to its first body byte."""

    whole: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    failed: int = 0


def request(path: str, body: bytes, headers: Mapping[str, str] | None = None) -> bytes:
    """The bytes of one POST."""
    more = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
    head = (
        f"POST {path} HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n"
        "authorization: Bearer bench-key\r\nx-api-key: bench-key\r\n"
        f"anthropic-version: 2023-06-01\r\n{more}"
        f"content-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class _Line:
    """A caller's connection, opened anew after a server has closed it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._open: Connection | None = None

    async def __call__(self) -> Connection:
        """The connection."""
        if self._open is None:
            self._open = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 20)
        return self._open

    def close(self) -> None:
        """Hang up; the next call opens another."""
        if self._open is not None:
            self._open[1].close()
            self._open = None


async def _answer(
    reader: asyncio.StreamReader, started: float, result: Result
) -> tuple[bytes, bytes]:
    """The head of an answer, in small letters, and its body."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    if b"content-length:" in head:
        size = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
        body = await reader.readexactly(size)
        result.first.append(time.perf_counter() - started)
        return head, body
    parts: list[bytes] = []
    while True:
        line = await reader.readuntil(b"\r\n")
        if not parts:
            result.first.append(time.perf_counter() - started)
        size = int(line, 16)
        parts.append((await reader.readexactly(size + 2))[:-2])
        if size == 0:
            return head, b"".join(parts)


async def drive(
    port: int,
    payload: bytes,
    calls: int,
    concurrency: int,
    pause: float = 0.0,
    complete: Callable[[bytes], bool] | None = None,
) -> Result:
    """Make ``calls`` calls, ``concurrency`` at a time, each caller resting ``pause`` seconds
    (on average) before its next. A call has failed whose status is not 200, whose answer breaks
    off, or whose body is not ``complete``."""
    result = Result()
    left = iter(range(calls))

    async def call(line: _Line) -> None:
        started = time.perf_counter()
        try:
            reader, writer = await line()
            writer.write(payload)
            head, body = await _answer(reader, started, result)
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError):
            result.failed += 1
            line.close()
            return
        result.whole.append(time.perf_counter() - started)
        if not head.startswith(b"http/1.1 200") or not (complete is None or complete(body)):
            result.failed += 1
        if b"\r\nconnection: close" in head:
            line.close()

    async def worker() -> None:
        with contextlib.closing(_Line(port)) as line:
            with contextlib.suppress(OSError):  # the call says so
                await line()
            for _ in left:
                if pause:
                    await asyncio.sleep(random.uniform(0, 2 * pause))
                await call(line)

    await asyncio.gather(*(worker() for _ in range(concurrency)))
    return result
