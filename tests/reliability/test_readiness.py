"""``/readyz`` answers within a probe's patience, whatever the database does."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest

from gateway.store.books.upkeep import READY
from tests.harness import Answer, Harness, gateway
from tests.store.postgres_server import Server

PATIENCE = 1.0
"""Seconds that Kubernetes gives a probe where nobody says otherwise."""

QUIET = '[observe]\nlog_level = "error"\n'


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    server = Server()
    yield server
    server.stop()


class Way:
    """The way to a server, on which nothing moves while it is not ``open``: connections are
    taken, and nothing is answered."""

    def __init__(self, host: str, port: int) -> None:
        self._to = host, port
        self.open = asyncio.Event()
        self.open.set()

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self.open.wait()
            there_reader, there_writer = await asyncio.open_connection(*self._to)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._carry(reader, there_writer))
                group.create_task(self._carry(there_reader, writer))
        finally:
            writer.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65_536):
                await self.open.wait()
                writer.write(data)
                await writer.drain()
        except OSError:
            return
        finally:
            writer.close()


@pytest.fixture
async def way(postgres: Server) -> AsyncIterator[Way]:
    way = Way("127.0.0.1", postgres.port)
    server = await asyncio.start_server(way.take, "127.0.0.1", 0)
    way.port = server.sockets[0].getsockname()[1]
    async with server:
        yield way


@pytest.fixture
async def g(tmp_path: Path, postgres: Server, way: Way) -> AsyncIterator[Harness]:
    parts = urlsplit(postgres.database())
    url = urlunsplit(parts._replace(netloc=f"gateway@127.0.0.1:{way.port}"))
    (tmp_path / "pepper").write_text("a pepper that is long enough for all of this")
    pepper = f'[server]\npepper = "file:{tmp_path / "pepper"}"\n'
    async with gateway(tmp_path, pepper, QUIET, store=url) as running:
        yield running
        way.open.set()


async def timed(g: Harness, path: str) -> tuple[Answer, float]:
    began = time.monotonic()
    answer = await g.get(path, key=None)
    return answer, time.monotonic() - began


async def test_a_database_that_hangs_is_told_in_time(g: Harness, way: Way) -> None:
    """Connections stand, new ones are taken, nothing is answered."""
    assert (await g.get("/readyz", key=None)).status == 200
    way.open.clear()
    for _ in range(3):
        answer, seconds = await timed(g, "/readyz")
        assert (answer.status, answer.json()) == (503, {"status": "store unavailable"})
        assert seconds < PATIENCE
    answer, seconds = await timed(g, "/healthz")
    assert answer.status == 200, "to start the process again would mend nothing"
    assert seconds < PATIENCE / 2
    way.open.set()
    async with asyncio.timeout(20):
        while (await g.get("/readyz", key=None)).status != 200:
            await asyncio.sleep(0.05)


async def test_many_that_ask_write_one_row(g: Harness, way: Way) -> None:
    """The door is open to everybody: who knocks often does not fill the queue."""
    way.open.clear()
    answers = await asyncio.gather(*(g.get("/readyz", key=None) for _ in range(50)))
    assert {answer.status for answer in answers} == {503}
    assert g.state.store.depth() <= 1


def test_the_page_tells_every_answer_and_the_bound() -> None:
    page = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
    section = page.split("## Probes")[1].split("\n## ")[0]
    told = set(re.findall(r"^\| (\d+) \| `([a-z ]+)` ", section, re.MULTILINE))
    assert told == {("200", "ready"), ("503", "store unavailable"), ("503", "draining")}
    assert f"within {READY} seconds" in section
    assert READY < PATIENCE
