"""A held stream is silent for ten seconds at most, whatever the pings of other streams are."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.http import sink
from tests.harness import KEY, alias, gateway


async def test_the_status_goes_out_before_the_first_ping_is_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`server.ping_seconds` is 15 here; ten seconds are shortened to a fraction of one."""
    assert sink.HOLD_SECONDS == 10.0
    monkeypatch.setattr(sink, "HOLD_SECONDS", 0.2)
    held = alias("held", ("chat", "slow-300"), commit="complete")
    async with gateway(tmp_path, held) as g:
        messages = [{"role": "user", "content": "one two three four five six"}]
        body = {"model": "held", "messages": messages, "stream": True}
        headers = {"authorization": f"Bearer {KEY}"}
        async with g.http.post(g.url + "/v1/chat/completions", json=body, headers=headers) as reply:
            assert (reply.status, await reply.content.readany()) == (200, b": ping\n\n")
            assert "x-gateway-attempts" not in reply.headers, "nobody knows yet who answers"
            rest = await reply.read()
    assert rest.startswith(b"data: ")
    assert rest.endswith(b"data: [DONE]\n\n")
