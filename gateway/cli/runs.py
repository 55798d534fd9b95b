"""``gateway runs``: agents and workflows from the command line. One file an action."""

from __future__ import annotations

import argparse

from gateway.cli import graph, run_act, run_list, run_replay, run_tail
from gateway.cli.family import below

EXAMPLES = """\
Runs begin over HTTP: POST /runs. These commands work on the books, whether the
gateway runs or not.

examples:
  gateway runs list --status waiting        who waits for a person?
  gateway runs tail run_4f0c…               what does it do?
  gateway runs approve run_4f0c…            let it make the call it asks about
  gateway runs graph ticket-triage          draw a workflow
"""
ACTIONS = (run_list, run_tail, run_act, run_replay, graph)
"""Each has ``add(actions)``, which names its ``run(args) -> int``."""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """``runs ACTION``."""
    parser = commands.add_parser(
        "runs",
        help="look at runs and workflows, answer them, end them",
        description="Look at runs and workflows, answer them, end them.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = below(parser, "actions", "ACTION")
    for action in ACTIONS:
        action.add(actions)
