"""A run's events in other vocabularies: the frames of each, from the reader's place on.

A projection is fed from the run's first event, whatever the reader has seen: what it has is left
out by its number, so that a reader that comes back has each frame exactly once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from adapters.wire.json import loads
from gateway.http.following import Frames
from gateway.northbound.base import Envelope
from gateway.northbound.openai_responses import RESPONSES
from gateway.northbound.runs.answer import RunAnswer
from gateway.northbound.runs.workflow_events import WorkflowEvents, frames
from gateway.runs.hub import Told


def workflow_events(run_id: str, created: float, seen: int) -> Frames:
    """The seven workflow events; frames count from 1."""
    view, count = WorkflowEvents(), 0

    def write(page: list[Told]) -> bytes:
        nonlocal count
        told = [one for event in page for one in view.feed(loads(event.body))]
        first, count = count + 1, count + len(told)
        left = max(0, seen + 1 - first)
        return frames(told[left:], first + left)

    return write


def openai(run_id: str, created: float, seen: int) -> Frames:
    """Responses events; frames count from 1, each one's ``sequence_number`` plus one."""
    view = RunAnswer(steps=True)
    response = f"resp_{run_id.removeprefix('run_')}"
    encoder = RESPONSES.encoder(Envelope(response, int(created), run_id, report_model="alias"))
    count = 0

    def write(page: list[Told]) -> bytes:
        nonlocal count
        data = b""
        for event in page:
            data += encoder.feed(view.feed(loads(event.body)))
            if view.terminal is not None:
                data += encoder.finish(view.terminal)
        out = []
        for frame in data.split(b"\n\n")[:-1]:
            count += 1
            if count > seen:
                out.append(b"id: %d\n%s\n\n" % (count, frame))
        return b"".join(out)

    return write


VIEWS: Mapping[str, Callable[[str, float, int], Frames]] = {
    "workflow-events": workflow_events,
    "openai": openai,
}
"""What ``?format=`` may say."""
