"""``POST /v1/messages``: the Messages API as callers speak it.

``parse_count`` and ``count_object`` are its ``count_tokens``; ``model_object`` and
``models_list`` are how its clients list models.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from adapters.canonical.completion import Completion
from adapters.canonical.parts import Dialect as DialectName
from adapters.dialects.base import Field
from gateway.northbound.anthropic_messages import fields, request, whole
from gateway.northbound.anthropic_messages.models import model_object, models_list
from gateway.northbound.anthropic_messages.request import parse_count
from gateway.northbound.anthropic_messages.stream import StreamEncoder
from gateway.northbound.base import DEFAULT_LIMITS, Asked, Envelope, Limits

__all__ = [
    "MESSAGES",
    "AnthropicMessages",
    "count_object",
    "model_object",
    "models_list",
    "parse_count",
]


class AnthropicMessages:
    """The Messages dialect; see :class:`gateway.northbound.base.Northbound`."""

    __slots__ = ()

    name: DialectName = "anthropic-messages"
    FIELDS: Mapping[str, Field] = fields.FIELDS

    def parse(
        self, body: bytes, headers: Mapping[str, str], limits: Limits = DEFAULT_LIMITS
    ) -> Asked:
        """Understand a request body; of the headers only ``anthropic-beta`` travels on."""
        return request.parse(body, headers, limits)

    def encoder(self, envelope: Envelope) -> StreamEncoder:
        """A fresh encoder for one streamed answer."""
        return StreamEncoder(envelope)

    def whole(self, completion: Completion, envelope: Envelope) -> bytes:
        """One ``message`` body."""
        return whole.whole(completion, envelope)


def count_object(tokens: int) -> dict[str, int]:
    """The answer of ``count_tokens``."""
    return {"input_tokens": tokens}


MESSAGES: Final = AnthropicMessages()
