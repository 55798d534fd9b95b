"""What a node does that is a graph itself: once for each item of a list, again and again, or once.
Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.runs.binding import OUTER, bind, holds
from gateway.runs.looping import merged, remembered
from gateway.runs.state import Node
from gateway.runs.walk import Result, Spot, Walk, under
from gateway.runs.workflow_spec import MAX_ITEMS, Form, Loop


def around(spot: Spot, form: Form) -> dict[str, Any]:
    """What the graph within a node can refer to of the one around it; a workflow that has a name
    of its own can't."""
    return {} if form == "workflow" else {OUTER: spot.scope, "workflow": spot.scope["workflow"]}


class MapWork:
    """One graph for each item; at the first that fails no further one begins."""

    def begin(self, walk: Walk, spot: Spot) -> None:
        assert spot.node.map is not None
        items = bind(spot.node.map.over, spot.scope)
        walk.start(spot, items)
        if not isinstance(items, list | tuple) or len(items) > MAX_ITEMS:
            text = f"'over' must give a list of at most {MAX_ITEMS} items."
            walk.finish(
                spot,
                Node(spot.path, spot.node.kind, "running"),
                error={"kind": "unbound", "message": text},
            )

    def go_on(self, walk: Walk, spot: Spot, state: Node) -> None:
        work = spot.node.map
        assert work is not None
        results: list[Result] = []
        active, error = 0, None
        for index, item in enumerate(state.input):
            place = under(state.place, str(index))
            full = active >= work.concurrency or error is not None
            if full and not walk.begun(place, work.body):
                break  # items begin in order
            given = {"input": item, "item": item, "index": index, **around(spot, work.form)}
            result = walk.graph(place, work.body, given)
            if result is None:
                active += 1
            else:
                results.append(result)
                error = error or result.error
        if active:
            return
        if error is not None:
            walk.finish(spot, state, error=error)
        elif len(results) == len(state.input):
            walk.finish(spot, state, [result.output for result in results])


class LoopWork:
    """A graph again and again, each turn's output over the next one's input."""

    def begin(self, walk: Walk, spot: Spot) -> None:
        assert spot.node.loop is not None
        walk.start(spot, bind(spot.node.loop.input, spot.scope))

    def go_on(self, walk: Walk, spot: Spot, state: Node) -> None:
        loop = spot.node.loop
        assert loop is not None
        given, last = state.input, Result()
        for turn in range(1, loop.max + 1):
            place = under(state.place, str(turn))
            result = walk.settled(place, loop.body)
            if result is None:
                scope = self._scope(walk, spot, state, turn)
                result = walk.graph(place, loop.body, {**scope, "input": given})
            if result is None:
                return
            if result.error is not None:
                walk.finish(spot, state, error=result.error)
                return
            if self._enough(walk, loop, turn, result, given):
                walk.finish(spot, state, result.output)
                return
            given, last = merged(given, result.output), result
        self._bound_met(walk, spot, state, loop, last)

    def _scope(self, walk: Walk, spot: Spot, state: Node, turn: int) -> dict[str, Any]:
        """What a turn's nodes can refer to besides one another and their input."""
        loop = spot.node.loop
        assert loop is not None

        def outputs(number: int) -> Mapping[str, Any]:
            return _outputs(walk, under(state.place, str(number)), loop)

        history = remembered(turn - 1, loop.history, outputs)
        return {"index": turn, "loop_history": history, **around(spot, loop.form)}

    def _enough(self, walk: Walk, loop: Loop, turn: int, result: Result, given: Any) -> bool:
        if loop.until is None:
            return turn == loop.times
        scope = {"output": result.output, "input": given, "index": turn}
        return holds(loop.until, scope, walk.check)

    def _bound_met(self, walk: Walk, spot: Spot, state: Node, loop: Loop, last: Result) -> None:
        if loop.on_max == "finish":
            walk.finish(spot, state, last.output)
            return
        text = f"The loop's condition was not met within its {loop.max} turns."
        walk.finish(spot, state, error={"kind": "max_turns", "message": text})


def _outputs(walk: Walk, place: str, loop: Loop) -> dict[str, Any]:
    """What the nodes of one turn gave, the output node's left out: it only repeats them."""
    found = {}
    for node in loop.body.nodes:
        state = walk.run.nodes.get(under(place, node.id))
        if state is not None and state.status == "completed" and node.kind != "output":
            found[node.id] = state.output
    return found


class NestedWork:
    """Another workflow."""

    def begin(self, walk: Walk, spot: Spot) -> None:
        assert spot.node.workflow is not None
        walk.start(spot, bind(spot.node.workflow.input, spot.scope))

    def go_on(self, walk: Walk, spot: Spot, state: Node) -> None:
        assert spot.node.workflow is not None
        result = walk.graph(state.place, spot.node.workflow.workflow, {"input": state.input})
        if result is not None:
            walk.finish(spot, state, result.output, result.error)
