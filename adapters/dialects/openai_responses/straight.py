"""An ordinary whole answer, read straight: one message that says one text and nothing else.

Most answers that are not streamed are that. Gives what the fold of their events would be
(:mod:`.stream` makes them); a body with anything more to tell is left to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.canonical.completion import Completion
from adapters.canonical.events import Finished, Verbatim
from adapters.canonical.parts import NO_EXTRAS, Text
from adapters.wire.openai_responses import AROUND, DIALECT, item_extras, rest, usage_of

TOLD = frozenset({"id", "object", "created_at", "model", "output", "usage", "status"})
"""Fields of a response that have a canonical word; the others are extras."""

_ITEM = {"type", "id", "status", "role", "content"}
_PART = {"type", "text", "annotations", "logprobs"}
_NOTHING: tuple[Any, ...] = (None, [])


def straight(response: Mapping[str, Any], verbatim: Verbatim | None) -> Completion | None:
    """The answer that ``response`` is, if it is an ordinary one."""
    try:
        (item,) = response["output"]
        (part,) = item["content"]
        name, model, text = response["id"], response["model"], part["text"]
    except (KeyError, TypeError, ValueError):
        return None
    if (
        not (type(name) is type(model) is type(text) is str)
        or not text
        or response.get("status") != "completed"
        or item.get("type") != "message"
        or item.get("role", "assistant") != "assistant"
        or part.get("type") != "output_text"
        or part.get("annotations") not in _NOTHING
        or part.get("logprobs")
        or not part.keys() <= _PART
    ):
        return None
    created = response.get("created_at")
    extras = NO_EXTRAS if response.keys() <= TOLD else rest(response, *TOLD)
    bare = item.keys() == _ITEM
    around = {AROUND: {"id": item["id"]}} if bare else item_extras(item, NO_EXTRAS)
    return Completion(
        name,
        model,
        int(created) if isinstance(created, int | float) else None,
        (Text(text, (), around),),
        (0,),
        {},
        usage_of(response.get("usage")),
        Finished("stop", "completed", None, extras),
        (),
        extras,
        verbatim,
        DIALECT,
    )
