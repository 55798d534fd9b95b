"""An MCP server over streamable HTTP: sessions that are lost, and what is sent again (case G09)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from gateway.tools.base import ToolContext, ToolOutcome
from gateway.tools.mcp.server import AWAY, FORBIDDEN, UNKNOWN, Server
from gateway.tools.mcp.settings import ServerSettings

Own = Callable[[ServerSettings], Server]
ADD = {"a": 1, "b": 1}


async def call(server: Server, tool: str, context: ToolContext, **arguments: Any) -> ToolOutcome:
    async with asyncio.timeout(30):
        return await server.tools()[f"srv__{tool}"].call(arguments, context)


async def up(server: Server) -> None:
    async with asyncio.timeout(20):
        while not server.is_up:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("legacy", [True, False])
@pytest.mark.parametrize("json_response", [True, False])
async def test_both_protocols_in_both_forms(
    owned: Own,
    front: Any,
    remote: Any,
    context: ToolContext,
    text: Any,
    legacy: bool,
    json_response: bool,
) -> None:
    front.legacy, front.http_options = legacy, {"json_response": json_response}
    await front.start()
    server = owned(remote())
    await server.ready()
    assert text(await call(server, "add", context, **ADD)) == "2"
    assert text(await call(server, "say_it", context, text="x" * 10)) == "x" * 10
    assert bool(front.seen["initialize"]) is legacy
    assert all(h["authorization"] == "Bearer mcp-secret" for h in front.headers)
    assert all(h["host"] == f"127.0.0.1:{front.port}" for h in front.headers)


@pytest.mark.parametrize("legacy", [True, False])
async def test_a_changed_list_is_learned(
    owned: Own, front: Any, remote: Any, context: ToolContext, legacy: bool
) -> None:
    front.legacy = legacy
    await front.start()
    server = owned(remote())
    await server.ready()
    await asyncio.sleep(0.3)  # the stream of notices is opened behind the first answers
    await call(server, "grow", context)
    async with asyncio.timeout(20):
        while "srv__grown" not in server.tools():
            await asyncio.sleep(0.02)


async def test_a_restart_between_two_calls_costs_one_new_session(
    owned: Own, front: Any, remote: Any, context: ToolContext, text: Any
) -> None:
    await front.start()
    server = owned(remote())
    await server.ready()
    assert text(await call(server, "add", context, **ADD)) == "2"
    front.server_options = {"extra": True}
    await front.restart()
    front.seen.clear()
    assert text(await call(server, "add", context, **ADD)) == "2"
    assert front.seen["initialize"] == 1
    assert "srv__extra" in server.tools(), "the list of tools was asked for again"


async def test_ten_runs_share_one_new_session(
    owned: Own, front: Any, remote: Any, context: ToolContext, text: Any
) -> None:
    await front.start()
    server = owned(remote())
    await server.ready()
    await front.restart()
    front.seen.clear()
    outcomes = await asyncio.gather(*(call(server, "add", context, a=n, b=0) for n in range(10)))
    assert [text(outcome) for outcome in outcomes] == [str(n) for n in range(10)]
    assert front.seen["initialize"] == 1


async def test_a_session_that_expired_while_idle(
    owned: Own, front: Any, remote: Any, context: ToolContext, text: Any
) -> None:
    front.http_options = {"session_idle_timeout": 0.2}
    await front.start()
    server = owned(remote())
    await server.ready()
    front.status["GET"] = 405  # no stream that would keep the session
    await front.restart()
    assert text(await call(server, "add", context, **ADD)) == "2"
    await asyncio.sleep(0.6)
    assert text(await call(server, "add", context, **ADD)) == "2"
    assert front.seen["initialize"] == 3


@pytest.mark.parametrize("status", [400, 404])
async def test_a_server_that_forgets_every_session_gives_an_error_in_time(
    owned: Own, front: Any, remote: Any, context: ToolContext, text: Any, status: int
) -> None:
    await front.start()
    server = owned(remote())
    await server.ready()
    front.status["tools/call"] = status
    front.seen.clear()
    began = time.monotonic()
    outcome = await call(server, "add", context, **ADD)
    assert (outcome.is_error, outcome.retryable, text(outcome)) == (True, True, AWAY)
    assert time.monotonic() - began < 10
    assert (front.seen["initialize"], front.seen["tools/call"]) == (1, 2), "once more, not for ever"
    for _ in range(5):
        assert (await call(server, "add", context, **ADD)).is_error
    assert front.seen["initialize"] <= 3, "the pauses grow"


async def test_a_call_that_was_cut_off_is_not_made_twice(
    owned: Own, front: Any, remote: Any, context: ToolContext, text: Any
) -> None:
    await front.start()
    server = owned(remote())
    await server.ready()
    booking = asyncio.create_task(call(server, "book", context, room="R", seconds=30))
    async with asyncio.timeout(10):
        while not front.effects:
            await asyncio.sleep(0.01)
    await front.restart()
    outcome = await booking
    assert (outcome.is_error, outcome.retryable, text(outcome)) == (True, False, UNKNOWN)
    await up(server)
    assert len(front.effects) == 1
    assert text(await call(server, "add", context, **ADD)) == "2", "the next call works"


async def test_an_idempotent_call_that_was_cut_off_is_made_again(
    owned: Own, front: Any, remote: Any, context: ToolContext, text: Any
) -> None:
    await front.start()
    server = owned(remote(idempotent=frozenset({"book"})))
    await server.ready()
    assert server.tools()["srv__book"].spec.repeatable
    booking = asyncio.create_task(call(server, "book", context, room="R", seconds=1))
    async with asyncio.timeout(10):
        while not front.effects:
            await asyncio.sleep(0.01)
    await front.restart()
    assert text(await booking) == "booked R"
    assert len(front.effects) == 2
    keys = {effect.partition("idempotency-key")[2][:30] for effect in front.effects}
    assert len(keys) == 1, "both with the same idempotency key"


@pytest.mark.parametrize("status", [500, 502, 503])
async def test_a_server_error_leaves_the_effect_unknown(
    owned: Own, front: Any, remote: Any, context: ToolContext, text: Any, status: int
) -> None:
    await front.start()
    server = owned(remote(idempotent=frozenset({"add"})))
    await server.ready()
    front.status["tools/call"] = status
    front.seen.clear()
    outcome = await call(server, "say_it", context, text="x")
    assert (outcome.retryable, text(outcome)) == (False, UNKNOWN)
    assert front.seen["tools/call"] == 1
    del front.status["tools/call"]
    assert text(await call(server, "add", context, **ADD)) == "2", "a new session is made"
    assert front.seen["initialize"] == 1


async def test_wrong_credentials_are_not_tried_again(
    owned: Own, front: Any, remote: Any, context: ToolContext, text: Any
) -> None:
    await front.start()
    server = owned(remote())
    await server.ready()
    front.status["tools/call"] = 401
    front.seen.clear()
    outcome = await call(server, "add", context, **ADD)
    assert (outcome.is_error, text(outcome)) == (True, FORBIDDEN)
    assert front.seen["tools/call"] == 1


async def test_a_server_that_is_away_is_told_at_once_and_found_again(
    owned: Own, front: Any, remote: Any, context: ToolContext, text: Any
) -> None:
    await front.start()
    server = owned(remote())
    await server.ready()
    await front.stop()
    first = await call(server, "add", context, **ADD)
    assert (first.is_error, first.retryable, text(first)) == (True, True, AWAY)
    began = time.monotonic()
    assert text(await call(server, "add", context, **ADD)) == AWAY
    assert time.monotonic() - began < 1, "the breaker is open"
    assert "srv__add" in server.tools(), "it still has its tools"
    await front.start()
    await up(server)
    assert text(await call(server, "add", context, **ADD)) == "2"


async def test_a_server_that_was_away_at_the_start_comes_later(
    owned: Own, front: Any, remote: Any, context: ToolContext, text: Any
) -> None:
    await front.start()
    await front.stop()
    server = owned(remote())
    async with asyncio.timeout(10):
        await server.ready()
    assert server.tools() == {}
    await front.start()
    await up(server)
    assert text(await call(server, "add", context, **ADD)) == "2"


async def test_an_address_inside_is_not_connected_to(
    owned: Own, front: Any, remote: Any, caplog: pytest.LogCaptureFixture
) -> None:
    await front.start()
    server = owned(remote(allow=()))
    async with asyncio.timeout(10):
        await server.ready()
    assert not server.is_up
    assert not front.seen
    assert "allow_private" in caplog.text
    assert "mcp-secret" not in caplog.text


async def test_cancelling_a_call_leaves_the_session(
    owned: Own, front: Any, remote: Any, context: ToolContext, text: Any
) -> None:
    await front.start()
    server = owned(remote())
    await server.ready()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(call(server, "book", context, room="R", seconds=30), 0.3)
    assert text(await call(server, "add", context, **ADD)) == "2"
    assert front.seen["initialize"] == 1
    assert front.seen["notifications/cancelled"] == 1


async def test_closing_waits_for_calls_under_way(
    owned: Own, front: Any, remote: Any, context: ToolContext, text: Any
) -> None:
    await front.start()
    server = owned(remote())
    await server.ready()
    booking = asyncio.create_task(call(server, "book", context, room="R", seconds=0.5))
    await asyncio.sleep(0.2)
    await server.close(grace=10)
    assert text(await booking) == "booked R"
    assert (await call(server, "add", context, **ADD)).is_error
