"""The OpenAI Responses protocol, southbound.

``encode`` writes requests (``items`` and ``tools`` are its parts, ``notes`` what it reports),
``stream`` reads frames and bodies, ``straight`` an ordinary body in one step, ``decode`` turns
items into parts, ``errors`` reads failures. The JSON shapes themselves stand in
:mod:`adapters.wire.openai_responses`.
"""

from __future__ import annotations

from collections.abc import Mapping

from adapters.canonical.faults import Fault
from adapters.canonical.parts import Dialect as DialectName
from adapters.dialects import base
from adapters.dialects.openai_responses import encode, errors
from adapters.dialects.openai_responses.fields import FIELDS
from adapters.dialects.openai_responses.stream import ResponsesDecoder


class ResponsesDialect:
    """See :class:`adapters.dialects.base.Dialect`."""

    __slots__ = ()

    name: DialectName = "openai-responses"
    FIELDS: Mapping[str, base.Field] = FIELDS

    encode = staticmethod(encode.encode)

    def decoder(self, *, verbatim: bool = False, skims: bool = False) -> ResponsesDecoder:
        return ResponsesDecoder(verbatim=verbatim)

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> Fault:
        return errors.of_status(status, headers, body)

    def auth(self, api_key: str) -> Mapping[str, str]:
        return {"authorization": f"Bearer {api_key}"}


DIALECT: base.Dialect = ResponsesDialect()
