"""Where a provider is, and the connections to it: TLS, proxy, keep-alive, bounds of a reply's head.

Of aiohttp only the connector and the parser are used, not the client above them. That one finds
out with every request what is known of a provider beforehand: whether there are cookies,
credentials, redirects, a proxy, which headers go along; and it starts a task to write what the
socket takes at once. It was half of what a call through it costs. The connector makes connections;
those that are free are kept here, because all of them go to one place. A test holds the private
names that this needs to the installed version. Must not know calls; :mod:`adapters.transport.http`
makes them.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import re
import socket
import ssl
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address
from typing import Any, cast
from urllib.parse import urlsplit

import aiohttp
from aiohttp.client_reqrep import ConnectionKey
from aiohttp.http import RawResponseMessage
from aiohttp.http_writer import _serialize_headers
from yarl import URL

from adapters.transport.handler import Handler

KEEP_ALIVE = 15.0
"""Seconds that an idle connection stays in the pool. Shorter than the usual idle limits of
servers and load balancers, so that we are the ones who close it."""

PROBE_SECONDS = 60
"""Pause between TCP probes on a silent connection. Reasoning models are silent for minutes, and
routers on the way forget such connections."""


PATHS = 16
"""Paths of a provider of which the line is kept ready; a dialect has two or three."""

CLOSE_SECONDS = 2.0
"""The longest that closing all connections may take."""

FORGETS_TO_PAUSE = (3, 12) <= sys.version_info < (3, 12, 9) or (
    (3, 13) <= sys.version_info < (3, 13, 2)
)
"""Here the transports of asyncio's own loop do not look, after ``writelines``, whether their buffer
is full (CVE-2024-12254); setting the buffer's limits makes them look."""

_NO_LIMITS = aiohttp.ClientTimeout()
"""aiohttp's own time-outs are off: those of a call can tell waiting from connecting."""


class Shared(dict[str, str]):
    """Headers of many requests, never changed: what is written of them is kept."""

    __hash__ = object.__hash__  # type: ignore[assignment]


class Peer:
    """One provider's address and the pool of connections to it. Belongs to the running loop.

    The pool has no bound: who calls has one, and waits where a time-out sees it.

    :param root: what every path is appended to.
    :param query: what stands behind every path, with its question mark.
    """

    __slots__ = (
        "_address",
        "_begun",
        "_fixed",
        "_idle",
        "_loop",
        "_sweep",
        "_target",
        "connector",
    )

    def __init__(
        self, root: str, query: str, proxy: str | None, trust: ssl.SSLContext | bool
    ) -> None:
        self._loop = loop = asyncio.get_running_loop()
        self._idle: deque[Handler] = deque()
        """Who has been free for longest comes first."""
        self._sweep: asyncio.TimerHandle | None = None
        self.connector = aiohttp.TCPConnector(
            limit=0, keepalive_timeout=KEEP_ALIVE, ssl=trust, socket_factory=make_socket
        )
        self.connector._factory = functools.partial(Handler, loop)  # type: ignore[assignment]
        way = None if proxy is None else URL(proxy)
        self._address = _Address("POST", URL(root), loop=loop, proxy=way)
        proxied = way is not None and not self._address.is_ssl()
        self._target = functools.lru_cache(PATHS)(functools.partial(_target, root, query, proxied))
        self._begun = functools.lru_cache(2 * PATHS)(self._begin)
        self._fixed = {
            name.lower(): value
            for name, value in self._address.headers.items()
            if name != "Content-Length"
        }
        if proxied and way is not None and (way.user or way.password):
            user, password = way.user or "", way.password or ""
            credentials = aiohttp.encode_basic_auth(user, password, "latin1")  # as for a tunnel
            self._fixed["proxy-authorization"] = credentials

    def idle(self) -> Handler | None:
        """A connection that nobody uses, ready for a request; ``None`` where there is none."""
        latest = self._loop.time() - KEEP_ALIVE
        while self._idle:
            handler = self._idle.popleft()
            if handler.since >= latest and handler.usable:
                return handler
            handler.drop()
        return None

    async def connect(self) -> Handler:
        """A new connection, ready for a request.

        :raises aiohttp.ClientError: where none can be made.
        """
        connection = await self.connector.connect(self._address, [], _NO_LIMITS)
        handler = cast(Handler, connection.protocol)
        handler.connection, handler.home = connection, self._take_in
        return handler

    def _take_in(self, handler: Handler) -> None:
        """``handler`` is free: another request may go there, for a while."""
        handler.since = self._loop.time()
        self._idle.append(handler)
        if self._sweep is None:
            self._sweep = self._loop.call_later(KEEP_ALIVE, self._sweep_out)

    def head(self, method: str, path: str, headers: Mapping[str, str], size: int) -> bytes:
        """The head of a request whose body has ``size`` bytes."""
        begin = self._begun if type(headers) is Shared else self._begin
        return b"%bcontent-length: %d\r\n\r\n" % (begin(method, path, headers), size)

    def _begin(self, method: str, path: str, headers: Mapping[str, str]) -> bytes:
        """The head without what is each request's own."""
        line = f"{method} {self._target(path)} HTTP/1.1"
        fields: Any = {**self._fixed, **headers}
        return _serialize_headers(line, fields).removesuffix(b"\r\n")

    def _sweep_out(self) -> None:
        """Close what has been free for too long, or is of no use any more."""
        latest = self._loop.time() - KEEP_ALIVE
        kept = [one for one in self._idle if one.since >= latest and one.usable]
        for handler in set(self._idle).difference(kept):
            handler.drop()
        self._idle = deque(kept)
        self._sweep = self._loop.call_later(KEEP_ALIVE, self._sweep_out) if kept else None

    @property
    def busy(self) -> int:
        """Connections that are not free."""
        return len(self.connector._acquired) - len(self._idle)

    async def close(self) -> None:
        """Close every connection."""
        if self._sweep is not None:
            self._sweep.cancel()
        try:
            with contextlib.suppress(TimeoutError):  # the sockets are closed before it waits
                async with asyncio.timeout(CLOSE_SECONDS):
                    await self.connector.close()
        finally:
            while self._idle:
                self._idle.pop().drop()


class _Address(aiohttp.ClientRequest):
    """What the connector asks of a request, none of which differs between those of a provider."""

    @functools.cached_property
    def connection_key(self) -> ConnectionKey:
        return super().connection_key


def _target(root: str, query: str, proxied: bool, path: str) -> str:
    """What a request line names: the path, or for a proxy the whole URL."""
    parsed = URL(root + path + query)
    return str(parsed.with_fragment(None)) if proxied else parsed.raw_path_qs


async def taken(handler: Handler, upstream: asyncio.WriteTransport) -> None:
    """Wait until the system takes more.

    :raises aiohttp.ClientError: where the connection has broken.
    """
    await handler._drain_helper()
    if upstream.is_closing():
        raise aiohttp.ClientConnectionResetError("closed before the request was written")


class Fields(Mapping[str, str]):
    """The headers of a reply, names in lower case. Providers send dozens, of which two or three
    are looked at: these are read when they are asked for, all of them only for who wants all."""

    __slots__ = ("_received",)

    def __init__(self, message: RawResponseMessage) -> None:
        self._received = message.headers

    def get(self, name: str, default: Any = None) -> Any:
        """The header called ``name``; the last, where there are several."""
        values = self._received.getall(name, None)
        return default if values is None else _readable(values[-1])

    def __getitem__(self, name: str) -> str:
        return _readable(self._received.getall(name)[-1])

    def __iter__(self) -> Iterator[str]:
        return iter({name.lower(): None for name in self._received})

    def __len__(self) -> int:
        return len({name.lower() for name in self._received})


def _readable(value: str) -> str:
    """A header's value without what aiohttp keeps of bytes that are no UTF-8: text with that in
    it can be written nowhere."""
    if value.isascii():
        return value
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def make_socket(address: Any) -> socket.socket:
    """A socket that the kernel keeps alive, by the probes that the platform knows."""
    family, kind, proto, _, _ = address
    sock = socket.socket(family, kind, proto)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name in ("TCP_KEEPIDLE", "TCP_KEEPALIVE", "TCP_KEEPINTVL"):
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), PROBE_SECONDS)
    return sock


def trust_in(ca_file: str) -> ssl.SSLContext:
    """A context that trusts the authorities in a PEM file and no others.

    :raises ValueError: for a file that can't be read as that.
    """
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ValueError(f"ca_file {ca_file!r} can't be read as PEM: {error}") from error


def http_url(name: str, url: str, *, credentials: bool = False) -> str:
    """``url`` itself.

    :param name: the setting, for the message; the URL is not repeated, it may hold a password.
    :param credentials: whether a user and password may stand before the host.
    :raises ValueError: for anything that is no http(s) URL with a host.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        if usable:
            _look_at_host(URL(url).raw_host or "")
    except ValueError:  # a port that is no number, brackets that do not close, an empty label
        usable = False
    if not usable:
        raise ValueError(f"{name} must be an http:// or https:// URL with a host")
    if parts.username is not None and not credentials:
        raise ValueError(f"{name} must hold no user or password; use `api_key` or `headers`")
    return url


def _look_at_host(host: str) -> None:
    """:raises ValueError: for a name that no resolver takes, and for an address such as ``127.1``,
    which some systems read as one and aiohttp does not."""
    host.encode("idna")  # as the system's resolver does it; an empty or a long label is none
    if ":" not in host and _NUMBER.search(host):
        IPv4Address(host)


_NUMBER = re.compile(r"(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)$")
"""The end of a host that is no name, but an IPv4 address however written (WHATWG URL Standard:
"ends in a number")."""
