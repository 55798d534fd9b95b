"""What one turn of a loop hands to the next, and what it remembers. Pure.

``loop_history`` is a list of ``{turn, outputs: {node: output}}``, oldest first. It is bounded: the
newest ``history`` turns, and of those as many as fit into :data:`MAX_BYTES` of JSON; older ones
are left out whole, so that what is there is complete. A history inside an output is left out too,
else each turn would hold all earlier ones twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from adapters.wire.json import dumps

MAX_BYTES = 64_000
HISTORY = "loop_history"


def merged(given: Any, output: Any) -> Any:
    """The next turn's input: a turn's output over its input, field by field where both are
    objects; else the output alone."""
    if isinstance(given, Mapping) and isinstance(output, Mapping):
        return {**given, **without_history(output)}
    return without_history(output)


def remembered(
    turns: int, history: int, outputs: Callable[[int], Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The history that the next turn sees.

    :param turns: how many are finished; they count from 1.
    :param outputs: of a turn, by node; asked for no more than are kept.
    """
    kept: list[dict[str, Any]] = []
    room = MAX_BYTES
    for number in range(turns, max(0, turns - history), -1):
        turn = {"turn": number, "outputs": without_history(outputs(number))}
        room -= len(dumps(turn))
        if room < 0:
            break
        kept.append(turn)
    return kept[::-1]


def without_history(value: Any) -> Any:
    """``value`` without any history in it."""
    if isinstance(value, Mapping):
        return {name: without_history(one) for name, one in value.items() if name != HISTORY}
    if isinstance(value, list | tuple):
        return [without_history(one) for one in value]
    return value
