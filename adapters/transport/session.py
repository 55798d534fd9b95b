"""How sockets to a provider are set up: TLS, proxy, keep-alive, and the bounds of a reply's head.

Must not know calls; :mod:`adapters.transport.http` makes them.
"""

from __future__ import annotations

import asyncio
import functools
import socket
import ssl
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from adapters.transport.pour import Handler

KEEP_ALIVE = 15.0
"""Seconds that an idle connection stays in the pool. Shorter than the usual idle limits of
servers and load balancers, so that we are the ones who close it."""

MAX_FIELD = 16 * 1024
"""Bytes of one header; with :data:`MAX_FIELDS` the bound of an endless head."""

MAX_FIELDS = 128

READ_BUFFER = 64 * 1024
"""Bytes that are read ahead of a slow reader; twice that stops the socket."""

PROBE_SECONDS = 60
"""Pause between TCP probes on a silent connection. Reasoning models are silent for minutes, and
routers on the way forget such connections."""


def make_session(proxy: str | None, trust: ssl.SSLContext | bool) -> aiohttp.ClientSession:
    """A session of the running loop, with everything off that aiohttp does unasked.

    It sets no limit to connections and no time-out: the caller has its own, which can tell
    waiting from connecting.
    """
    connector = aiohttp.TCPConnector(
        limit=0, keepalive_timeout=KEEP_ALIVE, ssl=trust, socket_factory=make_socket
    )
    connector._factory = functools.partial(Handler, asyncio.get_running_loop())  # type: ignore[assignment]
    session = aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(),
        proxy=proxy,
        trust_env=False,
        read_bufsize=READ_BUFFER,
        max_line_size=MAX_FIELD,
        max_field_size=MAX_FIELD,
        max_headers=MAX_FIELDS,
    )
    # aiohttp would send an idempotent method a second time if a pooled connection turns out to
    # be dead, and has no public switch for that. Here one call is one request.
    session._retry_connection = False
    return session


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
    except ValueError:  # a port that is no number, brackets that do not close
        usable = False
    if not usable:
        raise ValueError(f"{name} must be an http:// or https:// URL with a host")
    if parts.username is not None and not credentials:
        raise ValueError(f"{name} must hold no user or password; use `api_key` or `headers`")
    return url
