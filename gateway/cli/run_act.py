"""``gateway runs cancel RUN`` and ``gateway runs approve RUN``: what an operator may do to a run.

Written into the books like any other command; the gateway that works on the run hears of it within
a second.
"""

from __future__ import annotations

import argparse
import getpass
import json
from typing import TYPE_CHECKING, Any

from gateway.cli.exits import CommandError, Exit
from gateway.cli.output import say
from gateway.cli.run_books import add_run, with_ledger

if TYPE_CHECKING:
    from gateway.runs.ledger import Ledger
    from gateway.runs.spec import Answer
    from gateway.runs.state import Interrupt, Run

EXAMPLES = """\
Without INTERRUPT the run must have exactly one open question. The first answer wins.

examples:
  gateway runs approve run_4f0c…                       agree to the call that it asks about
  gateway runs approve run_4f0c… --deny "not to her"
  gateway runs approve run_4f0c… --edit '{"to": "bob"}'
  gateway runs approve run_4f0c… --result "12 degrees"  what came of a call that is yours, or in doubt
  gateway runs approve run_4f0c… --rerun               make a call that is in doubt again
"""  # noqa: E501


def add(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """``cancel`` and ``approve``."""
    parser = actions.add_parser("cancel", help="cancel a run", description="End a run.")
    add_run(parser)
    parser.add_argument("--reason", help="why, for the ledger")
    parser.set_defaults(run=cancel)
    parser = actions.add_parser(
        "approve",
        help="answer a run's question",
        description="Answer a question of a run: by default, agree.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_run(parser)
    parser.add_argument("interrupt", metavar="INTERRUPT", nargs="?", help="which question")
    answers = parser.add_mutually_exclusive_group()
    answers.add_argument("--deny", metavar="REASON", help="refuse")
    answers.add_argument("--edit", metavar="JSON", help="agree, with other arguments")
    answers.add_argument("--result", metavar="TEXT", help="the call's result")
    answers.add_argument("--error", metavar="TEXT", help="the call did not work")
    answers.add_argument("--rerun", action="store_true", help="make the call again")
    answers.add_argument("--fail", metavar="REASON", help="end the run")
    parser.set_defaults(run=approve)


def cancel(args: argparse.Namespace) -> int:
    """Ask for the end."""

    async def work(ledger: Ledger) -> Run:
        from gateway.runs import commands

        return await ledger.command(args.run_id, lambda run: commands.cancel(run, args.reason))

    say(f"The run is {with_ledger(args, work).status}.")
    return Exit.OK


def approve(args: argparse.Namespace) -> int:
    """Answer the question."""
    given = _answer(args)

    async def work(ledger: Ledger) -> Run:
        from gateway.runs import commands
        from gateway.runs.bench import schema_check
        from gateway.structured.check import Schemas

        check = schema_check(Schemas())

        def answered(run: Run) -> Any:
            question = _question(run, args.interrupt)
            return commands.answer(run, question.id, given, f"cli:{getpass.getuser()}", check)

        return await ledger.command(args.run_id, answered)

    say(f"Answered. The run is {with_ledger(args, work).status}.")
    return Exit.OK


def _question(run: Run, wanted: str | None) -> Interrupt:
    if wanted is not None and wanted in run.interrupts:
        return run.interrupts[wanted]
    questions = run.open_interrupts()
    if wanted is None and len(questions) == 1:
        return questions[0]
    names = ", ".join(f"{one.id} ({one.kind})" for one in questions) or "none"
    raise CommandError(f"Name one of the run's open questions: {names}.")


def _answer(args: argparse.Namespace) -> Answer:
    from adapters.canonical.parts import Text
    from gateway.runs.spec import Answer

    if args.deny is not None:
        return Answer("deny", reason=args.deny)
    if args.edit is not None:
        return Answer("edit", arguments=_json_object(args.edit))
    if args.result is not None:
        return Answer("result", content=(Text(args.result),))
    if args.error is not None:
        return Answer("error", reason=args.error)
    if args.fail is not None:
        return Answer("fail", reason=args.fail)
    return Answer("rerun" if args.rerun else "approve")


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise CommandError("--edit takes the new arguments as a JSON object.", Exit.USAGE)
    return value
