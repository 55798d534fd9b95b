"""Failures of chat servers, in whatever dress they come."""

from __future__ import annotations

import pytest

from adapters.dialects.openai_chat import DIALECT, errors


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, b'{"error":{"message":"Bad field","type":"invalid_request_error"}}', "bad_request"),
        (
            400,
            b'{"error":{"message":"maximum context length is 8","code":"context_length_exceeded"}}',
            "context_overflow",
        ),
        (
            401,
            b'{"error":{"message":"Incorrect API key","code":"invalid_api_key"}}',
            "upstream_auth",
        ),
        (404, b'{"error":{"code":"DeploymentNotFound","message":"x"}}', "upstream_rejected"),
        (429, b'{"error":{"code":429,"message":"slow"}}', "upstream_rate_limited"),
        (429, b'{"error":{"code":"insufficient_quota","message":"x"}}', "upstream_billing"),
        (502, b"<html>Bad Gateway</html>", "upstream_server"),
        (503, b"", "upstream_overloaded"),
    ],
)
def test_error_statuses(status: int, body: bytes, kind: str) -> None:
    fault = DIALECT.error(status, {"retry-after": "3"}, body)
    assert (fault.kind, fault.upstream_status, fault.retry_after) == (kind, status, 3.0)
    assert "<html>" not in fault.message


@pytest.mark.parametrize(
    ("value", "event", "kind"),
    [
        ({"error": {"code": 400, "message": "x"}}, "", "bad_request"),
        ({"error": "overloaded"}, "", "upstream_overloaded"),
        ({"error": {"code": "insufficient_quota"}, "choices": []}, "", "upstream_billing"),
        ({"message": "x", "code": 429}, "error", "upstream_rate_limited"),
        ({"object": "error", "message": "x", "code": 500}, "", "upstream_server"),
    ],
)
def test_errors_inside_an_answer(value: dict, event: str, kind: str) -> None:
    fault = errors.in_answer(value, event)
    assert fault is not None
    assert fault.kind == kind


def test_no_error_is_none() -> None:
    assert errors.in_answer({"error": None, "choices": []}, "") is None


def test_the_key_goes_as_a_bearer_token() -> None:
    assert DIALECT.auth("k") == {"authorization": "Bearer k"}
