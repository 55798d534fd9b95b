"""How large an inline image is, read from its first bytes, and what families charge for it.

Nothing is fetched and nothing is rendered: an image behind a URL has no known size and counts as
the dearest one. Must not know requests.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Callable
from math import ceil

Size = tuple[int, int]
"""Width and height in pixels."""

HEAD = 1 << 17
"""Base64 characters looked at: a JPEG's size may stand behind an embedded thumbnail."""

_JPEG_SIZES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""The markers of JPEG's start-of-frame segments (ITU-T T.81, table B.1)."""


def size(data: str) -> Size | None:
    """The size of a base64 PNG, GIF, JPEG or WebP image; ``None`` if it can't be told."""
    try:
        head = base64.b64decode(data[: min(len(data), HEAD) // 4 * 4])
    except (binascii.Error, ValueError):
        return None
    for magic, read in _READERS:
        if head.startswith(magic):
            try:
                return read(head)
            except (struct.error, IndexError):
                return None
    return None


def _png(head: bytes) -> Size:
    width, height = struct.unpack_from(">II", head, 16)
    return width, height


def _gif(head: bytes) -> Size:
    width, height = struct.unpack_from("<HH", head, 6)
    return width, height


def _jpeg(head: bytes) -> Size | None:
    at = 2
    while at + 9 <= len(head):
        if head[at] != 0xFF:
            return None
        marker, length = head[at + 1], struct.unpack_from(">H", head, at + 2)[0]
        if marker in _JPEG_SIZES:
            height, width = struct.unpack_from(">HH", head, at + 5)
            return width, height
        at += 2 + length
    return None


def _webp(head: bytes) -> Size | None:
    form = head[12:16]
    if form == b"VP8X":
        width = int.from_bytes(head[24:27], "little") + 1
        return width, int.from_bytes(head[27:30], "little") + 1
    if form == b"VP8L":
        bits = struct.unpack_from("<I", head, 21)[0]
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if form == b"VP8 ":
        width, height = struct.unpack_from("<HH", head, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None


_READERS: tuple[tuple[bytes, Callable[[bytes], Size | None]], ...] = (
    (b"\x89PNG\r\n\x1a\n", _png),
    (b"GIF8", _gif),
    (b"\xff\xd8", _jpeg),
    (b"RIFF", _webp),
)


def fit(image: Size, longest: float, shortest: float | None = None) -> tuple[float, float]:
    """``image`` scaled down (never up) until its long edge is at most ``longest`` and its short
    one at most ``shortest``."""
    wide, high = image
    scale = min(1.0, longest / max(wide, high, 1))
    if shortest is not None:
        scale = min(scale, shortest / max(min(wide, high), 1))
    return wide * scale, high * scale


def tiles(image: Size) -> int:
    """OpenAI's count for models with tiles: 85, and 170 for each 512-pixel tile, after scaling
    to 2,048 and then to 768 on the short edge."""
    wide, high = fit(image, 2048, 768)
    return 85 + 170 * ceil(wide / 512) * ceil(high / 512)


def area(image: Size) -> int:
    """Anthropic's count: a token for 750 pixels, after scaling to 1,568 on the long edge."""
    wide, high = fit(image, 1568)
    return min(1600, ceil(wide * high / 750))


def squares(image: Size) -> int:
    """Google's count: 258 for a small image, else for each 768-pixel tile."""
    wide, high = image
    if wide <= 384 and high <= 384:
        return 258
    return 258 * ceil(wide / 768) * ceil(high / 768)
