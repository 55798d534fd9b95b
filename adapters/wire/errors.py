"""What can be read out of any provider's error, whichever protocol it speaks.

Everything read from a body is bounded and filtered, because bodies may be HTML, huge, or echo
keys and prompts (fault kind K10); what it means is decided in :mod:`adapters.wire.signs`. Must
not know which provider is speaking.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

import orjson

from adapters.canonical.faults import Fault
from adapters.wire.signs import IN_BAND, classify, code_of

__all__ = [
    "IN_BAND",
    "classify",
    "code_of",
    "error_object",
    "excerpt",
    "fault",
    "filtered",
    "header",
    "in_band",
    "parse_retry_after",
    "request_id",
    "unwrap",
]

MAX_BODY = 256 * 1024
"""Bytes of an error body that are looked at; a larger one counts as no JSON."""
MAX_EXCERPT = 300
"""Characters of a provider's words that may be shown."""
MAX_WAIT = 7 * 24 * 3600.0
"""Seconds; a longer ``Retry-After`` is taken for an error of theirs."""

# --------------------------------------------------------------------------- headers


def header(headers: Mapping[str, str], name: str) -> str | None:
    """The header ``name`` (lower case), whatever the case that the provider wrote it in."""
    value = headers.get(name)
    if value is not None:
        return value
    return next((v for k, v in headers.items() if k.lower() == name), None)


def parse_retry_after(headers: Mapping[str, str], now_wall: float) -> float | None:
    """Seconds to wait, from ``retry-after-ms`` or ``retry-after`` (seconds or HTTP date).

    A date is measured against the answer's own ``Date`` header, so that the provider's clock
    is compared with itself; ``now_wall`` (Unix seconds) stands in where there is none. Invalid,
    negative, past and absurd values are ``None``.
    """
    wait = _number(header(headers, "retry-after-ms"))
    if wait is not None:
        return _sane(wait / 1000)
    text = header(headers, "retry-after")
    if text is None:
        return None
    wait = _number(text)
    if wait is not None:
        return _sane(wait)
    until = _date(text)
    if until is None:
        return None
    sent = _date(header(headers, "date") or "")
    return _sane(until - (now_wall if sent is None else sent))


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text is not None else None
    except ValueError:
        return None


def _sane(seconds: float) -> float | None:
    return seconds if math.isfinite(seconds) and 0 <= seconds <= MAX_WAIT else None


def _date(text: str) -> float | None:
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()


_REQUEST_ID_HEADERS = ("x-request-id", "request-id", "apim-request-id", "x-ms-request-id")
_PLAIN = re.compile(r"[A-Za-z0-9_.:/\[\]-]{1,128}")


def request_id(headers: Mapping[str, str]) -> str | None:
    """The provider's own id of the request, where it sent a plausible one."""
    for name in _REQUEST_ID_HEADERS:
        value = header(headers, name)
        if value is not None and _PLAIN.fullmatch(value):
            return value
    return None


# --------------------------------------------------------------------------- bodies


def error_object(body: bytes) -> dict[str, Any] | None:
    """The error inside a JSON body, whatever it is wrapped in, or ``None``.

    Known wrappings: ``{"error": {...}}``, ``{"error": "text"}``, a bare ``{"message": ...}``,
    ``{"detail": ...}`` and a list of any of them.
    """
    if not body or len(body) > MAX_BODY:
        return None
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if isinstance(found, list) and found:
        found = found[0]
    return unwrap(found)


def unwrap(found: object) -> dict[str, Any] | None:
    """The error inside parsed JSON; see :func:`error_object`."""
    if not isinstance(found, dict):
        return None
    for name in ("error", "detail"):
        inner = found.get(name)
        if isinstance(inner, dict):
            return inner
        if isinstance(inner, str):
            return {"message": inner}
    return found if isinstance(found.get("message"), str) else None


_SECRETS = re.compile(
    r"""(?ix)
      \b bearer \s+ \S+
    | \b (?: sk | pk | rk | xai | gsk | hf | nvapi | pplx ) [-_] [a-z0-9_*.-]{6,}
    | \b (?: key | org | proj | user ) [-_] [a-z0-9*]{12,}
    | \b AIza [\w*-]{10,} | \b AKIA [a-z0-9*]{8,} | \b eyJ [\w-]+ \. [\w.-]+
    | \S{0,64} \*{3,} \S*
    | \b [0-9a-f]{32,} \b
    | data: [^,\s]{0,80} , \S*
    | [a-z0-9+/_=-]{64,}
    | [\w.+-]{1,64} @ [\w-]{1,64} \. [\w.-]{1,64}
    """
)
_ECHO = re.compile(r"""['"](?:input|input_value|body|messages|prompt)['"]\s*:.*""", re.S)
_QUOTED = re.compile(r"""(?<![\w])(['"`])(?:(?!\1).){65,}(?:\1|$)""", re.S)
_HTML = re.compile(rb"^\s*<", re.S)
_SPACE = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")


def filtered(text: str) -> str:
    """``text`` on one line, at most :data:`MAX_EXCERPT` characters, without what must not be
    shown: keys and tokens, account ids, e-mail addresses, and long quoted or echoed input."""
    text = text[: MAX_EXCERPT * 8]
    text = _ECHO.sub("[…]", text)
    text = _QUOTED.sub("[…]", text)
    text = _SECRETS.sub("[…]", text)
    text = _SPACE.sub(" ", text).strip()
    return text if len(text) <= MAX_EXCERPT else text[: MAX_EXCERPT - 1] + "…"


def excerpt(body: bytes) -> str:
    """The provider's own words in an error body, filtered; empty for HTML and unknown JSON."""
    found = error_object(body)
    if found is not None:
        message = found.get("message")
        return filtered(message) if isinstance(message, str) else ""
    if _HTML.match(body[:256]) or body[:1] in (b"{", b"["):
        return ""
    return filtered(body[: MAX_EXCERPT * 8].decode("utf-8", "replace"))


# --------------------------------------------------------------------------- faults

_OWN_WORDS: dict[str, str] = {
    "upstream_auth": "The provider refused the gateway's credentials for this model. The "
    "operator has to check the provider's api_key and its permissions.",
    "upstream_billing": "The provider's account is out of credit or over its quota. The "
    "operator has to check the provider's billing.",
    "upstream_rejected": "The provider does not know this model or address. The operator has "
    "to check the provider's base_url and the target's model name.",
    "upstream_rate_limited": "The provider's rate limit is reached. Try again later.",
    "upstream_overloaded": "The provider is overloaded. Try again later.",
    "upstream_timeout": "The provider gave up waiting for its own answer.",
    "upstream_server": "The provider failed with an error of its own.",
}
"""Kinds whose cause is none of the caller's business: the provider's words go to the logs."""

_LED_WORDS: dict[str, str] = {
    "context_overflow": "The request does not fit the model's context window",
    "content_filtered": "The provider's content filter refused the request",
    "too_large": "The request is larger than the provider accepts",
}
_LED_DEFAULT = "The provider refused the request"


def fault(status: int, headers: Mapping[str, str], body: bytes, now_wall: float) -> Fault:
    """The fault behind an answer with an error status; ``body`` may be anything."""
    error = error_object(body)
    built = _build(status, error or {}, excerpt(body), parse_retry_after(headers, now_wall))
    built.upstream_request_id = request_id(headers)
    return built


def in_band(error: object) -> Fault:
    """The fault behind an error object that came inside a successful answer."""
    found: Mapping[str, Any] = error if isinstance(error, Mapping) else {}
    message = error if isinstance(error, str) else found.get("message")
    return _build(IN_BAND, found, filtered(message) if isinstance(message, str) else "", None)


def _build(status: int, error: Mapping[str, Any], words: str, retry_after: float | None) -> Fault:
    raw = error.get("message")
    code = code_of(error)
    kind = classify(status, code, raw if isinstance(raw, str) else words)
    param = error.get("param")
    return Fault(
        kind,
        _sentence(kind, words),
        detail=f"status {status}: {words}" if words else f"status {status}",
        param=param if isinstance(param, str) and _PLAIN.fullmatch(param) else None,
        upstream_status=None if status == IN_BAND else status,
        upstream_code=code,
        retry_after=retry_after,
        billed=False if 400 <= status < 500 and kind != "content_filtered" else None,
    )


def _sentence(kind: str, words: str) -> str:
    own = _OWN_WORDS.get(kind)
    if own is not None:
        return own
    lead = _LED_WORDS.get(kind, _LED_DEFAULT)
    return f"{lead}: {words}" if words else f"{lead}."
