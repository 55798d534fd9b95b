"""How an answer goes wrong between the model and the socket; rows of the catalogue.

Each takes a reply and gives one that is spoiled. They aim at kinds of frames (the first
delta, the terminal), so that one fault means the same in all protocols.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from adapters.canonical.record import record
from adapters.simulator.http import MAX_WAIT, chunk_of, head_of
from adapters.simulator.troubles import midstream
from adapters.simulator.voice import Voice
from adapters.simulator.words import Drop, Frame, Raw, Reply, Step, Wait

_MEGABYTE = 1024 * 1024
_BEAT = 0.2
"""Seconds between heartbeats."""
_TEXT = re.compile(rb'("(?:content|delta|text|arguments|partial_json)":\s*")')
"""Where a text begins, in any of the protocols."""
_HTML = b"<!doctype html><html><head><title>502</title></head><body>Bad gateway</body></html>"


@record(frozen=True, slots=True)
class Scene:
    """Where a fault happens: the protocol, and the parameters in its name."""

    voice: Voice
    args: Mapping[str, str]

    @property
    def count(self) -> int:
        """The parameter N."""
        return int(self.args["N"])

    @property
    def seconds(self) -> float:
        """The parameter SECONDS, ten where it is left out."""
        return float(self.args.get("SECONDS", "10"))

    @property
    def ping(self) -> Frame:
        """A heartbeat in the protocol's own form."""
        if self.voice.name == "anthropic-messages":
            return Frame("ping", b'event: ping\ndata: {"type": "ping"}\n\n')
        return Frame("ping", b": keep-alive\n\n")


def _after(reply: Reply, count: int) -> int:
    """The place in the steps behind ``count`` deltas; at the latest, before the terminal."""
    seen = 0
    for place, step in enumerate(reply.steps):
        if isinstance(step, Frame) and step.kind == "delta":
            if seen == count:
                return place
            seen += 1
        elif isinstance(step, Frame) and step.kind == "terminal":
            return place
    return len(reply.steps)


def _break(reply: Reply, count: int, *then: Step) -> Reply:
    """The reply up to ``count`` deltas, then ``then``; of a whole body, half."""
    if reply.stream:
        return replace(reply, steps=(*reply.steps[: _after(reply, count)], *then))
    return replace(reply, steps=(_half(reply), *then), length=len(body_of(reply)))


def body_of(reply: Reply) -> bytes:
    """All bytes of the body, as far as they are frames."""
    return b"".join(step.data for step in reply.steps if isinstance(step, Frame))


def _half(reply: Reply) -> Frame:
    body = body_of(reply)
    return Frame("body", body[: len(body) // 2])


def slow_headers(reply: Reply, scene: Scene) -> Reply:
    """The head comes late."""
    return replace(reply, delay=reply.delay + scene.seconds)


def slow_first_event(reply: Reply, scene: Scene) -> Reply:
    """The head comes, then nothing for a while."""
    return replace(reply, steps=(Wait(scene.seconds), *reply.steps))


def slow_first_token(reply: Reply, scene: Scene) -> Reply:
    """The opening events come, then nothing for a while."""
    if not reply.stream:
        return slow_headers(reply, scene)
    place = _after(reply, 0)
    return replace(reply, steps=(*reply.steps[:place], Wait(scene.seconds), *reply.steps[place:]))


def cut(reply: Reply, scene: Scene) -> Reply:
    """The connection closes in the middle."""
    return _break(reply, scene.count, Drop())


def reset(reply: Reply, scene: Scene) -> Reply:
    """The connection is reset in the middle."""
    return _break(reply, scene.count, Wait(0.05), Drop(reset=True))


def stall(reply: Reply, scene: Scene) -> Reply:
    """Silence in the middle, the connection stays open."""
    return _break(reply, scene.count, Wait(MAX_WAIT))


def heartbeats(reply: Reply, scene: Scene) -> Reply:
    """Heartbeats in the place of content, for ten minutes."""
    count = int(scene.args.get("N", "0"))
    beats: list[Step] = []
    for _ in range(int(MAX_WAIT / _BEAT)):
        beats += (scene.ping, Wait(_BEAT))
    if reply.stream and "N" not in scene.args:
        return replace(reply, steps=tuple(beats))
    return _break(reply, count, *(beats if reply.stream else (Wait(MAX_WAIT),)))


def malformed(reply: Reply, scene: Scene) -> Reply:
    """One event is no JSON; the stream goes on as if nothing were."""
    if not reply.stream:
        return half_json(reply, scene)
    place = min(_after(reply, scene.count), len(reply.steps) - 1)
    broken = edited(reply.steps[place], lambda data: data[: len(data) * 2 // 3].rstrip() + b"\n\n")
    return replace(reply, steps=(*reply.steps[:place], broken, *reply.steps[place + 1 :]))


def invalid_utf8(reply: Reply, scene: Scene) -> Reply:
    """Bytes in a text that are no UTF-8."""
    place = _after(reply, 0) if reply.stream else 0
    broken = edited(
        reply.steps[place],
        lambda data: _TEXT.sub(lambda found: found[1] + b"\xff\xfe", data, count=1),
    )
    return replace(reply, steps=(*reply.steps[:place], broken, *reply.steps[place + 1 :]))


def edited(step: Step, edit: Callable[[bytes], bytes]) -> Step:
    """``step`` with its bytes edited, if it has some."""
    return Frame(step.kind, edit(step.data)) if isinstance(step, Frame) else step


def _without(reply: Reply, kinds: Iterable[str]) -> Reply:
    left = [one for one in reply.steps if not (isinstance(one, Frame) and one.kind in kinds)]
    return replace(reply, steps=tuple(left))


def no_done(reply: Reply, scene: Scene) -> Reply:
    """The last frame is missing: [DONE], message_stop."""
    return _without(reply, ("done",))


def no_terminal(reply: Reply, scene: Scene) -> Reply:
    """The stream ends cleanly, and without a reason."""
    return _without(reply, ("terminal", "usage", "done"))


def two_terminals(reply: Reply, scene: Scene) -> Reply:
    """The ending comes twice."""
    ending = [
        step
        for step in reply.steps
        if isinstance(step, Frame) and step.kind in ("terminal", "usage", "done")
    ]
    return replace(reply, steps=(*reply.steps, *ending))


def delta_after_terminal(reply: Reply, scene: Scene) -> Reply:
    """Content comes after the ending."""
    deltas = [step for step in reply.steps if isinstance(step, Frame) and step.kind == "delta"]
    return replace(reply, steps=(*reply.steps, *deltas[:1]))


def error_midstream(reply: Reply, scene: Scene) -> Reply:
    """An error event in the middle of a stream."""
    place = _after(reply, scene.count) if reply.stream else 0
    sent = [step for step in reply.steps[:place] if isinstance(step, Frame)]
    if not reply.stream:
        return error_under_200(reply, scene)
    return replace(reply, steps=(*reply.steps[:place], *scene.voice.break_off(midstream(), sent)))


def error_first(reply: Reply, scene: Scene) -> Reply:
    """An error event is the first and last of the stream."""
    if not reply.stream:
        return error_under_200(reply, scene)
    return replace(reply, steps=scene.voice.break_off(midstream(), ()))


def error_under_200(reply: Reply, scene: Scene) -> Reply:
    """An error as a JSON body, under status 200."""
    body = scene.voice.error(midstream(), "req_under_200")
    return _instead(reply, "application/json", body)


def _instead(reply: Reply, content_type: str, body: bytes) -> Reply:
    headers = {**reply.headers, "content-type": content_type}
    return replace(reply, headers=headers, steps=(Frame("body", body),), stream=False)


def html_200(reply: Reply, scene: Scene) -> Reply:
    """A proxy's page in the place of an answer."""
    return _instead(reply, "text/html; charset=utf-8", _HTML)


def html_502(reply: Reply, scene: Scene) -> Reply:
    """A proxy's page, with its status."""
    return replace(html_200(reply, scene), status=502)


def redirect(reply: Reply, scene: Scene) -> Reply:
    """A redirection to where a gateway must not go."""
    gone = _instead(reply, "text/plain", b"")
    return replace(
        gone, status=302, headers={**gone.headers, "location": "http://169.254.169.254/"}
    )


def wrong_content_type(reply: Reply, scene: Scene) -> Reply:
    """The right body under a type that it has not."""
    return replace(reply, headers={**reply.headers, "content-type": "text/plain"})


def empty_body(reply: Reply, scene: Scene) -> Reply:
    """Status 200 and nothing."""
    return replace(reply, steps=())


def half_json(reply: Reply, scene: Scene) -> Reply:
    """Half of the JSON, in proper HTTP."""
    return reply if reply.stream else replace(reply, steps=(_half(reply),))


def truncated_body(reply: Reply, scene: Scene) -> Reply:
    """Less of the body than the head promised."""
    return _break(reply, 1, Drop())


def gzip_garbage(reply: Reply, scene: Scene) -> Reply:
    """Bytes that are said to be gzip."""
    return replace(
        reply,
        headers={**reply.headers, "content-encoding": "gzip"},
        steps=(Frame("body", b"\x1f\x8b\x08\x00 this is not deflate" * 4),),
    )


def oversized_event(reply: Reply, scene: Scene) -> Reply:
    """A text of MB megabytes in one event, or in the body."""
    size = int(scene.args.get("MB", "17"))
    place = _after(reply, 0) if reply.stream else 0
    filler = b"x" * (min(size, 64) * _MEGABYTE)
    big = edited(
        reply.steps[place],
        lambda data: _TEXT.sub(lambda found: found[1] + filler, data, count=1),
    )
    return replace(reply, steps=(*reply.steps[:place], big, *reply.steps[place + 1 :]))


def huge_error(reply: Reply, scene: Scene) -> Reply:
    """Status 500 with a body of MB megabytes."""
    size = min(int(scene.args["MB"]), 1024)
    return replace(
        _instead(reply, "application/json", b""),
        status=500,
        steps=(Raw(b"x" * _MEGABYTE, size),),
        length=size * _MEGABYTE,
    )


def loris(reply: Reply, scene: Scene) -> Reply:
    """The head byte by byte, one every half second."""
    steps: list[Step] = []
    for byte in head_of(reply):
        steps += (Raw(bytes([byte])), Wait(0.5))
    return replace(reply, steps=tuple(steps), head=False, stream=False)


def endless_header(reply: Reply, scene: Scene) -> Reply:
    """A head that does not end: a quarter of a gigabyte of header lines."""
    lines = (Raw(b"HTTP/1.1 200 OK\r\n"), Raw(b"x-more: " + b"y" * 1014 + b"\r\n", 256 * 1024))
    return replace(reply, steps=lines, head=False, stream=False)


def reset_before_headers(reply: Reply, scene: Scene) -> Reply:
    """The connection is reset when the request has come."""
    return replace(reply, steps=(Drop(reset=True),), head=False)


def close_before_headers(reply: Reply, scene: Scene) -> Reply:
    """The connection closes when the request has come."""
    return replace(reply, steps=(Drop(),), head=False)


def no_response(reply: Reply, scene: Scene) -> Reply:
    """Nothing at all, on an open connection."""
    return replace(reply, steps=(Wait(MAX_WAIT), Drop()), head=False)


def close_idle(reply: Reply, scene: Scene) -> Reply:
    """A sound answer; then the kept connection closes without a word."""
    if not reply.stream:
        return replace(reply, steps=(*reply.steps, Drop()), length=len(body_of(reply)))
    return replace(reply, steps=(*reply.steps, Raw(b"0\r\n\r\n"), Drop()))


def one_byte_writes(reply: Reply, scene: Scene) -> Reply:
    """Every byte in a write of its own."""
    steps: list[Step] = []
    for step in reply.steps:
        if isinstance(step, Frame):
            data = chunk_of(step.data) if reply.stream else step.data
            for byte in data:
                steps += (Raw(bytes([byte])), Wait(0))
        else:
            steps.append(step)
    size = None if reply.stream else len(body_of(reply))
    return replace(reply, steps=tuple(steps), length=size)


def late_arguments(reply: Reply, scene: Scene) -> Reply:
    """Responses only: a call's arguments stand in its done event alone."""
    left = [
        step
        for step in reply.steps
        if not (isinstance(step, Frame) and b"function_call_arguments.delta" in step.data)
    ]
    return replace(reply, steps=tuple(left))


def changing_ids(reply: Reply, scene: Scene) -> Reply:
    """Every event has other ids for the answer and its items than the one before."""
    steps = [
        edited(step, lambda data, n=number: _other_ids(data, n))  # type: ignore[misc]
        for number, step in enumerate(reply.steps)
    ]
    return replace(reply, steps=tuple(steps))


def _other_ids(data: bytes, number: int) -> bytes:
    return re.sub(
        rb'"(id|item_id)":"((?:chatcmpl|msg|rs|fc|resp)[-_])',
        lambda found: b'"%b":"%b%d' % (found[1], found[2], number),
        data,
    )


def retry_after_200(reply: Reply, scene: Scene) -> Reply:
    """A sound answer that carries ``retry-after``, as Anthropic sends it."""
    return replace(reply, headers={**reply.headers, "retry-after": "30"})


def unknown_events(reply: Reply, scene: Scene) -> Reply:
    """Events that no documentation has, between the others."""
    stranger = Frame("ping", b'event: brand_new\ndata: {"type":"brand_new","value":1}\n\n')
    if scene.voice.name == "openai-chat":
        stranger = Frame("ping", b'data: {"object":"brand.new","choices":[]}\n\n')
    steps: list[Step] = []
    for step in reply.steps:
        if isinstance(step, Frame) and step.kind == "delta":
            steps.append(stranger)
        steps.append(step)
    return replace(reply, steps=tuple(steps)) if reply.stream else reply
