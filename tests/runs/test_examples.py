"""The examples of ``config/agents`` and ``config/workflows``, each run on the simulator."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from adapters.simulator import Say
from gateway.app import check
from gateway.cli.main import main
from tests.harness import ENVIRONMENT, Harness, alias, gateway
from tests.runs.following import answered, begin, data, read, watch
from tests.runs.tools import spy, use

CONFIG = Path(__file__).parents[2] / "config"
SMART = alias("smart", ("openai", "script"), retries=0)
FOLDERS = f"""
[runs]
agents_dir = "{CONFIG / "agents"}"
workflows_dir = "{CONFIG / "workflows"}"
"""


@asynccontextmanager
async def examples(folder: Path, *turns: Any) -> Any:
    async with gateway(folder, SMART, FOLDERS) as g:
        texts = [turn if isinstance(turn, str) else json.dumps(turn) for turn in turns]
        g.simulator.script("script", [Say(text) for text in texts])
        yield g


async def ended(g: Harness, workflow: str, given: Any) -> tuple[dict[str, Any], list[Any]]:
    run_id = await begin(g, {"workflow": workflow, "input": given})
    events = await watch(g, run_id)
    return await read(g, run_id), events


async def test_all_examples_are_sound(tmp_path: Path) -> None:
    async with examples(tmp_path) as g:
        assert check(g.state.snapshot) == []
        names = {file.stem for file in (CONFIG / "workflows").glob("*.toml")}
        assert set(g.state.workflows.written) == names
        assert len(names) == 4, "a new example needs its test"


async def test_ticket_triage(tmp_path: Path) -> None:
    urgent = {"category": "delivery", "urgency": "high"}
    async with examples(tmp_path, urgent, "We are on it.") as g:
        run, events = await ended(g, "ticket-triage", {"text": "lost!"})
        assert run["output"]["value"] == {**urgent, "answer": "We are on it."}
        assert [d["node"] for d in data(events, "node.skipped")] == ["short"]
        low = {"category": "other", "urgency": "low"}
        g.simulator.script("script", [Say(json.dumps(low)), Say("Thanks.")])
        run, events = await ended(g, "ticket-triage", {"text": "thanks"})
        assert run["output"]["value"]["answer"] == "Thanks."
        assert [d["node"] for d in data(events, "node.skipped")] == ["urgent"]


async def test_research_team_with_factory(tmp_path: Path) -> None:
    plan = {
        "steps": [{"member": "oceanographer", "task": "tides"}, {"member": "writer", "task": "w"}],
        "new_agents": [{"name": "oceanographer", "purpose": "knows the sea"}],
    }
    made = {"model": "smart", "instructions": "Know the sea.", "tools": ["calculator"]}
    turns = (
        {"action": "hand_over", "text": "needs research"},
        plan,
        made,
        {"next": "oceanographer", "text": "explain tides"},
        "The moon pulls.",
        {"next": "writer", "text": "write it"},
        "Report: the moon pulls.",
        {"next": "finish", "text": "Report: the moon pulls."},
    )
    async with examples(tmp_path, *turns) as g:
        run, events = await ended(g, "research-team", "How do tides work?")
        assert run["output"]["text"] == "Report: the moon pulls."
        assert data(events, "agent.created")[0]["spec"]["name"] == "oceanographer"


async def test_extract_validate_loop(tmp_path: Path) -> None:
    turns = (
        {"facts": ["a", "b"]},
        {"ok": False, "problems": ["b is not said"]},
        {"facts": ["a"]},
        {"ok": True, "problems": []},
    )
    async with examples(tmp_path, *turns) as g:
        run, _ = await ended(g, "extract-validate", {"text": "a"})
        assert run["output"]["value"] == ["a"]
        second = json.dumps(g.simulator.log.of("script")[2].body["input"])
        assert "b is not said" in second


async def test_approval_before_sending(tmp_path: Path) -> None:
    for answer, wanted in (
        ({"action": "approve"}, "Sent to Ann at time done: Dear Ann"),
        ({"action": "deny", "reason": "too rude"}, "Not sent: too rude"),
    ):
        async with examples(tmp_path, "Dear Ann") as g:
            use(g, send := spy("time"))
            given = {"to": "Ann", "about": "tea"}
            run_id = await begin(g, {"workflow": "approve-before-sending", "input": given})
            events = await watch(g, run_id, until="run.waiting")
            asked = data(events, "input.requested")[0]
            assert asked["arguments"] == {"message": "Send this to Ann?", "show": "Dear Ann"}
            assert send.calls == []
            assert (await answered(g, run_id, asked["interrupt_id"], **answer)).status == 200
            await watch(g, run_id)
            assert (await read(g, run_id))["output"]["text"] == wanted
            assert len(send.calls) == (1 if answer["action"] == "approve" else 0)


async def test_a_workflow_can_be_drawn(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    async with examples(tmp_path):
        for name, value in ENVIRONMENT.items():
            monkeypatch.setenv(name, value)
        config = str(tmp_path / "gateway.toml")
        assert main(["runs", "graph", "ticket-triage", "--config", config]) == 0
        chart = capsys.readouterr().out
        assert chart.startswith("flowchart TD\n")
        assert "n_route -->|case 1| n_urgent" in chart
        assert "n_route -->|else| n_short" in chart
        assert main(["runs", "graph", "none", "--config", config]) != 0


def test_the_example_configuration_has_them_all(capsys: Any) -> None:
    """Whoever has just cloned can check, serve and draw them without a key."""
    config = str(CONFIG / "examples" / "workflows.toml")
    assert main(["check", "--config", config]) == 0
    for file in (CONFIG / "workflows").glob("*.toml"):
        assert main(["runs", "graph", file.stem, "--config", config]) == 0
        assert "flowchart TD" in capsys.readouterr().out
