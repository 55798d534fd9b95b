"""``gateway usage``: what was used and what it cost, from the daily roll-ups."""

from __future__ import annotations

import argparse
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from gateway.cli.books import add_store, with_store
from gateway.cli.exits import CommandError, Exit
from gateway.cli.output import say, show
from gateway.cli.periods import past

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.settings.snapshot import Snapshot
    from gateway.store.base import Store

EXAMPLES = """\
Sums are kept by day (UTC), so a period takes in the whole of its first and
last day. Unknown counts (a provider that reported none) are not in the sums.
The table leaves out columns that are nought throughout; json and csv have all.

examples:
  gateway usage
  gateway usage --by key,model --since 7d
  gateway usage --by day --since 2026-11-01 --until 2026-11-30 --format csv
  gateway usage --by prompt --format json
"""
ALWAYS = ("requests", "input_tokens", "output_tokens", "cost_usd")
"""Columns that a table always has; ``json`` and ``csv`` have all there are."""
GROUPS = ("key", "alias", "model", "provider", "day", "project", "prompt")


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """``usage [--by …] [--since …] [--format …]``."""
    parser = commands.add_parser(
        "usage",
        help="show what was used, and what it cost",
        description="Show what was used, and what it cost.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--by",
        metavar="A,B",
        type=_groups,
        default=("key", "model"),
        help=f"group by any of {', '.join(GROUPS)} (key,model)",
    )
    parser.add_argument("--since", metavar="WHEN", type=past, help="7d, or 2026-11-30 (all)")
    parser.add_argument("--until", metavar="WHEN", type=past, help="the same (now)")
    parser.add_argument("--project", help="of this project alone (all)")
    parser.add_argument("--format", choices=("table", "json", "csv"), default="table")
    add_store(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the sums, one row a group."""

    async def work(_: Snapshot, store: Store) -> list[Mapping[str, Any]]:
        from gateway.store.base import UsageQuery

        return await store.usage(UsageQuery(args.by, args.since, args.until, args.project))

    if None not in (args.since, args.until) and args.since > args.until:
        raise CommandError("The period ends before it begins: --until lies before --since.")
    rows = [_in_dollars(row) for row in with_store(args, work)]
    columns = list(rows[0]) if rows else [*args.by, *ALWAYS]
    if args.format == "table":
        columns = [c for c in columns if c in (*args.by, *ALWAYS) or _says_something(rows, c)]
    show(rows, columns, args.format)
    if not rows and args.format == "table":
        say("Nothing was used in this period.")
    return Exit.OK


def _says_something(rows: list[dict[str, Any]], column: str) -> bool:
    """Whether a table for reading needs ``column``: not where all of it is nought, nor for an
    id beside a name."""
    return not column.endswith("_id") and any(row[column] for row in rows)


def _in_dollars(row: Mapping[str, Any]) -> dict[str, Any]:
    """``…_nano`` columns as exact dollars, named ``…_usd``."""
    shown: dict[str, Any] = {}
    for name, value in row.items():
        if name.endswith("_nano"):
            amount = None if value is None else Decimal(value) / 1_000_000_000
            shown[name.removesuffix("_nano") + "_usd"] = amount
        else:
            shown[name] = value
    return shown


def _groups(text: str) -> tuple[str, ...]:
    groups = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    for group in groups:
        if group not in GROUPS:
            raise argparse.ArgumentTypeError(f"{group!r} is none of {', '.join(GROUPS)}")
    if not groups:
        raise argparse.ArgumentTypeError(f"name at least one of {', '.join(GROUPS)}")
    return groups
