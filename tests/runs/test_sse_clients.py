"""Any SSE client can follow a run, and loses nothing when it loses its connection: httpx-sse, the
npm package eventsource, and a real Chromium on a page of another origin."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from gateway.runs.events import EVENTS
from tests.harness import KEY, Harness, alias, gateway
from tests.runs.following import begin, watch

pytestmark = pytest.mark.all

CLIENTS = Path(__file__).parents[1] / "clients"
PROGRAMS = CLIENTS / "programs"
PYTHON = CLIENTS.parents[1] / ".venv-clients" / "bin" / "python"
PACED = alias("paced", ("openai", "paced-100-20"), retries=0)

PAGE = """<!doctype html><script>
const ids = []; let lost = 0;
const source = new EventSource("{url}");
for (const type of {types}) source.addEventListener(type, (event) => ids.push(+event.lastEventId));
source.onerror = () => {{
  lost += 1;
  if (source.readyState === EventSource.CLOSED)
    fetch("/done", {{method: "POST", body: JSON.stringify({{ids, lost}})}});
}};
</script>"""


@dataclass
class Line:
    """A wire between a client and the gateway that can be cut."""

    target: tuple[str, int]
    port: int = 0
    connections: int = 0
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        there, back = await asyncio.open_connection(*self.target)
        self._writers |= {writer, back}
        one, other = (
            asyncio.ensure_future(_pipe(reader, back)),
            asyncio.ensure_future(_pipe(there, writer)),
        )
        self._tasks |= {one, other}

    def cut(self) -> None:
        """Everybody loses his connection."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def close(self) -> None:
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(4096):
            writer.write(data)
            await writer.drain()
        writer.close()


@contextlib.asynccontextmanager
async def line(g: Harness) -> AsyncIterator[Line]:
    host, _, port = g.url.removeprefix("http://").partition(":")
    wire = Line((host, int(port)))
    server = await asyncio.start_server(wire.serve, "127.0.0.1", 0)
    wire.port = server.sockets[0].getsockname()[1]
    try:
        yield wire
    finally:
        server.close()
        await wire.close()


async def a_run(g: Harness) -> tuple[str, str]:
    """A run of two seconds, and the path with a token under which its events are."""
    run_id = await begin(g, {"agent": {"model": "paced"}, "input": "go"})
    made = await g.post(f"/runs/{run_id}/stream-tokens", {})
    return run_id, made.json()["path"]


async def cuts(wire: Line) -> None:
    """Two cuts while the run is under way."""
    for _ in range(2):
        before = wire.connections
        while wire.connections == before:
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.4)
        wire.cut()


async def program(*command: str) -> Any:
    process = await asyncio.create_subprocess_exec(
        *command, env={**os.environ, "GATEWAY_KEY": KEY}, stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(60):
        out, _ = await process.communicate()
    assert process.returncode == 0
    return json.loads(out)


@pytest.mark.parametrize("client", ["httpx", "eventsource"])
async def test_a_program_that_loses_its_connection_catches_up(tmp_path: Path, client: str) -> None:
    async with gateway(tmp_path, PACED) as g, line(g) as wire:
        run_id, path = await a_run(g)
        url = f"http://127.0.0.1:{wire.port}"
        command = {
            "httpx": [str(PYTHON), str(PROGRAMS / "run_events.py"), url, run_id],
            "eventsource": ["node", str(PROGRAMS / "run_events.mjs"), url + path],
        }[client]
        cutting = asyncio.create_task(cuts(wire))
        seen = await program(*command)
        cutting.cancel()
        events = await watch(g, run_id)
        assert seen["ids"] == [event["seq"] for event in events]
        assert wire.connections >= 3, "it was cut off twice"


async def test_a_browser_that_loses_its_connection_catches_up(tmp_path: Path) -> None:
    done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    page = {"text": ""}

    async def show(request: web.Request) -> web.Response:
        return web.Response(text=page["text"], content_type="text/html")

    async def finish(request: web.Request) -> web.Response:
        done.set_result(await request.json())
        return web.Response()

    site = web.Application()
    site.add_routes([web.get("/", show), web.post("/done", finish)])
    runner = web.AppRunner(site)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    origin = f"http://127.0.0.1:{runner.addresses[0][1]}"
    config = f'[server]\ncors = ["{origin}"]\n'
    try:
        async with gateway(tmp_path, PACED, config) as g, line(g) as wire:
            run_id, path = await a_run(g)
            url = f"http://127.0.0.1:{wire.port}{path}"
            page["text"] = PAGE.format(url=url, types=json.dumps(list(EVENTS)))
            cutting = asyncio.create_task(cuts(wire))
            browser = await asyncio.create_subprocess_exec(
                "chromium", "--headless=new", "--no-sandbox", "--disable-gpu",
                "--disable-dev-shm-usage", f"--user-data-dir={tmp_path / 'profile'}", origin,
                stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
            )  # fmt: skip
            try:
                async with asyncio.timeout(60):
                    seen = await done
            finally:
                browser.terminate()
                await browser.wait()
                cutting.cancel()
            events = await watch(g, run_id)
            assert seen["ids"] == [event["seq"] for event in events]
            assert wire.connections >= 3
    finally:
        await runner.cleanup()
