"""``gateway simulate``: a provider that speaks all three protocols and fails on demand."""

from __future__ import annotations

import argparse
import signal

from gateway.cli.exits import Exit
from gateway.cli.output import out, say
from gateway.cli.serve import listening_on, port

EXAMPLES = """\
Speaks the OpenAI Chat, OpenAI Responses and Anthropic Messages protocols over
real HTTP, and takes any key. What it answers and how it fails is chosen by the
model's name; --list shows all that it understands.

examples:
  gateway simulate --port 9000
  gateway simulate --list
"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """``simulate --port N``."""
    parser = commands.add_parser(
        "simulate",
        help="run a simulated provider, to test against",
        description="Run a simulated provider, to test against.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--port", metavar="N", type=port, default=9000, help="(9000)")
    parser.add_argument("--host", metavar="H", default="127.0.0.1", help="(127.0.0.1)")
    parser.add_argument("--list", action="store_true", help="list the model names, and end")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve until told to stop, or list what can be asked for."""
    if args.list:
        return _list()
    import asyncio

    with listening_on(args.host, args.port):
        asyncio.run(_simulate(args.host, args.port))
    return Exit.OK


async def _simulate(host: str, number: int) -> None:
    import asyncio

    from adapters.simulator import running

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stop.set)
    async with running(host, number, keep=100) as simulator:
        say(f"simulator: {simulator.url}/v1 speaks OpenAI Chat and Responses")
        say(f"simulator: {simulator.url} speaks Anthropic Messages")
        say("simulator: model names say what it does (gateway simulate --list); Ctrl-C ends it")
        await stop.wait()


def _list() -> int:
    from adapters.simulator import CATALOGUE

    entries = list(CATALOGUE)
    width = max(len(entry.name) for entry in entries)
    for entry in entries:
        out(f"{entry.name:<{width}}  {entry.meaning}")
    out("")
    out("Join words with +, for example reasoning+fault-cut-after-3.")
    return Exit.OK
