"""What aiohttp, the operating system and TLS raise, as faults: the one table.

Messages are shown to callers, so they hold no host, URL, header or byte of the provider's;
``detail`` is for the logs and holds the error's class and the system's own words, never the
provider's bytes.
"""

from __future__ import annotations

import ssl

from aiohttp import (
    ClientConnectorCertificateError,
    ClientConnectorDNSError,
    ClientConnectorError,
    ClientConnectorSSLError,
    ClientError,
    ClientHttpProxyError,
    ClientPayloadError,
    ClientProxyConnectionError,
    ClientResponseError,
    ServerDisconnectedError,
)
from aiohttp.http_exceptions import (
    ContentEncodingError,
    ContentLengthError,
    HttpProcessingError,
    TransferEncodingError,
)

from adapters.canonical.faults import Fault
from adapters.canonical.record import record

FAILURES = (ClientError, HttpProcessingError, OSError)
"""Everything that a socket, TLS or HTTP may raise at us."""


@record(frozen=True, slots=True)
class _Row:
    """The first row whose ``raised`` fits counts.

    ``billed`` is ``False`` where no whole request can have reached the provider, and ``None``
    where that depends on how much was sent.
    """

    raised: type[Exception] | tuple[type[Exception], ...]
    kind: str
    message: str
    billed: bool | None = None


_BEFORE_REPLY = (
    _Row(
        ClientHttpProxyError,
        "connect_failed",
        "The proxy refused to connect to the provider. Check the provider's `proxy` setting.",
        billed=False,
    ),
    _Row(
        (ClientResponseError, HttpProcessingError),
        "protocol_error",
        "The provider's answer is not valid HTTP, or its headers are too large.",
    ),
    _Row(
        ClientConnectorDNSError,
        "connect_failed",
        "The host name of the provider or of its proxy was not found. Check `base_url`, `proxy` "
        "and the DNS.",
        billed=False,
    ),
    _Row(
        ClientProxyConnectionError,
        "connect_failed",
        "The proxy could not be reached. Check the provider's `proxy` setting.",
        billed=False,
    ),
    _Row(
        ClientConnectorCertificateError,
        "connect_failed",
        "The provider's TLS certificate is not trusted here, has expired, or is another host's. "
        "For a private authority, set the provider's `ca_file`.",
        billed=False,
    ),
    _Row(
        (ClientConnectorSSLError, ssl.SSLError),
        "connect_failed",
        "No TLS connection to the provider could be made.",
        billed=False,
    ),
    _Row(
        ClientConnectorError,
        "connect_failed",
        "The provider could not be reached.",
        billed=False,
    ),
    _Row(
        (ClientError, OSError),
        "connect_failed",
        "The provider closed the connection before it answered.",
    ),
)

_IN_BODY = (
    _Row(
        ContentEncodingError,
        "protocol_error",
        "The provider's answer is compressed in a way that can't be read.",
    ),
    _Row(
        (ContentLengthError, TransferEncodingError),
        "stream_truncated",
        "The provider's answer was cut off.",
    ),
    _Row(
        (HttpProcessingError, ClientPayloadError, ClientResponseError),
        "protocol_error",
        "The provider's answer is not valid HTTP.",
    ),
    _Row(
        (ClientError, OSError),
        "stream_truncated",
        "The connection to the provider broke in mid-answer.",
    ),
)


def before_reply(error: Exception, *, sent: bool) -> Fault:
    """The fault behind an error that came before the reply's headers were complete.

    :param sent: whether the whole request was handed to the system. If not, the provider can't
        have worked on it, and the fault says ``billed=False``.
    """
    row = _find(_BEFORE_REPLY, error)
    billed = False if not sent else row.billed
    if isinstance(error, ServerDisconnectedError) and not isinstance(error.message, str):
        # aiohttp puts the unfinished head there: the cut was inside the headers.
        return Fault(
            "protocol_error",
            "The provider closed the connection inside its headers.",
            detail=_detail(error),
            billed=billed,
        )
    return Fault(row.kind, row.message, detail=_detail(error), billed=billed)


def in_body(error: Exception) -> Fault:
    """The fault behind an error that came while the reply's body was read."""
    cause = error.__cause__
    told = (
        cause if isinstance(error, ClientPayloadError) and isinstance(cause, Exception) else error
    )
    row = _find(_IN_BODY, told)
    return Fault(row.kind, row.message, detail=_detail(told))


def _find(table: tuple[_Row, ...], error: Exception) -> _Row:
    return next((row for row in table if isinstance(error, row.raised)), table[-1])


def _detail(error: Exception) -> str:
    """Class and system message; what aiohttp adds may quote the provider or the URL."""
    told: BaseException = error
    if isinstance(error, ClientConnectorError):
        told = error.os_error
    words = f": {told}" if isinstance(told, OSError) and told.errno is not None else ""
    status = f" {error.status}" if isinstance(error, ClientHttpProxyError) else ""
    return f"{type(error).__name__}{status}{words}"[:300]
