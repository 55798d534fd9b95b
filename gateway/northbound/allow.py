"""What no caller may steer: hosts, keys, headers and accounting (fault kind K16).

Unknown fields may travel on to a provider of the caller's own dialect. These names never do, at
whatever depth they stand: another gateway behind this one might honour them (case X05).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from typing import Any

from adapters.canonical.faults import Fault
from adapters.canonical.parts import NO_EXTRAS

NEVER = frozenset(
    {
        "api_base",
        "api_key",
        "api_type",
        "api_version",
        "authorization",
        "aws_access_key_id",
        "aws_secret_access_key",
        "aws_session_token",
        "azure_ad_token",
        "azure_endpoint",
        "base_url",
        "custom_llm_provider",
        "default_headers",
        "default_query",
        "deployment_id",
        "endpoint",
        "extra_body",
        "extra_headers",
        "extra_query",
        "headers",
        "http_client",
        "model_list",
        "organization",
        "proxy",
        "proxy_server_request",
        "vertex_credentials",
        "x-api-key",
    }
)
"""Names, lower case, of fields that choose a host, a credential or a header."""


def unknown(
    value: Mapping[str, Any], known: Set[str], where: str, dropped: list[str]
) -> Mapping[str, Any]:
    """The fields of ``value`` beyond ``known``, cleaned; paths of removed ones join ``dropped``.

    :param where: the path of ``value``, empty at the top.
    :raises Fault: ``bad_request`` for a number in them that no float holds.
    """
    if value.keys() <= known:
        return NO_EXTRAS
    extras = {name: inner for name, inner in value.items() if name not in known}
    kept: Mapping[str, Any] = cleaned(extras, where, dropped)
    return kept


def lost(value: Mapping[str, Any], known: Set[str], where: str, dropped: list[str]) -> None:
    """Add the paths of the fields of ``value`` beyond ``known`` to ``dropped``: here nothing has
    a place for them, so not even a provider of the caller's own dialect gets them."""
    dropped.extend(f"{where}.{name}" for name in value if name not in known)


def cleaned(value: Any, where: str, dropped: list[str]) -> Any:
    """``value`` without the forbidden names inside it.

    :raises Fault: ``bad_request`` for an infinite number, which would travel on as ``null``.
    """
    if isinstance(value, dict):
        kept = {}
        for name, inner in value.items():
            path = f"{where}.{name}" if where else name
            if name.lower() in NEVER:
                dropped.append(path)
            else:
                kept[name] = cleaned(inner, path, dropped)
        return kept
    if isinstance(value, list):
        return [cleaned(inner, f"{where}[{n}]", dropped) for n, inner in enumerate(value)]
    if isinstance(value, float) and math.isinf(value):
        raise Fault("bad_request", f"{where} is beyond the range of a 64-bit float.", param=where)
    return value
