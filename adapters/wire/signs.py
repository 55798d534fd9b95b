"""What an error means: status first, structured code second, text last (fault kind K11).

To teach the gateway a new error, add a word to :data:`SIGNS`. Must not know which provider is
speaking, nor how the error was wrapped: :mod:`adapters.wire.errors` unwraps it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from adapters.canonical.record import record

_WORD = re.compile(r"[A-Za-z0-9_.:-]{1,128}")

IN_BAND = 200
"""The status to pass for an error that came inside a successful answer: it decides nothing."""

STATUSES: dict[int, str] = {
    400: "bad_request",
    401: "upstream_auth",
    402: "upstream_billing",
    403: "upstream_auth",
    404: "upstream_rejected",
    405: "upstream_rejected",
    408: "upstream_timeout",
    409: "upstream_server",
    410: "upstream_rejected",
    413: "too_large",
    422: "bad_request",
    429: "upstream_rate_limited",
    503: "upstream_overloaded",
    504: "upstream_timeout",
    529: "upstream_overloaded",
}
"""What a status means by itself; other 4xx are ``bad_request``, other 5xx ``upstream_server``,
and a redirect is a wrong address of the operator's (``upstream_rejected``)."""


@record(frozen=True, slots=True)
class Sign:
    """How a kind shows itself: by code under ``statuses``, or by text under ``text_statuses``
    where no code decided. Codes are lower case."""

    kind: str
    codes: frozenset[str]
    statuses: frozenset[int]
    text: re.Pattern[str] | None = None
    text_statuses: frozenset[int] = frozenset()


def _of(*words: str) -> frozenset[str]:
    return frozenset(words)


def _text(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_REQUEST = frozenset({IN_BAND, 400, 422})
_GENERAL = _of("invalid_request_error", "invalid_prompt", "invalid_value", "400", "422")
"""Codes that say no more than a status would; the text may still be more precise."""
_BAD_IMAGE = _of(
    "invalid_image",
    "invalid_image_format",
    "invalid_image_mode",
    "invalid_image_url",
    "invalid_base64_image",
    "image_too_large",
    "image_too_small",
    "image_parse_error",
    "image_file_too_large",
    "image_file_not_found",
    "empty_image_file",
    "failed_to_download_image",
    "unsupported_image_media_type",
)
"""The caller's image is at fault; OpenAI says so inside an answer that had already begun."""

SIGNS: tuple[Sign, ...] = (
    Sign(
        "upstream_billing",
        _of(
            "insufficient_quota",
            "insufficient_balance",
            "insufficient_credits",
            "billing_error",
            "billing_not_active",
            "billing_hard_limit_reached",
            "credit_balance_too_low",
            "payment_required",
            "account_deactivated",
        ),
        frozenset({IN_BAND, 400, 401, 402, 403, 429}),
        _text(
            r"credit balance",
            r"(insufficient|not enough|out of) (balance|credits?|funds|quota)",
            r"used all available credits",
            r"exceeded your current quota",
            r"billing (hard )?limit",
            r"payment required",
        ),
        frozenset({IN_BAND, 400, 403, 429}),
    ),
    Sign(
        "context_overflow",
        _of(
            "context_length_exceeded",
            "context_window_exceeded",
            "exceed_context_size_error",
            "model_max_prompt_tokens_exceeded",
            "string_above_context_length",
        ),
        frozenset({IN_BAND, 400, 413, 422, 500}),
        _text(
            r"maximum context length",
            r"context (length|size|window|limit)",
            r"prompt is too long",
            r"input is too long",
            r"too many input tokens",
            r"maximum (prompt|input) (length|tokens)",
            r"input token count .{0,60}exceeds",
        ),
        frozenset({IN_BAND, 400, 413, 422}),
    ),
    Sign(
        "content_filtered",
        _of(
            "content_filter",
            "content_filtered",
            "content_policy_violation",
            "image_content_policy_violation",
            "responsible_ai_policy_violation",
            "responsibleaipolicyviolation",
            "cyber_policy_violation",
            "bio_policy",
            "misalignment_policy_violation",
            "data_inspection_failed",
            "moderation_blocked",
        ),
        frozenset({IN_BAND, 400, 403, 422}),
        _text(
            r"content (management |usage )?policy",
            r"content[_ ]filter",
            r"violat\w+ (our|the) (usage|content|safety)",
            r"(rejected|blocked) (as a result of|by) (our|the) (safety|moderation|content)",
            r"output blocked by content",
        ),
        _REQUEST,
    ),
    Sign(
        "upstream_auth",
        _of(
            "invalid_api_key",
            "incorrect_api_key",
            "api_key_invalid",
            "authentication_error",
            "permission_error",
            "permission_denied",
            "unauthenticated",
            "unauthorized",
        ),
        frozenset({IN_BAND, 400, 403}),
        _text(r"api key (not valid|is invalid)", r"(invalid|incorrect) (x-)?api[- ]key"),
        _REQUEST,
    ),
    Sign(
        "upstream_rejected",
        _of(
            "model_not_found",
            "not_found_error",
            "deploymentnotfound",
            "model_not_available",
            "unsupported_country_region_territory",
        ),
        frozenset({IN_BAND, 400, 403, 404}),
    ),
    Sign(
        "upstream_rate_limited",
        _of(
            "rate_limit_exceeded",
            "rate_limit_error",
            "rate_limited",
            "too_many_requests",
            "resource_exhausted",
            "tokens",
            "requests",
            "429",
        ),
        frozenset({IN_BAND, 429}),
    ),
    Sign(
        "upstream_overloaded",
        _of(
            "overloaded_error",
            "overloaded",
            "engine_overloaded",
            "engine_overloaded_error",
            "model_overloaded",
            "server_overloaded",
            "server_is_overloaded",
            "slow_down",
            "service_unavailable",
            "unavailable",
            "503",
            "529",
        ),
        frozenset({IN_BAND, 429, 500, 502}),
        _text(r"\boverloaded\b"),
        frozenset({IN_BAND}),
    ),
    Sign("upstream_timeout", _of("timeout_error", "vector_store_timeout", "408"), _REQUEST),
    Sign("too_large", _of("request_too_large", "413"), frozenset({IN_BAND, 400})),
    Sign("bad_request", _GENERAL | _BAD_IMAGE, frozenset({IN_BAND})),
    Sign("upstream_auth", _of("401", "403"), frozenset({IN_BAND})),
    Sign("upstream_billing", _of("402"), frozenset({IN_BAND})),
    Sign("upstream_rejected", _of("404", "405"), frozenset({IN_BAND})),
)
"""In order of preference: the first that fits wins."""


def classify(status: int, code: str | None, message: str = "") -> str:
    """The fault kind of a provider's error.

    :param status: the HTTP status, or :data:`IN_BAND` for an error inside a stream or body.
    :param code: the structured code or type, as text, numeric ones too; see :func:`code_of`.
    :param message: the provider's words, read only where status and code leave it open.
    """
    word = (code or "").lower()
    by_code = next((s.kind for s in SIGNS if word in s.codes and status in s.statuses), None)
    if by_code is not None and word not in _GENERAL:
        return by_code
    words = message[:2000]
    for sign in SIGNS:
        if sign.text is not None and status in sign.text_statuses and sign.text.search(words):
            return sign.kind
    return by_code or _by_status(status)


def _by_status(status: int) -> str:
    kind = STATUSES.get(status)
    if kind is not None:
        return kind
    if 400 <= status < 500:
        return "bad_request"
    if 300 <= status < 400:
        return "upstream_rejected"
    return "upstream_server"


def code_of(error: Mapping[str, Any]) -> str | None:
    """The most telling of an error's ``code``, ``type`` and ``status``, as text.

    A word that :data:`SIGNS` knows beats one that it does not; ``code`` comes before ``type``.
    """
    words = list(_words(error))
    known = (w for w in words if w.lower() not in _GENERAL and _is_known(w.lower()))
    return next(known, words[0] if words else None)


def _words(error: Mapping[str, Any]) -> Iterator[str]:
    for name in ("code", "type", "status"):
        value = error.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            yield str(value)
        elif isinstance(value, str) and _WORD.fullmatch(value) and value != "error":
            yield value


def _is_known(word: str) -> bool:
    return any(word in sign.codes for sign in SIGNS)
