"""The exposition as Prometheus's own checker sees it."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from gateway.observe.metrics import AttemptEnd, CallEnd, Metrics


@pytest.mark.all
def test_promtool_finds_nothing_to_complain_about() -> None:
    promtool = shutil.which("promtool")
    assert promtool is not None, "install Debian's package prometheus, which holds promtool"
    metrics = Metrics("1")
    metrics.know(["smart"], [("openai", "gpt")])
    metrics.watch_queue("writer", lambda: 1)
    under_way = metrics.call_started("smart")
    metrics.attempt_ended(
        AttemptEnd("smart", "chat", "openai", "gpt", "first", "", 1.5, 100, 100, 50, 5, 1234)
    )
    end = CallEnd("smart", "chat", "openai", 200, "", 1.5, 0.3, 100, stream=True)
    metrics.call_ended(end, under_way)
    checked = subprocess.run(
        [promtool, "check", "metrics"],
        input=metrics.render()[1],
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")
