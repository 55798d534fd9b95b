"""HTTP under the MCP SDK: where it connects, and what it says when no usable answer comes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import pytest

from gateway.tools.guard import guard
from gateway.tools.mcp.wire import MOST_BODY, Verdict, client

CALL = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {}}
JSON = "content-type: application/json\r\n"


@pytest.fixture
async def post(raw_provider: Any) -> AsyncIterator[Callable[..., Any]]:
    """Send one message to a server that answers with the bytes that the test gives."""
    made: list[httpx2.AsyncClient] = []

    async def post(
        reply: bytes, *, session: bool = True, allow: tuple[str, ...] = ("127.0.0.1",),
        message: Any = CALL, url: str | None = None,
    ) -> httpx2.Response:  # fmt: skip
        async def script(connection: Any) -> None:
            await connection.send(reply)
            connection.writer.close()

        raw_provider.script = script
        made.append(client(guard(allow), {"Authorization": "Bearer secret"}))
        headers = {"mcp-session-id": "s"} if session else {}
        return await made[-1].post(url or raw_provider.url, json=message, headers=headers)

    yield post
    for each in made:
        await each.aclose()


def answer(status: str, body: bytes = b"", headers: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\n{headers}\r\n"
    return head.encode() + body


def verdict(response: httpx2.Response) -> int | None:
    """The code of an answer in the server's place."""
    error = response.json()["error"]
    assert response.json()["id"] == 7
    code: int = error["code"]
    return code


@pytest.mark.parametrize(
    ("status", "session", "expected"),
    [
        ("404 Not Found", True, Verdict.SESSION_GONE),
        ("400 Bad Request", True, Verdict.SESSION_GONE),
        ("401 Unauthorized", True, Verdict.FORBIDDEN),
        ("403 Forbidden", False, Verdict.FORBIDDEN),
        ("429 Too Many Requests", True, Verdict.NOT_SENT),
        ("302 Found", True, Verdict.NOT_SENT),
        ("307 Temporary Redirect", True, Verdict.NOT_SENT),
        ("500 Internal Server Error", True, Verdict.UNKNOWN),
        ("503 Service Unavailable", False, Verdict.UNKNOWN),
    ],
)
async def test_a_status_says_what_became_of_the_call(
    post: Any, raw_provider: Any, status: str, session: bool, expected: Verdict
) -> None:
    location = f"location: {raw_provider.url}/elsewhere\r\n"
    assert verdict(await post(answer(status, b"no", location), session=session)) == expected
    assert len(raw_provider.requests) == 1


@pytest.mark.parametrize("status", ["404 Not Found", "400 Bad Request", "405 Method Not Allowed"])
async def test_while_nothing_is_agreed_the_sdk_sees_the_status(post: Any, status: str) -> None:
    response = await post(answer(status, b"no", "location: http://x/\r\n"), session=False)
    assert response.status_code == int(status[:3])
    assert response.text == "no"
    assert "location" not in response.headers


async def test_an_answer_of_the_protocol_is_passed_on_whatever_its_status(post: Any) -> None:
    body = b'{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"wrong"}}'
    for status in ("400 Bad Request", "500 Internal Server Error"):
        assert verdict(await post(answer(status, body, JSON))) == -32602
    assert verdict(await post(answer("404 Not Found", body, JSON))) == Verdict.SESSION_GONE
    other = body.replace(b'"id":7', b'"id":null')
    assert verdict(await post(answer("400 Bad Request", other, JSON))) == Verdict.SESSION_GONE


@pytest.mark.parametrize("reply", [b"", b"HTTP/1.1 200 OK\r\n", b"nonsense\r\n\r\n"])
async def test_a_broken_answer_leaves_the_effect_unknown(post: Any, reply: bytes) -> None:
    assert verdict(await post(reply)) == Verdict.UNKNOWN


async def test_nothing_that_listens_means_that_nothing_was_sent(post: Any) -> None:
    assert verdict(await post(b"", url="http://127.0.0.1:9/")) == Verdict.NOT_SENT


async def test_an_address_inside_is_not_connected_to(post: Any, raw_provider: Any) -> None:
    response = await post(answer("200 OK"), allow=())
    assert verdict(response) == Verdict.NOT_SENT
    assert raw_provider.connections == 0


async def test_a_compressed_answer_is_not_unpacked(post: Any, raw_provider: Any) -> None:
    reply = answer("200 OK", b"\x1f\x8b", JSON + "content-encoding: gzip\r\n")
    assert verdict(await post(reply)) == Verdict.UNKNOWN
    assert b"accept-encoding: identity" in raw_provider.requests[0].lower()


async def test_an_endless_answer_is_ended(post: Any) -> None:
    head = f"HTTP/1.1 200 OK\r\n{JSON}content-length: {MOST_BODY + 10}\r\n\r\n".encode()
    with pytest.raises(httpx2.StreamError):
        await post(head + b" " * (MOST_BODY + 10))


async def test_a_notice_that_can_t_be_delivered_is_no_answer_to_anything(post: Any) -> None:
    notice = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    response = await post(answer("404 Not Found"), message=notice)
    assert json.loads(response.content)["id"] is None


async def test_a_whole_answer_comes_through(post: Any, raw_provider: Any) -> None:
    body = b'{"jsonrpc":"2.0","id":7,"result":{}}'
    response = await post(answer("200 OK", body, JSON + "mcp-session-id: new\r\n"))
    assert response.json()["result"] == {}
    assert response.headers["mcp-session-id"] == "new"
    assert b"authorization: bearer secret" in raw_provider.requests[0].lower()
