"""Status first, then the body's type: what counts as an answer."""

from __future__ import annotations

import asyncio

import pytest

from adapters.canonical.events import Failed, Finished
from adapters.canonical.faults import Fault
from adapters.wire.call import Timeouts, WireCall


def reply(status: str, body: bytes = b"", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def gives(data: bytes):
    async def script(connection):
        await connection.send(data)

    return script


async def failure(pump, **settings) -> Fault:
    pumped = await pump(**settings)
    assert isinstance(pumped.terminal, Failed)
    return pumped.terminal.fault


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", b'{"error": 1}'),
        ("text/html", b"<html>"),
        ("text/event-stream", b"x"),
        (None, b"x"),
    ],
)
async def test_an_error_status_is_the_dialects_whatever_its_body(
    raw_provider, pump, sink, stream, kind, body
):
    headers = ["retry-after: 7", "x-request-id: r9"]
    if kind is not None:
        headers.append(f"content-type: {kind}")
    raw_provider.script = gives(reply("429 Slow", body, *headers))
    fault = await failure(pump, stream=stream)
    assert (fault.kind, fault.message) == ("upstream_rate_limited", "tiny error")
    assert fault.detail == body.decode()
    assert (fault.retry_after, fault.upstream_status) == (7.0, 429)
    assert fault.upstream_request_id == "r9"
    assert sink.sends == []


async def test_an_endless_error_body_is_read_for_64_kb(raw_provider, pump):
    async def endless(connection):
        await connection.send(b"HTTP/1.1 500 No\r\n\r\n")
        while not connection.reader.at_eof():
            await connection.send(b"x" * 10_000)
            await asyncio.sleep(0)

    raw_provider.script = endless
    fault = await failure(pump)
    assert len(fault.detail) == 64 * 1024


async def test_a_slow_error_body_is_not_waited_for(raw_provider, pump, monkeypatch):
    async def slow(connection):
        await connection.send(b"HTTP/1.1 500 No\r\ncontent-length: 10\r\n\r\nhalf")
        await connection.wait_closed()

    monkeypatch.setattr("adapters.adapter.reply.ERROR_BODY_SECONDS", 0.05)
    raw_provider.script = slow
    fault = await failure(pump)
    assert (fault.kind, fault.detail) == ("upstream_server", "half")


async def test_an_error_body_that_breaks_is_still_that_error(raw_provider, pump):
    async def broken(connection):
        await connection.send(b"HTTP/1.1 500 No\r\ncontent-length: 10\r\n\r\nhalf")
        connection.writer.close()

    raw_provider.script = broken
    fault = await failure(pump)
    assert (fault.kind, fault.detail) == ("upstream_server", "half")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("301 Moved", "upstream_rejected"),
        ("307 Moved", "upstream_rejected"),
        ("101 Switching", "protocol_error"),
    ],
)
async def test_a_status_that_is_no_answer(raw_provider, pump, status, kind):
    raw_provider.script = gives(reply(status, b"", "location: https://elsewhere/secret"))
    fault = await failure(pump)
    assert fault.kind == kind
    assert fault.upstream_status == int(status[:3])
    assert "elsewhere" not in f"{fault.message}{fault.detail}"


async def test_a_proxy_that_wants_credentials_is_no_fault_of_the_callers(raw_provider, pump):
    raw_provider.script = gives(reply("407 Proxy Authentication Required", b"", "x: y"))
    fault = await failure(pump)
    assert (fault.kind, fault.billed, fault.upstream_status) == ("connect_failed", False, 407)
    assert "`proxy`" in fault.message


EVENTS = b'data: {"t": "Hello"}\n\ndata: {"end": "stop"}\n\n'
JSON = b'{"t": "Hello"}'
TYPES = {
    "a stream": ("text/event-stream; charset=utf-8", EVENTS),
    "a stream in capitals": ("Text/Event-Stream", EVENTS),
    "JSON": ("application/json", JSON),
    "JSON with a charset": ("application/json; charset=utf-8", JSON),
    "JSON of a kind": ("application/vnd.vendor+json", JSON),
}


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("kind", "body"), TYPES.values(), ids=TYPES)
async def test_the_body_is_read_as_what_it_is(raw_provider, pump, sink, kind, body, stream):
    raw_provider.script = gives(reply("200 OK", body, f"content-type: {kind}"))
    pumped = await pump(stream=stream)
    assert isinstance(pumped.terminal, Finished)
    assert sink.text == "Hello"


@pytest.mark.parametrize(("stream", "body"), [(True, EVENTS), (False, JSON)])
async def test_a_body_without_a_type_is_read_as_asked(raw_provider, pump, sink, stream, body):
    raw_provider.script = gives(reply("200 OK", body))
    assert isinstance((await pump(stream=stream)).terminal, Finished)
    assert sink.text == "Hello"


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("kind", ["text/html", "text/plain", "application/octet-stream"])
async def test_any_other_type_is_a_protocol_error(raw_provider, pump, sink, kind, stream):
    body = b"<html><h1>Log in</h1></html>" * 100_000
    raw_provider.script = gives(reply("200 OK", body, f"content-type: {kind}"))
    fault = await failure(pump, stream=stream)
    assert (fault.kind, fault.upstream_status) == ("protocol_error", 200)
    assert "<" not in fault.message
    assert kind in fault.detail
    assert len(fault.detail) < 200
    assert sink.sends == []


@pytest.mark.parametrize("stream", [True, False])
async def test_an_error_under_status_200_is_a_failure(raw_provider, pump, stream):
    raw_provider.script = gives(
        reply("200 OK", b'{"error": "broken"}', "content-type: application/json")
    )
    fault = await failure(pump, stream=stream)
    assert (fault.kind, fault.message) == ("upstream_server", "broken")


@pytest.mark.parametrize("body", [b"", b'{"object":'])
async def test_half_a_json_is_what_the_decoder_says(raw_provider, pump, body):
    raw_provider.script = gives(reply("200 OK", body, "content-type: application/json"))
    assert (await failure(pump, stream=False)).kind == "protocol_error"


async def test_a_whole_body_has_a_bound(raw_provider, pump, monkeypatch):
    monkeypatch.setattr("adapters.adapter.provider.MAX_BODY", 100)
    raw_provider.script = gives(reply("200 OK", b" " * 101, "content-type: application/json"))
    fault = await failure(pump, stream=False)
    assert fault.kind == "protocol_error"
    assert "100 bytes" in fault.message


async def test_fetch_gives_a_whole_body_or_raises(raw_provider, adapter):
    call = WireCall("/embeddings", b"{}", stream=False)
    raw_provider.script = gives(reply("200 OK", b"[1]", "x-request-id: r1"))
    fetched = await adapter.fetch(call, Timeouts())
    assert (fetched.status, fetched.body) == (200, b"[1]")
    assert fetched.headers["x-request-id"] == "r1"
    assert fetched.sent_at <= fetched.headers_at <= fetched.ended_at
    raw_provider.script = gives(reply("500 No", b"why"))
    with pytest.raises(Fault) as caught:
        await adapter.fetch(call, Timeouts())
    assert caught.value.detail == "why"


def header(request: bytes, name: str) -> list[str]:
    lines = request.partition(b"\r\n\r\n")[0].decode().split("\r\n")[1:]
    pairs = (line.partition(": ")[::2] for line in lines)
    return [value for key, value in pairs if key.lower() == name]


@pytest.mark.parametrize(
    ("stream", "accept"), [(True, "text/event-stream"), (False, "application/json")]
)
async def test_the_adapters_headers_win_over_the_calls(raw_provider, make_adapter, stream, accept):
    adapter = make_adapter(
        api_key="sk-1", headers={"Anthropic-Version": "2023-06-01", "X-Org": "o"}
    )
    raw_provider.script = gives(reply("200 OK", JSON, "content-type: application/json"))
    headers = {
        "anthropic-beta": "b1",
        "Authorization": "Bearer caller",
        "anthropic-version": "1999",
        "ACCEPT": "text/plain",
        "user-agent": "caller",
        "Content-Type": "text/plain",
    }
    await adapter.fetch(WireCall("/go", b"{}", stream=stream, headers=headers), Timeouts())
    (request,) = raw_provider.requests
    assert header(request, "authorization") == ["Bearer sk-1"]
    assert header(request, "anthropic-version") == ["2023-06-01"]
    assert header(request, "x-org") == ["o"]
    assert header(request, "anthropic-beta") == ["b1"]
    assert header(request, "accept") == [accept]
    assert header(request, "user-agent") == ["llm-gateway"]
    assert header(request, "content-type") == ["application/json"]
    # Whoever compresses events may hold them back.
    assert (header(request, "accept-encoding") == ["identity"]) is stream


async def test_no_key_no_authorisation(raw_provider, make_adapter):
    raw_provider.script = gives(reply("200 OK", JSON, "content-type: application/json"))
    await make_adapter().fetch(WireCall("/go", b"{}", stream=False), Timeouts())
    assert header(raw_provider.requests[0], "authorization") == []
