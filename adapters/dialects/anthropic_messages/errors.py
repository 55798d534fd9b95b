"""Errors of the Messages API: the HTTP ones and those inside a stream.

The general reading (status first, code second, words last) is :mod:`adapters.wire.errors`;
here stands only what this protocol adds: its error codes and where its request id is.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from adapters.canonical.faults import Fault
from adapters.wire import errors
from adapters.wire.json import dumps

BILLING_CODES = frozenset(
    {
        "contract_spend_limit_reached",
        "enforced_spend_limit_reached",
        "linked_organization_spend_limit_reached",
        "linked_organization_billing_unavailable",
        "user_profile_billing_not_authorized",
        "user_profile_not_billable",
    }
)
"""``error.details.error_code`` values that waiting does not heal, whatever their status says
(a spend limit comes as 429 ``rate_limit_error``)."""


def error(status: int, headers: Mapping[str, str], body: bytes) -> Fault:
    """The fault behind an answer with an error status; ``body`` may be anything."""
    found = errors.error_object(body)
    if found is not None and _is_billing(found):
        body = dumps({"error": _as_billing(found)})
    return errors.fault(status, headers, body, time.time())


def in_stream(event: Mapping[str, Any]) -> Fault:
    """The fault behind an ``error`` event, or behind a body that is one."""
    found = event.get("error")
    if isinstance(found, dict) and _is_billing(found):
        found = _as_billing(found)
    fault = errors.in_band(found)
    request_id = event.get("request_id")
    if isinstance(request_id, str):
        fault.upstream_request_id = errors.request_id({"request-id": request_id})
    return fault


def _is_billing(found: Mapping[str, Any]) -> bool:
    details = found.get("details")
    return isinstance(details, dict) and details.get("error_code") in BILLING_CODES


def _as_billing(found: Mapping[str, Any]) -> dict[str, Any]:
    return {**found, "type": "billing_error"}
