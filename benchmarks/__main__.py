"""Print what the gateway costs as ratios to a bare relay (the floor), measured in the same run.

CPU is a process's own time from ``/proc`` (all threads), so that a busy machine blurs it but does
not bend it. Medians and ranges are shown, and at the end which bars are held. ``--full`` adds
more callers and dialects, waiting times, memory, readers of a run, a ledger with a million rows,
the start and the price of single features. Needs Linux.
"""

from __future__ import annotations

import argparse
import asyncio
import sys

from benchmarks.bars import Figure, chart, summary
from benchmarks.cpu import table
from benchmarks.growth import growth
from benchmarks.memory import held, memory
from benchmarks.prices import features, ledger
from benchmarks.runs import subscribers
from benchmarks.scenarios import MORE, SCENARIOS
from benchmarks.servers import Unfit
from benchmarks.times import latency, start


def tell(line: str) -> None:
    """One line of the report, as soon as it is known."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def bench(only: str | None, rounds: int, *, full: bool) -> list[Figure]:
    """The whole report; the figures that it has shown."""
    every = SCENARIOS + MORE if full else SCENARIOS
    chosen = tuple(scenario for scenario in every if only is None or only in scenario.name)
    if not chosen:
        raise Unfit(f"no scenario's name contains {only!r}")
    tell(f"### CPU, median of {rounds} rounds\n")
    figures = await table(chosen, rounds, tell)
    tell(f"\nRatio to the floor; `|` is the bar:\n\n```\n{chart(figures)}\n```")
    if only is None:
        tell("\n### The ledger's share\n")
        figures += await ledger(rounds, tell)
    return figures + (await matrix(rounds) if full else [])


async def matrix(rounds: int) -> list[Figure]:
    """What the whole matrix has beside CPU; the figures that it has shown."""
    tell("\n### Milliseconds added\n")
    figures = await latency(rounds, tell)
    tell("\n### Memory\n")
    figures += await memory(rounds, tell)
    tell("\n### A run's readers\n")
    await subscribers(rounds, tell)
    tell("\n### A million rows\n")
    figures += await growth(rounds, tell)
    tell("\n### Streams that stay open\n")
    figures += await held(tell)
    tell("\n### Start\n")
    figures += await start(tell)
    tell("\n### Features\n")
    await features(rounds, tell)
    return figures


def main() -> int:
    """The command line; its exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", help="run CPU scenarios whose name contains this")
    parser.add_argument("--full", action="store_true", help="the whole matrix")
    parser.add_argument("--strict", action="store_true", help="fail where a bar is not held")
    options = parser.parse_args()
    try:
        figures = asyncio.run(bench(options.only, options.rounds, full=options.full))
    except Unfit as fault:
        raise SystemExit(str(fault)) from fault
    tell(f"\n{summary(figures)}")
    return int(options.strict and any(figure.over for figure in figures))


if __name__ == "__main__":
    raise SystemExit(main())
