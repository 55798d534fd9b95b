"""One JSON body for an answer of the Messages API that is not streamed.

Same dialect in and out: the provider's own bytes, if nothing had to be changed in them.
"""

from __future__ import annotations

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
    if relayed is None or relayed.dialect != NAME:
        return dumps(_message(completion, envelope))
    body = relayed.json
    own = answer.message_id(completion.id, NAME, envelope.id)
    model = answer.model_name(completion.model, envelope)
    if body.get("id") == own and body.get("model") == model:
        return relayed.data
    return dumps({**body, "id": own, "model": model})


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
