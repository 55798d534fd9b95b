"""``docs/runs.md`` tells what the code does: every event, field, state, answer and door."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from gateway.northbound.runs.agents import AgentBody
from gateway.northbound.runs.bodies import RunBody
from gateway.runs.events import EVENTS, FIELDS, TERMINAL, draft
from gateway.runs.fold import HANDLERS
from gateway.runs.spec import ACTIONS
from gateway.runs.status import MOVES
from tests.harness import gateway

PAGE = (Path(__file__).parents[2] / "docs" / "runs.md").read_text()


def rows(heading: str) -> list[list[str]]:
    """The cells of all tables under a heading."""
    part = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_every_event_is_told_with_its_fields() -> None:
    told = {names(row[0])[0]: row for row in rows("Events") if "." in names(row[0])[0]}
    assert list(told) == list(EVENTS)
    for type, shape in EVENTS.items():
        _, meaning, fields = told[type]
        assert meaning == shape.meaning
        assert names(fields) == [*shape.need, *shape.may]
        assert re.findall(r"`(\w+)`\?", fields) == list(shape.may)


def test_every_field_is_told() -> None:
    told = [row for row in rows("Events") if "." not in names(row[0])[0]]
    assert {names(row[0])[0]: (row[1], row[2]) for row in told if len(row) == 3} == {
        name: (kind, meaning) for name, (kind, meaning) in FIELDS.items() if meaning
    } | {name: (kind, "") for name, (kind, meaning) in FIELDS.items() if not meaning}


def test_the_fields_of_events_are_the_known_ones() -> None:
    used = {name for shape in EVENTS.values() for name in (*shape.need, *shape.may)}
    assert used == set(FIELDS)


def test_every_move_is_told() -> None:
    told: dict[str, dict[str | None, str]] = {}
    for event, before, after in rows("States"):
        moves = told.setdefault(names(event)[0], {})
        moves.update(dict.fromkeys(names(before) or [None], names(after)[0]))  # type: ignore[list-item]
    assert told == MOVES


def test_every_answer_is_told() -> None:
    told = {names(row[0])[0]: row[2] for row in rows("Questions")}
    assert set(told) == set(ACTIONS)
    for kind, actions in ACTIONS.items():
        assert [name for name in names(told[kind]) if name in actions] == list(actions)


def test_every_field_of_a_body_is_told() -> None:
    told = {name for row in rows("The API") for name in names(row[0])}
    assert set(RunBody.__annotations__) - {"workflow"} <= told | {"agent"}
    told = {name for row in rows("Agents") for name in names(row[0])}
    assert set(AgentBody.__annotations__) - {"name", "description"} == told


async def test_every_door_is_told(tmp_path: Path) -> None:
    cells = [name for row in rows("The API") for name in names(row[0])]
    told = set()
    for cell in cells:
        method, _, path = cell.partition(" ")
        if path.startswith("/"):
            told.add((method, path.split("?")[0]))
    told.add(("POST", "/runs/{id}/resume"))
    async with gateway(tmp_path) as g:
        for method, path in sorted(told):
            url = g.url + re.sub(r"\{\w+\}", "x", path)
            async with g.http.request(method, url) as reply:
                assert reply.status == 401, (method, path, "is there, and wants a key")


@pytest.mark.parametrize("type", sorted(EVENTS))
def test_a_draft_has_the_shape_of_its_type(type: str) -> None:
    shape = EVENTS[type]
    fields: dict[str, Any] = {f"{n}_" if n in ("for", "from") else n: 1 for n in shape.need}
    assert draft(type, **fields).data.keys() == set(shape.need)
    with pytest.raises(ValueError, match="foreign"):
        draft(type, **fields, nonsense=1)
    if shape.need:
        with pytest.raises(ValueError, match="missing"):
            draft(type)


def test_handlers_and_endings_are_of_known_types() -> None:
    assert set(HANDLERS) <= set(EVENTS)
    assert set(MOVES) <= set(EVENTS)
    ends = {type for type, moves in MOVES.items() if set(moves.values()) & {"completed", "failed",
            "incomplete", "cancelled", "expired"}}  # fmt: skip
    assert ends == TERMINAL
