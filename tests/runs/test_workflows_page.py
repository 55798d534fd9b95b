"""``docs/workflows.md`` tells what the code takes: every field, kind, test, mode and view."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from gateway.http.run_models import CHOICES, LEAVING
from gateway.http.run_views import VIEWS
from gateway.northbound.runs import workflow_shapes as shapes
from gateway.northbound.runs.workflow_bodies import WANTED
from gateway.runs.binding import FORMS
from gateway.runs.workflow import KINDS
from gateway.runs.workflow_forms import JOINS, OPERANDS
from tests.harness import gateway
from tests.runs.following import begin, watch
from tests.runs.test_team import HAND_OVER, LAUNCH, SCRIPTED, says, team
from tests.runs.test_views import seen

PAGE = (Path(__file__).parents[2] / "docs" / "workflows.md").read_text()
NODES: dict[str, Any] = {
    "call": shapes.CallBody,
    "agent": shapes.AgentNodeBody,
    "tool": shapes.ToolBody,
    "branch": shapes.BranchBody,
    "map": shapes.MapBody,
    "loop": shapes.LoopBody,
    "approval": shapes.ApprovalBody,
    "team": shapes.TeamBody,
    "workflow": shapes.NestedBody,
    "output": shapes.OutputBody,
}
COMMON = set(shapes.Common.__annotations__)


def part(heading: str) -> str:
    return PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def rows(heading: str) -> dict[str, str]:
    """The lines of a table by their first word in quotes."""
    lines = [line for line in part(heading).splitlines() if line.startswith("| `")]
    return {re.findall(r"`([^`]+)`", line)[0]: line for line in lines}


def words(text: str) -> set[str]:
    """What stands in quotes, each by its first word."""
    return {re.split(r"[\s{(]", one)[0] for one in re.findall(r"`([^`]+)`", text)}


def test_every_kind_of_node_is_told_with_its_fields() -> None:
    told = rows("Nodes")
    assert set(told) == set(NODES) == set(KINDS)
    for kind, body in NODES.items():
        own = set(body.__annotations__) - COMMON - {"kind"}
        assert own <= words(told[kind]), kind


def test_what_every_node_may_have_is_told() -> None:
    assert COMMON - {"description"} <= words(part("Nodes"))


def test_a_workflow_s_own_fields_are_told() -> None:
    text = part("A workflow")
    assert words(text) >= set(shapes.WorkflowBody.__annotations__)
    assert words(text) >= set(shapes.SettingBody.__annotations__)


def test_references_and_tests_are_told() -> None:
    text = part("References")
    for form in FORMS:
        assert re.search(rf"{{ {form} = ", text), form
    assert words(text) >= {*OPERANDS, *JOINS}


def test_modes_and_what_they_take_are_told() -> None:
    told = {mode: line for mode, line in rows("Teams").items() if mode in WANTED}
    assert set(told) == set(WANTED)
    for mode, wanted in WANTED.items():
        assert words(told[mode].split("|")[2]) == set(wanted)


@pytest.mark.parametrize("name", VIEWS)
def test_views_are_told(name: str) -> None:
    assert f"?format={name}" in part("Seen from outside")


async def test_the_seven_workflow_events_are_told_with_their_fields(tmp_path: Path) -> None:
    lines = [line for line in part("Seen from outside").splitlines() if line.startswith("| `")]
    told: dict[str, tuple[set[str], set[str]]] = {}
    for line in lines:
        _, names, fields, _ = line.split("|")
        data = re.findall(r"`data: {([^`]*)}`", fields)[0]
        inner = {
            one.split(":")[0].strip() for one in re.sub(r"[\[{].*?[\]}]+", "", data).split(",")
        }
        told |= dict.fromkeys(words(names), ({*words(fields) & OUTSIDE, "data"}, inner))
    assert len(told) == 7
    async with gateway(tmp_path, SCRIPTED) as g:
        g.simulator.script("script", [*LAUNCH, *says(HAND_OVER, "no json", "no json", "no json")])
        events = []
        for _ in range(2):
            run_id = await begin(g, {"workflow": team(), "input": "a poem"})
            await watch(g, run_id)
            events += await seen(g, run_id, "workflow-events")
    assert {event["event"] for event in events} == set(told)
    for event in events:
        outside, inside = told[event["event"]]
        assert (set(event), set(event["data"])) == (outside, inside), event


OUTSIDE = {"event", "agent_name"}


def test_what_headers_may_say_is_told() -> None:
    text = part("Seen from outside")
    for header, choices in (("x-gateway-steps", CHOICES), ("x-gateway-on-disconnect", LEAVING)):
        assert any(f"{header}: {word}" in text for word in choices)
