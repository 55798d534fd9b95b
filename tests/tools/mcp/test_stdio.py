"""An MCP server that is a program, over its standard input and output."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adapters.canonical.parts import Inline, Media
from gateway.tools.base import ToolContext
from gateway.tools.mcp.server import UNKNOWN, Server
from gateway.tools.mcp.settings import Program, ServerSettings

Own = Callable[[ServerSettings], Server]


async def test_tools_are_listed_and_called(
    owned: Own, program: Any, context: ToolContext, text: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_SECRET", "hunter2")
    server = owned(program())
    await server.ready()
    tools = server.tools()
    assert {"srv__add", "srv__say_it", "srv__fail", "srv__draw"} <= set(tools)
    spec = tools["srv__add"].spec
    assert (spec.kind, spec.description, spec.repeatable) == ("mcp", "Adds.", False)
    assert spec.parameters["required"] == ["a", "b"]

    sum_ = await tools["srv__add"].call({"a": 2, "b": 3}, context)
    assert (text(sum_), sum_.is_error, sum_.structured) == ("5", False, {"result": 5})
    assert text(await tools["srv__say_it"].call({"text": "hi"}, context)) == "hi"

    broken = await tools["srv__fail"].call({}, context)
    assert broken.is_error
    assert not broken.retryable

    drawn = await tools["srv__draw"].call({}, context)
    assert text(drawn) == "a pixel:"
    (picture,) = [part for part in drawn.content if isinstance(part, Media)]
    assert picture.kind == "image"
    assert isinstance(picture.source, Inline)
    assert picture.source.media_type == "image/png"

    environment = text(await tools["srv__environment"].call({}, context))
    assert "EXTRA" in environment
    assert "GATEWAY_SECRET" not in environment, "the gateway's own environment is not handed on"


async def test_the_call_has_a_key_and_tells_its_progress(
    owned: Own, program: Any, tmp_path: Path
) -> None:
    heard: list[tuple[str, float | None]] = []
    context = ToolContext(
        "run-7:call-9", "run-7", "call-9", "p", 0.0, lambda text, done: heard.append((text, done))
    )
    server = owned(program())
    await server.ready()
    await server.tools()["srv__book"].call({"room": "R", "seconds": 0}, context)
    assert "run-7:call-9" in (tmp_path / "effects").read_text()
    assert heard == [("begun", 0.25)]


async def test_a_program_that_dies_is_started_anew(
    owned: Own, program: Any, context: ToolContext, text: Any, tmp_path: Path
) -> None:
    server = owned(program())
    await server.ready()
    died = await server.tools()["srv__die"].call({}, context)
    assert (died.is_error, text(died)) == (True, UNKNOWN)
    again = await server.tools()["srv__add"].call({"a": 1, "b": 1}, context)
    assert text(again) == "2"
    assert (tmp_path / "effects").read_text() == "started\nstarted\n"


async def test_a_program_that_dies_while_nobody_calls_is_noticed(
    owned: Own, program: Any, context: ToolContext, text: Any, tmp_path: Path
) -> None:
    server = owned(program())
    await server.ready()
    call = asyncio.create_task(server.tools()["srv__die"].call({}, context))
    await call
    async with asyncio.timeout(20):
        while (tmp_path / "effects").read_text().count("started") < 2 or not server.is_up:
            await asyncio.sleep(0.02)


async def test_a_program_that_can_t_be_started_is_away(
    owned: Own, context: ToolContext, caplog: pytest.LogCaptureFixture
) -> None:
    server = owned(ServerSettings("srv", Program("/no/such/program", (), {})))
    async with asyncio.timeout(20):
        await server.ready()
    assert server.tools() == {}
    assert "mcp srv" in caplog.text


async def test_a_new_tool_is_learned_from_the_server_s_notice(
    owned: Own, program: Any, context: ToolContext, text: Any
) -> None:
    server = owned(program())
    await server.ready()
    assert "srv__grown" not in server.tools()
    await server.tools()["srv__grow"].call({}, context)
    async with asyncio.timeout(20):
        while "srv__grown" not in server.tools():
            await asyncio.sleep(0.02)
    assert text(await server.tools()["srv__grown"].call({"text": "new"}, context)) == "new"


async def test_closing_ends_the_program(owned: Own, program: Any) -> None:
    server = owned(program())
    await server.ready()
    async with asyncio.timeout(10):
        await server.close()
    assert not server.is_up
