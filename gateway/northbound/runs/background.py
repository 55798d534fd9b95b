"""A run of kind ``call`` as a background response: its ledger in the words of Responses. Pure.

The same events give the same frames with the same numbers, however often and from wherever they
are read: so ``starting_after`` finds its place in every reading.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from adapters.canonical.events import Failed
from adapters.wire.json import loads
from gateway.northbound.base import Envelope, Style
from gateway.northbound.openai_responses import RESPONSES
from gateway.northbound.openai_responses.resource import Answer
from gateway.northbound.runs.call_answer import CallAnswer

RUN, RESPONSE = "run_", "resp_"
"""How the ids of a run and of the response that it makes begin; the rest is the same."""

WAITING = {"queued": "queued"}
"""Statuses of a run that a response calls otherwise than ``in_progress``."""


def run_id_of(response_id: str) -> str | None:
    """The run behind a response, if there is one."""
    return RUN + response_id[len(RESPONSE) :] if response_id.startswith(RESPONSE) else None


def response_id_of(run_id: str) -> str:
    """The response that a run makes."""
    return RESPONSE + run_id.removeprefix(RUN)


def envelope_of(run_id: str, created: float, outside: Mapping[str, Any]) -> Envelope:
    """The outside of the answer, from what was kept of it when the run began."""
    return Envelope(
        id=response_id_of(run_id),
        created=int(created),
        alias=outside["alias"],
        style=Style(echo=outside["echo"]),
        report_model=outside["report_model"],
    )


class BackgroundFrames:
    """Feed it every event of the run, from the first on.

    ``told`` is the whole response, once the run has ended.
    """

    def __init__(self, envelope: Envelope) -> None:
        self.told: Mapping[str, Any] | None = None
        self._view = CallAnswer()
        self._at = float(envelope.created)
        # It was complete when its last event was written, not when somebody reads that.
        self._encoder = RESPONSES.encoder(replace(envelope, wall=lambda: self._at))

    def feed(self, bodies: Iterable[bytes]) -> list[bytes]:
        """The frames for events, given as their envelopes' JSON; each with its blank line."""
        data = b""
        for body in bodies:
            event = loads(body)
            self._at = event["at"]
            data += self._encoder.feed(self._view.feed(event))
            if self._view.terminal is not None:
                data += self._end()
        return [frame + b"\n\n" for frame in data.split(b"\n\n")[:-1]]

    def _end(self) -> bytes:
        terminal = self._view.terminal
        assert terminal is not None
        data = self._encoder.finish(terminal)
        self.told = self._encoder.told
        if isinstance(terminal, Failed) and terminal.fault.kind == "cancelled":
            # There is no event of the API that says so: the stream fails, the object is cancelled.
            self.told = {**(self.told or {}), "status": "cancelled", "error": None}
        return data


def unfinished(envelope: Envelope, status: str) -> dict[str, Any]:
    """The response while its run goes on.

    :param status: the run's.
    """
    return Answer.of(envelope).resource(WAITING.get(status, "in_progress"), [])
