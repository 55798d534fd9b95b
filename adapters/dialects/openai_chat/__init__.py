"""OpenAI's Chat Completions protocol, southbound: any server that speaks it.

``encode`` writes requests (``messages`` and ``tools`` are its parts, ``notes`` what it reports),
``stream`` reads frames and bodies, ``straight`` an ordinary body in one step, ``choice`` turns one
choice's deltas into events, ``errors`` reads failures. What both sides of the gateway share stands
in :mod:`adapters.wire.openai_chat`.
"""

from __future__ import annotations

from collections.abc import Mapping

from adapters.canonical.faults import Fault
from adapters.canonical.parts import Dialect as DialectName
from adapters.dialects import base
from adapters.dialects.openai_chat import encode, errors
from adapters.dialects.openai_chat.fields import FIELDS
from adapters.dialects.openai_chat.stream import ChatDecoder


class ChatDialect:
    """See :class:`adapters.dialects.base.Dialect`."""

    __slots__ = ()

    name: DialectName = "openai-chat"
    FIELDS: Mapping[str, base.Field] = FIELDS

    encode = staticmethod(encode.encode)
    decoder = ChatDecoder

    def error(self, status: int, headers: Mapping[str, str], body: bytes) -> Fault:
        return errors.of_status(status, headers, body)

    def auth(self, api_key: str) -> Mapping[str, str]:
        return {"authorization": f"Bearer {api_key}"}


DIALECT: base.Dialect = ChatDialect()
