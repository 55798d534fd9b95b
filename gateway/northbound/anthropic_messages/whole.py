"""One JSON body for an answer of the Messages API that is not streamed.

Same dialect in and out: the provider's own bytes, if nothing had to be changed in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.canonical.completion import Completion
from adapters.canonical.events import Finished
from adapters.wire.anthropic_messages import NAME
from adapters.wire.json import dumps
from gateway.northbound.anthropic_messages import answer
from gateway.northbound.base import Envelope


def whole(completion: Completion, envelope: Envelope) -> bytes:
    """The body of a ``message``."""
    relayed = completion.verbatim
    if relayed is not None and relayed.dialect == NAME:
        changes = _owned(relayed.json, completion, envelope)
        return relayed.data if not changes else dumps({**relayed.json, **changes})
    return dumps(_message(completion, envelope))


def _owned(body: Mapping[str, Any], completion: Completion, envelope: Envelope) -> dict[str, Any]:
    """The fields of the provider's body that are the gateway's to change, where they differ."""
    own = {
        "id": answer.message_id(completion.id, NAME, envelope.id),
        "model": answer.model_name(completion.model, envelope),
    }
    return {name: value for name, value in own.items() if body.get(name) != value}


def _message(completion: Completion, envelope: Envelope) -> dict[str, Any]:
    terminal = completion.terminal
    finished = terminal if isinstance(terminal, Finished) else Finished("unknown")
    dialect = completion.dialect
    return {
        "id": answer.message_id(completion.id, dialect, envelope.id),
        "type": "message",
        "role": "assistant",
        "model": answer.model_name(completion.model, envelope),
        "content": [
            answer.block(part, own=dialect == NAME)
            for part in completion.parts
            if answer.is_shown(part)
        ],
        **answer.ending(finished, dialect),
        "usage": answer.usage(completion.usage, dialect),
        **answer.own_extras(completion.extras, dialect),
        **answer.own_extras(finished.extras, dialect),
    }
