"""Print what the gateway costs as ratios to a bare relay (the floor), measured in the same run.

CPU is a process's own time from ``/proc`` (all threads), so that a busy machine blurs it but does
not bend it. Medians and ranges are shown. ``--full`` adds waiting times, memory, readers of
a run, a ledger with a million rows, the start and the price of single features. Needs Linux.
"""

from __future__ import annotations

import argparse
import asyncio
import sys

from benchmarks.cpu import features, table
from benchmarks.growth import growth
from benchmarks.memory import held, memory
from benchmarks.runs import subscribers
from benchmarks.scenarios import SCENARIOS
from benchmarks.servers import Unfit
from benchmarks.times import latency, start


def tell(line: str) -> None:
    """One line of the report, as soon as it is known."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def bench(only: str | None, rounds: int, *, full: bool) -> None:
    """The whole report."""
    chosen = tuple(s for s in SCENARIOS if only is None or only in s.name)
    tell(f"### CPU, median of {rounds} rounds\n")
    await table(chosen, rounds, tell)
    if not full:
        return
    tell("\n### Milliseconds added\n")
    await latency(tell)
    tell("\n### Memory\n")
    await memory(tell)
    tell("\n### A run's readers\n")
    await subscribers(rounds, tell)
    tell("\n### A million rows\n")
    await growth(rounds, tell)
    tell("\n### Streams that stay open\n")
    await held(tell)
    tell("\n### Start\n")
    await start(tell)
    tell("\n### Features\n")
    await features(rounds, tell)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", help="run CPU scenarios whose name contains this")
    parser.add_argument("--full", action="store_true", help="the whole matrix")
    options = parser.parse_args()
    try:
        asyncio.run(bench(options.only, options.rounds, full=options.full))
    except Unfit as fault:
        raise SystemExit(str(fault)) from fault


if __name__ == "__main__":
    main()
