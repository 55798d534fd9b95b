"""HTTP under the MCP SDK: to checked addresses only, and with an answer for every request.

The SDK lets a connection error end the whole session, and tells apart neither "was not sent" from
"may have been done", nor "this session is gone" from any other refusal. So this transport answers
in the server's place where no usable answer comes: with a JSON-RPC error whose code is one of
:class:`Verdict`. Only this module and :mod:`.session` import the SDK and its HTTP client.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator, Mapping
from enum import IntEnum
from typing import Any

import httpx2

from gateway.tools.guard import Guard, Refused

SESSION = "mcp-session-id"
CONNECT = 10.0
"""Seconds to connect."""
SILENCE = 300.0
"""Seconds without a byte on a stream that is open; each call has a time of its own."""
MOST_ERROR = 64 * 1024
MOST_BODY = 16 * 1024 * 1024
"""Bytes of one answer. Base64 of a picture is the largest thing in there."""


class Verdict(IntEnum):
    """What became of a request that got no answer of the protocol. Beyond the codes that JSON-RPC
    reserves."""

    NOT_SENT = -31901
    """The server can't be reached, or the request was turned away before anything was done."""
    SESSION_GONE = -31902
    """The server knows the session no more; the request was not accepted."""
    UNKNOWN = -31903
    """The request was sent, and nobody knows what it did."""
    FORBIDDEN = -31904
    """The server does not take our credentials."""


def client(
    guard: Guard, headers: Mapping[str, str], ca_file: str | None = None
) -> httpx2.AsyncClient:
    """The client for one server; whoever makes it closes it."""
    trust = (
        httpx2.create_ssl_context()
        if ca_file is None
        else ssl.create_default_context(cafile=ca_file)
    )
    return httpx2.AsyncClient(
        transport=Transport(guard, trust),
        headers={**headers, "Accept-Encoding": "identity", "User-Agent": "llm-gateway"},
        timeout=httpx2.Timeout(SILENCE, connect=CONNECT),
        trust_env=False,
        follow_redirects=False,
    )


class Transport(httpx2.AsyncBaseTransport):
    """Connects to one server past its guard. All requests have the same host, so that connections
    may be kept."""

    def __init__(self, guard: Guard, trust: ssl.SSLContext) -> None:
        self._guard = guard
        self._inner = httpx2.AsyncHTTPTransport(
            verify=trust, trust_env=False, limits=httpx2.Limits(max_keepalive_connections=5)
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The server's answer, or ours in its place."""
        try:
            where = self._guard.admit(str(request.url))
            addresses = await self._guard.addresses(where.host, where.port)
            response = await self._sent(request, where.host, addresses)
        except Refused as refusal:
            return _instead(request, Verdict.NOT_SENT, str(refusal))
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            return _instead(request, Verdict.NOT_SENT, f"no connection: {error}")
        except httpx2.TransportError as error:
            return _instead(request, Verdict.UNKNOWN, f"{type(error).__name__}: {error}")
        return await _judged(request, response)

    async def _sent(
        self, request: httpx2.Request, host: str, addresses: tuple[str, ...]
    ) -> httpx2.Response:
        request.extensions = {**request.extensions, "sni_hostname": host}
        named = request.url
        for number, address in enumerate(addresses, start=1):
            request.url = named.copy_with(host=address)
            try:
                return await self._inner.handle_async_request(request)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                if number == len(addresses):
                    raise
            finally:
                request.url = named
        raise AssertionError("a guard gives one address at least")

    async def aclose(self) -> None:
        """Close all connections."""
        await self._inner.aclose()


async def _judged(request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
    status = response.status_code
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        await response.aclose()
        return _instead(request, Verdict.UNKNOWN, "the answer is compressed")
    if status < 300:
        return httpx2.Response(
            status, headers=response.headers, stream=_Bounded(response), request=request
        )
    body = await _excerpt(response)
    verdict = None
    if request.method == "POST":
        verdict = _verdict(status, SESSION in request.headers, _answers(body, request))
    if verdict is None:
        return _passed(request, response, body)
    return _instead(request, verdict, f"HTTP {status}")


def _verdict(status: int, in_session: bool, answered: bool) -> Verdict | None:
    """``None`` for what the SDK makes sense of: an answer of the protocol, whatever its status,
    and what servers say while it negotiates.

    404 says that the session is gone, whatever else it says; servers are known that say 400
    instead (case G09). 5xx may come from a proxy whose server had already begun.
    """
    if in_session and status == 404:
        return Verdict.SESSION_GONE
    if answered:
        return None
    if status in (401, 403):
        return Verdict.FORBIDDEN
    if status < 400 or status in (408, 425, 429):
        return Verdict.NOT_SENT
    if status >= 500:
        return Verdict.UNKNOWN
    return Verdict.SESSION_GONE if in_session and status == 400 else None


async def _excerpt(response: httpx2.Response) -> bytes:
    body = bytearray()
    try:
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > MOST_ERROR:
                break
    except httpx2.TransportError:
        body.clear()
    finally:
        await response.aclose()
    return bytes(body)


def _answers(body: bytes, request: httpx2.Request) -> bool:
    """Whether ``body`` is a JSON-RPC answer to just this request: then it was accepted, whatever
    the status says."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return False
    asked = _request_id(request)
    return asked is not None and isinstance(found, dict) and found.get("id") == asked


def _request_id(request: httpx2.Request) -> Any:
    """The JSON-RPC id; ``None`` for a notification and for what has no body."""
    try:
        sent = json.loads(request.content) if request.content else None
    except ValueError:
        return None
    return sent.get("id") if isinstance(sent, dict) and "method" in sent else None


def _passed(request: httpx2.Request, response: httpx2.Response, body: bytes) -> httpx2.Response:
    """The server's own answer, without what could make a client follow it elsewhere."""
    kind = {"content-type": response.headers.get("content-type", "text/plain")}
    return httpx2.Response(response.status_code, headers=kind, content=body, request=request)


def _instead(request: httpx2.Request, verdict: Verdict, why: str) -> httpx2.Response:
    """Our answer in the server's place."""
    error = {"code": int(verdict), "message": why[:300]}
    body = {"jsonrpc": "2.0", "id": _request_id(request), "error": error}
    return httpx2.Response(503, json=body, request=request)


class _Bounded(httpx2.AsyncByteStream):
    """A body that ends with an error where it gets too long. A stream of events goes on for as
    long as the session does: there, the SDK bounds each event."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        kind = response.headers.get("content-type", "").lower()
        self._left = None if kind.startswith("text/event-stream") else MOST_BODY

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._response.aiter_raw():
            if self._left is not None:
                self._left -= len(chunk)
                if self._left < 0:
                    raise httpx2.StreamError(f"the answer has more than {MOST_BODY} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._response.aclose()
