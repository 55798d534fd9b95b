"""A run's events in other vocabularies, from the reader's place on.

A projection is fed from the run's first event, whatever the reader has seen: what it has is left
out by its number, so that a reader that comes back has each frame exactly once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from adapters.canonical.faults import Fault
from adapters.wire.json import loads
from gateway.northbound.base import Envelope
from gateway.northbound.openai_responses import RESPONSES
from gateway.northbound.runs.answer import RunAnswer
from gateway.northbound.runs.workflow_events import WorkflowEvents, frames
from gateway.runs.hub import Told, told_row
from gateway.runs.tail import PAGE
from gateway.store.base import Store

View = Callable[[list[Told]], list[bytes]]
"""Fed every event of a run in order, from the first: the frames that each page makes."""


def workflow_events(run_id: str, created: float) -> View:
    """The seven workflow events; frames count from 1."""
    view, count = WorkflowEvents(), 0

    def write(page: list[Told]) -> list[bytes]:
        nonlocal count
        told = [one for event in page for one in view.feed(loads(event.body))]
        first, count = count + 1, count + len(told)
        return [frames([one], number) for number, one in enumerate(told, first)]

    return write


def openai(run_id: str, created: float) -> View:
    """Responses events; frames count from 1, each one's ``sequence_number`` plus one."""
    view = RunAnswer(steps=True)
    response = f"resp_{run_id.removeprefix('run_')}"
    encoder = RESPONSES.encoder(Envelope(response, int(created), run_id, report_model="alias"))
    count = 0

    def write(page: list[Told]) -> list[bytes]:
        nonlocal count
        data = b""
        for event in page:
            data += encoder.feed(view.feed(loads(event.body)))
            if view.terminal is not None:
                data += encoder.finish(view.terminal)
        told = data.split(b"\n\n")[:-1]
        first, count = count + 1, count + len(told)
        return [b"id: %d\n%s\n\n" % (number, frame) for number, frame in enumerate(told, first)]

    return write


MakeView = Callable[[str, float], View]
"""A fresh view of a run, by its id and the Unix time of its beginning."""

VIEWS: Mapping[str, MakeView] = {
    "workflow-events": workflow_events,
    "openai": openai,
}
"""What ``?format=`` may say."""


class Rest:
    """The frames of a view that its reader has not got yet.

    :param got: how many it has.
    """

    __slots__ = ("_got", "_view", "count")

    def __init__(self, view: View, got: int) -> None:
        self._view = view
        self._got = got
        self.count = 0

    def __call__(self, page: list[Told]) -> bytes:
        """What to write for a page of events."""
        made = self._view(page)
        first, self.count = self.count, self.count + len(made)
        return b"".join(made[max(0, self._got - first) :])


async def check_place(store: Store, run_id: str, view: View, got: int) -> bool:
    """Whether a reader that has ``got`` frames has all that there are by now.

    :param view: a fresh one, which is used up.
    :raises Fault: ``bad_request`` for one that has more.
    """
    told, after = Rest(view, 0), 0
    while rows := await store.run_events(run_id, after, PAGE):
        told([told_row(row) for row in rows])
        after = rows[-1].seq
    _check_ahead(got, told.count)
    return got == told.count


def _check_ahead(got: int, count: int) -> None:
    if got > count:
        text = f"There are {count} events in this form; number {got} is not there yet."
        raise Fault("bad_request", text, param="starting_after")


async def view_page(store: Store, run_id: str, view: View, got: int) -> tuple[list[bytes], bool]:
    """The next frames' JSON for a reader that has ``got``, at most :data:`PAGE`; and whether that
    is all that there is by now.

    :param view: a fresh one, which is used up.
    :raises Fault: ``bad_request`` for a place that is not there yet.
    """
    bodies: list[bytes] = []
    count = after = 0
    while len(bodies) <= PAGE and (rows := await store.run_events(run_id, after, PAGE)):
        made = view([told_row(row) for row in rows])
        bodies += [
            frame.partition(b"\ndata: ")[2].rstrip() for frame in made[max(0, got - count) :]
        ]
        count, after = count + len(made), rows[-1].seq
    _check_ahead(got, count)
    return bodies[:PAGE], len(bodies) <= PAGE
