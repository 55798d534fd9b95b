"""Other protocols' reasoning inside ``encrypted_content``, so that it survives a round trip.

A Responses client keeps ``encrypted_content`` without reading it. What Anthropic or a chat
provider needs back with its reasoning (signature, sealed block, details) travels there, marked
so that it is never taken for OpenAI's own. The text stands in the item's summary. It is a
carrier, not a secret: the caller may read it, and a forged one only reaches the provider that
checks the signature.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import orjson

from adapters.canonical.parts import NO_EXTRAS, Dialect, Thinking
from adapters.wire.json import dumps

MARK = "gw1."
_DIALECTS: tuple[Dialect, ...] = ("openai-chat", "anthropic-messages")


def seal(part: Thinking) -> str:
    """``encrypted_content`` for reasoning of another protocol."""
    held: dict[str, Any] = {"dialect": part.dialect}
    for name in ("signature", "sealed", "id"):
        if getattr(part, name) is not None:
            held[name] = getattr(part, name)
    if part.extras:
        held["extras"] = part.extras
    return MARK + base64.urlsafe_b64encode(dumps(held)).decode()


def unseal(content: str, text: str) -> Thinking | None:
    """The reasoning that :func:`seal` wrapped; ``None`` if ``content`` is not ours or broken.

    :param text: the item's summary, joined.
    """
    if not content.startswith(MARK):
        return None
    try:
        held = orjson.loads(base64.urlsafe_b64decode(content[len(MARK) :]))
    except (binascii.Error, ValueError):
        return None
    if not isinstance(held, dict) or held.get("dialect") not in _DIALECTS:
        return None
    extras = held.get("extras")
    return Thinking(
        text,
        signature=_text(held, "signature"),
        sealed=_text(held, "sealed"),
        dialect=held["dialect"],
        id=_text(held, "id"),
        extras=extras if isinstance(extras, Mapping) else NO_EXTRAS,
    )


def _text(held: Mapping[str, Any], name: str) -> str | None:
    value = held.get(name)
    return value if isinstance(value, str) else None
