"""Tokens for browsers: read one run's events, for some minutes, without a key.

``EventSource`` can send no header, so the token stands in the URL; that is why it opens so little,
lasts so short, and is stored only as a hash.
"""

from __future__ import annotations

import hashlib
import secrets

from adapters.canonical.faults import Fault
from gateway.store.base import Store

PREFIX = "st-gw-"


async def make_token(store: Store, run_id: str, now: float, seconds: float) -> tuple[str, float]:
    """A fresh token for a run, and when it ends. It is shown once and never stored."""
    token = PREFIX + secrets.token_urlsafe(32)
    until = now + seconds
    await store.add_stream_token(_digest(token), run_id, now, until)
    return token, until


async def check_token(store: Store, token: str, run_id: str, now: float) -> None:
    """Let the token in for this run alone.

    :raises Fault: ``unauthenticated`` for any other token or run.
    """
    opened = await store.stream_token(_digest(token), now)
    if opened is None or not secrets.compare_digest(opened, run_id):
        raise Fault(
            "unauthenticated",
            "This stream token is not known for this run, or has expired. Make a new one with "
            "POST /runs/{id}/stream-tokens.",
            code="invalid_stream_token",
        )


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
