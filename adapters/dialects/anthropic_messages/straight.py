"""An ordinary whole answer, read straight: one block of text that cites nothing.

Most answers that are not streamed are that. Gives what the fold of their events would be
(:mod:`.decode` makes them); a body with anything more to tell is left to it.
"""

from __future__ import annotations

from typing import Any

from adapters.canonical.completion import Completion
from adapters.canonical.events import Finished, Verbatim
from adapters.canonical.parts import NO_EXTRAS, Text
from adapters.dialects.anthropic_messages.stream import MESSAGE_FIELDS, split_extras
from adapters.wire.anthropic_messages import NAME, STOP_REASONS, usage_of

_BARE = {"type", "text"}


def straight(message: Any, verbatim: Verbatim | None) -> Completion | None:
    """The answer that ``message`` is, if it is an ordinary one."""
    try:
        name, model, stop = message["id"], message["model"], message["stop_sequence"]
        (block,) = message["content"]
        text, raw = block["text"], message["stop_reason"]
        reason = STOP_REASONS[raw]
    except (KeyError, TypeError, ValueError):
        return None
    if (
        not (type(name) is type(model) is type(text) is str)
        or not text
        or block.keys() != _BARE
        or block["type"] != "text"
        or message.get("type") == "error"
    ):
        return None
    start, end = NO_EXTRAS, NO_EXTRAS
    if not message.keys() <= MESSAGE_FIELDS:
        start, end = split_extras(message)
    usage = message.get("usage")
    return Completion(
        name,
        model,
        None,
        (Text(text),),
        (0,),
        {},
        usage_of(usage) if isinstance(usage, dict) else None,
        Finished(reason, raw, stop if isinstance(stop, str) else None, end),
        (),
        start,
        verbatim,
        NAME,
    )
