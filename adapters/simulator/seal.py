"""Seals on reasoning: what the simulator handed out it knows again, altered or not.

Both vendors bind a model's reasoning to themselves: Anthropic signs thinking blocks, OpenAI
encrypts reasoning items. Here both are an HMAC with a fixed key, so that the same text always
has the same seal and a round trip through any client can be proved.
"""

from __future__ import annotations

import base64
import hashlib
import hmac

_KEY = b"the simulator's seal, no secret"
_MAC = 32


def sign(text: str) -> str:
    """The signature of a thinking block's text."""
    return base64.b64encode(_mac(b"sign", text.encode("utf-8", "surrogatepass"))).decode()


def signed(text: str, signature: object) -> bool:
    """Whether ``signature`` is what :func:`sign` gave for exactly this text."""
    return isinstance(signature, str) and hmac.compare_digest(
        sign(text).encode(), signature.encode("utf-8", "surrogatepass")
    )


def seal(text: str) -> str:
    """``text`` as an opaque block: ``redacted_thinking`` data, ``encrypted_content``."""
    data = text.encode("utf-8", "surrogatepass")
    return base64.urlsafe_b64encode(_mac(b"seal", data) + data[::-1]).decode()


def unseal(blob: object) -> str | None:
    """The text in ``blob``; ``None`` if the simulator did not make it or it was altered."""
    if not isinstance(blob, str):
        return None
    try:
        text = base64.urlsafe_b64decode(blob)[_MAC:][::-1].decode("utf-8", "surrogatepass")
    except ValueError:  # no ASCII, no base64, no UTF-8: not ours
        return None
    return text if hmac.compare_digest(seal(text), blob) else None


def _mac(use: bytes, data: bytes) -> bytes:
    return hmac.new(_KEY + use, data, hashlib.sha256).digest()
