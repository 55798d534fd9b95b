"""Time-outs and cancellations of a pumped call, and who is to blame for a silence."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from adapters.canonical.events import Finished
from adapters.canonical.faults import Fault

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
CEILING = 2.0


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def event(data: bytes) -> bytes:
    return chunk(b"data: %s\n\n" % data)


def beats(first: bytes, beat: bytes):
    async def script(connection):
        await connection.send(first)
        with contextlib.suppress(ConnectionError):
            while not connection.reader.at_eof():
                await connection.send(beat)
                await asyncio.sleep(0.01)

    return script


HEARTBEATS = {
    "comments": chunk(b": ping\n\n"),
    "events that mean nothing": event(b"{}"),
    "usage reports": event(b'{"usage": 1}'),
    "empty deltas": event(b'{"t": ""}'),
}


@pytest.mark.parametrize("beat", HEARTBEATS.values(), ids=HEARTBEATS)
async def test_a_provider_that_only_heartbeats_is_found_out(raw_provider, pump, beat):
    raw_provider.script = beats(HEAD, beat)
    pumped = await pump(first_event=0.1)
    assert pumped.terminal.fault.phase == "first_event"
    assert pumped.first_event_at is None


@pytest.mark.parametrize("beat", HEARTBEATS.values(), ids=HEARTBEATS)
async def test_also_in_mid_answer(raw_provider, pump, sink, beat):
    raw_provider.script = beats(HEAD + event(b'{"t": "x"}'), beat)
    pumped = await pump(between_events=0.1)
    assert pumped.terminal.fault.phase == "between_events"
    assert sink.text == "x"


async def test_a_whole_body_in_place_of_a_stream_has_only_the_total(raw_provider, pump, sink):
    async def slow(connection):
        await connection.send(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n"
        )
        await asyncio.sleep(0.8)
        await connection.send(b'{"t": "x"}')

    raw_provider.script = slow
    pumped = await pump(first_event=0.5, between_events=0.2)
    assert pumped.terminal == Finished("stop", "whole")


async def test_a_failed_answer_closes_before_its_slow_reader_is_done(
    raw_provider, pump, sink, until
):
    async def fails(connection):
        await connection.send(HEAD + chunk(b'data: {"t": "x"}\n\ndata: {"error": "no"}\n\n'))
        await connection.wait_closed()

    raw_provider.script = fails
    sink.seconds = 0.2
    task = asyncio.ensure_future(pump())
    await until(lambda: sink.sends)
    await asyncio.wait_for(raw_provider.lost.wait(), CEILING)
    assert not task.done()
    assert (await task).terminal.fault.kind == "upstream_server"


async def test_an_answer_that_moves_slowly_is_let_be(raw_provider, pump, sink):
    async def script(connection):
        await connection.send(HEAD)
        for _ in range(6):
            await connection.send(event(b'{"t": "x"}'))
            await asyncio.sleep(0.04)
        await connection.send(event(b'{"end": "stop"}'))

    raw_provider.script = script
    pumped = await pump(first_event=0.1, between_events=0.15)
    assert pumped.terminal == Finished("stop", "stop")


async def test_a_slow_reader_of_ours_is_not_the_providers_fault(raw_provider, pump, sink):
    async def steady(connection):
        await connection.send(HEAD)
        for _ in range(5):
            await connection.send(event(b'{"t": "x"}'))
            await asyncio.sleep(0.06)
        await connection.send(event(b'{"end": "stop"}'))

    raw_provider.script = steady
    sink.seconds = 0.06
    pumped = await pump(between_events=0.05, total=0.25)
    assert pumped.terminal == Finished("stop", "stop")


async def silent(connection):
    await connection.wait_closed()


async def streaming(connection):
    await connection.send(HEAD + event(b'{"t": "x"}'))
    await connection.wait_closed()


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("script", [silent, streaming])
async def test_a_cancelled_call_closes_its_socket(
    raw_provider, pump, sink, adapter, script, times, until
):
    raw_provider.script = script
    task = asyncio.ensure_future(pump())
    await until(lambda: sink.sends if script is streaming else raw_provider.requests)
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert adapter.transport.active == 0
    await asyncio.wait_for(raw_provider.lost.wait(), CEILING)


async def test_a_call_that_is_cancelled_while_its_reader_is_slow_closes_too(
    raw_provider, pump, sink, until
):
    raw_provider.script = streaming
    sink.seconds = 30
    task = asyncio.ensure_future(pump())
    await until(lambda: sink.sends)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(raw_provider.lost.wait(), CEILING)


@pytest.mark.parametrize(
    "error", [ConnectionResetError("client"), Fault("internal", "ours"), ZeroDivisionError()]
)
async def test_what_the_sink_raises_passes_through_and_closes(raw_provider, pump, sink, error):
    raw_provider.script = streaming
    sink.fail = error
    with pytest.raises(type(error)) as caught:
        await pump()
    assert caught.value is error
    await asyncio.wait_for(raw_provider.lost.wait(), CEILING)
