"""The doors of runs: begin, read, follow, answer, end."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response

from adapters.canonical.faults import Fault
from adapters.wire.json import dumps
from gateway.http.deps import Caller, Gateway, once, state_of
from gateway.http.following import EventStream, Reading, plain_frames
from gateway.http.idempotent import own_key
from gateway.http.kept import Body
from gateway.http.run_views import VIEWS, MakeView, Rest, check_place, view_page
from gateway.northbound.runs.bodies import (
    NewRun,
    parse_answer,
    parse_fork,
    parse_run,
    parse_top_up,
)
from gateway.northbound.runs.queries import Listing, parse_token
from gateway.northbound.runs.shown import (
    event_page,
    run_list,
    run_object,
    task_object,
)
from gateway.northbound.runs.workflow_bodies import (
    NewWorkflow,
    is_workflow,
    parse_workflow_run,
)
from gateway.policy.auth import Principal
from gateway.runs.hub import told_row
from gateway.runs.tail import PAGE, PAGE_BYTES
from gateway.services.runs import Runs
from gateway.services.state import State
from gateway.services.stream_tokens import check_token, make_token
from gateway.store.runs import RunQuery, RunRow

router = APIRouter()

RUN = "x-gateway-run"
"""The header that names the run."""


def _runs(state: Gateway) -> Runs:
    return state.runs


Service = Annotated[Runs, Depends(_runs)]


def _json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(dumps(value), status, headers, media_type="application/json")


def _shown(row: RunRow) -> Response:
    return _json(run_object(row), headers={RUN: row.birth.id})


def _made(row: RunRow, state: State) -> Response:
    headers = {RUN: row.birth.id, "location": _path(state, row.birth.id)}
    return _json(run_object(row), 201, headers)


def _path(state: State, run_id: str) -> str:
    """Where a run is, as callers see it."""
    return f"{state.snapshot.server.root_path.rstrip('/')}/runs/{run_id}"


@router.post("/runs")
async def begin(request: Request, caller: Caller, body: Body, runs: Service) -> Response:
    """Begin a run: 201 and where it is, or with ``stream`` its events from the first on, in the
    words of ``?format=`` if there is one."""
    make = _view(request)
    key = own_key(request.headers.get("idempotency-key"))
    asked: NewRun | NewWorkflow
    row = await runs.begun(caller, key, body)
    if is_workflow(body):
        asked = parse_workflow_run(body)
        row = row or await state_of(request).workflows.create(caller, asked, body, key)
    else:
        asked = parse_run(body)
        row = row or await runs.create(caller, asked, body, key)
    if not asked.stream:
        return _made(row, state_of(request))
    run_id = row.birth.id
    leaves = asked.on_disconnect == "cancel"
    reading = Reading(
        run_id,
        cursor=0,
        frames=plain_frames if make is None else Rest(make(run_id, row.birth.created_at), 0),
        headers={RUN: run_id},
        on_leave=(lambda: runs.cancel(caller, run_id, "disconnect")) if leaves else None,
    )
    return EventStream(state_of(request), reading)


@router.get("/runs")
async def listed(asked: Annotated[Listing, Query()], runs: Service, caller: Caller) -> Response:
    """The project's runs, newest first."""
    query = RunQuery(
        project=caller.project,
        status=asked.status,
        agent=asked.agent,
        parent=asked.parent,
        before=asked.after,
        limit=asked.limit + 1,
    )
    return _json(run_list(await runs.page(query), asked.limit))


@router.get("/runs/{run_id}")
async def read(run_id: str, runs: Service, caller: Caller) -> Response:
    """A run as it stands."""
    return _shown(await runs.get(caller, run_id))


@router.get("/runs/{run_id}/tasks")
async def tasks(run_id: str, runs: Service, caller: Caller) -> Response:
    """One record for each model turn, tool call and node."""
    rows = await runs.tasks(caller, run_id)
    return _json({"object": "list", "data": [task_object(row) for row in rows]})


# events


async def _reader(run_id: str, request: Request, state: Gateway) -> RunRow:
    """The run that the request may follow: by a key, or by a token for this run alone. Either
    way the right is checked before anything is read."""
    token = request.query_params.get("token")
    if token is not None:
        await check_token(state.store, token, run_id, state.runtime.clock.wall())
        once(request)
        return await state.runs.row(run_id, None)
    headers = {name.lower(): value for name, value in request.headers.items()}
    principal: Principal = state.keyring.authenticate(headers, state.runtime.clock.wall())
    once(request)
    return await state.runs.get(principal, run_id)


Followed = Annotated[RunRow, Depends(_reader)]


@router.get("/runs/{run_id}/events")
async def events(request: Request, state: Gateway, row: Followed) -> Response:
    """The events after the reader's place: a stream that follows the run, or a page of JSON."""
    make = _view(request)
    if make is not None:
        return await _projected(request, state, row, make)
    cursor = _cursor(request, row)
    if _wants_page(request):
        return await _page(state, row, cursor)
    if cursor == row.standing.last_seq and row.standing.ended_at is not None:
        return Response(status_code=204)  # which tells a browser not to come back
    return EventStream(state, Reading(row.birth.id, cursor, headers={RUN: row.birth.id}))


def _view(request: Request) -> MakeView | None:
    """The vocabulary that the reader wants, if not the run's own."""
    word = request.query_params.get("format")
    if word is None:
        return None
    make = VIEWS.get(word)
    if make is None:
        raise Fault("bad_request", f"format is one of {', '.join(VIEWS)}.", param="format")
    return make


async def _projected(request: Request, state: State, row: RunRow, make: MakeView) -> Response:
    """The run in another vocabulary; the reader's place counts that one's frames."""
    run_id, created, got = row.birth.id, row.birth.created_at, _seen(request)
    if _wants_page(request):
        bodies, last = await view_page(state.store, run_id, make(run_id, created), got)
        page = event_page(bodies, ended=last and row.standing.ended_at is not None)
        return Response(page, media_type="application/json")
    if got:
        whole = await check_place(state.store, run_id, make(run_id, created), got)
        if whole and row.standing.ended_at is not None:
            return Response(status_code=204)
    return EventStream(state, Reading(run_id, 0, Rest(make(run_id, created), got), {RUN: run_id}))


def _wants_page(request: Request) -> bool:
    """Whether JSON is asked for, and no stream beside it."""
    accepted = request.headers.get("accept", "")
    return "application/json" in accepted and "text/event-stream" not in accepted


def _seen(request: Request) -> int:
    """How many events the reader has: the larger of the header's and the query's.

    :raises Fault: ``bad_request`` for what is no number.
    """
    header = request.headers.get("last-event-id") or None
    query = request.query_params.get("starting_after")
    return max((_place(text) for text in (header, query) if text is not None), default=0)


async def _page(state: State, row: RunRow, cursor: int) -> Response:
    rows = await state.store.run_events(row.birth.id, cursor, PAGE, max_bytes=PAGE_BYTES)
    last = rows[-1].seq if rows else cursor
    ended = row.standing.ended_at is not None and last >= row.standing.last_seq
    page = event_page([told_row(one).body for one in rows], ended=ended)
    return Response(page, media_type="application/json")


def _cursor(request: Request, row: RunRow) -> int:
    """The reader's place in the run.

    :raises Fault: ``bad_request`` for one that is none, or lies ahead of the run.
    """
    cursor = _seen(request)
    if cursor > row.standing.last_seq:
        text = f"The run has {row.standing.last_seq} events; event {cursor} is not there yet."
        raise Fault("bad_request", text, param="starting_after")
    return cursor


def _place(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        text = "Last-Event-ID and starting_after are the number of the last event that you have."
        raise Fault("bad_request", text, param="starting_after")
    return int(text)


@router.post("/runs/{run_id}/stream-tokens", status_code=201)
async def stream_token(
    run_id: str, runs: Service, state: Gateway, caller: Caller, body: Body
) -> Response:
    """A token for ``EventSource``: this run's events, to read, for some minutes."""
    seconds = parse_token(body)
    await runs.get(caller, run_id)
    token, until = await make_token(state.store, run_id, state.runtime.clock.wall(), seconds)
    path = f"{_path(state, run_id)}/events?token={token}"
    return _json({"token": token, "expires_at": until, "path": path}, 201)


# commands


@router.post("/runs/{run_id}/cancel")
async def cancel(run_id: str, runs: Service, caller: Caller) -> Response:
    """End it: kindly, then for good. Doing it twice is doing it once."""
    return _shown(await runs.cancel(caller, run_id))


@router.post("/runs/{run_id}/pause")
async def pause(run_id: str, runs: Service, caller: Caller) -> Response:
    """Pause it at the border of the step under way."""
    return _shown(await runs.pause(caller, run_id))


@router.post("/runs/{run_id}/resume")
async def resume(run_id: str, runs: Service, caller: Caller) -> Response:
    """Let it go on."""
    return _shown(await runs.resume(caller, run_id))


@router.post("/runs/{run_id}/interrupts/{interrupt_id}")
async def interrupt(
    run_id: str, interrupt_id: str, caller: Caller, body: Body, runs: Service
) -> Response:
    """Answer a question of the run. The first answer wins, the same again is fine."""
    return _shown(await runs.answer(caller, run_id, interrupt_id, parse_answer(body)))


@router.post("/runs/{run_id}/budget")
async def budget(
    request: Request, run_id: str, caller: Caller, body: Body, runs: Service
) -> Response:
    """Add to its budget."""
    key = request.headers.get("idempotency-key")
    return _shown(await runs.top_up(caller, run_id, parse_top_up(body), key))


@router.post("/runs/{run_id}/fork")
async def fork(
    request: Request,
    run_id: str,
    caller: Caller,
    body: Body,
    runs: Service,
    place: Annotated[int, Query(alias="from", ge=1, le=2**63 - 1)],
) -> Response:
    """Begin a new run that branches off this one after an event, with something changed."""
    key = request.headers.get("idempotency-key")
    row = await runs.fork(caller, run_id, place, parse_fork(body), key)
    return _made(row, state_of(request))


@router.delete("/runs/{run_id}")
async def delete(run_id: str, runs: Service, caller: Caller) -> Response:
    """Delete it, once it has ended."""
    await runs.delete(caller, run_id)
    return _json({"id": run_id, "object": "run.deleted", "deleted": True})
