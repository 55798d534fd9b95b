"""Errors with an error status, in the vendors' own words; rows of the catalogue."""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import formatdate

from adapters.simulator.log import Attempt
from adapters.simulator.words import Refused, Trouble

Args = Mapping[str, str]

_STATUSES: Mapping[int, Trouble] = {
    400: Trouble(400, "The request is not valid."),
    401: Trouble(401, "Incorrect API key provided.", "authentication_error", "invalid_api_key"),
    402: Trouble(402, "Payment is required.", "billing_error", "billing_required"),
    403: Trouble(403, "You have no access to this.", "permission_error", "forbidden"),
    404: Trouble(404, "The model does not exist.", "not_found_error", "model_not_found"),
    408: Trouble(408, "The request took too long.", "timeout_error", "timeout"),
    409: Trouble(409, "The resource was changed meanwhile.", "invalid_request_error", "conflict"),
    413: Trouble(413, "Request exceeds the maximum size", "request_too_large", "too_large"),
    422: Trouble(422, "The request can't be processed.", code="unprocessable"),
    429: Trouble(
        429,
        "Rate limit reached: 90000 tokens per min. Please slow down.",
        "rate_limit_error",
        "rate_limit_exceeded",
        openai_type="tokens",
    ),
    500: Trouble(500, "Internal server error", "api_error", openai_type="server_error"),
    502: Trouble(502, "Bad gateway", "api_error", openai_type="server_error"),
    503: Trouble(
        503,
        "The engine is currently overloaded, please try again later",
        "overloaded_error",
        openai_type="server_error",
    ),
    504: Trouble(504, "Gateway timeout", "timeout_error", openai_type="server_error"),
    529: Trouble(529, "Overloaded", "overloaded_error", openai_type="server_error"),
}


def of_status(status: int, headers: Mapping[str, str] | None = None) -> Trouble:
    """The error that usually comes with ``status``."""
    usual = _STATUSES.get(status, _STATUSES[500 if status >= 500 else 400])
    retry = {"x-should-retry": "true"} if status in (408, 409, 429) or status >= 500 else {}
    return Trouble(
        status,
        usual.message,
        usual.type,
        usual.code,
        openai_type=usual.openai_type,
        headers={**retry, **(headers or {})},
    )


def status(args: Args, attempt: Attempt) -> Trouble:
    """A status, with a hint when to come back if the name gives one."""
    headers = {"retry-after": args["SECONDS"]} if "SECONDS" in args else {}
    return of_status(int(args["STATUS"]), headers)


def status_until(args: Args, attempt: Attempt) -> Trouble:
    """The hint as an HTTP date."""
    when = formatdate(time.time() + float(args["SECONDS"]), usegmt=True)
    return of_status(int(args["STATUS"]), {"retry-after": when})


def status_hint(args: Args, attempt: Attempt) -> Trouble:
    """The hint as it stands in the name, sense or nonsense."""
    return of_status(int(args["STATUS"]), {"retry-after": args["TEXT"]})


def context_overflow(args: Args, attempt: Attempt) -> Trouble:
    """The prompt is too long for the model."""
    message = (
        "prompt is too long: 208310 tokens > 200000 maximum"
        if "/messages" in attempt.path
        else "Your input exceeds the context window of this model. "
        "Please adjust your input and try again."
    )
    return Trouble(400, message, code="context_length_exceeded", param="input")


def content_filter(args: Args, attempt: Attempt) -> Trouble:
    """The prompt was refused by the provider's filter."""
    message = (
        "Output blocked by content filtering policy"
        if "/messages" in attempt.path
        else "The response was filtered due to the prompt triggering the content management policy."
    )
    return Trouble(400, message, code="content_filter", param="prompt")


def out_of_credit(args: Args, attempt: Attempt) -> Trouble:
    """No money left: a 400 with Anthropic, a 429 with OpenAI."""
    if "/messages" in attempt.path:
        message = (
            "Your credit balance is too low to access the Anthropic API. "
            "Please go to Plans & Billing to upgrade or purchase credits."
        )
        return Trouble(400, message)
    message = "You exceeded your current quota, please check your plan and billing details."
    return Trouble(429, message, code="insufficient_quota", openai_type="insufficient_quota")


def no_prefill(args: Args, attempt: Attempt) -> Trouble | None:
    """Refuses a conversation that ends with an assistant message."""
    body = attempt.body
    messages = body.get("messages") or body.get("input") or ()
    if not isinstance(messages, list) or messages[-1].get("role") != "assistant":
        return None
    message = (
        "This model does not support assistant message prefill. "
        "The conversation must end with a user message."
    )
    return Trouble(400, message)


def unsupported(args: Args, attempt: Attempt) -> Trouble | None:
    """Refuses a request that has the field, as models do that lack a feature."""
    field = args["TEXT"]
    if field not in attempt.body:
        return None
    message = f"Unsupported parameter: '{field}' is not supported with this model."
    return Trouble(400, message, code="unsupported_parameter", param=field)


def leaks_key(args: Args, attempt: Attempt) -> Trouble:
    """An error whose message repeats the key, as some servers do."""
    key = attempt.headers.get("x-api-key") or attempt.headers.get("authorization", "")
    message = f"Incorrect API key provided: {key.removeprefix('Bearer ')}."
    return Trouble(401, message, "authentication_error", "invalid_api_key")


def midstream() -> Trouble:
    """What breaks a stream off."""
    return of_status(529)


def unknown_fault(text: str) -> Refused:
    """A misspelt fault: a test with it would test nothing, so it is refused."""
    message = f"{text} is not a fault that the simulator knows; its catalogue lists them."
    return Refused(Trouble(404, message, "not_found_error", "model_not_found", "model"))
