"""Reasoning of other protocols inside ``thinking`` blocks.

A client of this protocol gives ``thinking`` blocks back as they came, and never looks into
``signature``. So what another provider needs back with its reasoning (ids, encrypted content)
travels there, marked as ours. Must not know requests or streams.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from adapters.canonical.parts import NO_EXTRAS, Thinking
from adapters.wire.anthropic_messages import NAME
from adapters.wire.json import dumps, loads

MARK = "gateway.1."
"""Begins every signature that the gateway wrote; the vendor's are plain base64."""

BREAK = "\n\n"
"""Between two sections of a summary, where people read them as one text."""

DIALECTS = frozenset({"openai-chat", "openai-responses"})


def shown(thinking: Thinking) -> str:
    """The text of ``thinking`` for people."""
    if thinking.summary is not None and len(thinking.summary) > 1:
        return BREAK.join(thinking.summary)
    return thinking.text


def block(thinking: Thinking) -> dict[str, Any]:
    """The ``thinking`` block for reasoning of another protocol."""
    return {"type": "thinking", "thinking": shown(thinking), "signature": signature(thinking)}


def signature(thinking: Thinking) -> str:
    """Everything about ``thinking`` that its text does not say."""
    kept = {
        "dialect": thinking.dialect,
        "id": thinking.id,
        "signature": thinking.signature,
        "sealed": thinking.sealed,
        "summary": thinking.summary,
        "extras": thinking.extras or None,
    }
    known = dumps({name: value for name, value in kept.items() if value is not None})
    return MARK + base64.urlsafe_b64encode(known).decode()


def opened(thinking: Thinking) -> Thinking:
    """The part that :func:`block` was made of, or ``thinking`` itself if it is none of ours."""
    if thinking.signature is None or not thinking.signature.startswith(MARK):
        return thinking
    try:
        kept = loads(base64.urlsafe_b64decode(thinking.signature.removeprefix(MARK)))
        return _restored(kept, thinking.text)
    except (binascii.Error, ValueError, TypeError, AttributeError, KeyError):
        # Not as we wrote it: unsigned, it goes to nobody, and is named where it is left out.
        return Thinking(thinking.text, dialect=NAME)


def _restored(kept: Mapping[str, Any], text: str) -> Thinking:
    dialect = kept.get("dialect")
    if dialect is not None and dialect not in DIALECTS:
        raise ValueError("no such dialect")
    texts = {name: kept.get(name) for name in ("id", "signature", "sealed")}
    sections = kept.get("summary")
    if not all(isinstance(value, str | None) for value in (*texts.values(), *(sections or ()))):
        raise TypeError("a sealed field is no text")
    extras = kept.get("extras") or NO_EXTRAS
    if not isinstance(extras, Mapping):
        raise TypeError("extras are no object")
    return Thinking(
        text if sections is None else "".join(sections),
        dialect=dialect,
        summary=None if sections is None else tuple(sections),
        extras=extras,
        **texts,
    )
