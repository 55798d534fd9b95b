"""``gateway serve`` and ``gateway demo``: the gateway itself."""

from __future__ import annotations

import argparse
import errno
import gc
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from socket import gaierror
from typing import TYPE_CHECKING

from gateway.cli.configured import add_config, config_path
from gateway.cli.exits import CommandError, Exit
from gateway.cli.output import out, say

if TYPE_CHECKING:
    from gateway.settings.load import Overrides
    from gateway.settings.snapshot import Snapshot

SERVE = """\
The configuration is checked whole before the port opens. SIGHUP reads it
again: one that does not pass is refused with its faults, and the old one stays
in force. SIGTERM stops taking requests, lets those in flight finish for
[server] drain_seconds, then ends; a second SIGTERM ends at once.

examples:
  gateway serve --config gateway.toml
  gateway serve --config gateway.toml --host 0.0.0.0 --port 80
"""
DEMO = """\
Serves the models demo-openai and demo-anthropic under the key `demo`. Behind
them is a simulator on this machine, reached through the same adapters as the
real providers. The books are kept in gateway-demo.db in this folder.

examples:
  gateway demo
  gateway demo --port 9000
"""
DEMO_FILE = "demo.toml"


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """``serve --config FILE [--host H] [--port N]`` and ``demo [--port N]``."""
    serve = commands.add_parser(
        "serve",
        help="serve a configuration",
        description="Serve a configuration.",
        epilog=SERVE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_config(serve)
    serve.add_argument("--host", metavar="H", help="listen here instead of on [server] host")
    serve.add_argument("--port", metavar="N", type=port, help="instead of [server] port")
    serve.set_defaults(run=run_serve)
    demo = commands.add_parser(
        "demo",
        help="try the gateway: no provider key, no network",
        description="Try the gateway: no provider key, no network.",
        epilog=DEMO,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    demo.add_argument("--port", metavar="N", type=port, help="listen on this port (8080)")
    demo.set_defaults(run=run_demo)


def port(text: str) -> int:
    """A TCP port; 0 takes a free one."""
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: a number from 0 to 65535")
    return int(text)


def run_serve(args: argparse.Namespace) -> int:
    """Serve until told to stop."""
    load_program()
    from gateway.settings.load import Overrides

    overrides = Overrides(host=args.host, port=args.port)
    return _serve(config_path(args), overrides, lambda _, url: say(f"gateway: serving on {url}"))


def run_demo(args: argparse.Namespace) -> int:
    """Serve the demo, and say what to try."""
    load_program()
    from gateway.settings.load import Overrides, shipped

    overrides = Overrides(port=args.port, store_dir=str(Path.cwd()))
    return _serve(shipped(DEMO_FILE), overrides, lambda demo, url: out(welcome(demo, url)))


def load_program() -> None:
    """Import all that a server needs while the garbage collector rests, and put it out of the
    collector's sight: modules stay to the end, and looking through them again and again took a part
    of each start (issue 8)."""
    gc.disable()
    try:
        import gateway.app  # noqa: F401
    finally:
        gc.freeze()
        gc.enable()


def _serve(path: Path, overrides: Overrides, ready: Callable[[Snapshot, str], None]) -> int:
    import asyncio

    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_served(path, overrides, ready))


async def _served(path: Path, overrides: Overrides, ready: Callable[[Snapshot, str], None]) -> int:
    """Load, start the simulator if a provider wants it, check, serve."""
    from dataclasses import replace

    from gateway import app
    from gateway.settings.load import load
    from gateway.settings.problems import ConfigError

    snapshot = load(path, overrides=overrides)
    async with AsyncExitStack() as stack:
        if any(provider.simulator for provider in snapshot.providers.values()):
            from adapters.simulator import running

            simulator = await stack.enter_async_context(running())
            overrides = replace(overrides, simulator_url=simulator.url)
            snapshot = load(path, overrides=overrides)
        problems = app.check(snapshot)
        if problems:
            raise ConfigError(problems)
        host, port = snapshot.server.host, snapshot.server.port
        with listening_on(host, port):
            served = app.serve(
                snapshot, reload=lambda: load(path, overrides=overrides), announce=ready
            )
            del snapshot  # it is the server's own, so that a reload can replace it
            return await served


NO_ADDRESS = {
    errno.EADDRINUSE: "another program has this port. Stop it, or choose another: --port N",
    errno.EADDRNOTAVAIL: "this machine has no such address. Choose another: --host H",
    errno.EACCES: "ports below 1024 need more rights. Choose another: --port N",
}
"""What to do about an address that can't be had."""

NO_NAME = "this machine finds no address of that name. Choose another: --host H"


@contextmanager
def listening_on(host: str, number: int) -> Iterator[None]:
    """Where an address that can't be had becomes an exit code and advice.

    :raises CommandError: in place of the system's error; others pass.
    """
    where = f"[{host}]:{number}" if ":" in host else f"{host}:{number}"
    try:
        host.encode("idna")  # as the resolver will: what it can't spell, nobody can look up
    except UnicodeError as error:
        raise CommandError(f"Can't listen on {where}: {NO_NAME}", Exit.UNAVAILABLE) from error
    try:
        yield
    except OSError as error:
        advice = NO_NAME if isinstance(error, gaierror) else NO_ADDRESS.get(error.errno or 0)
        if advice is None:
            raise
        raise CommandError(f"Can't listen on {where}: {advice}", Exit.UNAVAILABLE) from error


def welcome(snapshot: Snapshot, url: str) -> str:
    """What the demo prints once it answers: where, with which key, and three things to try."""
    key = snapshot.keys[0].key.reveal()
    aliases = ", ".join(snapshot.aliases)
    return f"""\
The gateway is serving the demo.

  address  {url}
  key      {key}
  models   {aliases}

Try it from another terminal.

1. curl:

  curl {url}/v1/chat/completions \\
    -H "Authorization: Bearer {key}" -H "Content-Type: application/json" \\
    -d '{{"model": "demo-openai", "messages": [{{"role": "user", "content": "Hello"}}]}}'

2. The OpenAI SDK (pip install openai):

  python3 -c 'from openai import OpenAI
client = OpenAI(base_url="{url}/v1", api_key="{key}")
message = {{"role": "user", "content": "Hello"}}
answer = client.chat.completions.create(model="demo-anthropic", messages=[message])
print(answer.choices[0].message.content)'

3. A stream:

  curl -N {url}/v1/chat/completions \\
    -H "Authorization: Bearer {key}" -H "Content-Type: application/json" \\
    -d '{{"model": "demo-anthropic", "stream": true,
         "messages": [{{"role": "user", "content": "Tell me a story"}}]}}'

Stop it with Ctrl-C."""
