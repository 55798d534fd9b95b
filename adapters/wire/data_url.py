"""``data:`` URLs (RFC 2397), which OpenAI's protocols use for media sent along.

The payload is passed on as text and never decoded here.
"""

from __future__ import annotations

from adapters.canonical.parts import Inline, Url


def read(url: str) -> Inline | Url | None:
    """The source that ``url`` names; ``None`` for a ``data:`` URL that is not base64."""
    if url[:5].lower() != "data:":
        return Url(url)
    head, comma, data = url[5:].partition(",")
    media_type, semicolon, encoding = head.rpartition(";")
    if not comma or not semicolon or encoding.strip().lower() != "base64":
        return None
    return Inline(media_type, data)


def write(source: Inline | Url) -> str:
    """The URL for ``source``; ``read(write(source)) == source``."""
    if isinstance(source, Url):
        return source.url
    return f"data:{source.media_type};base64,{source.data}"


_NAMES = {"application/pdf": "document.pdf", "text/plain": "document.txt"}


def filename(source: Inline) -> str:
    """A name for a file that has none: OpenAI's protocols refuse one that comes without, though
    their schemas say that it is optional."""
    return _NAMES.get(source.media_type, "document")
