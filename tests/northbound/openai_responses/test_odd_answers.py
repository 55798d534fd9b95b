"""What was kept of a provider that does not keep to the protocol: told as far as it goes, else
refused by name; never an accident of ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from adapters.canonical.faults import Fault
from gateway.northbound.base import Asked
from gateway.northbound.openai_responses.kept import ODD_ITEM, continued
from gateway.northbound.openai_responses.replay import NO_STREAM, replayed

GO_ON = {"type": "message", "role": "user", "content": "go on"}
SAID = {
    "type": "message",
    "id": "msg_1",
    "status": "completed",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Hello.", "annotations": []}],
}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}


def without(item: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key != name}


NEITHER = [
    without(SAID, "content"),
    {**SAID, "content": [5]},
    {**SAID, "content": [{"text": "no type"}]},
    {**SAID, "content": [{"type": "output_text"}]},
    {**SAID, "type": ["message"]},
    {"type": "function_call", "id": "fc_1", "call_id": "c"},
]
"""Items that can neither be told in pieces nor be continued."""


@pytest.mark.parametrize(
    "item",
    [
        *NEITHER,
        without(SAID, "role"),
        {**SAID, "role": "nobody"},
        {**SAID, "role": []},
        {**SAID, "type": None},
        {**THOUGHT, "encrypted_content": "x", "summary": [{"type": "summary_text"}]},
        {**THOUGHT, "encrypted_content": "x", "summary": None},
    ],
)
def test_an_odd_item_is_not_continued(parse: Callable[..., Asked], item: dict[str, Any]) -> None:
    assert continued(parse(), [SAID, THOUGHT], [GO_ON]).request.messages
    with pytest.raises(Fault) as caught:
        continued(parse(), [item], [GO_ON])
    assert (caught.value.kind, caught.value.message) == ("bad_request", ODD_ITEM)


@pytest.mark.parametrize(
    "response",
    [
        *({"status": "completed", "output": [item]} for item in NEITHER),
        {"status": "completed", "output": [without(SAID, "id")]},
        {"status": "completed", "output": [without(SAID, "type")]},
        {"status": "completed", "output": [{**THOUGHT, "summary": [{}]}]},
        {"output": [SAID]},
    ],
)
def test_an_odd_answer_is_told_as_a_whole_only(response: dict[str, Any]) -> None:
    assert replayed({"status": "completed", "output": [SAID, THOUGHT]})
    with pytest.raises(Fault) as caught:
        replayed(response)
    assert (caught.value.kind, caught.value.message) == ("bad_request", NO_STREAM)
