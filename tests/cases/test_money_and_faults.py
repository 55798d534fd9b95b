"""Cases of accounting, faults, retries and what callers may not choose."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from gateway.settings.load import load
from gateway.settings.problems import ConfigError
from tests.cases.conftest import body
from tests.harness import ENVIRONMENT, PROVIDERS, Harness, gateway


def message(usage: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": [{"type": "text", "text": "ok"}],
        "stop_reason": "end_turn",
        "usage": usage,
    }


def response(usage: Any) -> dict[str, Any]:
    text = {"type": "output_text", "text": "ok", "annotations": []}
    made = {"type": "message", "id": "m", "role": "assistant", "content": [text]}
    return {
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "model": "gpt",
        "output": [made],
        "usage": usage,
    }


BILLS = [
    (
        "m-claude",
        "claude-sonnet-4-5",
        message(
            {
                "input_tokens": 100,
                "cache_read_input_tokens": 6000,
                "cache_creation_input_tokens": 400,
                "output_tokens": 50,
            }
        ),
        4_350_000,
        6500,
    ),
    (
        "m-openai",
        "gpt-test",
        response(
            {
                "input_tokens": 6500,
                "input_tokens_details": {"cached_tokens": 6000},
                "output_tokens": 50,
                "output_tokens_details": {"reasoning_tokens": 20},
                "total_tokens": 6550,
            }
        ),
        4_400_000,
        6500,
    ),
    (
        "m-claude",
        "claude-sonnet-4-5",
        message(
            {
                "input_tokens": 100,
                "cache_read_input_tokens": 0,
                "cache_creation_input_tokens": 400,
                "output_tokens": 1,
            }
        ),
        1_815_000,
        500,
    ),
]


@pytest.mark.parametrize(("alias", "model", "answer", "nano", "prompt"), BILLS)
async def test_each_token_is_charged_once_A01(
    g: Harness, laid, alias: str, model: str, answer: Any, nano: int, prompt: int
) -> None:
    laid(model, body(answer))
    found = await g.chat(alias)
    assert found.json()["usage"]["prompt_tokens"] == prompt
    row = (await g.explain(found))["attempts"][0]
    assert row["cost_nano"] == nano
    usage = (await g.get("/admin/usage?by=alias")).json()["usage"]
    assert usage[0]["cost_nano"] == nano


USAGES = [
    {"input_tokens": -1_000_000, "output_tokens": -5, "total_tokens": -1_000_005},
    {"input_tokens": "12", "output_tokens": 1.5},
    {"input_tokens": 9_007_199_254_740_993, "output_tokens": 1, "total_tokens": 1},
    None,
]


@pytest.mark.parametrize("usage", USAGES)
async def test_absurd_usage_is_estimated_A09(g: Harness, laid, usage: Any) -> None:
    laid("gpt-test", body(response(usage)))
    row = (await g.explain(await g.chat("m-openai")))["attempts"][0]
    assert row["usage_source"] == "estimated"
    assert row["input_tokens"] > 0
    assert row["cost_nano"] > 0
    assert row["usage_invalid"] is (usage is not None)


async def test_cached_tokens_are_clamped_A09(g: Harness, laid) -> None:
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 50},
        "output_tokens": 1,
        "total_tokens": 11,
    }
    laid("gpt-test", body(response(usage)))
    row = (await g.explain(await g.chat("m-openai")))["attempts"][0]
    assert (row["cache_read_tokens"] or 0) <= row["input_tokens"]
    assert row["cost_nano"] > 0


ZEROES = [
    ("limits = { usd_per_day = 0.0 }", 402, "budget_exceeded"),
    ("limits = { }", 200, None),
    ("limits = { rpm = 0 }", 429, "rate_limit_exceeded"),
    ("limits = { concurrent = 0 }", 429, "rate_limit_exceeded"),
]


@pytest.mark.parametrize(("limits", "status", "code"), ZEROES)
async def test_zero_blocks_and_absent_does_not_A15(
    tmp_path: Path, limits: str, status: int, code: str | None
) -> None:
    keys = f'\n[[keys]]\nname = "caller"\nkey = "${{CALLER}}"\n{limits}\n'
    alias = '[models.m]\ntargets = [{ provider = "openai", model = "gpt-5.2" }]\n'
    config = '[store]\nurl = "sqlite:///gateway.db"\n' + PROVIDERS + alias + keys
    async with gateway(tmp_path, config=config) as g:
        answer = await g.chat("m")
        assert answer.status == status, answer.body
        if code is not None:
            assert answer.json()["error"]["code"] == code
            assert len(g.simulator.log) == 0


def test_a_negative_budget_is_a_config_error_A15(tmp_path: Path) -> None:
    path = tmp_path / "g.toml"
    path.write_text('[[keys]]\nname = "a"\nkey = "${CALLER}"\nlimits = { usd_per_day = -1 }\n')
    with pytest.raises(ConfigError, match="usd_per_day"):
        load(path, ENVIRONMENT)


VECTORS = [
    (body(b"forbidden", 403, ""), 502, "upstream_auth"),
    (body(b"<html><h1>502 Bad Gateway</h1></html>", 502, "text/html"), 502, "upstream_server"),
    (body(b"", 500), 502, "upstream_server"),
    (body(b"<html>login</html>", 200, "text/html"), 502, "protocol_error"),
    (body(b'{"object":', 200), 502, "protocol_error"),
]


@pytest.mark.parametrize(("reply", "status", "code"), VECTORS)
async def test_the_status_decides_first_E05(g: Harness, laid, reply, status, code) -> None:
    laid("gpt-test", reply)
    answer = await g.chat("m-openai")
    assert answer.status == status
    error = answer.json()["error"]
    assert error["code"] == code
    assert "<" not in error["message"]


OVERLOADS = [
    ("fault-status-429-retry-after-7", 429, "upstream_rate_limited", "7"),
    ("fault-status-529", 503, "upstream_overloaded", None),
    ("fault-status-401", 502, "upstream_auth", None),
    ("fault-context-overflow", 400, "context_length_exceeded", None),
]


@pytest.mark.parametrize(("name", "status", "code", "retry_after"), OVERLOADS)
async def test_hints_and_classes_reach_the_caller_E03(
    g: Harness, laid, name: str, status: int, code: str, retry_after: str | None
) -> None:
    laid("claude-sonnet-4-5", name)
    answer = await g.chat("m-claude")
    assert answer.status == status
    assert answer.json()["error"]["code"] == code
    assert answer.headers.get("retry-after") == retry_after


async def test_error_bodies_stay_small_and_echo_nothing_E08(g: Harness) -> None:
    wrong = [{"role": "user", "content": [{"type": "text", "text": 5, "canary": "zzz9"}]}] * 5000
    answer = await g.post("/v1/chat/completions", {"model": "m-openai", "messages": wrong})
    assert answer.status == 400
    assert len(answer.body) < 8_000
    assert b"zzz9" not in answer.body


TRIES = [
    ("fault-status-400", 1),
    ("fault-status-422", 1),
    ("fault-status-401", 2),
    ("fault-status-404", 2),
    ("fault-status-500", 6),
]


@pytest.mark.parametrize(("name", "tries"), TRIES)
async def test_only_what_may_heal_is_tried_again_R01(g: Harness, name: str, tries: int) -> None:
    g.simulator.script("claude-a", [name] * 9)
    g.simulator.script("claude-b", [name] * 9)
    answer = await g.chat("m-two")
    assert answer.status >= 400
    seen = [a.model for a in g.simulator.log]
    assert len(seen) == tries
    if name in ("fault-status-401", "fault-status-404"):
        assert seen == ["claude-a", "claude-b"], "once at each deployment"


async def test_a_too_long_prompt_harms_nobody_else_R02(g: Harness, laid) -> None:
    for _ in range(7):
        laid("claude-sonnet-4-5", "fault-context-overflow")
        answer = await g.chat("m-claude")
        assert answer.json()["error"]["code"] == "context_length_exceeded"
    assert len(g.simulator.log) == 7
    laid("claude-sonnet-4-5", *["echo"] * 20)
    answers = await asyncio.gather(*(g.chat("m-claude") for _ in range(20)))
    assert [a.status for a in answers] == [200] * 20
    rows = (await g.get("/admin/deployments")).json()["deployments"]
    assert {r["state"] for r in rows} == {"closed"}


EVIL: list[dict[str, Any]] = [
    {"api_base": "http://127.0.0.1:9/v1"},
    {"extra_body": {"base_url": "http://127.0.0.1:9"}},
    {"extra_headers": {"authorization": "x"}},
    {"api_key": "sk-mine"},
]


@pytest.mark.parametrize("field", EVIL)
async def test_no_caller_chooses_where_a_call_goes_X05(g: Harness, field: dict[str, Any]) -> None:
    answer = await g.chat("m-chat", **field)
    assert answer.status in (200, 400)
    for seen in g.simulator.log:
        assert seen.headers["authorization"] == "Bearer sk-provider-chat"
        assert next(iter(field)) not in seen.body


async def test_probes_call_no_model_and_tell_the_truth_F03(g: Harness) -> None:
    for _ in range(20):
        assert (await g.get("/healthz", key=None)).status == 200
        assert (await g.get("/readyz", key=None)).status == 200
    assert len(g.simulator.log) == 0
    body_text = (await g.get("/readyz", key=None)).body
    assert set(json.loads(body_text)) == {"status"}


async def test_an_error_after_content_is_no_end_E01(g: Harness, laid) -> None:
    laid("claude-sonnet-4-5", "fault-error-midstream-2", "fault-error-midstream-2")
    chat = await g.chat("m-claude", stream=True)
    assert chat.status == 200
    assert "error" in chat.data()[-1]
    assert all(c.get("choices", [{}])[0].get("finish_reason") is None for c in chat.data()[:-1])
    request = {"model": "m-claude", "max_tokens": 9, "stream": True}
    native = await g.post(
        "/v1/messages", {**request, "messages": [{"role": "user", "content": "x y z"}]}
    )
    kinds = [e["type"] for e in native.data()]
    assert kinds[-1] == "error"
    assert "message_stop" not in kinds
    row = await g.explain(chat)
    assert row["status"] == "partial"
