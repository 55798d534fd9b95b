"""Print what a call and a chunk cost in the gateway and in the gateways that others make.

All are measured in turn, in the same minutes, before the same mock upstream: this gateway with
keys, limits, budget, ledger and metrics on, the floor of the other benches, and each rival tuned
kindly (see benchmarks/rivals.py). CPU and memory are those of all of a server's processes. Every
call has to be answered with status 200, the whole text and its end; where one is not, the rival has
no figure, and the table says why. Needs Linux, a package index, and npm for Portkey.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.contest import FIRST, SLOW, Contender, Entrant, Figures, enter, measured
from benchmarks.cpu import Tell
from benchmarks.rivals import RIVALS, Rival, installed, serving
from benchmarks.scenarios import SCENARIOS, Scenario, config
from benchmarks.servers import Unfit, floor, gateway, mock

CALL, CROSS_CALL = "call, same dialect", "call, chat to Messages"
CHUNK, CROSS_CHUNK = "paced chunk, same dialect", "paced chunk, to Messages"
COMPARED = (CALL, "call, same dialect, c=1", "call, 100 kB prompt", CROSS_CALL, CHUNK, CROSS_CHUNK)
"""The names of the bench's scenarios that are measured here."""

OURS, FLOOR = "this gateway", "floor"

BARS = {
    (CALL, "LiteLLM"): 25.0,
    (CALL, "MLflow"): 2.5,
    (CALL, "Portkey"): 2.5,
    (CROSS_CALL, "LiteLLM"): 25.0,
    (CROSS_CALL, "MLflow"): 2.5,
    (CROSS_CALL, "Portkey"): 2.5,
    (CHUNK, "LiteLLM"): 11.0,
    (CHUNK, "MLflow"): 1.6,
    (CHUNK, "Portkey"): 1.6,
}
"""How many times ours a rival should cost at least. Everything else should cost more than ours."""


def tell(line: str) -> None:
    """One line of the report, as soon as it is known."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def say(line: str) -> None:
    """Progress, beside the report."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")
    sys.stderr.flush()


def spread(values: Sequence[float], places: int) -> str:
    """A median and its range."""
    low, high = min(values), max(values)
    return f"{statistics.median(values):,.{places}f} ({low:,.{places}f} to {high:,.{places}f})"


def table(scenario: Scenario, entrants: Sequence[Entrant], figures: Figures) -> list[str]:
    """A scenario's lines. Raises :class:`Unfit` where the floor or this gateway has no figure."""
    for name in (FLOOR, OURS):
        if name in figures.broken:
            raise Unfit(f"{name}: {scenario.name}: {figures.broken[name]}")
    return [
        f"\n### {scenario.name[0].upper()}{scenario.name[1:]}\n",
        f"| | µs a {scenario.per} | floors | times ours | bar | |",
        "| --- | --: | --: | --: | --: | --- |",
        *(
            f"| {entrant.label} | {_cells(scenario, entrant.name, figures)} |"
            for entrant in entrants
        ),
    ]


def _cells(scenario: Scenario, name: str, figures: Figures) -> str:
    """What a scenario's table says of somebody."""
    if name in figures.broken:
        return f"{figures.broken[name]} | | | |"
    floors = f"{statistics.median(figures.ratios(name, FLOOR)):.1f}"
    cells = [spread(figures.taken[name], 0), floors, "", "", ""]
    if name not in (FLOOR, OURS):
        judged = "under" if name in under(scenario, figures) else "ok"
        cells[2:] = spread(figures.ratios(name, OURS), 1), f"{bar(scenario, name):g}", judged
    return " | ".join(cells)


def bar(scenario: Scenario, name: str) -> float:
    """How many times ours a rival should cost at least."""
    return BARS.get((scenario.name, name), 1.0)


def under(scenario: Scenario, figures: Figures) -> list[str]:
    """The rivals that cost less than they should."""
    return [
        name
        for name in figures.taken
        if name not in (FLOOR, OURS)
        and statistics.median(figures.ratios(name, OURS)) < bar(scenario, name)
    ]


def standing(contender: Contender) -> str:
    """A line of the table of starts and memory."""
    held = contender.memory
    stream = held.stream if isinstance(held.stream, str) else f"{held.stream / 1000:.0f}"
    return (
        f"| {contender.entrant.label} | {spread(contender.starts, 1)} | {held.idle / 1e6:.0f} "
        f"| {stream} |"
    )


def own_entrants(upstream: str, scenarios: Sequence[Scenario], scratch: Path) -> list[Entrant]:
    """The floor and this gateway."""
    settings = config(upstream, [*scenarios, FIRST, SLOW])
    return [
        Entrant(FLOOR, "", lambda: floor(upstream), lambda one: one.payload(one.model)),
        Entrant(
            OURS, "", lambda: gateway(settings, str(scratch)), lambda one: one.payload(one.alias)
        ),
    ]


def rival_entrant(
    rival: Rival, folder: Path, scratch: Path, upstream: str, scenarios: Sequence[Scenario]
) -> Entrant:
    """A rival, installed into ``folder``."""
    routes = list(dict.fromkeys((one.southbound, one.model) for one in [*scenarios, FIRST, SLOW]))

    def payload(one: Scenario) -> bytes:
        headers = rival.headers(upstream, one.southbound)
        return one.payload(rival.model((one.southbound, one.model)), headers)

    return Entrant(
        rival.name,
        installed(rival, folder),
        lambda: serving(rival, folder, scratch, upstream, routes),
        payload,
    )


def machine() -> str:
    """What the figures were taken on."""
    node = ""
    if found := shutil.which("node"):
        said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False)
        node = f", Node {said.stdout.strip()}"
    return (
        f"{platform.system()} {platform.release()}, {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}{node}, load {os.getloadavg()[0]:.1f} at the start"
    )


def one_line(fault: Exception) -> str:
    """The last of several lines: what a program says when it gives up."""
    return [line.strip() for line in str(fault).splitlines() if line.strip()][-1]


async def compare(
    rivals: Sequence[Rival], scenarios: Sequence[Scenario], rounds: int, folder: Path, tell: Tell
) -> None:
    """The whole report; the rivals are kept in ``folder``."""
    tell(f"{machine()}; medians and ranges of {rounds} rounds\n")
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        upstream = stack.enter_context(mock())
        contenders = []
        for entrant in own_entrants(upstream, scenarios, scratch):
            say(f"{entrant.name}: start and memory")
            try:
                contenders.append(await enter(entrant, stack, rounds))
            except Unfit as fault:
                raise Unfit(f"{entrant.name}: {fault}") from fault
        for rival in rivals:
            say(f"{rival.name}: {rival.package}, installed where it is not there")
            try:
                entrant = rival_entrant(rival, folder, scratch, upstream, scenarios)
                say(f"{entrant.label}: start and memory")
                contenders.append(await enter(entrant, stack, rounds))
            except Unfit as fault:
                tell(f"{rival.name} is not compared: {one_line(fault)}\n")
        if not any(one.entrant.name not in (FLOOR, OURS) for one in contenders):
            raise Unfit("No rival could be compared.")
        await report(contenders, scenarios, rounds, tell)


async def report(
    contenders: Sequence[Contender], scenarios: Sequence[Scenario], rounds: int, tell: Tell
) -> None:
    """All tables, and who is under the bar in which."""
    tell(
        "### Start and memory\n\n"
        "| | seconds to the first answer | idle MB | kB an open stream |\n"
        "| --- | --: | --: | --: |"
    )
    for contender in contenders:
        tell(standing(contender))
    missed, broken = [], []
    for scenario in scenarios:
        figures = await measured(contenders, scenario, rounds, say)
        for line in table(scenario, [contender.entrant for contender in contenders], figures):
            tell(line)
        missed += [f"{name}, {scenario.name}" for name in under(scenario, figures)]
        broken += [f"{name}, {scenario.name}" for name in figures.broken]
    tell(f"\nUnder the bar: {'; '.join(missed) or 'nobody'}.")
    tell(f"Without a figure: {'; '.join(broken) or 'nobody'}.")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="where rivals are installed, and stay")
    parser.add_argument("--rival", default="", help="compare with rivals whose name contains this")
    parser.add_argument("--only", default="", help="run scenarios whose name contains this")
    options = parser.parse_args()
    rivals = [one for one in RIVALS if options.rival.lower() in one.name.lower()]
    scenarios = [one for one in SCENARIOS if one.name in COMPARED and options.only in one.name]
    with ExitStack() as stack:
        folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        try:
            asyncio.run(compare(rivals, scenarios, options.rounds, folder, tell))
        except Unfit as fault:
            raise SystemExit(str(fault)) from fault


if __name__ == "__main__":
    main()
