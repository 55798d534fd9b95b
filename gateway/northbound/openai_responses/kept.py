"""Items as the gateway keeps them, and requests that go on from kept ones.

What is kept is what the caller gave or was told; its dressing for the listings (an id, a status,
content as a list) is put on when it is shown, so that a continued request is read from the very
items of the first one. Must not know where they are kept.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from adapters.canonical.faults import Fault
from adapters.wire.openai_responses import CALL_FIELD, Malformed
from gateway.northbound.base import DEFAULT_LIMITS, Asked, Limits
from gateway.northbound.openai_responses.items import ItemReader

Json = Mapping[str, Any]

REFERENCE = "item_reference"

ODD_ITEM = (
    "What this request continues holds an item that does not follow the Responses protocol: the "
    "provider wrote it so. Send the conversation as input, without that item."
)

PREFIXES: Mapping[str, str] = {
    "message": "msg_",
    "reasoning": "rs_",
    "function_call": "fc_",
    "function_call_output": "fco_",
    "custom_tool_call": "ctc_",
    "custom_tool_call_output": "ctco_",
}
"""How ids begin, by the item's type."""

_WITH_STATUS = frozenset(PREFIXES) - {"reasoning"}


def kind_of(item: Json) -> str:
    """The item's type; one without is a message."""
    return str(item.get("type") or "message")


def prefix(item: Json) -> str:
    """How an id for ``item`` begins."""
    return PREFIXES.get(kind_of(item), "item_")


def listed(item_id: str, item: Json) -> dict[str, Any]:
    """A kept item as the listings show it."""
    kind = kind_of(item)
    shown: dict[str, Any] = {"id": item_id, "type": kind}
    if kind in _WITH_STATUS:
        shown["status"] = "completed"
    shown |= {name: value for name, value in item.items() if value is not None}
    shown["id"] = item_id
    if kind == "message" and isinstance(item.get("content"), str):
        shown["content"] = [_text(item)]
    return shown


def _text(message: Json) -> dict[str, Any]:
    text = {"text": message["content"]}
    if message["role"] == "assistant":
        return {"type": "output_text", **text, "annotations": [], "logprobs": []}
    return {"type": "input_text", **text}


def usable(items: Sequence[Json]) -> list[Json]:
    """The items that can be continued: a tool call that was cut was never asked for."""
    return [
        item
        for item in items
        if not (kind_of(item) in CALL_FIELD and item.get("status") == "incomplete")
    ]


def resolved(
    items: Sequence[Json], known: Mapping[str, Json], earlier: Collection[str]
) -> list[Json]:
    """``items`` with each reference replaced by the item that it names.

    :param earlier: ids of items that are continued anyway; a reference to one adds nothing.
    :raises Fault: ``not_found`` for an unknown id, in the words that OpenAI's clients know.
    """
    found: list[Json] = []
    for number, item in enumerate(items):
        if kind_of(item) != REFERENCE:
            found.append(item)
        elif item["id"] in known:
            found.append(known[item["id"]])
        elif item["id"] not in earlier:
            raise Fault(
                "not_found",
                f"input[{number}]: no item of this id is kept. Items of responses with "
                "`store: false` are not; send the item itself.",
                param=f"input[{number}].id",
            )
    return found


def _check_number(items: int, limits: Limits) -> None:
    if items > limits.messages:
        raise Fault(
            "bad_request",
            f"Together with what it continues, input has more than {limits.messages} items. "
            "Begin a new response with a summary.",
            param="input",
        )


def continued(
    asked: Asked, earlier: Sequence[Json], items: Sequence[Json], limits: Limits = DEFAULT_LIMITS
) -> Asked:
    """``asked`` after ``earlier`` items.

    :param items: the request's own, references resolved.
    :raises Fault: ``bad_request`` where the two don't fit together, or are too many; and for a
        kept item that no item of the protocol looks like, as a provider may have written it.
    """
    reader = ItemReader()
    try:
        before = usable(earlier)
        _check_number(len(before) + len(items), limits)
        messages = reader.read(items, before)
    except (AttributeError, KeyError, TypeError, Malformed):
        raise Fault("bad_request", ODD_ITEM, param="input") from None
    reader.check_calls(remembered=False)
    if not messages:
        raise Fault("bad_request", "input: there is nothing to answer yet.", param="input")
    return replace(
        asked,
        request=replace(asked.request, messages=messages),
        dropped=tuple(dict.fromkeys((*asked.dropped, *reader.dropped))),
    )
