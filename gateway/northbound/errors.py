"""Faults as the callers' protocols write them: status, headers and a bounded body.

Every error that leaves the gateway is made here, the framework's own too (fault kind K10). The
status comes from :data:`adapters.canonical.faults.KINDS`; this file knows only each protocol's
words for it. It shows a fault's ``message``, ``param`` and ``data``, never its ``detail``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from adapters.canonical.faults import Fault
from adapters.canonical.parts import Dialect
from adapters.wire.json import dumps

MAX_BODY = 8_000
"""Bytes of an error body at most, whatever the fault carries."""
MAX_MESSAGE = 1_200
MAX_PARAM = 200
MAX_DATA_TEXT = 2_000
"""Characters; long texts end in an ellipsis."""

MAX_RAW = 16_000
"""Characters of a model's answer that did not pass: its caller may want to save what is in it."""
MAX_RAW_BODY = 100_000
"""Bytes of an error body that holds one."""

PROVIDERS = frozenset({"provider", "operator", "model"})
"""Whose faults name the provider that they happened at, for the person at the screen."""


class Words(NamedTuple):
    """What one kind is called: OpenAI's ``type``, Anthropic's ``type``, and the ``code``."""

    openai: str
    anthropic: str
    code: str


_REQUEST = ("invalid_request_error", "invalid_request_error")
_RATE = ("rate_limit_error", "rate_limit_error")
_SERVER = ("server_error", "api_error")
_TIMEOUT = ("timeout_error", "timeout_error")

WORDS: Mapping[str, Words] = {
    "bad_request": Words(*_REQUEST, "invalid_request"),
    "unsupported": Words(*_REQUEST, "unsupported_parameter"),
    "too_large": Words("invalid_request_error", "request_too_large", "request_too_large"),
    "unauthenticated": Words("authentication_error", "authentication_error", "invalid_api_key"),
    "forbidden": Words("permission_error", "permission_error", "forbidden"),
    "unknown_model": Words("invalid_request_error", "not_found_error", "model_not_found"),
    "rate_limited": Words(*_RATE, "rate_limit_exceeded"),
    "budget_exceeded": Words("insufficient_quota", "billing_error", "budget_exceeded"),
    "context_overflow": Words(*_REQUEST, "context_length_exceeded"),
    "content_filtered": Words(*_REQUEST, "content_filter"),
    "upstream_rate_limited": Words(*_RATE, "upstream_rate_limited"),
    "upstream_overloaded": Words("server_error", "overloaded_error", "upstream_overloaded"),
    "upstream_auth": Words(*_SERVER, "upstream_auth"),
    "upstream_billing": Words(*_SERVER, "upstream_billing"),
    "upstream_rejected": Words(*_SERVER, "upstream_rejected"),
    "upstream_server": Words(*_SERVER, "upstream_server"),
    "connect_failed": Words(*_SERVER, "connect_failed"),
    "upstream_timeout": Words(*_TIMEOUT, "upstream_timeout"),
    "protocol_error": Words(*_SERVER, "protocol_error"),
    "stream_truncated": Words(*_SERVER, "stream_truncated"),
    "output_unparsable": Words("output_error", "api_error", "output_unparsable"),
    "output_invalid": Words("output_error", "api_error", "output_invalid"),
    "output_truncated": Words("output_error", "api_error", "output_truncated"),
    "max_turns": Words("run_error", "api_error", "max_turns"),
    "budget_exhausted": Words("insufficient_quota", "billing_error", "budget_exhausted"),
    "deadline": Words(*_TIMEOUT, "deadline"),
    "no_deployment": Words("server_error", "overloaded_error", "no_deployment"),
    "cancelled": Words(*_REQUEST, "cancelled"),
    "not_found": Words("invalid_request_error", "not_found_error", "not_found"),
    "method": Words(*_REQUEST, "method_not_allowed"),
    "conflict": Words(*_REQUEST, "conflict"),
    "gone": Words("invalid_request_error", "not_found_error", "gone"),
    "idempotency_mismatch": Words(*_REQUEST, "idempotency_mismatch"),
    "store_unavailable": Words(*_SERVER, "store_unavailable"),
    "internal": Words(*_SERVER, "internal"),
}
"""A row for every kind; a test holds the two tables equal."""

TOLD_IN_DETAIL = frozenset({"thread_unsupported_request"})
"""Codes that Anthropic's clients look for in ``details``, to send the request in another way."""

TOO_LONG = "prompt is too long"
"""How Anthropic's API begins when a prompt overflows. Claude Code looks for it, to compact."""

_TIME_HEALS = frozenset({"rate_limited"})
"""The caller's faults that go away by waiting."""


class Reply(NamedTuple):
    """An HTTP answer that tells of a fault."""

    status: int
    headers: dict[str, str]
    body: bytes


def envelope(fault: Fault, dialect: Dialect, request_id: str | None = None) -> Reply:
    """The whole error answer for a caller of ``dialect``.

    :param request_id: repeated in Anthropic's body; on OpenAI paths it is a header only.
    """
    headers = {"content-type": "application/json"}
    if fault.retry_after is not None:
        headers["retry-after"] = str(max(0, math.ceil(fault.retry_after)))
    elif fault.row.blame == "caller" and fault.kind not in _TIME_HEALS:
        # The vendors' SDKs retry 409 and 5xx by themselves; here it would be in vain (promise 14).
        headers["x-should-retry"] = "false"
    if fault.status == 401:
        headers["www-authenticate"] = "Bearer"
    return Reply(fault.status, headers, body(fault, dialect, request_id))


def body(fault: Fault, dialect: Dialect, request_id: str | None = None) -> bytes:
    """The error as one JSON object, at most :data:`MAX_BODY` bytes, or :data:`MAX_RAW_BODY`
    where it has an answer in it."""
    error = error_object(fault, dialect)
    written = dumps(_wrapped(error, dialect, request_id))
    most = MAX_RAW_BODY if fault.row.blame == "model" else MAX_BODY
    if len(written) > most and fault.data:
        for name in fault.data:
            error.pop(name, None)
        error["data_omitted"] = True
        written = dumps(_wrapped(error, dialect, request_id))
    return written


def error_object(fault: Fault, dialect: Dialect) -> dict[str, Any]:
    """The object inside the envelope, also for errors in the middle of a stream."""
    words = WORDS[fault.kind]
    anthropic = dialect == "anthropic-messages"
    error: dict[str, Any] = {
        name: _bounded(value, MAX_RAW if name == "raw" else MAX_DATA_TEXT)
        for name, value in (fault.data or {}).items()
    }
    if fault.deployment is not None and fault.row.blame in PROVIDERS:
        error["provider"] = fault.deployment.partition("/")[0]
    message = _anthropic_message(fault) if anthropic else fault.message
    error["message"] = _cut(message, MAX_MESSAGE)
    error["type"] = words.anthropic if anthropic else words.openai
    error["param"] = None if fault.param is None else _cut(fault.param, MAX_PARAM)
    if anthropic and fault.code in TOLD_IN_DETAIL:
        error["details"] = {"error_code": fault.code}
    # A fault whose raiser gave no code carries its kind; the protocols have older words for some.
    error["code"] = words.code if fault.code == fault.kind else _cut(fault.code, MAX_PARAM)
    return error


def _anthropic_message(fault: Fault) -> str:
    """The fault's message, in the words that Anthropic's clients act on where there are some."""
    if fault.kind != "context_overflow" or TOO_LONG in fault.message.lower():
        return fault.message
    data = fault.data or {}
    tokens, window = data.get("estimated_input_tokens"), data.get("context_window")
    sizes = "" if tokens is None or window is None else f": {tokens} tokens > {window} maximum"
    return f"{TOO_LONG}{sizes}. {fault.message}"


def _wrapped(error: dict[str, Any], dialect: Dialect, request_id: str | None) -> dict[str, Any]:
    if dialect != "anthropic-messages":
        return {"error": error}
    return {"type": "error", "error": error, "request_id": request_id}


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _bounded(value: Any, limit: int = MAX_DATA_TEXT) -> Any:
    """``value`` with every long text in it cut; the size of the whole is checked later."""
    if isinstance(value, str):
        return _cut(value, limit)
    if isinstance(value, list | tuple):
        return [_bounded(item) for item in value[:20]]
    if isinstance(value, Mapping):
        return {name: _bounded(item) for name, item in value.items()}
    return value
