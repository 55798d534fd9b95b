"""Every fault kind has its words in both envelopes, bounded, with Retry-After."""

import json

import pytest

from adapters.canonical.faults import KINDS, Fault
from gateway.northbound import errors


def test_every_kind_has_words():
    assert set(errors.WORDS) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "anthropic-messages"])
def test_every_kind_makes_a_complete_envelope(kind, dialect):
    reply = errors.envelope(Fault(kind, "What is wrong.", param="messages[0]"), dialect, "req_1")
    assert reply.status == KINDS[kind].status
    body = json.loads(reply.body)
    assert body["error"]["message"].endswith("What is wrong.")
    assert body["error"]["param"] == "messages[0]"
    assert body["error"]["type"]
    assert body["error"]["code"]
    assert body.get("type") == ("error" if dialect == "anthropic-messages" else None)
    assert body.get("request_id") == ("req_1" if dialect == "anthropic-messages" else None)


# Case E03: the table that back-off and alerting rely on.
@pytest.mark.parametrize(
    ("kind", "status", "openai_type", "anthropic_type", "code"),
    [
        ("upstream_rate_limited", 429, "rate_limit_error", "rate_limit_error", None),
        ("rate_limited", 429, "rate_limit_error", "rate_limit_error", "rate_limit_exceeded"),
        ("upstream_overloaded", 503, "server_error", "overloaded_error", None),
        ("upstream_auth", 502, "server_error", "api_error", None),
        ("too_large", 413, "invalid_request_error", "request_too_large", "request_too_large"),
        (
            "context_overflow",
            400,
            "invalid_request_error",
            "invalid_request_error",
            "context_length_exceeded",
        ),
        (
            "unsupported",
            400,
            "invalid_request_error",
            "invalid_request_error",
            "unsupported_parameter",
        ),
    ],
)
def test_the_words_of_case_e03(kind, status, openai_type, anthropic_type, code):
    for dialect, expected in (("openai-chat", openai_type), ("anthropic-messages", anthropic_type)):
        reply = errors.envelope(Fault(kind, "x", retry_after=2.1), dialect)
        error = json.loads(reply.body)["error"]
        assert (reply.status, error["type"], error["code"]) == (status, expected, code or kind)
        assert reply.headers["retry-after"] == "3"


@pytest.mark.parametrize(
    ("message", "data", "told"),
    [
        (
            "Shorten it.",
            {"estimated_input_tokens": 9, "context_window": 8},
            "prompt is too long: 9 tokens > 8 maximum. Shorten it.",
        ),
        ("Shorten it.", None, "prompt is too long. Shorten it."),
        ("Prompt is too long: 9 > 8", None, "Prompt is too long: 9 > 8"),
    ],
)
def test_claude_code_is_told_to_compact_in_its_words(message, data, told):
    fault = Fault("context_overflow", message, data=data)
    for dialect, expected in (("anthropic-messages", told), ("openai-responses", message)):
        error = json.loads(errors.envelope(fault, dialect).body)["error"]
        assert error["message"] == expected


def test_a_wait_is_whole_seconds_and_absent_when_unknown():
    assert "retry-after" not in errors.envelope(Fault("rate_limited", "x"), "openai-chat").headers
    soon = errors.envelope(Fault("rate_limited", "x", retry_after=0.0), "openai-chat")
    assert soon.headers["retry-after"] == "0"


def test_hopeless_faults_tell_sdks_not_to_retry():
    assert errors.envelope(Fault("conflict", "x"), "openai-chat").headers["x-should-retry"] == (
        "false"
    )
    for kind in ("rate_limited", "upstream_server", "internal"):
        assert "x-should-retry" not in errors.envelope(Fault(kind, "x"), "openai-chat").headers


def test_a_code_of_the_raisers_own_wins():
    fault = Fault("bad_request", "x", code="invalid_base64")
    assert json.loads(errors.body(fault, "openai-chat"))["error"]["code"] == "invalid_base64"


def test_bodies_are_bounded_and_details_stay_inside():
    for kind, most in (("rate_limited", errors.MAX_BODY), ("output_invalid", errors.MAX_RAW_BODY)):
        fault = Fault(
            kind,
            "m" * 50_000,
            detail="secret detail",
            param="p" * 50_000,
            data={"raw": "é" * 50_000, "errors": [{"a": "é" * 5_000, "b": "é" * 5_000}] * 500},
        )
        for dialect in ("openai-chat", "anthropic-messages"):
            body = errors.body(fault, dialect)
            assert len(body) <= most
            assert b"secret detail" not in body
            assert json.loads(body)["error"]["data_omitted"] is True


def test_a_whole_answer_that_did_not_pass_is_shown():
    raw = '{"text": "' + "é" * 9_000 + '"}'
    error = json.loads(errors.body(Fault("output_invalid", "x", data={"raw": raw}), "openai-chat"))
    assert error["error"]["raw"] == raw


def test_whose_fault_it_was_names_the_provider():
    for kind, named in (
        ("upstream_server", True),
        ("output_invalid", True),
        ("upstream_auth", True),
        ("bad_request", False),
    ):
        for dialect in ("openai-chat", "openai-responses", "anthropic-messages"):
            fault = Fault(kind, "x", deployment="acme/some/model")
            error = json.loads(errors.body(fault, dialect))["error"]
            assert error.get("provider") == ("acme" if named else None)
            assert error["type"]
            assert error["code"] == ("invalid_request" if kind == "bad_request" else kind)


def test_data_that_fits_is_shown():
    fault = Fault("output_invalid", "x", data={"raw": "{}", "errors": ["/a: missing"]})
    error = json.loads(errors.body(fault, "openai-chat"))["error"]
    assert (error["raw"], error["errors"]) == ("{}", ["/a: missing"])
