"""``gateway runs``: agents and workflows from the command line. One file an action."""

from __future__ import annotations

import argparse

from gateway.cli import graph, run_act, run_list, run_replay, run_tail

ACTIONS = (run_list, run_tail, run_act, run_replay, graph)
"""Each has ``add(actions)``, which names its ``run(args) -> int``."""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """``runs ACTION``."""
    parser = commands.add_parser(
        "runs", help="look at runs and workflows", description="Look at runs and workflows."
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for action in ACTIONS:
        action.add(actions)
