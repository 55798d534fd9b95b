"""Same dialect in and out: the provider's own frames, changed only where the gateway owns a field.

Owned are the response's id, its model by the alias's setting, what concerns our own store, the
dense sequence numbers, and item ids where a provider changes them from event to event. The
ending is held until the answer is settled. A frame in which nothing changes is never written
anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.canonical.events import Verbatim
from adapters.wire.json import dumps
from adapters.wire.openai_responses import optional_text
from adapters.wire.sse import frame
from gateway.northbound.base import Envelope

ENDINGS = frozenset({"response.completed", "response.incomplete"})
FAILURES = frozenset({"error", "response.failed", "response.cancelled"})
"""Written by whoever ends the stream."""
OURS = (
    "background",
    "conversation",
    "instructions",
    "previous_response_id",
    "prompt",
    "store",
)
"""Settings that the caller gave to the gateway. The provider never saw them, or saw ours: its
instructions have the operator's template in them."""


class Relay:
    """The state of one relayed stream. ``next`` is the sequence number of the next frame,
    ``told`` the response object of the ending, once that is written."""

    __slots__ = ("_envelope", "_held", "_ids", "next", "told")

    def __init__(self, envelope: Envelope) -> None:
        self._envelope = envelope
        self._held: tuple[str, dict[str, Any]] | None = None
        self._ids: dict[Any, str] = {}
        self.next = 0
        self.told: Mapping[str, Any] | None = None

    def feed(self, verbatim: Verbatim) -> bytes:
        """The bytes for one of the provider's frames; empty if it is held or not shown."""
        event = verbatim.json
        name = optional_text(event, "type") or verbatim.name
        if name in FAILURES:
            return b""
        if name in ENDINGS:
            self._held = (name, event)
            return b""
        changes = self._changes(event)
        if event.get("type") != name:
            changes["type"] = name
        if not changes and b"\n" not in verbatim.data:
            self.next += 1
            return frame(verbatim.data, name)
        return self._write(name, {**event, **changes})

    def finish(self) -> bytes:
        """The held ending."""
        if self._held is None:
            return b""
        name, event = self._held
        ending = {**event, **self._changes(event)}
        self.told = ending.get("response")
        return self._write(name, ending)

    def _write(self, name: str, event: Mapping[str, Any]) -> bytes:
        self.next += 1
        return frame(dumps(event), name)

    def _changes(self, event: dict[str, Any]) -> dict[str, Any]:
        """The owned fields of ``event`` that differ from what the provider wrote."""
        changes: dict[str, Any] = {}
        if event.get("sequence_number") != self.next:
            changes["sequence_number"] = self.next
        response = event.get("response")
        if isinstance(response, dict):
            changes["response"] = self._response(response)
        if "output_index" in event:
            self._steady(event, changes)
        return changes

    def _steady(self, event: dict[str, Any], changes: dict[str, Any]) -> None:
        """One id an item: the first one that the provider gave."""
        index = event["output_index"]
        item = event.get("item")
        given = item.get("id") if isinstance(item, dict) else event.get("item_id")
        if not isinstance(given, str) or not isinstance(index, int):
            return
        first = self._ids.setdefault(index, given)
        if given == first:
            return
        if isinstance(item, dict):
            changes["item"] = {**item, "id": first}
        else:
            changes["item_id"] = first

    def _response(self, response: dict[str, Any]) -> dict[str, Any]:
        changed = {**response, **owned(response, self._envelope)}
        output = response.get("output")
        if isinstance(output, list):
            changed["output"] = [self._item(n, item) for n, item in enumerate(output)]
        return changed

    def _item(self, index: int, item: Any) -> Any:
        first = self._ids.get(index)
        if first is None or not isinstance(item, dict) or item.get("id", first) == first:
            return item
        return {**item, "id": first}


def owned(response: Mapping[str, Any], envelope: Envelope) -> dict[str, Any]:
    """The fields of a response object that the gateway writes."""
    echo = envelope.style.echo
    fields: dict[str, Any] = {"id": envelope.id}
    if envelope.report_model == "alias" or not response.get("model"):
        fields["model"] = envelope.alias
    for name in OURS:
        if name in echo or name in response:
            fields[name] = echo.get(name, False if name in ("background", "store") else None)
    if isinstance(fields.get("conversation"), str):
        fields["conversation"] = {"id": fields["conversation"]}
    return fields
