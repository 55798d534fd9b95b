"""Reasoning of chat servers, whichever of the fields they use for it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from adapters.canonical.completion import Completion, fold
from adapters.canonical.parts import Thinking
from adapters.dialects.openai_chat import DIALECT
from adapters.wire.sse import Frame

DETAIL = {"type": "reasoning.text", "text": "I think.", "index": 0}


def streamed(*deltas: dict[str, Any]) -> Completion:
    decoder = DIALECT.decoder()
    events = []
    for delta in (*deltas, {"content": "So."}):
        choice = {"index": 0, "delta": delta, "finish_reason": None}
        chunk = {"id": "c", "model": "m", "choices": [choice]}
        events += decoder.feed(Frame("", json.dumps(chunk).encode()))
    end = {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    return fold([*events, *decoder.feed(Frame("", json.dumps(end).encode())), *decoder.close()])


@pytest.mark.parametrize(
    "fields",
    [
        {"reasoning_content": "I think."},
        {"reasoning": "I think."},
        {"reasoning_content": "I think.", "reasoning": "I think."},
        {"reasoning": "I think.", "reasoning_details": [DETAIL]},
        {"reasoning_content": "I think.", "reasoning": "I think.", "reasoning_details": [DETAIL]},
        {"reasoning_details": [DETAIL]},
    ],
    ids=" ".join,
)
def test_it_is_told_once(fields: dict[str, Any]) -> None:
    """Servers that send two of the fields send the same text twice."""
    thought, said = streamed(fields).parts
    assert isinstance(thought, Thinking)
    assert thought.text == "I think."
    assert getattr(said, "text", None) == "So."


def test_details_come_in_fragments() -> None:
    """Texts are joined; of other fields the last word counts, and ``null`` is none."""
    thought, _ = streamed(
        {"reasoning_details": [{**DETAIL, "signature": None}]},
        {"reasoning_details": [{**DETAIL, "text": " And more.", "signature": "signed"}]},
        {"reasoning_details": [{**DETAIL, "text": None, "signature": None}]},
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "sealed", "index": 0}]},
    ).parts
    assert isinstance(thought, Thinking)
    assert thought.text == "I think. And more."
    assert thought.extras["reasoning_details"] == [
        {**DETAIL, "text": "I think. And more.", "signature": "signed"},
        {"type": "reasoning.encrypted", "data": "sealed", "index": 0},
    ]
