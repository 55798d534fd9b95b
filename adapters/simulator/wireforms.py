"""Answers in an odd form: other line ends and cuts, which are right, and token counts that lie.

Rows of the catalogue, as :mod:`adapters.simulator.wirefaults`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

from adapters.simulator.wirefaults import Scene, body_of, edited
from adapters.simulator.words import Frame, Reply
from adapters.wire.json import dumps, loads_exact

_USAGE = re.compile(rb'("(?:input|output|prompt|completion|total)_tokens":\s*)\d+')
_INPUT = re.compile(rb'("input_tokens":)\d+')
_BEFORE_OUTPUT = re.compile(rb'"input_tokens":\d+,.*?(?="output_tokens")')


def _every(reply: Reply, edit: Callable[[bytes], bytes]) -> Reply:
    return replace(reply, steps=tuple(edited(step, edit) for step in reply.steps))


def usage_negative(reply: Reply, scene: Scene) -> Reply:
    """Token counts below zero."""
    return _every(reply, lambda data: _USAGE.sub(rb"\g<1>-1000000", data))


def usage_huge(reply: Reply, scene: Scene) -> Reply:
    """Token counts beyond all reason."""
    return _every(reply, lambda data: _USAGE.sub(rb"\g<1>99999999999999999999", data))


def usage_text(reply: Reply, scene: Scene) -> Reply:
    """Token counts as strings."""
    return _every(reply, lambda data: _USAGE.sub(rb'\g<1>"12"', data))


def usage_fraction(reply: Reply, scene: Scene) -> Reply:
    """Token counts with a fraction."""
    return _every(reply, lambda data: _USAGE.sub(rb"\g<1>12.5", data))


def usage_late(reply: Reply, scene: Scene) -> Reply:
    """Messages only: no input tokens at the start, the true number at the end."""
    return replace(
        reply,
        steps=tuple(
            edited(step, lambda data: _INPUT.sub(rb"\g<1>0", data))
            if isinstance(step, Frame) and step.kind == "open"
            else step
            for step in reply.steps
        ),
    )


def usage_short(reply: Reply, scene: Scene) -> Reply:
    """Messages only: the end tells the output tokens alone."""
    return replace(
        reply,
        steps=tuple(
            edited(step, lambda data: _BEFORE_OUTPUT.sub(b"", data))
            if isinstance(step, Frame) and step.kind == "terminal"
            else step
            for step in reply.steps
        ),
    )


def azure_chunk(reply: Reply, scene: Scene) -> Reply:
    """Chat only: a first chunk without id, model and choices, as Azure sends it."""
    if not reply.stream or scene.voice.name != "openai-chat":
        return reply
    first = Frame(
        "open",
        b'data: {"choices":[],"created":0,"id":"","model":"","object":"chat.completion.chunk",'
        b'"prompt_filter_results":[{"prompt_index":0,"content_filter_results":{}}]}\n\n',
    )
    return replace(reply, steps=(first, *reply.steps))


def reversed_data(reply: Reply, scene: Scene) -> Reply:
    """Embeddings only: the vectors in the opposite order, each with its index."""

    def turn(data: bytes) -> bytes:
        body = loads_exact(data)
        if isinstance(body.get("data"), list):
            body["data"].reverse()
        return dumps(body)

    return reply if reply.stream else _every(reply, turn)


def sse_crlf(reply: Reply, scene: Scene) -> Reply:
    """Lines that end with CR LF."""
    return _every(reply, lambda data: data.replace(b"\n", b"\r\n")) if reply.stream else reply


def sse_cr(reply: Reply, scene: Scene) -> Reply:
    """Lines that end with CR alone."""
    return _every(reply, lambda data: data.replace(b"\n", b"\r")) if reply.stream else reply


def sse_no_space(reply: Reply, scene: Scene) -> Reply:
    """No blank after the colon."""
    if not reply.stream:
        return reply
    return _every(reply, lambda data: data.replace(b"data: ", b"data:").replace(b"nt: ", b"nt:"))


def sse_comments(reply: Reply, scene: Scene) -> Reply:
    """Comments, ``retry:`` and ``id:`` lines between the events, and an event without data."""
    noise = b": PROCESSING\n\nretry: 3000\nid: 7\n\nevent: nothing\n\n"
    return _every(reply, lambda data: noise + data) if reply.stream else reply


def sse_bom(reply: Reply, scene: Scene) -> Reply:
    """A byte order mark in front."""
    if not reply.stream or not reply.steps:
        return reply
    first = edited(reply.steps[0], lambda data: b"\xef\xbb\xbf" + data)
    return replace(reply, steps=(first, *reply.steps[1:]))


def sse_no_last_blank(reply: Reply, scene: Scene) -> Reply:
    """The last event lacks the blank line that would complete it."""
    if not reply.stream:
        return reply
    return replace(
        reply, steps=(*reply.steps[:-1], edited(reply.steps[-1], lambda data: data[:-1]))
    )


def sse_split(reply: Reply, scene: Scene) -> Reply:
    """Writes that end in the middle of events, and of characters."""
    if not reply.stream:
        return reply
    data = body_of(reply)
    cuts = [0, *range(7, len(data), 61), len(data)]
    return replace(reply, steps=tuple(Frame("delta", data[a:b]) for a, b in pairwise(cuts)))
