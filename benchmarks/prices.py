"""What single features cost, each alone over the barest gateway that can be configured, and which
share of a call the ledger's thread has."""

from __future__ import annotations

import contextlib
import statistics
import tempfile
from dataclasses import replace

from benchmarks.bars import Figure
from benchmarks.cpu import Side, Tell, measure
from benchmarks.load import drive
from benchmarks.scenarios import BUDGET, RATES, SCENARIOS, config
from benchmarks.servers import Unfit, floor, gateway, mock, thread_seconds

CALL = SCENARIOS[0]

BARE = {"limits": ""}
FEATURES: tuple[tuple[str, dict[str, str]], ...] = (
    ("a key without limits", BARE),
    ("rates: rpm, tpm and concurrent", {"limits": RATES}),
    ("a budget: usd_per_day", {"limits": BUDGET}),
    ("rates and budget", {}),
    ("a log line for each call", {**BARE, "log_level": "info"}),
    ("redaction", {**BARE, "redaction": "mask"}),
    ("durability full", {**BARE, "durability": "full"}),
    ("all of these", {"log_level": "info", "redaction": "mask", "durability": "full"}),
)
CAPTION = """
Each is switched on alone, over the first row. Keys, the ledger and the metrics can't be switched
off (a call without a key is a 401): they are in all rows.
"""

SHARE_BAR = 15.0
"""Per cent of a call's CPU that the ledger may have."""


async def features(rounds: int, tell: Tell) -> None:
    """The price of what can be switched on, on a call of the same dialect. All gateways run at
    the same time and are measured in turn, so that a busy machine is busy for all of them; the
    first round only settles them. A price is small beside a call: so twice the rounds."""
    tell(
        "| switched on | µs a call | µs more (range) | ratio to floor |\n| --- | --: | --: | --: |"
    )
    taken: list[list[float]] = []
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        upstream = stack.enter_context(mock())
        low = stack.enter_context(floor(upstream))
        sides = [
            stack.enter_context(gateway(config(upstream, [CALL], **chosen), folder))
            for _, chosen in FEATURES
        ]
        for _ in range(1 + 2 * rounds):
            base = (await measure(low, CALL, CALL.model)).micros
            taken.append([base, *[(await measure(one, CALL, CALL.alias)).micros for one in sides]])
    floors, *columns = zip(*taken[1:], strict=True)
    for (name, _), micros in zip(FEATURES, columns, strict=True):
        more = [one - bare for one, bare in zip(micros, columns[0], strict=True)]
        price = f"{statistics.median(more):+.0f} ({min(more):+.0f} to {max(more):+.0f})"
        ratio = statistics.median(one / low for one, low in zip(micros, floors, strict=True))
        tell(f"| {name} | {statistics.median(micros):.0f} | {price} | {ratio:.2f} |")
    tell(CAPTION)


async def ledger(rounds: int, tell: Tell) -> list[Figure]:
    """The ledger's share of a call's CPU: that of its thread. What the event loop does for the
    ledger isn't in it."""
    tell("| | µs a call | share (range) | bar | |\n| --- | --: | --: | --: | --- |")
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        upstream = stack.enter_context(mock())
        side = stack.enter_context(gateway(config(upstream, [CALL]), folder))
        await measure(side, replace(CALL, calls=CALL.concurrency), CALL.alias)  # warms up
        pairs = [await _written(side) for _ in range(rounds)]
    shares = [100 * written / whole for written, whole in pairs]
    figure = Figure("the ledger's share", statistics.median(shares), SHARE_BAR, " %")
    written, whole = (statistics.median(column) for column in zip(*pairs, strict=True))
    tell(
        f"| the ledger's thread | {written:.0f} of {whole:.0f} "
        f"| {figure.value:.0f} % ({min(shares):.0f} to {max(shares):.0f}) | {figure.cells} |"
    )
    return [figure]


async def _written(side: Side) -> tuple[float, float]:
    """Microseconds of CPU a call: the ledger's thread, and the whole process. The event loop runs
    in the main thread; of the others the ledger's is the one that works."""
    pid, port = side
    before = thread_seconds(pid)
    result = await drive(port, CALL.payload(CALL.alias), CALL.calls, CALL.concurrency)
    if result.failed:
        raise Unfit(f"{result.failed} calls failed")
    spent = {
        thread: (seconds - before.get(thread, 0.0)) * 1e6 / CALL.calls
        for thread, seconds in thread_seconds(pid).items()
    }
    whole = sum(spent.values())
    del spent[pid]
    return max(spent.values()), whole
