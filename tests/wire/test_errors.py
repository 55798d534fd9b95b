"""Any provider's error body and headers: bounded, filtered, classified status first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.canonical.faults import KINDS
from adapters.wire import errors, signs

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3.0),
        ({"Retry-After": "0"}, 0.0),
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Fri, 15 Jan 2027 08:00:30 GMT"}, 30.0),
        (
            {
                "retry-after": "Wed, 21 Oct 2015 07:28:30 GMT",
                "date": "Wed, 21 Oct 2015 07:28:00 GMT",
            },
            30.0,
        ),
        ({"retry-after": "Fri, 15 Jan 2027 07:00:00 GMT"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "1e99"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "Fri, 99 Jan 2027 99:00:00 GMT"}, None),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert errors.parse_retry_after(headers, NOW) == seconds


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_retry_after_is_negative_or_endless(text: str, date: str) -> None:
    wait = errors.parse_retry_after({"retry-after": text, "date": date}, NOW)
    assert wait is None or 0 <= wait <= errors.MAX_WAIT


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b'{"error": {"message": "m", "code": "c"}}', {"message": "m", "code": "c"}),
        (b'{"type": "error", "error": {"type": "t"}}', {"type": "t"}),
        (b'[{"error": {"message": "m"}}]', {"message": "m"}),
        (b'{"error": "m"}', {"message": "m"}),
        (b'{"detail": "m"}', {"message": "m"}),
        (b'{"message": "m", "code": 400}', {"message": "m", "code": 400}),
        (b'{"fine": true}', None),
        (b"<html>", None),
        (b"", None),
        (b"[]", None),
        (b"\xff\xfe", None),
        (b"[" * 100_000, None),
        (b'{"error": {"message": "' + b"x" * errors.MAX_BODY + b'"}}', None),
    ],
)
def test_the_error_in_a_body(body: bytes, found: object) -> None:
    assert errors.error_object(body) == found


KEYS = [
    "sk-proj-abcDEF123456",
    "sk-ant-api03-abc_DEF",
    "Bearer abcdef",
    "AIzaSyA1234567890abc",
    "AKIAIOSFODNN7EXAMPLE",
    "eyJhbGciOi.eyJzdWIi.abc",
    "0123456789abcdef0123456789abcdef",
    "<not-a-r****key>",
    "org-abcdefghijkl1234",
    "someone@example.org",
    "data:image/png;base64,iVBORw0KGgo=",
    "QUJD" * 20,
]


@pytest.mark.parametrize("key", KEYS)
def test_no_key_and_no_address_is_shown(key: str) -> None:
    body = b'{"error": {"message": "Incorrect value provided: %s. Look here."}}' % key.encode()
    shown = errors.excerpt(body)
    assert key not in shown
    assert shown.startswith("Incorrect value provided: ")
    assert errors.fault(400, {}, body, NOW).detail is not None
    assert key not in str(errors.fault(400, {}, body, NOW).detail)


def test_no_prompt_is_echoed() -> None:
    prompt = "Write to my lawyer about the divorce, and do not tell anybody else about it."
    quoted = errors.filtered(f"Invalid value: '{prompt}'. Expected an object.")
    assert quoted == "Invalid value: […]. Expected an object."
    listed = errors.filtered(f"[{{'loc': ['body'], 'msg': 'bad', 'input': '{prompt}'}}]")
    assert prompt not in listed
    assert "'msg': 'bad'" in listed


@pytest.mark.parametrize("body", [b"<html>Oops</html>", b"", b'{"secret": 1}', b'{"half": '])
def test_what_is_no_message_is_not_shown(body: bytes) -> None:
    assert errors.excerpt(body) == ""


@given(st.binary(max_size=3_000))
def test_excerpts_are_bounded_lines(body: bytes) -> None:
    shown = errors.excerpt(body)
    assert len(shown) <= errors.MAX_EXCERPT
    assert "\n" not in shown
    assert "\x00" not in shown


def test_names_of_fields_and_models_are_shown() -> None:
    words = "Unsupported value: 'user_location' with 'claude-3-5-sonnet-20241022', call_a1B2c3D4e5."
    assert errors.filtered(words) == words


@pytest.mark.parametrize(
    ("status", "code", "message", "kind"),
    [
        (400, None, "", "bad_request"),
        (400, "integer_below_min_value", "Invalid 'max_tokens'", "bad_request"),
        (400, "context_length_exceeded", "", "context_overflow"),
        (400, "invalid_request_error", "prompt is too long: 1 tokens > 0", "context_overflow"),
        (400, "invalid_request_error", "Your credit balance is too low", "upstream_billing"),
        (400, "content_filter", "", "content_filtered"),
        (400, "INVALID_ARGUMENT", "API key not valid.", "upstream_auth"),
        (401, "invalid_api_key", "", "upstream_auth"),
        (401, None, "context length", "upstream_auth"),
        (402, None, "", "upstream_billing"),
        (403, None, "", "upstream_auth"),
        (403, "insufficient_quota", "", "upstream_billing"),
        (404, "model_not_found", "", "upstream_rejected"),
        (405, None, "", "upstream_rejected"),
        (408, None, "", "upstream_timeout"),
        (409, None, "", "upstream_server"),
        (413, "request_too_large", "", "too_large"),
        (413, None, "exceeds the context window", "context_overflow"),
        (418, None, "", "bad_request"),
        (422, None, "", "bad_request"),
        (429, "rate_limit_exceeded", "Visit the billing page", "upstream_rate_limited"),
        (429, "insufficient_quota", "", "upstream_billing"),
        (429, None, "", "upstream_rate_limited"),
        (500, None, "context length exceeded", "upstream_server"),
        (500, "overloaded_error", "", "upstream_overloaded"),
        (502, None, "", "upstream_server"),
        (503, "invalid_api_key", "", "upstream_overloaded"),
        (504, None, "", "upstream_timeout"),
        (529, "overloaded_error", "", "upstream_overloaded"),
        (302, None, "", "upstream_rejected"),
        (errors.IN_BAND, None, "", "upstream_server"),
        (errors.IN_BAND, "server_error", "", "upstream_server"),
        (errors.IN_BAND, "429", "", "upstream_rate_limited"),
        (errors.IN_BAND, "insufficient_quota", "", "upstream_billing"),
        (errors.IN_BAND, "invalid_image_url", "", "bad_request"),
        (errors.IN_BAND, "image_content_policy_violation", "", "content_filtered"),
        (errors.IN_BAND, "invalid_prompt", "It violates our usage policy.", "content_filtered"),
        (errors.IN_BAND, None, "Overloaded", "upstream_overloaded"),
    ],
)
def test_status_first_code_second_text_last(
    status: int, code: str | None, message: str, kind: str
) -> None:
    assert errors.classify(status, code, message) == kind


def test_every_sign_points_to_a_kind_and_is_written_in_lower_case() -> None:
    assert {sign.kind for sign in signs.SIGNS} | set(signs.STATUSES.values()) <= set(KINDS)
    assert all(code == code.lower() for sign in signs.SIGNS for code in sign.codes)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ({"code": None, "type": "overloaded_error"}, "overloaded_error"),
        ({"code": "weird", "type": "insufficient_quota"}, "insufficient_quota"),
        ({"code": 429}, "429"),
        ({"code": "rate_limit_exceeded", "type": "tokens"}, "rate_limit_exceeded"),
        ({"type": "invalid_request_error", "code": "bad one!"}, "invalid_request_error"),
        ({"code": True}, None),
        ({}, None),
    ],
)
def test_the_most_telling_code(error: dict[str, object], code: str | None) -> None:
    assert errors.code_of(error) == code


def test_a_fault_tells_callers_only_what_is_theirs() -> None:
    headers = {"X-Request-Id": "req_1", "retry-after": "7"}
    body = b'{"error": {"message": "Key sk-abc123 of org_abcdef123456 is over its limit."}}'
    fault = errors.fault(429, headers, body, NOW)
    assert (fault.kind, fault.retry_after, fault.billed) == ("upstream_rate_limited", 7.0, False)
    assert (fault.upstream_status, fault.upstream_request_id) == (429, "req_1")
    assert "limit" in fault.message
    assert "over its" not in fault.message
    told = errors.fault(400, {}, b'{"error": {"message": "No.", "param": "input[0].x"}}', NOW)
    assert told.message == "The provider refused the request: No."
    assert told.param == "input[0].x"


@pytest.mark.parametrize("body", [b"", b"<html><body>Bad Gateway</body></html>", b"x" * 10**6])
def test_any_body_makes_a_bounded_fault(body: bytes) -> None:
    fault = errors.fault(502, {}, body, NOW)
    assert fault.kind == "upstream_server"
    assert "<" not in fault.message
    assert len(fault.message) + len(fault.detail or "") < 1_000


@pytest.mark.parametrize("value", ["", "a b", "x" * 200, "<script>", "é"])
def test_an_odd_request_id_is_no_id(value: str) -> None:
    assert errors.request_id({"x-request-id": value}) is None
