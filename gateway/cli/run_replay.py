"""``gateway runs replay RUN``: plays a run's tape offline, and says whether it holds."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from gateway.cli.exits import Exit
from gateway.cli.output import out, painted, say
from gateway.cli.run_books import add_run, with_ledger
from gateway.cli.timeline import TONES, line

if TYPE_CHECKING:
    from gateway.runs.events import Event
    from gateway.runs.ledger import Ledger


def add(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """``replay RUN``."""
    parser = actions.add_parser(
        "replay",
        help="play a run again, offline",
        description=(
            "Play a run again without provider and tools: what they said is on the tape, and what "
            "was decided is decided again. Says where the two differ; then the exit code is 1."
        ),
    )
    add_run(parser)
    parser.add_argument("--quiet", action="store_true", help="say only whether it holds")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the timeline and the verdict."""
    from gateway.runs.bench import schema_check
    from gateway.runs.rewind import replay
    from gateway.structured.check import Schemas

    events = with_ledger(args, lambda ledger: _tape(ledger, args.run_id))
    for event in () if args.quiet else events:
        shown = line(event.shown(), events[0].at)
        if shown is not None:
            out(painted(shown, TONES.get(event.type)))
    difference = replay(events, schema_check(Schemas()))
    if difference is not None:
        say(f"The tape does not hold: {difference}.")
        return Exit.FAILED
    say(f"The tape holds: the same {len(events)} events.")
    return Exit.OK


async def _tape(ledger: Ledger, run_id: str) -> list[Event]:
    from gateway.runs.ledger import Lost

    events = await ledger.read(run_id, 0)
    if not events:
        raise Lost(run_id)
    return events
