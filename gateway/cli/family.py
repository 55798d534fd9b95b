"""A command that has commands below it, and teaches them when it is called by itself."""

from __future__ import annotations

import argparse

from gateway.cli.exits import Exit
from gateway.cli.output import say


def below(
    parser: argparse.ArgumentParser, title: str, metavar: str
) -> argparse._SubParsersAction[argparse.ArgumentParser]:
    """Where the commands below ``parser`` are added; without one, its help is shown."""

    def taught(_: argparse.Namespace) -> int:
        say(parser.format_help().rstrip("\n"))
        return Exit.USAGE

    parser.set_defaults(run=taught)
    return parser.add_subparsers(title=title, metavar=metavar)
