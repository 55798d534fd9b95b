"""``gateway runs``: what an operator sees of runs, and does to them, beside a running gateway."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from adapters.simulator import Call, Say
from gateway.cli.timeline import LINES, line
from gateway.runs.events import EVENTS
from tests.harness import ENVIRONMENT, KEY, alias, gateway
from tests.runs.following import begin, read, types, watch
from tests.runs.tools import spy, use

ROOT = Path(__file__).parents[2]
SCRIPTED = alias("scripted", ("openai", "script"), retries=0)
BODY = {
    "agent": {
        "name": "helper",
        "model": "scripted",
        "tools": ["mail"],
        "tool_policy": {"mail": "approve"},
    },
    "input": "go",
}


async def command(folder: Path, *words: str, key: str = KEY) -> tuple[int, str, str]:
    """``gateway runs …`` on the books of the gateway in ``folder``."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway", "runs", *words,
        cwd=folder,
        env={**os.environ, **ENVIRONMENT, "PYTHONPATH": str(ROOT), "GATEWAY_KEY": key},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


async def test_an_operator_lists_answers_follows_and_replays(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        mail = spy("mail")
        use(g, mail)
        g.simulator.script("script", [Call("mail", '{"to": "ann"}'), Say("sent")])
        run_id = await begin(g, BODY)
        await watch(g, run_id, until="run.waiting")
        code, out, _ = await command(tmp_path, "list", "--format", "json")
        assert code == 0
        (row,) = json.loads(out)
        assert (row["id"], row["status"], row["waiting_for"]) == (run_id, "waiting", "approval")
        code, out, _ = await command(tmp_path, "show", run_id)
        assert json.loads(out)["interrupts"][0]["tool"] == "mail"
        following = asyncio.create_task(command(tmp_path, "tail", run_id, "--url", g.url))
        code, _, err = await command(tmp_path, "approve", run_id)
        assert code == 0, err
        await watch(g, run_id)
        assert len(mail.calls) == 1
        code, out, err = await following
        assert code == 0, err
        assert "? may it call mail" in out
        assert 'says "sent"' in out
        assert "completed" in out.splitlines()[-1]
        code, again, _ = await command(tmp_path, "tail", run_id)
        assert again == out, "the books say the same"
        code, _, err = await command(tmp_path, "replay", run_id)
        assert code == 0, err
        assert "holds" in err
        code, _, err = await command(tmp_path, "approve", run_id)
        assert (code, err) == (1, "The run asks nothing: it is completed.\n")
        assert (await command(tmp_path, "show", "run_nothing"))[0] == 1


async def test_an_operator_cancels(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        use(g, spy("mail"))
        g.simulator.script("script", [Call("mail", "{}"), Say("never")])
        run_id = await begin(g, BODY)
        await watch(g, run_id, until="run.waiting")
        code, _, err = await command(tmp_path, "cancel", run_id, "--reason", "enough")
        assert code == 0, err
        events = await watch(g, run_id, seconds=10)
        assert types(events)[-1] == "run.cancelled"
        assert (await read(g, run_id))["status"] == "cancelled"


async def test_an_operator_gives_more_or_lets_the_budget_end_it(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        g.simulator.script("script", [Say("one"), Say("two")])
        body = {"agent": {"model": "scripted"}, "input": "go", "on_budget": "wait"}
        for words, status in (
            (("--top-up", '{"tokens": 99}'), "completed"),
            (("--stop",), "incomplete"),
        ):
            run_id = await begin(g, {**body, "budget": {"tokens": 0}})
            await watch(g, run_id, until="run.waiting")
            code, _, err = await command(tmp_path, "approve", run_id, "--top-up", '{"tokens": 0}')
            assert code == 2, err
            code, _, err = await command(tmp_path, "approve", run_id, *words)
            assert code == 0, err
            await watch(g, run_id)
            assert (await read(g, run_id))["status"] == status


async def test_a_text_is_told_whole_whatever_is_in_it(tmp_path: Path) -> None:
    """Some take more characters for line ends than the format of event streams has."""
    text = "one\u2028two\u2029three\x85four\x0bfive\n\nsix"
    async with gateway(tmp_path, SCRIPTED) as g:
        g.simulator.script("script", [Say(text)])
        run_id = await begin(g, {"agent": {"model": "scripted"}, "input": "go"})
        events = await watch(g, run_id)
        code, out, err = await command(tmp_path, "tail", run_id, "--url", g.url, "--json")
        assert code == 0, err
        assert [json.loads(line) for line in out.split("\n") if line] == events


@pytest.mark.parametrize(
    ("words", "url", "key"),
    [
        (("--after", "999"), None, KEY),
        (("--after", "999"), "here", KEY),
        ((), "here", "wrong"),
        ((), "here", ""),
        ((), "nonsense", KEY),
    ],
)
async def test_what_can_not_come_right_is_not_tried_again(
    tmp_path: Path, words: tuple[str, ...], url: str | None, key: str
) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        g.simulator.script("script", [Say("done")])
        run_id = await begin(g, {"agent": {"model": "scripted"}, "input": "go"})
        await watch(g, run_id)
        place = () if url is None else ("--url", g.url if url == "here" else url)
        code, out, err = await command(tmp_path, "tail", run_id, *words, *place, key=key)
        assert code in (1, 2)
        assert out == ""
        assert "trying again" not in err
        assert "Traceback" not in err


async def test_a_tail_from_the_end_ends(tmp_path: Path) -> None:
    async with gateway(tmp_path, SCRIPTED) as g:
        g.simulator.script("script", [Say("done")])
        run_id = await begin(g, {"agent": {"model": "scripted"}, "input": "go"})
        last = str((await watch(g, run_id))[-1]["seq"])
        for place in ((), ("--url", g.url)):
            assert await command(tmp_path, "tail", run_id, "--after", last, *place) == (0, "", "")


@pytest.mark.parametrize("type", sorted(LINES))
def test_every_line_speaks_of_a_known_event(type: str) -> None:
    shape = EVENTS[type]
    data: dict[str, Any] = {name: _example(name) for name in shape.need}
    shown = line({"type": type, "at": 2.0, "agent": None, "data": data}, 1.0)
    assert shown is not None
    assert shown.startswith("    1.000  -")


def _example(name: str) -> Any:
    known: dict[str, Any] = {
        "spec": {"kind": "agent", "agent": "a"},
        "usage": {"turns": 1, "tool_calls": 1, "total_tokens": 1, "cost_usd": "0", "seconds": 1},
        "error": {"kind": "internal"},
        "content": [{"type": "text", "text": "x"}, {"type": "media"}],
        "share": 0.5,
    }
    lists = ("tools", "interrupts", "abandoned", "rerun", "in_doubt", "changes", "errors")
    return known.get(name, [] if name in lists else name)


def told(type: str, **data: Any) -> str:
    shown = line({"type": type, "at": 1.5, "agent": "helper", "data": data}, 0)
    assert shown is not None
    return shown


def test_a_failed_node_says_why_and_when_it_is_tried_again() -> None:
    error = {"kind": "timeout", "message": "took 3 s"}
    ended = told("node.finished", node="a", status="failed", error=error, retry_after=2.0)
    assert ended.endswith("node a: failed: timeout: took 3 s; again in 2 s")
    assert told("node.finished", node="a", status="completed").endswith("node a: completed")


def test_one_is_one() -> None:
    usage = {"turns": 1, "tool_calls": 2, "total_tokens": 1, "cost_usd": "0", "seconds": 0.1}
    ended = told("run.completed", usage=usage)
    assert ended.endswith("completed: 1 turn, 2 tool calls, 1 token, $0, 0.1 s at work")


def test_what_a_model_says_moves_no_cursor() -> None:
    """Nor does it turn the line round; what letters are joined with stays."""
    text = "safe\x1b[2J\x07 \u202eevil\x9b1m \U0001f468\u200d\U0001f469"
    said = told("message.completed", text=text)
    assert said.endswith('says "safe\ufffd[2J\ufffd \ufffdevil\ufffd1m \U0001f468\u200d\U0001f469"')
