"""``POST /v1/responses``: OpenAI's Responses protocol as callers speak it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from adapters.canonical.completion import Completion
from adapters.canonical.parts import Dialect as DialectName
from adapters.dialects.base import Field
from gateway.northbound.base import DEFAULT_LIMITS, Asked, Envelope, Limits
from gateway.northbound.openai_responses import fields, request, whole
from gateway.northbound.openai_responses.stream import StreamEncoder

__all__ = ["RESPONSES", "OpenAIResponses"]


class OpenAIResponses:
    """The Responses dialect; see :class:`gateway.northbound.base.Northbound`."""

    __slots__ = ()

    name: DialectName = "openai-responses"
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
        """One ``response`` body."""
        return whole.whole(completion, envelope)


RESPONSES: Final = OpenAIResponses()
