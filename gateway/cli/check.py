"""``gateway check``: is a configuration sound?"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gateway.cli.configured import add_config, config_path, read
from gateway.cli.exits import Exit
from gateway.cli.output import out, say

if TYPE_CHECKING:
    from gateway.settings.problems import Problem
    from gateway.settings.snapshot import Snapshot

EXAMPLES = """\
Checks all that `gateway serve` checks before it opens its port: every key and
value, secrets, prompts, schemas, agents and workflows. Nothing is sent to any
provider.

examples:
  gateway check --config gateway.toml && systemctl reload gateway
  gateway check --config gateway.toml --format json
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """``check --config FILE``."""
    parser = commands.add_parser(
        "check",
        help="say whether a configuration is sound, and what is wrong with it",
        description="Say whether a configuration is sound, and everything that is wrong with it.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_config(parser)
    parser.add_argument("--format", choices=("text", "json"), default="text", help="(text)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the faults, or that there are none."""
    from gateway.app import check
    from gateway.settings.problems import ConfigError

    path = config_path(args)
    try:
        snapshot = read(args)
        problems = check(snapshot)
    except ConfigError as error:
        problems = list(error.problems)
    if args.format == "json":
        out(json.dumps([_as_json(problem) for problem in problems], indent=2))
    else:
        for problem in problems:
            say(str(problem))
        if not problems:
            out(f"{path}: sound. {summary(snapshot)}")
            for note in notes(snapshot):
                out(f"note: {note}")
    return Exit.CONFIG if problems else Exit.OK


def summary(snapshot: Snapshot) -> str:
    """What a configuration holds, in one line."""
    parts = (
        (len(snapshot.providers), "provider"),
        (len(snapshot.aliases), "model"),
        (len(snapshot.keys), "key"),
    )
    counted = ", ".join(f"{n} {word}{'' if n == 1 else 's'}" for n, word in parts)
    return f"{counted}; prices: {snapshot.price_table}; hash {snapshot.hash[:12]}"


def notes(snapshot: Snapshot) -> Iterator[str]:
    """What is no fault, and may still be a surprise."""
    if not snapshot.aliases:
        yield "no model is in the file: nothing can be called. See docs/configuration.md."
    if not snapshot.keys:
        yield "no key is in the file. Whoever calls needs one: gateway keys create NAME"
    for name in unpriced(snapshot):
        yield (
            f"no price is known of {name}: its calls count as free in bills and budgets. "
            f'Give it one under [facts."{name}".price].'
        )


def unpriced(snapshot: Snapshot) -> list[str]:
    """Deployments whose calls cost money, perhaps, that nobody counts; the simulator's do not."""
    targets = (target for alias in snapshot.aliases.values() for target in alias.targets)
    names = {
        target.deployment.name: None
        for target in targets
        if target.deployment.facts.price is None and not target.deployment.provider.simulator
    }
    return list(names)


def _as_json(problem: Problem) -> dict[str, object]:
    return {
        "file": problem.file,
        "line": problem.line,
        "where": problem.where,
        "message": problem.message,
    }
