"""What an answer's headers say about how it came to be."""

from __future__ import annotations

from gateway.flow.context import Head

Headers = list[tuple[bytes, bytes]]

SSE: Headers = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]
"""No proxy may buffer, change or compress a stream (case T06)."""

LIST_LIMIT = 1_000
"""Characters of a list in a header; longer ones end in an ellipsis."""

RATES = ("requests", "tokens")
"""What is told of a caller's limits, in this order."""


def head_headers(head: Head) -> Headers:
    """``x-gateway-*`` and ``x-ratelimit-*`` for ``head``."""
    headers: Headers = []
    if head.attempts:
        _listed(headers, b"x-gateway-attempts", [str(note) for note in head.attempts])
    if head.dropped:
        _listed(headers, b"x-gateway-dropped", list(dict.fromkeys(head.dropped)))
    if head.adjusted:
        _listed(headers, b"x-gateway-adjusted", list(head.adjusted))
    if head.trimmed:
        _listed(headers, b"x-gateway-trimmed", [f"{n}={v}" for n, v in head.trimmed.items()])
    if head.mended:
        _listed(headers, b"x-gateway-mended", list(head.mended))
    for kind in RATES if head.rates else ():
        state = head.rates.get(kind)
        if state is not None:
            name = kind.encode()
            headers += [
                (b"x-ratelimit-limit-" + name, b"%d" % state.limit),
                (b"x-ratelimit-remaining-" + name, b"%d" % max(0, state.remaining)),
                (b"x-ratelimit-reset-" + name, b"%.3gs" % max(0.0, state.reset)),
            ]
    return headers


def _listed(headers: Headers, name: bytes, values: list[str]) -> None:
    text = ", ".join(values)
    if len(text) > LIST_LIMIT:
        text = text[: LIST_LIMIT - 3] + "..."
    if not (text.isascii() and text.isprintable()):
        text = "".join(c if " " <= c <= "~" else "?" for c in text)
    headers.append((name, text.encode()))
