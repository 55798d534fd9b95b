"""What an answer's headers say about how it came to be, as they stand in it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from gateway.flow.context import Head

SSE = (
    b"content-type: text/event-stream; charset=utf-8\r\n"
    b"cache-control: no-cache, no-transform\r\n"
    b"x-accel-buffering: no\r\n"
)
"""No proxy may buffer, change or compress a stream (case T06)."""

LIST_LIMIT = 1_000
"""Characters of a list in a header; longer ones end in an ellipsis."""

RATES = {
    kind: b"x-ratelimit-limit-%b: %%d\r\n"
    b"x-ratelimit-remaining-%b: %%d\r\n"
    b"x-ratelimit-reset-%b: %%.3gs\r\n" % ((kind.encode(),) * 3)
    for kind in ("requests", "tokens")
}
"""What is told of a caller's limits, in this order."""


def head_lines(head: Head) -> bytes:
    """``x-gateway-*`` and ``x-ratelimit-*`` for ``head``."""
    told = _attempts(", ".join(map(str, head.attempts))) if head.attempts else b""
    if head.dropped:
        told += _listed(b"x-gateway-dropped", dict.fromkeys(head.dropped))
    if head.adjusted:
        told += _listed(b"x-gateway-adjusted", head.adjusted)
    if head.trimmed:
        told += _listed(b"x-gateway-trimmed", (f"{n}={v}" for n, v in head.trimmed.items()))
    if head.mended:
        told += _listed(b"x-gateway-mended", head.mended)
    if head.rates:
        for kind, lines in RATES.items():
            state = head.rates.get(kind)
            if state is not None:
                told += lines % state
    return told


@lru_cache
def _attempts(told: str) -> bytes:
    """Most calls end at the first try, so there are as many of these as deployments."""
    return _listed(b"x-gateway-attempts", [told])


def _listed(name: bytes, values: Iterable[str]) -> bytes:
    text = ", ".join(values)
    if len(text) > LIST_LIMIT:
        text = text[: LIST_LIMIT - 3] + "..."
    if not (text.isascii() and text.isprintable()):
        text = "".join(c if " " <= c <= "~" else "?" for c in text)
    return b"%b: %b\r\n" % (name, text.encode())
