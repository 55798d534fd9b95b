"""``POST /v1/chat/completions``: OpenAI's chat protocol as callers speak it."""

from __future__ import annotations

from collections.abc import Mapping

from adapters.canonical.completion import Completion
from adapters.canonical.parts import Dialect as DialectName
from adapters.dialects.base import Field
from gateway.northbound.base import DEFAULT_LIMITS, Asked, Envelope, Limits, Northbound
from gateway.northbound.openai_chat import fields, request, whole
from gateway.northbound.openai_chat.models import model_object, models_list
from gateway.northbound.openai_chat.stream import StreamEncoder

__all__ = ["CHAT", "OpenAIChat", "model_object", "models_list"]


class OpenAIChat:
    """The chat dialect; see :class:`gateway.northbound.base.Northbound`."""

    __slots__ = ()

    name: DialectName = "openai-chat"
    FIELDS: Mapping[str, Field] = fields.FIELDS

    def parse(
        self, body: bytes, headers: Mapping[str, str], limits: Limits = DEFAULT_LIMITS
    ) -> Asked:
        """Understand a request body; this dialect reads no headers."""
        return request.parse(body, headers, limits)

    def encoder(self, envelope: Envelope) -> StreamEncoder:
        """A fresh encoder for one streamed answer."""
        return StreamEncoder(envelope)

    def whole(self, completion: Completion, envelope: Envelope) -> bytes:
        """One ``chat.completion`` body."""
        return whole.whole(completion, envelope)


CHAT: Northbound = OpenAIChat()
