"""What a failed run is for a client that took it for a model: told by whose fault it was."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.canonical.events import Failed
from gateway.northbound.runs.answer import RunAnswer


@pytest.mark.parametrize(
    ("failed", "kind", "status"),
    [
        ("unbound", "bad_request", 400),
        ("input_invalid", "bad_request", 400),
        ("output_invalid", "output_invalid", 422),
        ("no_output", "output_invalid", 422),
        ("timeout", "deadline", 504),
        ("expired", "deadline", 504),
        ("upstream_server", "upstream_server", 502),
        ("internal", "internal", 500),
    ],
)
def test_a_failed_run_is_told_by_its_cause(failed: str, kind: str, status: int) -> None:
    told = RunAnswer(steps=False)
    error = {"kind": failed, "message": "why"}
    usage: dict[str, Any] = {"input_tokens": 1, "output_tokens": 1}
    data = {"error": error, "reason": failed, "usage": usage, "trace": [], "output": {}}
    told.feed({"type": "run.failed", "step": None, "data": data})
    assert isinstance(told.terminal, Failed)
    fault = told.terminal.fault
    assert (fault.kind, fault.status, fault.message) == (kind, status, "why")
