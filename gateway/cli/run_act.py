"""``gateway runs cancel RUN`` and ``gateway runs approve RUN``: what an operator may do to a run.

Written into the books like any other command; the gateway that works on the run hears of it within
a second.
"""

from __future__ import annotations

import argparse
import getpass
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from gateway.cli.exits import CommandError, Exit
from gateway.cli.output import say
from gateway.cli.run_books import add_run, with_ledger

if TYPE_CHECKING:
    from gateway.runs.ledger import Ledger
    from gateway.runs.spec import Action, Answer
    from gateway.runs.state import Interrupt, Run

EXAMPLES = """\
Without WHICH the run must have exactly one open question; `gateway runs
show RUN` lists them under "interrupts". The first answer wins.

examples:
  gateway runs approve run_4f0c…               agree to the call it asks about
  gateway runs approve run_4f0c… --deny "not to her"
  gateway runs approve run_4f0c… --edit '{"to": "bob"}'
  gateway runs approve run_4f0c… --result "12 degrees"  of a call that is yours
  gateway runs approve run_4f0c… --rerun       a call that is in doubt
  gateway runs approve run_4f0c… --top-up '{"usd": 0.5}'
"""


def add(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """``cancel`` and ``approve``."""
    parser = actions.add_parser("cancel", help="cancel a run", description="End a run.")
    add_run(parser)
    parser.add_argument("--reason", help="why, for the ledger")
    parser.set_defaults(run=cancel)
    parser = actions.add_parser(
        "approve",
        usage="gateway runs approve [-h] [--config FILE] [--demo] [ANSWER] RUN [WHICH]",
        help="answer a run's question",
        description="Answer a question of a run: by default, agree.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_run(parser)
    parser.add_argument("interrupt", metavar="WHICH", nargs="?", help="the question's id")
    answers = parser.add_argument_group("ANSWER, one of").add_mutually_exclusive_group()
    answers.add_argument("--deny", metavar="REASON", help="refuse")
    answers.add_argument("--edit", metavar="JSON", help="agree, with other arguments")
    answers.add_argument("--result", metavar="TEXT", help="the call's result")
    answers.add_argument("--error", metavar="TEXT", help="the call did not work")
    answers.add_argument("--rerun", action="store_true", help="make the call again")
    answers.add_argument("--top-up", metavar="JSON", help="add to the budget that is used up")
    answers.add_argument("--stop", action="store_true", help="let the used-up budget end the run")
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
            by, now = f"cli:{getpass.getuser()}", ledger.clock.wall()
            return commands.answer(run, question.id, given, by, check, now)

        return await ledger.command(args.run_id, answered)

    say(f"Answered. The run is {with_ledger(args, work).status}.")
    return Exit.OK


def _question(run: Run, wanted: str | None) -> Interrupt:
    if wanted is not None and wanted in run.interrupts:
        return run.interrupts[wanted]
    questions = run.open_interrupts()
    if wanted is None and len(questions) == 1:
        return questions[0]
    if not questions:
        raise CommandError(f"The run asks nothing: it is {run.status}.")
    names = ", ".join(f"{one.id} ({one.kind})" for one in questions)
    raise CommandError(f"Name one of the run's open questions: {names}.")


def _answer(args: argparse.Namespace) -> Answer:
    """What the options say; without any, yes."""
    from gateway.runs.spec import Answer

    for action, fields in GIVEN.items():
        value = getattr(args, action)
        if value not in (None, False):
            return Answer(action, **fields(value))
    return Answer("approve")


def _reason(text: str) -> dict[str, Any]:
    return {"reason": text}


def _content(text: str) -> dict[str, Any]:
    from adapters.canonical.parts import Text

    return {"content": (Text(text),)}


GIVEN: Mapping[Action, Callable[[Any], dict[str, Any]]] = {
    "deny": _reason,
    "edit": lambda text: {"arguments": _json_object(text)},
    "result": _content,
    "error": _reason,
    "rerun": lambda _: {},
    "fail": _reason,
    "top_up": lambda text: {"added": _amounts(text)},
    "stop": lambda _: {},
}
"""By action, which is an option of ``approve``: how its value goes into the answer."""


def _amounts(text: str) -> dict[str, Any]:
    """What is added to a budget, by the same rules as over HTTP."""
    from adapters.canonical.faults import Fault
    from gateway.northbound.runs.bodies import parse_top_up

    try:
        return dict(parse_top_up(text.encode()))
    except Fault as fault:
        raise CommandError(f"--top-up: {fault.message}", Exit.USAGE) from None


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise CommandError("--edit takes the new arguments as a JSON object.", Exit.USAGE)
    return value
