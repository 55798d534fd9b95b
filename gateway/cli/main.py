"""The command line's entry: parses arguments, runs the command, turns faults into exit codes."""

from __future__ import annotations

import argparse
import errno
import sys
from collections.abc import Sequence

from gateway.cli import backup, check, keys, runs, serve, simulate, usage
from gateway.cli.exits import MEANINGS, CommandError, Exit
from gateway.cli.family import below
from gateway.cli.output import out, say

FAMILIES = (serve, check, simulate, keys, usage, runs, backup)
"""Each has ``add(subparsers)``, which names its ``run(args) -> int``."""

FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""A disk, a quota or a file that takes no more."""

EXAMPLES = """\
examples:
  gateway demo                              try it: no key, no network
  gateway check --config gateway.toml       is this configuration sound?
  gateway serve --config gateway.toml       serve it
  gateway keys create alice --usd-per-day 5
  gateway usage --by key,model --since 7d --format csv
"""


def parser() -> argparse.ArgumentParser:
    """The whole grammar of the command line."""
    codes = "\n".join(f"  {code.value:<4} {meaning}" for code, meaning in MEANINGS.items())
    root = argparse.ArgumentParser(
        prog="gateway",
        description="One door for every application to every model, which keeps the books.",
        epilog=f"{EXAMPLES}\nexit codes:\n{codes}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    root.add_argument("--version", action=_Version, help="show the version, and end")
    commands = below(root, "commands", "COMMAND")
    for family in FAMILIES:
        family.add(commands)
    return root


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    args = parser().parse_args(argv)
    try:
        return int(args.run(args))
    except CommandError as error:
        say(error.message)
        return error.code
    except BrokenPipeError:
        sys.stderr.close()  # the reader has gone; so has the wish to hear about it
        return Exit.OK
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except Exception as error:  # noqa: BLE001  sorted by type; what is unknown is raised again
        return _explained(error)


def _explained(error: Exception) -> int:
    """The exit code of the faults that commands share, told on standard error; others raise."""
    from adapters.canonical.faults import Fault
    from gateway.settings.problems import ConfigError
    from gateway.store.base import StoreError

    if isinstance(error, ConfigError):
        for problem in error.problems:
            say(str(problem))
        return Exit.CONFIG
    if isinstance(error, StoreError) or (
        isinstance(error, Fault) and error.kind == "store_unavailable"
    ):
        say(f"The store can't be used: {error}")
        return Exit.UNAVAILABLE
    if isinstance(error, OSError) and error.errno in FULL:
        say(f"The result can't be written: {error.strerror}.")
        return Exit.FAILED
    raise error


class _Version(argparse.Action):
    """``--version``; looks it up only when asked."""

    def __init__(self, option_strings: list[str], dest: str, help: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import PackageNotFoundError, version

        try:
            found = version("llm-gateway")
        except PackageNotFoundError:
            found = "(run from source, not installed)"
        out(f"gateway {found}")
        parser.exit(Exit.OK)
