"""The Messages API, southbound: ``DIALECT`` is all that other rooms use.

Schemas for structured output are projected by :func:`.schema.project`; token counts are asked
for with :func:`.encode.encode_count`.
"""

from __future__ import annotations

from collections.abc import Mapping

from adapters.canonical.faults import Fault
from adapters.canonical.parts import Dialect as DialectName
from adapters.dialects.anthropic_messages.decode import MessagesDecoder
from adapters.dialects.anthropic_messages.encode import encode, encode_count
from adapters.dialects.anthropic_messages.errors import error
from adapters.dialects.anthropic_messages.fields import FIELDS
from adapters.dialects.anthropic_messages.schema import Projection, Unprojectable, project
from adapters.dialects.base import Dialect, Field
from adapters.wire.anthropic_messages import NAME

__all__ = ["DIALECT", "FIELDS", "Projection", "Unprojectable", "encode_count", "project"]


class _Messages:
    """The protocol as one value; see :class:`adapters.dialects.base.Dialect`."""

    __slots__ = ()

    name: DialectName = NAME
    FIELDS: Mapping[str, Field] = FIELDS

    encode = staticmethod(encode)
    decoder = MessagesDecoder

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> Fault:
        """The fault behind an answer with an error status."""
        return error(status, headers, body)

    def auth(self, api_key: str) -> Mapping[str, str]:
        """The key goes in ``x-api-key``."""
        return {"x-api-key": api_key}


DIALECT: Dialect = _Messages()
