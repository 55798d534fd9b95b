"""``gateway runs graph NAME``: a workflow as a Mermaid chart."""

from __future__ import annotations

import argparse

from gateway.cli.configured import add_config, read
from gateway.cli.exits import CommandError, Exit
from gateway.cli.output import out

EXAMPLES = """\
Reads the configuration only: no gateway needs to run. Paste the text where
Mermaid is drawn.

examples:
  gateway runs graph ticket-triage --config gateway.toml
"""


def add(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """``graph NAME --config FILE``."""
    parser = actions.add_parser(
        "graph",
        help="print a workflow as a Mermaid chart",
        description="Print a workflow of the configuration as a Mermaid flowchart.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", metavar="NAME", help="the workflow")
    add_config(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the chart."""
    from gateway.runs.mermaid import drawn
    from gateway.services.workflow_compile import compiled
    from gateway.services.workflows import file_workflows

    written, _ = file_workflows(read(args))
    if args.name not in written:
        known = ", ".join(written) or "none"
        raise CommandError(f"There is no workflow {args.name!r}; there are: {known}.", Exit.USAGE)
    made = compiled(written[args.name], args.name, written.get)
    if made.flaws:
        listed = "\n".join(f"{args.name}.{flaw.path}: {flaw.message}" for flaw in made.flaws)
        raise CommandError(f"It can't be drawn as it is written:\n{listed}", Exit.CONFIG)
    out(drawn(made.workflow).rstrip())
    return Exit.OK
