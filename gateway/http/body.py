"""Request bodies: read whole, within a bound, decompressed within the same bound.

A compressed body may not grow beyond the limit either, so a bomb costs no more than a plain
body of that size.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

import zstandard

from adapters.canonical.faults import Fault

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

ENCODINGS = ("gzip", "deflate", "zstd", "identity")


SECONDS = 120.0
"""How long a body may take to come."""


class Disconnected(Exception):
    """The caller left before its body was complete."""


async def read_body(receive: Receive, headers: Mapping[str, str], limit: int) -> bytes:
    """The caller's body, decompressed.

    :param limit: bytes, before and after decompression.
    :raises Fault: ``too_large``, or ``bad_request`` for an unknown encoding or broken data.
    :raises Disconnected: if the caller left meanwhile.
    """
    return plain(await read_raw(receive, headers, limit), headers, limit)


def plain(body: bytes, headers: Mapping[str, str], limit: int) -> bytes:
    """A body that is there, decompressed; see :func:`read_body`."""
    if len(body) > limit:
        raise _too_large(limit)
    encoding = headers.get("content-encoding")
    if encoding is None or not encoding.strip():
        return body
    return _decompress(body, encoding.strip().lower(), limit)


async def read_raw(receive: Receive, headers: Mapping[str, str], limit: int) -> bytes:
    """The caller's body as it was sent.

    :param limit: bytes.
    :raises Fault: ``too_large``. :raises Disconnected: if the caller left meanwhile.
    """
    declared = headers.get("content-length", "")
    if declared.isdigit() and int(declared) > limit:
        raise _too_large(limit)
    try:
        async with asyncio.timeout(SECONDS):
            body = await _read(receive, limit)
    except TimeoutError:
        message = f"The request body was not complete after {SECONDS:g} seconds."
        raise Fault("bad_request", message, code="body_timeout") from None
    if len(body) > limit:
        raise _too_large(limit)
    return body


async def _read(receive: Receive, limit: int) -> bytes:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise Disconnected
    body: bytes = message.get("body", b"")
    return await _rest(receive, body, limit) if message.get("more_body", False) else body


async def _rest(receive: Receive, first: bytes, limit: int) -> bytes:
    chunks, size = [first], len(first)
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > limit:
            raise _too_large(limit)
        chunks.append(chunk)
        if not message.get("more_body", False):
            return b"".join(chunks)


def _decompress(body: bytes, encoding: str, limit: int) -> bytes:
    try:
        match encoding:
            case "gzip" | "x-gzip":
                return _inflate(body, 31, limit)
            case "deflate":
                return _inflate(body, 15, limit)
            case "zstd":
                return _unzstd(body, limit)
            case "identity":
                return body
    except (zlib.error, zstandard.ZstdError) as error:
        raise Fault(
            "bad_request",
            f"The body is not valid {encoding} data. Send it as the Content-Encoding header says.",
            detail=str(error),
        ) from None
    raise Fault(
        "bad_request",
        f"Content-Encoding is not one of {', '.join(ENCODINGS)}.",
        code="unsupported_encoding",
    )


def _inflate(body: bytes, window: int, limit: int) -> bytes:
    inflater = zlib.decompressobj(window)
    data = inflater.decompress(body, limit + 1)
    if len(data) > limit:
        raise _too_large(limit)
    if not inflater.eof or inflater.unused_data:
        raise zlib.error("incomplete data, or more after its end")
    return data


def _unzstd(body: bytes, limit: int) -> bytes:
    inflater = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj()
    chunks: list[bytes] = []
    size = 0
    for start in range(0, len(body), 4096):
        # zstd gives at most some 32 kB a byte, so a small step bounds what one call can make
        chunk = inflater.decompress(body[start : start + 4096])
        size += len(chunk)
        if size > limit:
            raise _too_large(limit)
        chunks.append(chunk)
    if not inflater.eof or inflater.unused_data:
        raise zstandard.ZstdError("incomplete data, or more after its end")
    return b"".join(chunks)


def _too_large(limit: int) -> Fault:
    return Fault(
        "too_large",
        f"The request body is larger than {limit // (1024 * 1024)} MB, the most that this gateway "
        "takes (server.max_body_mb).",
    )
