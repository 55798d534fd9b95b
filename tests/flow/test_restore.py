"""The stage that puts values back: every part of an answer, every cut, and nothing of the rest."""

from __future__ import annotations

import json
from itertools import combinations
from typing import Any

import pytest

from adapters.canonical import grammar
from adapters.canonical.completion import Completion, fold, unfold
from adapters.canonical.events import (
    ArgumentsDelta,
    Event,
    Finished,
    OpaqueEvent,
    PartAnnotated,
    PartEnded,
    PartStarted,
    Started,
    TextDelta,
    ThinkingDelta,
    Verbatim,
)
from adapters.canonical.faults import Fault
from adapters.canonical.parts import Opaque, Refusal, Text, Thinking, ToolCall
from adapters.canonical.request import JsonObject, Request
from gateway.flow.restore import Restore
from gateway.policy.redaction.masking import Masking, Piece
from gateway.policy.redaction.scan import Scanner

MAIL = "bob@acme.com"
KEY = '-----BEGIN PRIVATE KEY-----\n"MII\\E"\n-----END PRIVATE KEY-----'


def masking() -> Masking:
    found = Masking(Scanner(), reversible=True)
    assert found.texts([Piece(f"{MAIL} {KEY}")]) == ["<EMAIL_1> <SECRET_1>"]
    return found


def request(**fields: Any) -> Request:
    return Request(model="m", messages=(), origin="openai-chat", **fields)


def restored(events: list[Event], **fields: Any) -> list[Event]:
    stage = Restore(masking(), request(**fields))
    out = [new for event in events for new in stage.feed([event])]
    grammar.check(out)
    return out


MASKED = Completion(
    id="x",
    model="m",
    parts=(
        Thinking("Is <EMAIL_1>, is <EMAIL_1>.", summary=("Is <EMAIL_1>, ", "is <EMAIL_1>.")),
        Text("Write to <EMAIL_1>", citations=({"cited_text": "<EMAIL_1>"},)),
        Refusal("Not <EMAIL_1>!"),
        ToolCall("c", "send", '{"to": "<EMAIL_1>", "key": "<SECRET_1>"}'),
        ToolCall("d", "note", "plain <SECRET_1>", kind="custom"),
        Opaque("openai-chat", "search", {"q": ["<EMAIL_1>"]}),
    ),
    choices=(0,) * 6,
    terminal=Finished("stop_sequence", stop="<EMAIL_1>"),
)  # fmt: skip


def cut(events: list[Event], size: int) -> list[Event]:
    """The same answer in deltas of ``size`` characters."""
    out: list[Event] = []
    for event in events:
        if not isinstance(event, TextDelta | ThinkingDelta | ArgumentsDelta):
            out.append(event)
            continue
        for start in range(0, len(event.text), size):
            piece = event.text[start : start + size]
            if isinstance(event, ThinkingDelta):
                out.append(ThinkingDelta(event.index, piece, event.section))
            else:
                out.append(type(event)(event.index, piece))
    return out


@pytest.mark.parametrize("size", [1, 2, 3, 5, 9, 1000])
def test_every_part_at_every_size(size: int) -> None:
    answer = fold(restored(cut(list(unfold(MASKED)), size)))
    thinking, text, refusal, call, custom, opaque = answer.parts
    assert thinking == Thinking(f"Is {MAIL}, is {MAIL}.", summary=(f"Is {MAIL}, ", f"is {MAIL}."))
    assert text == Text(f"Write to {MAIL}", citations=({"cited_text": MAIL},))
    assert refusal == Refusal(f"Not {MAIL}!")
    assert isinstance(call, ToolCall)
    assert json.loads(call.arguments) == {"to": MAIL, "key": KEY}
    assert custom == ToolCall("d", "note", f"plain {KEY}", kind="custom")
    assert opaque == Opaque("openai-chat", "search", {"q": [MAIL]})
    assert answer.terminal == Finished("stop_sequence", stop=MAIL)


def test_text_that_is_json_is_escaped_as_json() -> None:
    events: list[Event] = [
        Started("x", "m"),
        PartStarted(0, Text("")),
        TextDelta(0, '{"key": "<SECR'),
        TextDelta(0, 'ET_1>"}'),
        PartEnded(0),
        Finished("stop"),
    ]
    assert json.loads(fold(restored(events, output=JsonObject())).text) == {"key": KEY}


def test_what_is_decided_is_not_held_back() -> None:
    stage = Restore(masking(), request())
    stage.feed([Started("x", "m"), PartStarted(0, Text(""))])
    assert stage.feed([TextDelta(0, "Hello <EMA")]) == [TextDelta(0, "Hello ")]
    assert stage.feed([TextDelta(0, "IL_2 no")]) == [TextDelta(0, "<EMAIL_2 no")]


def test_two_parts_at_once_keep_their_ends_apart() -> None:
    first, second = "<EMAIL_1>", "<EMAIL_1>!"
    for a, b in combinations(range(1, len(first)), 2):
        events: list[Event] = [
            Started("x", "m"),
            PartStarted(0, Text("")),
            PartStarted(1, Text("")),
            TextDelta(0, first[:a]),
            TextDelta(1, second[:b]),
            TextDelta(0, first[a:]),
            TextDelta(1, second[b:]),
            PartEnded(1),
            PartEnded(0),
            Finished("stop"),
        ]
        assert [part.text for part in fold(restored(events)).parts] == [MAIL, MAIL + "!"]  # type: ignore[union-attr]


def test_an_end_that_never_became_a_placeholder_still_comes() -> None:
    events: list[Event] = [
        Started("x", "m"),
        PartStarted(0, Text("")),
        TextDelta(0, "a <EMAIL"),
        PartEnded(0),
        Finished("length"),
    ]
    assert fold(restored(events)).text == "a <EMAIL"


def test_the_provider_s_own_bytes_are_dropped_and_seals_are_kept() -> None:
    events: list[Event] = [
        Verbatim("openai-chat", "x", b"<EMAIL_1>", {}),
        Started("x", "m"),
        OpaqueEvent("openai-chat", "note", {"text": "<EMAIL_1>"}),
        PartStarted(0, Thinking("")),
        PartAnnotated(0, "signature", "<EMAIL_1>"),
        PartEnded(0),
        Finished("stop"),
    ]
    out = restored(events)
    assert not any(isinstance(event, Verbatim) for event in out)
    assert OpaqueEvent("openai-chat", "note", {"text": MAIL}) in out
    assert PartAnnotated(0, "signature", "<EMAIL_1>") in out


def test_a_failure_ends_the_answer() -> None:
    stage = Restore(masking(), request())
    with pytest.raises(Fault, match="could not be put back") as caught:
        stage.feed([TextDelta(0, None)])  # type: ignore[arg-type]
    assert (caught.value.kind, caught.value.code) == ("internal", "redaction_failed")
