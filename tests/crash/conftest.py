"""The gateway as a process that can be killed, over a simulator in the test's own loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sqlite3
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from adapters import simulator as sim
from tests.harness import ADMIN, ENVIRONMENT, KEY, KEYS, PROVIDERS
from tests.store.booking import Books
from tests.store.postgres_server import Server

ROOT = Path(__file__).parents[2]
START = 20.0
"""Seconds that a start may take on a busy machine."""


@dataclass
class Gateway:
    """``gateway serve`` in a folder; started and killed as often as a test wants. Its books are a
    file there, or what ``books`` names."""

    folder: Path
    simulator: sim.Simulator
    books: str | None = None
    url: str = ""
    process: asyncio.subprocess.Process | None = None
    errors: list[str] = field(default_factory=list)
    _reading: asyncio.Task[None] | None = None

    @property
    def config(self) -> Path:
        return self.folder / "gateway.toml"

    def write(self, *tables: str) -> None:
        """Write the configuration: providers, keys, and ``tables``."""
        text = PROVIDERS.replace("{url}", self.simulator.url) + "\n".join(tables) + KEYS
        if self.books is not None:
            (self.folder / "pepper").write_text("a pepper that each start finds again, long enough")
            text += f'[server]\npepper = "file:pepper"\n[store]\nurl = "{self.books}"\n'
        self.config.write_text(text)

    async def start(self) -> None:
        """Start it and wait until it answers."""
        environment = {**os.environ, **ENVIRONMENT, "PYTHONPATH": str(ROOT)}
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "gateway", "serve", "--port", "0",
            cwd=self.folder, env=environment,
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._reading = asyncio.create_task(self._read(self.process, ready))
        self.url = await asyncio.wait_for(ready, START)

    async def _read(self, process: asyncio.subprocess.Process, ready: asyncio.Future[str]) -> None:
        assert process.stderr is not None
        async for line in process.stderr:
            text = line.decode()
            self.errors.append(text)
            if "serving on" in text and not ready.done():
                ready.set_result(text.split()[-1])
        if not ready.done():
            ready.set_exception(AssertionError("".join(self.errors[-20:])))

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self.process is not None
        self.process.send_signal(number)

    async def ended(self, seconds: float = 20.0) -> int:
        """Its exit code, once it has ended."""
        assert self.process is not None
        assert self._reading is not None
        code = await asyncio.wait_for(self.process.wait(), seconds)
        await self._reading
        return code

    async def kill(self) -> None:
        """End it as a power cut of the process does."""
        self.signal(signal.SIGKILL)
        assert await self.ended() == -signal.SIGKILL

    async def command(self, *arguments: str) -> tuple[int, str, str]:
        """Run another ``gateway …`` beside it: exit code and both outputs."""
        environment = {**os.environ, **ENVIRONMENT, "PYTHONPATH": str(ROOT)}
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "gateway", *arguments,
            cwd=self.folder, env=environment,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, err = await asyncio.wait_for(process.communicate(), START)
        assert process.returncode is not None
        return process.returncode, out.decode(), err.decode()

    def rows(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        """What the books have."""
        if self.books is not None:
            with ThreadPoolExecutor(1) as thread:
                return thread.submit(asyncio.run, self._read_books(sql, *values)).result()
        uri = f"file:{self.folder / 'gateway.db'}?mode=ro"
        connection = sqlite3.connect(uri, uri=True)
        connection.row_factory = sqlite3.Row
        try:
            return [dict(row) for row in connection.execute(sql, values)]
        finally:
            connection.close()

    async def _read_books(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        assert self.books is not None
        async with Books(self.books) as books:
            return await books.sql(sql, *values)

    async def settle_the_dead(self) -> None:
        """What the next process does with the calls of killed ones: at its start, where it owns
        the file; else once their leases have ended, which is now."""
        if self.books is not None:
            async with Books(self.books) as books:
                await books.store.expire(time.time() + 10_000)

    def post(
        self, http: aiohttp.ClientSession, body: Any, *, key: str = KEY, **headers: str
    ) -> Any:
        """A chat call under way: ``async with`` it."""
        own = {"authorization": f"Bearer {key}", **headers}
        return http.post(self.url + "/v1/chat/completions", json=body, headers=own)

    async def get(self, http: aiohttp.ClientSession, path: str, key: str = ADMIN) -> Any:
        """The status and the body of a GET."""
        headers = {"authorization": f"Bearer {key}"}
        async with http.get(self.url + path, headers=headers) as reply:
            return reply.status, await reply.read()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    server = Server()
    yield server
    server.stop()


@pytest.fixture
async def served(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Gateway]:
    """Not started yet; whatever still runs at the end is killed. Its books are in PostgreSQL where
    the test is parametrised so."""
    over_postgres = getattr(request, "param", "sqlite") == "postgres"
    books = request.getfixturevalue("postgres").database() if over_postgres else None
    async with sim.running() as simulator:
        gateway = Gateway(tmp_path, simulator, books)
        yield gateway
        if gateway.process is not None and gateway.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                gateway.process.kill()
            await gateway.ended()


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


@pytest.fixture
def eventually() -> Callable[..., Any]:
    """Wait until an awaited check holds."""

    async def wait(check: Callable[[], Any], seconds: float = 10.0) -> None:
        async with asyncio.timeout(seconds):
            while not await check():
                await asyncio.sleep(0.02)

    return wait
