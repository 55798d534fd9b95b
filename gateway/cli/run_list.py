"""``gateway runs list`` and ``gateway runs show RUN``."""

from __future__ import annotations

import argparse
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from gateway.cli.books import add_store
from gateway.cli.exits import CommandError, Exit
from gateway.cli.numbers import count
from gateway.cli.output import out, say, show
from gateway.cli.periods import shown as moment
from gateway.cli.run_books import add_run, with_ledger
from gateway.runs.status import STATUSES
from gateway.settings.money import dollars

if TYPE_CHECKING:
    from gateway.runs.ledger import Ledger
    from gateway.store.runs import RunRow

COLUMNS = ("id", "agent", "status", "waiting_for", "turns", "tokens", "cost_usd", "created")


def add(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """``list`` and ``show``."""
    parser = actions.add_parser("list", help="list runs", description="List runs, newest first.")
    parser.add_argument("--project", default="default", help="of this project (default)")
    parser.add_argument(
        "--status", metavar="STATUS", choices=STATUSES, help=f"only {', '.join(STATUSES)} (all)"
    )
    parser.add_argument("--agent", help="only those of this agent (all)")
    parser.add_argument("--limit", type=count, default=20, help="at most (20)")
    parser.add_argument("--format", choices=("table", "json", "csv"), default="table")
    add_store(parser)
    parser.set_defaults(run=listed)
    parser = actions.add_parser("show", help="show a run", description="Show a run as it stands.")
    add_run(parser)
    parser.set_defaults(run=shown)


def listed(args: argparse.Namespace) -> int:
    """Print the runs, one row each."""

    async def work(ledger: Ledger) -> list[RunRow]:
        from gateway.store.runs import RunQuery

        query = RunQuery(args.project, args.status, args.agent, limit=args.limit)
        return await ledger.store.runs(query)

    rows = [_row(row) for row in with_ledger(args, work)]
    show(rows, COLUMNS, args.format)
    if not rows and args.format == "table":
        say("There are no such runs.")
    return Exit.OK


def _row(row: RunRow) -> dict[str, Any]:
    standing = row.standing
    return {
        "id": row.birth.id,
        "agent": row.birth.agent,
        "status": standing.status,
        "waiting_for": standing.waiting_for,
        "turns": standing.turns,
        "tokens": standing.input_tokens + standing.output_tokens,
        "cost_usd": Decimal(dollars(standing.cost_nano)),
        "created": moment(row.birth.created_at),
    }


def shown(args: argparse.Namespace) -> int:
    """Print the run as JSON, as ``GET /runs/{id}`` has it."""

    async def work(ledger: Ledger) -> RunRow | None:
        return await ledger.store.run(args.run_id)

    row = with_ledger(args, work)
    if row is None:
        raise CommandError(f"There is no run {args.run_id} in these books.")
    import json

    from gateway.northbound.runs.shown import run_object

    out(json.dumps(run_object(row), indent=2, ensure_ascii=False))
    return Exit.OK
