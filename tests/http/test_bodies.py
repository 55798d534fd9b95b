"""A body that comes before anybody asks for it: whole, in its order, and bounded."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from gateway.http import coalescing
from gateway.http.heads import BoundedHeads
from gateway.http.line import line_of


class Socket(asyncio.Transport):
    """Remembers what is written, and what else it is told to do."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []
        self.written = b""

    def write(self, data: Any) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None:
        self.told.append("pause")

    def resume_reading(self) -> None:
        self.told.append("resume")

    def close(self) -> None:
        self.told.append("close")


class Door:
    """Reads the body once it is told to, in whichever way it can, and answers with its size."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self.body = b""
        self.pieces = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.opened.wait()
        line = line_of(scope)
        assert line is not None
        whole = line.whole_body()
        more = whole is None
        self.body = whole or b""
        while more:
            message = await receive()
            self.body += message["body"]
            more = message["more_body"]
            self.pieces += 1
        size = b"%d" % len(self.body)
        assert line.answer(200, b"content-length: %d\r\n" % len(size), size)


def served(door: Door) -> tuple[BoundedHeads, Socket]:
    config = uvicorn.Config(door, http=BoundedHeads, log_config=None, lifespan="off")
    config.load()
    protocol = BoundedHeads(config=config, server_state=ServerState(), app_state={})
    socket = Socket()
    protocol.connection_made(socket)
    return protocol, socket


def head(size: int) -> bytes:
    return b"POST /x%%20y?z=1 HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % size


@pytest.mark.parametrize("pieces", [1, 2, 7], ids="in {}".format)
async def test_what_is_there_is_given_whole_and_stops_no_socket(pieces: int) -> None:
    door = Door()
    protocol, socket = served(door)
    body = bytes(range(256)) * 900
    step = -(-len(body) // pieces)
    protocol.data_received(head(len(body)) + body[:step])
    for start in range(step, len(body), step):
        protocol.data_received(body[start : start + step])
    door.opened.set()
    await asyncio.sleep(0.01)
    assert socket.told == []
    assert door.body == body
    assert door.pieces == 0
    assert socket.written.endswith(b"\r\n\r\n%d" % len(body))
    protocol.connection_lost(None)


async def test_more_than_is_read_ahead_waits_until_it_is_asked_for() -> None:
    door = Door()
    protocol, socket = served(door)
    body = b"a" * coalescing._AHEAD + b"b"
    protocol.data_received(head(len(body) + 1) + body[:-1])
    assert socket.told == []
    protocol.data_received(body[-1:])
    assert socket.told == ["pause"]
    door.opened.set()
    await asyncio.sleep(0.01)
    assert socket.told == ["pause", "resume"]
    protocol.data_received(b"c")
    await asyncio.sleep(0.01)
    assert door.body == body + b"c"
    protocol.connection_lost(None)


async def test_the_path_is_decoded_and_kept_as_it_came() -> None:
    door = Door()
    protocol, _ = served(door)
    protocol.data_received(head(0))
    scope: Any = protocol.scope
    assert (scope["path"], scope["raw_path"]) == ("/x y", b"/x%20y")
    assert (scope["method"], scope["query_string"]) == ("POST", b"z=1")
    assert scope["http_version"] == "1.1"
    door.opened.set()
    await asyncio.sleep(0.01)
    protocol.connection_lost(None)
