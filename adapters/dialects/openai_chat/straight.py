"""An ordinary whole answer, read straight: one choice that says a text and nothing else.

Most answers that are not streamed are that. Gives what the fold of their events would be
(:mod:`.stream` makes them); a body with anything more to tell is left to it.
"""

from __future__ import annotations

from typing import Any

from adapters.canonical.completion import Completion
from adapters.canonical.events import Finished, Verbatim
from adapters.canonical.parts import NO_EXTRAS, Text
from adapters.dialects.openai_chat.choice import AROUND, KNOWN
from adapters.wire.openai_chat import DIALECT, FINISH_REASONS, read_usage

OUTER = frozenset({"id", "object", "created", "model", "choices", "usage", "obfuscation", "error"})
"""Fields around the choices that are read or mean nothing; others travel as extras."""

_TYPES = (str, str, str, int, int)
_BARE = {"role", "content"}
_MORE = tuple(sorted(KNOWN - {"role", "name", "content"}))
"""What a message may say beside its text; empty values say nothing."""


def straight(body: Any, verbatim: Verbatim | None) -> Completion | None:
    """The answer that ``body`` is, if it is an ordinary one."""
    try:
        name, model, created = body["id"], body["model"], body["created"]
        (choice,) = body["choices"]
        number, message, raw = choice["index"], choice["message"], choice["finish_reason"]
        text, reason = message["content"], FINISH_REASONS[raw]
    except (KeyError, TypeError, ValueError):
        return None
    if (
        (type(name), type(model), type(text), type(created), type(number)) != _TYPES
        or not (name and model and text and created > 0 == number)
        or (message.keys() != _BARE and _says_more(message))
        or not choice.keys() <= AROUND
        or choice.get("logprobs")
        or "error" in body
        or body.get("object") == "error"
    ):
        return None
    return Completion(
        name,
        model,
        created,
        (Text(text),),
        (0,),
        {},
        read_usage(body.get("usage")),
        Finished(reason, raw),
        (),
        NO_EXTRAS if body.keys() <= OUTER else {n: v for n, v in body.items() if n not in OUTER},
        verbatim,
        DIALECT,
    )


def _says_more(message: dict[str, Any]) -> bool:
    return not message.keys() <= KNOWN or any(map(message.get, _MORE))
