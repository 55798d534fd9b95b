"""A call of which nothing is rewritten is known by a look, and only such a one."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.canonical.request import PromptRef
from gateway.flow.rewrite import is_sent_as_is, private
from gateway.policy.redaction.settings import MODES, Redaction
from tests.harness import Harness, alias, gateway
from tests.reliability.test_settling import call_of

BODY = b'{"model": "m", "messages": [{"role": "user", "content": "hi"}]}'
SAID = [None, *MODES]


@pytest.fixture
async def g(tmp_path: Path) -> AsyncIterator[Harness]:
    async with gateway(tmp_path, alias("m", ("openai", "gpt-5.2"))) as running:
        yield running


async def test_every_word_on_redaction_is_heeded(g: Harness) -> None:
    """As the longer way does, which asks key, alias and table in that order."""
    call = call_of(g, BODY)
    for key, own, table in itertools.product(SAID, SAID, MODES):
        changed = replace(
            call,
            principal=replace(call.principal, redaction=key),
            alias=replace(call.alias, redaction=own),
            runtime=replace(call.runtime, redaction=Redaction(mode=table)),
        )
        _, masking = await private(
            changed.runtime, changed.principal, changed.alias, changed.request
        )
        assert is_sent_as_is(changed) == (masking is None), (key, own, table)


async def test_a_word_that_nobody_knows_is_no_permission(g: Harness) -> None:
    call = call_of(g, BODY)
    for odd in ("", "of"):
        assert not is_sent_as_is(replace(call, principal=replace(call.principal, redaction=odd)))
        assert not is_sent_as_is(replace(call, alias=replace(call.alias, redaction=odd)))


@pytest.mark.parametrize("change", ["request", "alias", "marks"])
async def test_prompts_and_marks_are_put_in(g: Harness, change: str) -> None:
    call = call_of(g, BODY)
    assert is_sent_as_is(call)
    changed = {
        "request": replace(call, request=replace(call.request, prompt=PromptRef("greeting"))),
        "alias": replace(call, alias=replace(call.alias, prompt="greeting")),
        "marks": replace(call, alias=replace(call.alias, fenced=("tool_results",))),
    }[change]
    assert not is_sent_as_is(changed)
