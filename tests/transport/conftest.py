"""Transports to the raw provider, and a check that nothing is left behind."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from adapters.transport.http import Exchange, HttpTransport
from adapters.wire.call import Timeouts, WireCall

TLS = Path(__file__).parent / "tls"


@pytest.fixture
def cert_file() -> str:
    """The certificate of the raw provider, which is its own authority."""
    return str(TLS / "cert.pem")


@pytest.fixture
def tls(cert_file: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert_file, TLS / "key.pem")
    return context


@pytest.fixture
async def connect() -> AsyncIterator[Callable[..., HttpTransport]]:
    """Make transports; at the end of the test none of them may hold anything."""
    made: list[HttpTransport] = []

    def connect(base_url: str, **settings: Any) -> HttpTransport:
        made.append(HttpTransport(base_url, **settings))
        return made[-1]

    yield connect
    for transport in made:
        assert transport.active == 0
        assert busy(transport) == 0
        await transport.close()


@pytest.fixture
def transport(connect: Callable[..., HttpTransport], raw_provider: Any) -> HttpTransport:
    return connect(raw_provider.url)


@pytest.fixture
def exchange_of() -> Callable[..., Any]:
    """``exchange_of(transport, stream=…, timeouts…)``: an exchange for a small call."""

    def exchange_of(
        transport: HttpTransport,
        *,
        stream: bool = True,
        body: bytes = b"{}",
        method: str = "POST",
        headers: dict[str, str] | None = None,
        **seconds: float,
    ) -> Any:
        call = WireCall("/go", body, stream=stream, method=method)
        limits = {"connect": 5.0, "first_event": 5.0, "between_events": 5.0, "total": 10.0}
        return Exchange(transport, call, headers or {}, Timeouts(**{**limits, **seconds}))

    return exchange_of


def busy(transport: HttpTransport) -> int:
    """Connections that aiohttp counts as taken."""
    peer = transport._peer
    return 0 if peer is None else peer.busy
