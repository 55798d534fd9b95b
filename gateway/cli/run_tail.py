"""``gateway runs tail RUN``: a run's timeline, from the books or from a gateway's URL."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

from gateway.cli.exits import CommandError, Exit
from gateway.cli.numbers import count
from gateway.cli.output import out, painted, say
from gateway.cli.run_books import add_run, with_ledger
from gateway.cli.timeline import TONES, line

if TYPE_CHECKING:
    from gateway.runs.ledger import Ledger

EXAMPLES = """\
Ends with the run. A lost connection is made again; nothing is told twice.

examples:
  gateway runs tail run_4f0c…
  GATEWAY_KEY=sk-… gateway runs tail run_4f0c… --url https://gateway.example.com
  gateway runs tail run_4f0c… --json | jq .type
"""

LOOK_EVERY = 0.3
"""Seconds between looks into the books."""
PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Seconds before a connection is made again; the last one counts from then on."""
ENDED = 204
PASSING = frozenset({408, 425, 429})
"""Refusals that another try may not meet; all others below 500 stay."""

Told = Callable[[dict[str, Any]], None]


def add(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """``tail RUN``."""
    parser = actions.add_parser(
        "tail",
        help="follow a run's timeline",
        description="Show what happens in a run, and follow it to its end.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_run(parser)
    parser.add_argument("--url", help="follow it over HTTP, with $GATEWAY_KEY (from the books)")
    parser.add_argument(
        "--after", type=count, default=0, metavar="SEQ", help="begin after this event"
    )
    parser.add_argument("--json", action="store_true", help="print the events as they are")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print a line an event."""
    teller = _Teller(args.json)
    if args.url is not None:
        import asyncio

        asyncio.run(follow_url(args.url, args.run_id, args.after, teller.tell))
    else:
        with_ledger(args, lambda ledger: follow_books(ledger, args.run_id, args.after, teller.tell))
    return Exit.OK


class _Teller:
    """Prints events; the first one says when the run began."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._began: float | None = None

    def tell(self, event: dict[str, Any]) -> None:
        if self._began is None:
            self._began = event["at"]
        if self._as_json:
            out(json.dumps(event))
        elif (shown := line(event, self._began)) is not None:
            out(painted(shown, TONES.get(event["type"])))


async def follow_books(ledger: Ledger, run_id: str, after: int, tell: Told) -> None:
    """Read the events as they are written, to the run's end."""
    import asyncio

    from gateway.runs.ledger import Lost

    row = await ledger.store.run(run_id)
    if row is None or row.swept:
        raise Lost(run_id)
    if after > row.standing.last_seq:
        raise CommandError(f"The run has {row.standing.last_seq} events, and {after} is not there.")
    while row is not None and (row.standing.ended_at is None or after < row.standing.last_seq):
        for event in await ledger.read(run_id, after):
            after = event.seq
            tell(event.shown())
            if event.terminal:
                return
        await asyncio.sleep(LOOK_EVERY)
        row = await ledger.store.run(run_id)


async def follow_url(url: str, run_id: str, after: int, tell: Told) -> None:
    """Follow the event stream to the run's end, connecting again as often as it takes.

    :raises CommandError: the gateway refuses, or there can be none at this URL.
    """
    import asyncio

    import httpx

    place = after
    tries = 0

    def told(event: dict[str, Any]) -> None:
        nonlocal place, tries
        place, tries = event["seq"], 0
        tell(event)

    key = os.environ.get("GATEWAY_KEY", "")
    if not key:
        raise CommandError("Put the key of the run's project into GATEWAY_KEY.", Exit.USAGE)
    timeout, headers = httpx.Timeout(10.0, read=60.0), {"authorization": f"Bearer {key}"}
    try:
        async with httpx.AsyncClient(base_url=url, timeout=timeout, headers=headers) as client:
            while True:
                try:
                    if await _stream(client, run_id, lambda: place, told):
                        return
                except (httpx.NetworkError, httpx.TimeoutException, httpx.RemoteProtocolError,
                        httpx.HTTPStatusError) as error:  # fmt: skip
                    say(f"The connection was lost ({type(error).__name__}); trying again.")
                await asyncio.sleep(PAUSES[min(tries, len(PAUSES) - 1)])
                tries += 1
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise CommandError(f"{url} can't be called: {error}", Exit.USAGE) from None


async def _stream(client: Any, run_id: str, place: Callable[[], int], tell: Told) -> bool:
    """One connection; whether the run has ended with it."""
    from gateway.runs.events import TERMINAL

    headers = {"last-event-id": str(place())}
    async with client.stream("GET", f"/runs/{run_id}/events", headers=headers) as reply:
        if reply.status_code == ENDED:
            return True
        if 400 <= reply.status_code < 500 and reply.status_code not in PASSING:
            raise CommandError(_refusal(await reply.aread(), reply.status_code))
        reply.raise_for_status()
        async for event in _events(reply.aiter_bytes()):
            tell(event)
            if event["type"] in TERMINAL:
                return True
    return False


def _refusal(body: bytes, status: int) -> str:
    """The gateway's own words, or what somebody before it has said."""
    try:
        return str(json.loads(body)["error"]["message"])
    except (ValueError, LookupError, TypeError):
        return f"The answer is {status}, and not from a gateway."


async def _events(chunks: AsyncIterator[bytes]) -> AsyncIterator[dict[str, Any]]:
    """The JSON of each server-sent event; a broken last one is not told. Lines end at a newline
    alone: a text may hold characters that others take for line ends."""
    rest = b""
    async for chunk in chunks:
        *frames, rest = (rest + chunk).split(b"\n\n")
        for frame in frames:
            _, found, data = frame.partition(b"data: ")
            if found:
                yield json.loads(data)
