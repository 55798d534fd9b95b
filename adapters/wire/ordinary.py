"""Ordinary requests: one plain text a message, and how long and how freely to answer.

Most calls are that. Every protocol has a place for all of it, so that there is nothing to name
and nothing to refuse, and an encoder writes it in one step. Must not know any protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from adapters.canonical.parts import NO_EXTRAS
from adapters.canonical.request import Request
from adapters.wire.places import plain_text

SELDOM: Mapping[str, object] = {
    "instructions": (),
    "tools": None,
    "tool_choice": None,
    "parallel_tools": None,
    "output": None,
    "reasoning": None,
    "cache": None,
    "prompt": None,
    "metadata": None,
    "end_user": None,
    "safety_identifier": None,
    "service_tier": None,
    "verbosity": None,
    "store": None,
    "truncate": None,
    "stream": False,
    "extras": NO_EXTRAS,
    "headers": NO_EXTRAS,
}
SELDOM_DRAWN: Mapping[str, object] = {
    "top_k": None,
    "stop": (),
    "seed": None,
    "frequency_penalty": None,
    "presence_penalty": None,
    "logit_bias": None,
    "logprobs": None,
    "top_logprobs": None,
    "n": None,
}
"""What such a request says nothing of, and how that looks."""

_said, _UNSAID = attrgetter(*SELDOM), tuple(SELDOM.values())
_drawn, _UNDRAWN = attrgetter(*SELDOM_DRAWN), tuple(SELDOM_DRAWN.values())
_ROLES = frozenset({"system", "user", "assistant"})

Json = dict[str, Any]


def ordinary(request: Request) -> tuple[list[Json], Json] | None:
    """``role`` and ``content`` of each message, and ``temperature`` and ``top_p`` where they were
    given; ``None`` if the request is no ordinary one. Its output limit is the encoder's matter."""
    sampling = request.sampling
    if _said(request) != _UNSAID or _drawn(sampling) != _UNDRAWN:
        return None
    turns: list[Json] = []
    for message in request.messages:
        text = plain_text(message)
        if text is None or message.role not in _ROLES:
            return None
        turns.append({"role": message.role, "content": text})
    drawn: Json = {}
    if sampling.temperature is not None:
        drawn["temperature"] = sampling.temperature
    if sampling.top_p is not None:
        drawn["top_p"] = sampling.top_p
    return turns, drawn
