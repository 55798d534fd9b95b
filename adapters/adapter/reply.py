"""What a reply's status and headers say before anyone reads its body.

Must not know what a body means.
"""

from __future__ import annotations

from adapters.canonical.faults import Fault
from adapters.dialects.base import Dialect
from adapters.transport.http import Exchange

MAX_ERROR_BODY = 64 * 1024
ERROR_BODY_SECONDS = 5.0
"""How much of an error's body is read, and for how long: it only explains the status."""

PROXYS = 407
"""The one error status that is never the provider's own (RFC 9110, 15.5.8)."""


def is_good(status: int | None) -> bool:
    """Whether the body is an answer. The status decides before anyone looks (fault kind K10)."""
    return status is not None and 200 <= status < 300


async def refused(exchange: Exchange, dialect: Dialect) -> Fault:
    """The fault behind a status that :func:`is_good` does not call good."""
    status = exchange.status or 0
    if status == PROXYS:
        return Fault(
            "connect_failed",
            "The proxy wants other credentials. Check the provider's `proxy` setting.",
            upstream_status=status,
            billed=False,
        )
    if status >= 400:
        body = await exchange.excerpt(MAX_ERROR_BODY, ERROR_BODY_SECONDS)
        return dialect.error(status, exchange.headers, body)
    if 300 <= status < 400:
        return Fault(
            "upstream_rejected",
            f"The provider answered with a redirect ({status}). Redirects are not followed: set "
            "the provider's `base_url` to the final address.",
            upstream_status=status,
            billed=False,
        )
    return Fault(
        "protocol_error",
        f"The provider answered with status {status}, which is no answer.",
        upstream_status=status,
    )


def is_stream(content_type: str | None, asked: bool) -> bool:
    """Whether the body is to be read as events: its own type decides, not what was asked for.

    :raises Fault: ``protocol_error`` for a type that no answer has, such as a proxy's HTML page.
    """
    if content_type == "application/json":
        return False
    media = (content_type or "").partition(";")[0].strip().lower()
    if not media:
        return asked
    if media == "text/event-stream":
        return True
    if media.endswith(("/json", "+json")):
        return False
    raise Fault(
        "protocol_error",
        "The provider answered with something that is neither JSON nor an event stream. Check "
        "its `base_url`, and any proxy on the way.",
        detail=f"content-type {media[:80]!a}",
    )
