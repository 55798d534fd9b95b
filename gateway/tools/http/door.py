"""The one way out for HTTP tools: to a checked address, without redirects, cookies, proxies or
anything else from the environment, and with a bound on what is read.

It drives httpx's transport without its client, because a client adds what must not be here: a
cookie jar that callers would share, credentials from ``.netrc``, proxies that would resolve names
themselves. Must not know tools.
"""

from __future__ import annotations

import codecs
import ssl
from functools import cache

import httpx

from adapters.canonical.record import record
from gateway.tools.guard import Guard

CONNECT = 10.0
"""Seconds to connect; the whole call's time is kept by whoever calls the tool."""
MOST_CONNECTIONS = 20
_TEXTUAL = ("text/", "application/json", "application/xml", "application/javascript",
            "application/x-www-form-urlencoded", "application/yaml")  # fmt: skip


class Unreachable(Exception):
    """Nothing was sent: no address of the place takes a connection. The text is for the log."""


class Broken(Exception):
    """Something was sent, and no whole answer came. The text is for the log."""


@record(frozen=True, slots=True)
class Reply:
    """An answer as far as it was read. ``cut``: there was more than the bound allows."""

    status: int
    content_type: str
    body: bytes
    cut: bool

    @property
    def is_text(self) -> bool:
        """Whether the body can be shown to a model; what says no type is taken for text."""
        kind = self.content_type.partition(";")[0].strip().lower()
        return not kind or kind.startswith(_TEXTUAL) or kind.endswith(("+json", "+xml"))

    @property
    def is_json(self) -> bool:
        """Whether the sender calls it JSON."""
        kind = self.content_type.partition(";")[0].strip().lower()
        return kind == "application/json" or kind.endswith("+json")

    def text(self) -> str:
        """The body in its declared encoding, or else as UTF-8; wrong bytes become U+FFFD."""
        declared = self.content_type.lower().partition("charset=")[2].partition(";")[0]
        try:
            name = codecs.lookup(declared.strip(" \"'")).name
            return self.body.decode(name, "replace")
        except (LookupError, ValueError):  # unknown, or no encoding of text
            return self.body.decode("utf-8", "replace")


@cache
def _usual_trust() -> ssl.SSLContext:
    """Made once: reading the certificates takes 20 ms."""
    return httpx.create_ssl_context()


def _trust(ca_file: str | None) -> ssl.SSLContext:
    return _usual_trust() if ca_file is None else ssl.create_default_context(cafile=ca_file)


class Door:
    """Sends requests past one guard.

    :param keep: idle connections to keep for the next call. Only safe where the host is always
        the same: a connection is kept by its address, whichever name it was opened for.
    """

    __slots__ = ("_guard", "_transport", "_under_way")

    def __init__(self, guard: Guard, *, keep: int = 0, ca_file: str | None = None) -> None:
        self._guard = guard
        self._under_way = 0
        self._transport = httpx.AsyncHTTPTransport(
            verify=_trust(ca_file),
            trust_env=False,
            limits=httpx.Limits(
                max_connections=MOST_CONNECTIONS, max_keepalive_connections=keep, keepalive_expiry=5
            ),
        )

    @property
    def busy(self) -> bool:
        """Whether a request is under way."""
        return self._under_way > 0

    async def send(self, request: httpx.Request, *, silence: float, most: int) -> Reply:
        """The answer to ``request``, read up to ``most`` bytes.

        :param silence: the longest time between two pieces of the answer, in seconds.
        :raises Refused: by the guard. :raises Unreachable: where nothing was sent.
        :raises Broken: where no whole answer came.
        """
        where = self._guard.admit(str(request.url))
        addresses = await self._guard.addresses(where.host, where.port)
        request.extensions = {
            "sni_hostname": where.host,
            "timeout": httpx.Timeout(silence, connect=CONNECT, pool=silence).as_dict(),
        }
        self._under_way += 1
        try:
            response = await self._connected(request, addresses)
            return await _read(response, most)
        except httpx.TransportError as error:
            raise Broken(f"{type(error).__name__}: {error}") from error
        finally:
            self._under_way -= 1

    async def _connected(
        self, request: httpx.Request, addresses: tuple[str, ...]
    ) -> httpx.Response:
        """Send to the first address that takes a connection. The Host header and the name in the
        TLS handshake stay those of the URL."""
        last: Exception | None = None
        named = request.url
        for address in addresses:
            request.url = named.copy_with(host=address)
            try:
                return await self._transport.handle_async_request(request)
            except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
                last = error
        raise Unreachable(f"{named.host}: {last}") from last

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.aclose()


async def _read(response: httpx.Response, most: int) -> Reply:
    """As much of the body as is allowed. It was asked for uncompressed: bytes that would swell
    are not taken."""
    try:
        encoding = response.headers.get("content-encoding", "identity").lower()
        if encoding != "identity":
            raise Broken(f"the answer is compressed with {encoding[:40]}")
        body = bytearray()
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > most:
                break
    finally:
        await response.aclose()
    kind = response.headers.get("content-type", "")
    return Reply(response.status_code, kind, bytes(body[:most]), len(body) > most)
