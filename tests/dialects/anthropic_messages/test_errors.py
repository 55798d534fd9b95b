"""What the provider's errors mean."""

from __future__ import annotations

import json

import pytest

from adapters.dialects.anthropic_messages import DIALECT


def told(kind: str, message: str = "words", **details) -> bytes:
    error = {"type": kind, "message": message, **({"details": details} if details else {})}
    return json.dumps({"type": "error", "error": error, "request_id": "req_1"}).encode()


@pytest.mark.parametrize(
    ("status", "body", "kind", "shown"),
    [
        (400, told("invalid_request_error"), "bad_request", 400),
        (400, told("invalid_request_error", "prompt is too long"), "context_overflow", 400),
        (
            400,
            told(
                "invalid_request_error",
                "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000",
            ),
            "context_overflow",
            400,
        ),
        (
            400,
            told("invalid_request_error", "Your credit balance is too low to access the API"),
            "upstream_billing",
            502,
        ),
        (401, told("authentication_error", "invalid x-api-key"), "upstream_auth", 502),
        (402, told("billing_error"), "upstream_billing", 502),
        (403, told("permission_error"), "upstream_auth", 502),
        (404, told("not_found_error", "model: nope"), "upstream_rejected", 502),
        (413, told("request_too_large"), "too_large", 413),
        (413, b"{}", "too_large", 413),
        (429, told("rate_limit_error"), "upstream_rate_limited", 429),
        (
            429,
            told("rate_limit_error", error_code="enforced_spend_limit_reached"),
            "upstream_billing",
            502,
        ),
        (
            429,
            told("rate_limit_error", error_code="ramp_limit_exceeded"),
            *("upstream_rate_limited", 429),
        ),
        (500, told("api_error"), "upstream_server", 502),
        (503, b"<html>busy</html>", "upstream_overloaded", 503),
        (504, told("timeout_error"), "upstream_timeout", 504),
        (529, told("overloaded_error"), "upstream_overloaded", 503),
        (529, b"", "upstream_overloaded", 503),
    ],
)
def test_statuses(status, body, kind, shown):
    fault = DIALECT.error(status, {"Request-Id": "req_1", "retry-after": "30"}, body)
    assert (fault.kind, fault.status) == (kind, shown)
    assert (fault.upstream_status, fault.upstream_request_id) == (status, "req_1")
    assert fault.retry_after == 30


@pytest.mark.parametrize(
    ("kind", "fault_kind"),
    [
        ("overloaded_error", "upstream_overloaded"),
        ("api_error", "upstream_server"),
        ("rate_limit_error", "upstream_rate_limited"),
        ("timeout_error", "upstream_timeout"),
        ("invalid_request_error", "bad_request"),
        ("brand_new_error", "upstream_server"),
    ],
)
def test_errors_inside_a_stream(decode, fault_of, kind, fault_kind):
    events = decode([b"event: error\ndata: " + told(kind) + b"\n\n"])
    assert len(events) == 1
    assert fault_of(events).kind == fault_kind
    assert fault_of(events).upstream_request_id == "req_1"


def test_a_spend_limit_inside_a_stream_is_no_rate_limit(decode, fault_of):
    error = told("rate_limit_error", error_code="contract_spend_limit_reached")
    assert fault_of(decode([b"data: " + error + b"\n\n"])).kind == "upstream_billing"


def test_an_error_in_a_whole_body(fault_of):
    events = DIALECT.decoder().body(told("overloaded_error"))
    assert fault_of(events).kind == "upstream_overloaded"
