"""Same dialect in and out: the provider's own frames, changed only where the gateway owns a field.

Owned are the message's id (if the provider gave none), the model's name (by the alias's
setting) and the end itself: from the frame that names the ``stop_reason`` on, frames are held
until the answer is settled. A frame in which nothing changes is never written anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.canonical.events import TextRun, Verbatim
from adapters.wire.json import dumps
from adapters.wire.plain import Retold
from adapters.wire.sse import frame
from gateway.northbound.anthropic_messages import answer
from gateway.northbound.base import Envelope

STOP = frame(b'{"type":"message_stop"}', "message_stop")


class Relay:
    """The state of one relayed stream."""

    __slots__ = ("_envelope", "_held", "_runs", "_stopped")

    def __init__(self, envelope: Envelope) -> None:
        self._envelope = envelope
        self._held: list[bytes] = []
        self._runs = Retold()
        self._stopped = False

    def feed(self, verbatim: Verbatim) -> bytes:
        """The bytes for one of the provider's frames; empty if it is held or not shown."""
        event = verbatim.json
        kind = event.get("type")
        if kind == "error":
            return b""  # Errors are written by whoever ends the stream.
        written = self._write(verbatim, event)
        if self._held or _ends(event):
            self._held.append(written)
            self._stopped = self._stopped or kind == "message_stop"
            return b""
        return written

    def run(self, run: TextRun) -> bytes | None:
        """The bytes for plain deltas of text; ``None`` if they have to come frame by frame."""
        return None if self._held else self._runs.write(run, self.feed)

    def _write(self, verbatim: Verbatim, event: Mapping[str, Any]) -> bytes:
        changed = self._owned(event)
        name = str(event.get("type", verbatim.name))
        if changed is None and b"\n" not in verbatim.data:
            return frame(verbatim.data, name)
        return frame(dumps(changed if changed is not None else event), name)

    def _owned(self, event: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """``event`` with the gateway's fields put right, or ``None`` where they are."""
        if event.get("type") != "message_start":
            return None
        message = event["message"]
        own = {
            "id": answer.message_id(message.get("id"), "anthropic-messages", self._envelope.id),
            "model": answer.model_name(message.get("model"), self._envelope),
        }
        if all(message.get(name) == value for name, value in own.items()):
            return None
        return {**event, "message": {**message, **own}}

    def finish(self) -> bytes:
        """The held ending."""
        return b"".join(self._held) + (b"" if self._stopped else STOP)


def _ends(event: Mapping[str, Any]) -> bool:
    """Whether ``event`` tells the caller why the answer ended."""
    delta = event.get("delta")
    if event.get("type") == "message_stop":
        return True
    return (
        event.get("type") == "message_delta"
        and isinstance(delta, Mapping)
        and delta.get("stop_reason") is not None
    )
