from __future__ import annotations

import asyncio

from adapters.canonical.events import Failed, Finished
from adapters.canonical.stage import Pipe
from adapters.wire.call import Timeouts, WireCall

STREAM = WireCall("/go", b"{}", stream=True)
WHOLE = WireCall("/go", b"{}", stream=False)
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\nx-request-id: req-1\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def go(adapter, sink, call=STREAM, timeouts=Timeouts(), pipe=None):
    return adapter.pump(
        call,
        decoder=adapter.dialect.decoder(),
        pipe=Pipe(()) if pipe is None else pipe,
        sink=sink,
        timeouts=timeouts,
    )


async def test_a_stream_comes_event_by_event_and_the_terminal_stays_behind(provider, adapter, sink):
    async def script(reader, writer):
        writer.write(HEAD + chunk(b'data: {"t": "Hel"}\n\n'))
        await writer.drain()
        await asyncio.sleep(0.02)
        writer.write(chunk(b'data: {"t": "lo"}\n\ndata: {"end": "stop"}\n\n') + b"0\r\n\r\n")

    provider.script = script
    pumped = await go(adapter, sink)
    assert sink.text == "Hello"
    assert pumped.terminal == Finished("stop", "stop")
    assert len(sink.sends) == 2
    assert pumped.status == 200
    assert pumped.headers == {"x-request-id": "req-1"}
    assert pumped.sent_at <= pumped.headers_at <= pumped.first_event_at <= pumped.ended_at


async def test_a_whole_body_gives_the_same_events(provider, adapter, sink):
    async def script(reader, writer):
        writer.write(
            b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 13\r\n\r\n{"t":"Hello"}'
        )

    provider.script = script
    pumped = await go(adapter, sink, WHOLE)
    assert sink.text == "Hello"
    assert pumped.terminal == Finished("stop", "whole")


async def test_a_cut_stream_is_truncated(provider, adapter, sink):
    async def script(reader, writer):
        writer.write(HEAD + chunk(b'data: {"t": "Hel"}\n\n'))
        await writer.drain()
        writer.close()

    provider.script = script
    pumped = await go(adapter, sink)
    assert sink.text == "Hel"
    assert isinstance(pumped.terminal, Failed)
    assert pumped.terminal.fault.kind == "stream_truncated"
