"""``gateway backup``: a copy of the books, while the gateway runs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from gateway.cli.books import add_store, with_store
from gateway.cli.exits import CommandError, Exit
from gateway.cli.output import say

if TYPE_CHECKING:
    from gateway.settings.snapshot import Snapshot
    from gateway.store.base import Store

EXAMPLES = """\
Takes a whole and consistent copy while the gateway runs; it never overwrites a
file. Keep the pepper (the file beside the database, or [server] pepper) too, in
another place: without it no stored key is accepted.

examples:
  gateway backup /backups/gateway-$(date +%F).db
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """``backup FILE``."""
    parser = commands.add_parser(
        "backup",
        help="copy the books while the gateway runs",
        description="Copy the books while the gateway runs.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE", help="the copy, which must not exist yet")
    add_store(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the copy."""

    async def work(_: Snapshot, store: Store) -> None:
        from gateway.store.base import StoreError

        try:
            await store.backup(args.file)
        except StoreError as error:
            raise CommandError(str(error)) from error

    with_store(args, work)
    say(f"The books are copied to {args.file}.")
    return Exit.OK
