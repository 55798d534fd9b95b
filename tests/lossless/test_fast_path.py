"""Text that passes as bytes gives its caller, and the books, what the full path gives.

The pump is the real one; in place of the socket a script hands it the stream in pieces. Every
stream is cut at every byte once, and into many pieces of random size.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from unittest.mock import Mock, patch

import pytest

from adapters.adapter import Adapter, Way
from adapters.canonical.events import Event, Failed, TextRun
from adapters.canonical.faults import Fault
from adapters.canonical.stage import Pipe
from adapters.registry import DIALECTS
from adapters.wire.call import Timeouts, WireCall
from gateway.flow.gate import Gate
from gateway.flow.meter import Meter
from gateway.northbound.anthropic_messages import MESSAGES
from gateway.northbound.base import Envelope, Northbound, Style
from gateway.northbound.openai_chat import CHAT
from tests.lossless.playing import Case, golden, recorded

NORTH: Mapping[str, Northbound] = {"openai-chat": CHAT, "anthropic-messages": MESSAGES}
TIMEOUTS = Timeouts(5, 5, 5, 5)


class Script:
    """An exchange whose body comes in the given pieces."""

    status = 200
    headers: Mapping[str, str] = {"content-type": "text/event-stream"}
    sent_at = headers_at = 0.0

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = iter(pieces)
        self.moved = 0

    def __enter__(self) -> Script:
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    async def start(self) -> None:
        pass

    async def pour(self, take: Callable[[bytes], bool]) -> bool:
        return any(not take(piece) for piece in self._pieces)

    def progress(self) -> None:
        self.moved += 1

    def pause(self) -> None:
        pass

    resume = finish = close = whole = pause


class Bytes:
    """A prompt sink as the gateway's, which keeps the bytes. ``runs`` counts what came undecoded,
    ``straight`` what even the pipe and the encoder did not see."""

    def __init__(self, north: Northbound, envelope: Envelope, *, slow: bool) -> None:
        self.encoder = north.encoder(envelope)
        self.data = b""
        self.runs = self.straight = 0
        self._slow = slow
        self._passed = False

    async def send(self, events: list[Event]) -> None:
        raise AssertionError("a prompt sink is offered events")

    def offer(self, events: list[Event]) -> bool:
        self.runs += sum(isinstance(event, TextRun) for event in events)
        data = self.encoder.feed(events)
        self._passed = isinstance(events[0], TextRun) and events[0].data is data
        self.data += data
        return not self._slow

    def passed(self) -> bool:
        return self._passed

    def pass_on(self, data: bytes) -> bool:
        self.straight += 1
        self.data += data
        return not self._slow

    async def catch_up(self) -> None:
        pass


@dataclass(frozen=True)
class Told:
    """What a caller got and what the books know; ``moved`` how often the time-outs moved on,
    where every frame came by itself."""

    data: bytes
    terminal: str
    output_bytes: int
    usage: Any
    model: str | None
    moved: int = 0


async def told(
    dialect: str, pieces: list[bytes], *, skims: bool, slow: bool = False, **style: Any
) -> tuple[Told, Bytes]:
    alias = style.pop("report_model", "upstream")
    by_frame = style.pop("by_frame", False)
    envelope = Envelope("id-ours", 1, "alias", Style(**style), alias)
    sink = Bytes(NORTH[dialect], envelope, slow=slow)
    meter = Meter(lambda: 0.0)
    script = Script(pieces)
    decoder = DIALECTS[dialect].decoder(verbatim=True, skims=skims)
    with patch("adapters.adapter.provider.Exchange", lambda *_: script):
        pumped = await Adapter(DIALECTS[dialect], Mock()).pump(
            WireCall("/go", b"{}", stream=True),
            Way(decoder, Pipe([meter, Gate(hold_all=False)]), sink),
            TIMEOUTS,
        )
    terminal = pumped.terminal
    if isinstance(terminal, Failed):
        terminal = Failed(Fault(terminal.fault.kind, terminal.fault.message))
    data = sink.data + sink.encoder.finish(terminal)
    shown = terminal.fault.kind if isinstance(terminal, Failed) else repr(terminal)
    moved = script.moved if by_frame else 0
    return Told(data, shown, meter.output_bytes, meter.usage, meter.model, moved), sink


def frames(data: bytes) -> list[bytes]:
    return re.findall(rb".*?\n\r?\n|.+", data, re.DOTALL)


def cuts(data: bytes) -> Iterator[list[bytes]]:
    """Whole; in two at every byte, or at a few hundred of a long stream; in many pieces; by
    frame, as it comes from a provider that thinks."""
    yield [data]
    yield frames(data)
    for at in range(1, len(data), 1 + len(data) // 400):
        yield [data[:at], data[at:]]
    rng = random.Random(8)
    for size in (1, 7, 60, 400):
        pieces, at = [], 0
        while at < len(data):
            step = rng.randint(1, size)
            pieces.append(data[at : at + step])
            at += step
        yield pieces


def chat(**fields: Any) -> bytes:
    """One chat chunk."""
    outer = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    outer.update(fields.pop("outer", {}))
    choice = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": None, **fields}
    body = json.dumps({**outer, "choices": [choice]}, separators=(",", ":"), ensure_ascii=False)
    return b"data: " + body.encode() + b"\n\n"


def say(*texts: str) -> bytes:
    return b"".join(chat(delta={"content": text}) for text in texts)


def marked(frames: bytes, **fields: str) -> bytes:
    """``frames`` with fields around their choices."""
    more = "".join(f'"{name}":"{value}",' for name, value in fields.items())
    return frames.replace(b'"choices"', more.encode() + b'"choices"')


OPEN = chat(delta={"role": "assistant", "content": ""})
STOP = chat(finish_reason="stop")
USED = (
    b'data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],'
    b'"usage":{"prompt_tokens":3,"completion_tokens":9,"total_tokens":12}}\n\n'
)
DONE = b"data: [DONE]\n\n"
END = STOP + USED + DONE
TALK = say("one", " two", " three", " four", " five", " six")
CALLED = {"index": 0, "id": "call_1", "type": "function"}
CALL = chat(delta={"tool_calls": [{**CALLED, "function": {"name": "f", "arguments": "{}"}}]})
HALVES = say("XX", "YY").replace(b"XX", b"\xe2\x82").replace(b"YY", b"\xac")

CHAT_STREAMS: Mapping[str, bytes] = {
    "plain": OPEN + TALK + END,
    "escapes": OPEN + TALK + say('a "quote"', "a\nline", "back\\slash", "end") + TALK + END,
    "unicode": OPEN + say("日本", "語", "é", "🙂 ok") + TALK + END,
    "escaped-unicode": OPEN + TALK + say("X", "X").replace(b"X", b"\\u00e9\\ud83d\\ude42") + END,
    "empty-texts": OPEN + TALK + say("", "", "more", "") + END,
    "only-empty-after": OPEN + TALK + say("", "", "") + END,
    "call-after-text": OPEN + TALK + CALL + say("after", " the", " call", " more") + END,
    "another-fingerprint": (
        OPEN + TALK + TALK.replace(b'"model":"m"', b'"model":"m","system_fingerprint":"fp"') + END
    ),
    "fingerprint-and-back": (
        OPEN + marked(TALK, system_fingerprint="A")
        + marked(say("\n"), system_fingerprint="B", service_tier="t")
        + marked(TALK, system_fingerprint="A") + END
    ),
    "model-changes": OPEN + TALK + TALK.replace(b'"model":"m"', b'"model":"n"') + END,
    "id-changes": OPEN + TALK + TALK.replace(b'"c1"', b'"c2"') + END,
    "spaced": (OPEN + TALK + END).replace(b'":', b'": ').replace(b"data: {", b"data:  {"),
    "filler": b"".join(
        frame.replace(b'"model":"m"', b'"model":"m","obfuscation":"%d"' % (n * 7919))
        for n, frame in enumerate((OPEN + TALK + END).splitlines(keepends=True))
    ),
    "two-choices": OPEN + b"".join(
        chat(index=n % 2, delta={"content": f"t{n}"}) for n in range(12)
    ) + STOP + chat(index=1, finish_reason="stop") + DONE,
    "crlf": (OPEN + TALK + END).replace(b"\n", b"\r\n"),
    "comments": OPEN + TALK.replace(b"\n\n", b"\n\n: ping\n\n") + END,
    "text-after-reason": OPEN + TALK + STOP + TALK + USED + DONE,
    "usage-in-the-middle": OPEN + TALK + USED + TALK + END,
    "cut": OPEN + TALK,
    "error": OPEN + TALK + b'data: {"error":{"message":"over","code":"overloaded"}}\n\n' + TALK,
    "no-json": OPEN + TALK + b"data: {nope}\n\n" + TALK + END,
    "bad-utf8": OPEN + TALK + HALVES + END,
    "raw-control": OPEN + TALK + say("XX").replace(b"XX", b"a\tb") + TALK + END,
    "raw-quote": OPEN + TALK + say("XX").replace(b"XX", b'a","x":"b') + TALK + END,
    "lone-backslash": OPEN + TALK + say("XX").replace(b"XX", b"a\\") + TALK + END,
    "frame-within": OPEN + TALK + say("XX").replace(b"XX", TALK[:90]) + TALK + END,
    "duplicate-key": OPEN + TALK.replace(b'"content":', b'"content":"no","content":') + END,
    "mark": OPEN + say("~text~", "~text~", "~text~") + TALK + END,
    "no-id": (OPEN + TALK + END).replace(b'"id":"c1",', b""),
}  # fmt: skip


def event(name: str, **fields: Any) -> bytes:
    """One Messages event."""
    body = json.dumps({"type": name, **fields}, separators=(",", ":"), ensure_ascii=False)
    return f"event: {name}\ndata: {body}\n\n".encode()


def write(*texts: str, index: int = 0) -> bytes:
    return b"".join(
        event("content_block_delta", index=index, delta={"type": "text_delta", "text": text})
        for text in texts
    )


def block(index: int) -> bytes:
    return event("content_block_start", index=index, content_block={"type": "text", "text": ""})


BEGIN = event(
    "message_start",
    message={
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": None, "stop_sequence": None,
        "usage": {"input_tokens": 3, "output_tokens": 1},
    },
)  # fmt: skip
CLOSE = event("content_block_stop", index=0)
REASON = event(
    "message_delta",
    delta={"stop_reason": "end_turn", "stop_sequence": None},
    usage={"output_tokens": 9},
)
FINISH = REASON + event("message_stop")
OVER = event("error", error={"type": "overloaded_error", "message": "x"})
NAME = b"event: content_block_delta\n"
WORDS = write("one", " two", " three", " four", " five", " six")

MESSAGES_STREAMS: Mapping[str, bytes] = {
    "plain": BEGIN + block(0) + WORDS + CLOSE + FINISH,
    "escapes": BEGIN + block(0) + WORDS + write('a "b"', "\n", "c") + WORDS + CLOSE + FINISH,
    "pings": BEGIN + block(0) + WORDS.replace(b"\n\n", b"\n\n" + event("ping")) + CLOSE + FINISH,
    "two-blocks": (
        BEGIN + block(0) + WORDS + CLOSE + block(1) + write("a", "b", "c", "d", index=1)
        + event("content_block_stop", index=1) + FINISH
    ),
    "after-the-block": BEGIN + block(0) + WORDS + CLOSE + WORDS + FINISH,
    "after-the-reason": BEGIN + block(0) + WORDS + REASON + WORDS + FINISH,
    "error": BEGIN + block(0) + WORDS + OVER + WORDS,
    "cut": BEGIN + block(0) + WORDS,
    "no-names": (BEGIN + block(0) + WORDS + CLOSE + FINISH).replace(NAME, b""),
}  # fmt: skip

CASES = [
    *(("openai-chat", f"chat-{name}", data) for name, data in CHAT_STREAMS.items()),
    *(("anthropic-messages", f"msg-{name}", data) for name, data in MESSAGES_STREAMS.items()),
]


async def same(dialect: str, data: bytes, **style: Any) -> tuple[int, int]:
    """Compare both paths over all cuts; how often text came undecoded, and went straight on."""
    runs = straight = 0
    full, _ = await told(dialect, [data], skims=False, **style)
    for number, pieces in enumerate(cuts(data)):
        fast, sink = await told(dialect, pieces, skims=True, slow=number % 3 == 0, **style)
        assert fast == full, pieces[:2]
        runs += sink.runs
        straight += sink.straight
    alone = [
        (await told(dialect, frames(data), skims=skims, by_frame=True, **style))[0].moved
        for skims in (False, True)
    ]
    assert alone[0] == alone[1], "silence is told from speech alike"
    return runs, straight


@pytest.mark.parametrize(("dialect", "name", "data"), CASES, ids=[name for _, name, _ in CASES])
async def test_own_streams(dialect: str, name: str, data: bytes) -> None:
    runs, straight = await same(dialect, data)
    if name.endswith(("plain", "escapes", "unicode", "model-changes", "two-blocks")):
        assert runs > 100, "the fast path was not taken"
        assert straight > 2


@pytest.mark.parametrize(
    "style", [{"report_model": "alias"}, {"include_usage": True}, {"legacy_calls": True}], ids=str
)
async def test_what_the_caller_asked_for(style: Mapping[str, Any]) -> None:
    for name in ("plain", "escapes", "escaped-unicode", "id-changes", "call-after-text"):
        await same("openai-chat", CHAT_STREAMS[name], **style)
    if "report_model" in style:
        await same("anthropic-messages", MESSAGES_STREAMS["plain"], **style)


def streams(cases: Iterator[Case]) -> list[Case]:
    return [case for case in cases if case.stream and case.dialect in NORTH]


@pytest.mark.parametrize("case", streams(golden()), ids=lambda case: case.name)
async def test_golden_streams(case: Case) -> None:
    await same(case.dialect, case.answer)


@pytest.mark.parametrize("case", streams(recorded()), ids=lambda case: case.name)
async def test_recorded_streams(case: Case) -> None:
    full, _ = await told(case.dialect, [case.answer], skims=False)
    for pieces in list(cuts(case.answer))[:: 1 + len(case.answer) // 4000]:
        fast, _ = await told(case.dialect, pieces, skims=True)
        assert fast == full
