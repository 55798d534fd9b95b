"""From ``[tools.NAME]`` of the kinds ``http`` and ``builtin`` to a tool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gateway.settings.rooms import ToolTable
from gateway.tools import guard
from gateway.tools.base import NO_ARGUMENTS, Tool
from gateway.tools.function import BadTool
from gateway.tools.http import fetch
from gateway.tools.http.door import Door
from gateway.tools.http.endpoint import HttpTool, RequestTemplate
from gateway.tools.http.template import BadTemplate, body_template, pieces, url_template
from gateway.tools.shop import Shop, ca_path, checked_header, checked_schema, guarded, spec

KEPT = 5
"""Idle connections kept for an endpoint."""


def endpoint(name: str, table: ToolTable, shop: Shop) -> Tool:
    """The tool of an endpoint.

    :raises BadTool: with the key inside the table and what to change.
    """
    if table.url is None:
        raise BadTool("needs url")
    if not table.description:
        raise BadTool("needs a description: it is all that the model knows of it")
    parameters = NO_ARGUMENTS if table.parameters is None else _parameters(table.parameters)
    template = _template(table, parameters)
    watch = guarded(table.allow_private, table.allow_hosts, shop)
    try:
        watch.admit(template.url.head + "/")
    except guard.Refused as refusal:
        raise BadTool(f"url: {refusal}") from refusal
    door = Door(watch, keep=KEPT, ca_file=ca_path(table.ca_file, shop.base_dir))
    shop.opened.append(door)
    return HttpTool(spec(name, table, kind="http", parameters=parameters), template, door)


def _parameters(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        return checked_schema(schema)
    except BadTool as fault:
        raise BadTool(f"parameters: {fault}") from fault


def _template(table: ToolTable, parameters: Mapping[str, Any]) -> RequestTemplate:
    place = "url"
    try:
        url = url_template(table.url or "")
        place = "headers"
        headers = {checked_header(name): pieces(value) for name, value in table.headers.items()}
        place = "body"
        body = None if table.body is None else body_template(table.body)
    except BadTemplate as fault:
        raise BadTool(f"{place}: {fault}") from fault
    template = RequestTemplate(table.method, url, headers, body)
    known = set(parameters.get("properties", {}))
    # The names are not shown: what is behind a reference may hold braces, and may be a secret.
    if template.names - known:
        raise BadTool("url, headers or body have an {argument} that parameters do not list")
    if known - template.names:
        raise BadTool(f"parameters: {min(known - template.names)} is used nowhere in the request")
    return template


def builtin(name: str, table: ToolTable, shop: Shop) -> Tool:
    """The one builtin tool that has to be switched on.

    :raises BadTool: as :func:`endpoint` does.
    """
    which = name if table.function is None else table.function
    if which != fetch.NAME:
        raise BadTool(
            f"{which!r} is no tool that can be switched on; there is {fetch.NAME!r}, and time and "
            "calculator are always on"
        )
    if table.allow_hosts is None:
        raise BadTool('needs allow_hosts, such as ["docs.python.org"]; ["*"] is every public host')
    watch = guarded(table.allow_private, table.allow_hosts, shop)
    door = Door(watch, ca_file=ca_path(table.ca_file, shop.base_dir))
    shop.opened.append(door)
    table = table.model_copy(update={"description": table.description or fetch.DESCRIPTION})
    made = spec(name, table, kind="builtin", parameters=fetch.PARAMETERS)
    return fetch.HttpGet(replace(made, read_only=True), watch, door)
