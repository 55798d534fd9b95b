"""One call, from the first byte to its terminal: what the sink gets and what pump returns."""

from __future__ import annotations

import asyncio

import pytest

from adapters.canonical.events import (
    Failed,
    Finished,
    PartEnded,
    PartStarted,
    Started,
    TextDelta,
    UsageReported,
)
from adapters.canonical.faults import Fault

SSE = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
STREAM = SSE + b"transfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def chunk(*events: bytes) -> bytes:
    data = b"".join(b"data: %s\n\n" % event for event in events)
    return b"%x\r\n%s\r\n" % (len(data), data)


def whole(body: bytes, kind: bytes = b"application/json") -> bytes:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: %s\r\ncontent-length: %d\r\n\r\n"
    return head % (kind, len(body)) + body


WHOLE_STREAM = chunk(b'{"t": "Hello", "plain": 1}', b'{"end": "stop"}')


def sends(*pieces: bytes, pause: float = 0.01, end: str = "keep"):
    """A provider that sends the pieces one after another."""

    async def script(connection):
        for piece in pieces:
            await connection.send(piece)
            await asyncio.sleep(pause)
        if end == "close":
            connection.writer.close()
        elif end == "reset":
            connection.reset()

    return script


async def test_events_come_as_they_are_read_and_the_terminal_stays_behind(raw_provider, pump, sink):
    raw_provider.script = sends(
        STREAM + chunk(b'{"t": "He"}', b'{"t": "l"}'),
        chunk(b'{"t": "lo"}'),
        chunk(b'{"t": "!"}', b'{"usage": 3}', b'{"end": "stop"}') + END,
    )
    pumped = await pump()
    assert pumped.terminal == Finished("stop", "stop")
    assert [[type(event) for event in events] for events in sink.sends] == [
        [Started, PartStarted, TextDelta, TextDelta],
        [TextDelta],
        [TextDelta, UsageReported, PartEnded],
    ]
    assert sink.text == "Hello!"


async def test_times_and_headers(raw_provider, pump):
    raw_provider.script = sends(
        SSE + b"Transfer-Encoding: chunked\r\nX-Request-Id: r1\r\nRetry-After: 3\r\n\r\n",
        chunk(b'{"usage": 1}'),
        chunk(b'{"t": "x"}'),
        chunk(b'{"end": "stop"}') + END,
        pause=0.03,
    )
    pumped = await pump()
    assert pumped.status == 200
    assert pumped.headers["x-request-id"] == "r1"
    assert pumped.headers["retry-after"] == "3"
    assert pumped.sent_at <= pumped.headers_at
    assert pumped.first_event_at - pumped.headers_at >= 0.05  # the usage report is no content
    assert pumped.ended_at - pumped.first_event_at >= 0.025


async def test_a_whole_body_is_the_same_events(raw_provider, pump, sink):
    raw_provider.script = sends(whole(b'{"t": "Hello"}'))
    pumped = await pump(stream=False)
    assert pumped.terminal == Finished("stop", "whole")
    assert sink.text == "Hello"
    assert len(sink.sends) == 1
    assert pumped.first_event_at is not None


async def test_an_ordinary_whole_body_is_taken_in_one_step(raw_provider, pump, sink):
    raw_provider.script = sends(whole(b'{"t": "Hello", "plain": 1}'))
    taken = []
    pumped = await pump(stream=False, take=taken.append)
    assert [answer.text for answer in taken] == ["Hello"]
    assert pumped.terminal == taken[0].terminal == Finished("stop", "whole")
    assert pumped.headers_at <= pumped.first_event_at == pumped.ended_at
    assert not sink.sends


@pytest.mark.parametrize(
    ("reply", "stream"), [(whole(b'{"t": "Hello"}'), False), (STREAM + WHOLE_STREAM + END, True)]
)
async def test_any_other_comes_event_by_event(raw_provider, pump, sink, reply, stream):
    raw_provider.script = sends(reply)
    taken = []
    pumped = await pump(stream=stream, take=taken.append)
    assert isinstance(pumped.terminal, Finished)
    assert (sink.text, taken) == ("Hello", [])


async def test_nothing_after_the_terminal_is_looked_at(raw_provider, pump, sink, tiny_decoder):
    raw_provider.script = sends(
        STREAM + chunk(b'{"t": "x"}', b'{"end": "first"}', b'{"t": "y"}', b'{"end": "second"}'),
        chunk(b'{"t": "z"}') + END,
    )
    pumped = await pump(decoder=tiny_decoder)
    assert pumped.terminal == Finished("stop", "first")
    assert sink.text == "x"
    assert tiny_decoder.fed == 2


async def test_a_terminal_ends_the_call_though_the_provider_goes_on(raw_provider, pump):
    async def goes_on(connection):
        await connection.send(STREAM + chunk(b'{"t": "x"}', b'{"end": "stop"}'))
        await connection.wait_closed()

    raw_provider.script = goes_on
    async with asyncio.timeout(2):
        pumped = await pump()
        assert pumped.terminal == Finished("stop", "stop")
        await raw_provider.lost.wait()


async def test_the_connection_is_used_again_though_the_end_comes_late(
    raw_provider, pump, adapter, until
):
    raw_provider.script = sends(STREAM + chunk(b'{"t": "x"}', b'{"end": "stop"}'), END, pause=0.02)
    for _ in range(3):
        await pump()
        await until(lambda: adapter.transport.active == 0)
    assert raw_provider.connections == 1


async def test_a_slow_sink_does_not_hold_the_providers_socket_after_the_terminal(
    raw_provider, pump, sink, adapter, until
):
    raw_provider.script = sends(STREAM + chunk(b'{"t": "x"}', b'{"end": "stop"}') + END)
    sink.seconds = 1.5
    task = asyncio.ensure_future(pump())
    await until(lambda: sink.sends)
    assert adapter.transport.active == 0
    pumped = await task
    assert pumped.ended_at - pumped.sent_at < 1.5


CUTS = {
    "end of file": "close",
    "reset": "reset",
}


@pytest.mark.parametrize("end", CUTS.values(), ids=CUTS)
async def test_a_cut_is_never_a_success(raw_provider, pump, sink, end):
    raw_provider.script = sends(STREAM + chunk(b'{"t": "Hel"}'), end=end)
    pumped = await pump()
    assert isinstance(pumped.terminal, Failed)
    assert pumped.terminal.fault.kind == "stream_truncated"
    assert pumped.terminal.fault.upstream_status == 200
    assert sink.text == "Hel"


@pytest.mark.parametrize("end", CUTS.values(), ids=CUTS)
async def test_a_body_without_a_length_that_ends_early_is_cut_too(raw_provider, pump, sink, end):
    raw_provider.script = sends(SSE + b"\r\n", b'data: {"t": "Hel"}\n\ndata: {"t": "l', end=end)
    pumped = await pump()
    assert pumped.terminal.fault.kind == "stream_truncated"
    assert sink.text == "Hel"


@pytest.mark.parametrize("end", CUTS.values(), ids=CUTS)
async def test_a_terminal_that_is_proven_counts_though_the_end_is_cut(
    raw_provider, pump, sink, end
):
    """For chat, `finish_reason` is the proof; `[DONE]` and the body's end are manners."""
    raw_provider.script = sends(STREAM + chunk(b'{"t": "x"}', b'{"reason": "stop"}'), end=end)
    pumped = await pump()
    assert pumped.terminal == Finished("stop", "stop")
    assert sink.text == "x"
    assert isinstance(sink.sends[-1][-1], PartEnded)


async def test_a_terminal_that_is_proven_counts_though_the_provider_hangs(raw_provider, pump):
    async def hangs(connection):
        await connection.send(STREAM + chunk(b'{"t": "x"}', b'{"reason": "stop"}'))
        await connection.wait_closed()

    raw_provider.script = hangs
    pumped = await pump(between_events=0.05)
    assert pumped.terminal == Finished("stop", "stop")


async def test_a_failure_in_the_stream_comes_back_like_any_other(raw_provider, pump, sink):
    raw_provider.script = sends(
        SSE
        + b"request-id: r2\r\ntransfer-encoding: chunked\r\n\r\n"
        + chunk(b'{"t": "x"}', b'{"error": "broken"}')
        + END
    )
    pumped = await pump()
    fault = pumped.terminal.fault
    assert (fault.kind, fault.message) == ("upstream_server", "broken")
    assert (fault.upstream_request_id, fault.upstream_status) == ("r2", 200)
    assert sink.text == "x"


async def test_no_connection_is_a_failure_and_no_exception(pump, adapter, sink):
    adapter.transport._root = "http://127.0.0.1:1"
    pumped = await pump()
    fault = pumped.terminal.fault
    assert (fault.kind, fault.billed) == ("connect_failed", False)
    assert (pumped.status, pumped.sent_at, pumped.headers) == (None, None, {})
    assert sink.sends == []


async def test_an_oversized_event_is_a_protocol_error(raw_provider, pump, sink, monkeypatch):
    monkeypatch.setattr("adapters.adapter.flow.SseParser.__init__.__defaults__", (100,))
    raw_provider.script = sends(STREAM + chunk(b'{"t": "x"}'), chunk(b'{"t": "%s"}' % (b"x" * 100)))
    pumped = await pump()
    assert pumped.terminal.fault.kind == "protocol_error"
    assert sink.text == "x"


async def test_a_decoder_that_is_broken_is_our_defect_and_closes_the_socket(raw_provider, pump):
    async def script(connection):
        await connection.send(STREAM + chunk(b"no JSON"))
        await connection.wait_closed()

    raw_provider.script = script
    with pytest.raises(ValueError, match="Expecting value"):
        await pump()
    await asyncio.wait_for(raw_provider.lost.wait(), 2)


class Stage:
    """Gives what ``change`` makes of the events."""

    def __init__(self, change):
        self.change = change
        self.seen = []

    def feed(self, events):
        self.seen += events
        return self.change(events)


def refuse(events):
    raise Fault("content_filtered", "not that")


STAGES = {
    "fails by an event": lambda events: [Failed(Fault("content_filtered", "not that"))],
    "fails by raising": refuse,
}


@pytest.mark.parametrize("change", STAGES.values(), ids=STAGES)
async def test_a_stage_may_end_the_answer(raw_provider, pump, sink, change):
    async def script(connection):
        await connection.send(STREAM + chunk(b'{"t": "x"}'))
        await connection.wait_closed()

    raw_provider.script = script
    pumped = await pump(pipe=Stage(change))
    assert pumped.terminal.fault.kind == "content_filtered"
    assert sink.sends == []
    await asyncio.wait_for(raw_provider.lost.wait(), 2)


async def test_the_terminal_goes_through_the_pipe_and_may_change_there(raw_provider, pump, sink):
    def hold(events):
        held.extend(event for event in events if not isinstance(event, Finished))
        if not isinstance(events[-1], Finished):
            return []
        return [*held, Finished("length", "held")]

    held: list = []
    stage = Stage(hold)
    raw_provider.script = sends(STREAM + chunk(b'{"t": "x"}'), chunk(b'{"end": "stop"}') + END)
    pumped = await pump(pipe=stage)
    assert isinstance(stage.seen[-1], Finished)
    assert pumped.terminal == Finished("length", "held")
    assert len(sink.sends) == 1
    assert sink.text == "x"


async def test_a_pipe_sees_a_break_as_the_terminal(raw_provider, pump):
    stage = Stage(lambda events: [])
    raw_provider.script = sends(STREAM + chunk(b'{"t": "x"}'), end="close")
    pumped = await pump(pipe=stage)
    assert isinstance(stage.seen[-1], Failed)
    assert pumped.terminal == stage.seen[-1]


class Hold:
    """Keeps everything to itself, as it is for an answer that is held until its end."""

    def feed(self, events):
        return [event for event in events if isinstance(event, Failed)]


@pytest.mark.parametrize(
    ("said", "stream"), [(b'{"t": "x"}', True), (b'{"t": "x"}', False), (b"{}", True)]
)
async def test_what_is_held_of_a_stream_has_a_bound(
    raw_provider, pump, sink, monkeypatch, said, stream
):
    async def flood(connection):
        await connection.send(STREAM)
        while True:
            await connection.send(chunk(said) * 100)
            await asyncio.sleep(0)

    monkeypatch.setattr("adapters.adapter.flow.MAX_BODY", 100_000)
    raw_provider.script = flood
    fault = (await pump(stream=stream, pipe=Hold(), total=2.0)).terminal.fault
    assert fault.kind == "protocol_error"
    assert "100000 bytes" in fault.message
    assert sink.sends == []


async def test_what_is_passed_on_has_none(raw_provider, pump, sink, monkeypatch):
    monkeypatch.setattr("adapters.adapter.flow.MAX_BODY", 1000)
    said = [chunk(b'{"t": "x"}') * 50] * 4
    raw_provider.script = sends(STREAM, *said, chunk(b'{"end": "stop"}') + END)
    pumped = await pump()
    assert isinstance(pumped.terminal, Finished)
    assert sink.text == "x" * 200
