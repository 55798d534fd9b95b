"""From ``[tools.NAME]`` to a tool: one builder for each kind, and what may be wrong with a table.

Builds and imports, but connects to nothing. Must not know runs.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from gateway.settings.rooms import ToolTable
from gateway.structured.bounds import SchemaRefused
from gateway.structured.check import Schemas
from gateway.tools import guard
from gateway.tools.base import NO_ARGUMENTS, Tool, ToolSpec
from gateway.tools.function import BadTool, Declared, PythonTool, declared
from gateway.tools.http import fetch
from gateway.tools.http.door import Door
from gateway.tools.http.endpoint import HttpTool, RequestTemplate
from gateway.tools.http.template import BadTemplate, body_template, pieces, url_template
from gateway.tools.threads import Threads

GROUP = "llm_gateway.tools"
"""The entry point group by which installed packages offer functions as tools."""

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What every provider takes for the name of a function."""
_IMPORT = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OWN_HEADERS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "accept-encoding", "te",
     "upgrade", "trailer", "proxy-authorization"}
)  # fmt: skip
KEPT = 5
"""Idle connections kept for an endpoint."""

_SCHEMAS = Schemas()


@dataclass(frozen=True, slots=True)
class Shop:
    """What tools are built with. ``doors`` are opened on the way; their owner closes them."""

    threads: Threads
    base_dir: str
    doors: list[Door]
    resolver: guard.Resolver = guard.system_resolver


Build = Callable[[str, ToolTable, Shop], Tool]


def build(name: str, table: ToolTable, shop: Shop) -> Tool:
    """The tool of one table.

    :raises BadTool: with the key inside the table and what to change.
    """
    if NAME.fullmatch(name) is None:
        raise BadTool("must be named with letters, digits, _ and -, at most 64")
    stray = sorted(_given(table) - _TAKES[table.kind])
    if stray:
        raise BadTool(f"has {stray[0]}, which a tool of kind {table.kind!r} does not take")
    return _KINDS[table.kind](name, table, shop)


def installed(known: Mapping[str, ToolTable]) -> list[EntryPoint]:
    """The functions that installed packages offer, but for those that a table speaks of."""
    return [point for point in entry_points(group=GROUP) if point.name not in known]


def offered(point: EntryPoint, shop: Shop) -> Tool:
    """The tool of an entry point.

    :raises BadTool: where it can't be one.
    """
    return build(point.name, ToolTable(kind="python"), shop)


def checked_schema(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """``schema`` as plain JSON, if it can describe arguments.

    :raises BadTool: if not.
    """
    plain: Mapping[str, Any] = _plain(schema)
    if plain.get("type") != "object":
        raise BadTool('must have type = "object": arguments are always an object')
    try:
        _SCHEMAS.checker(plain)
    except SchemaRefused as error:
        raise BadTool(str(error)) from error
    return plain


def guarded(table_private: Sequence[str], hosts: Sequence[str] | None, shop: Shop) -> guard.Guard:
    """A guard from settings.

    :raises BadTool: for an entry that can't be read.
    """
    try:
        return guard.guard(table_private, hosts, shop.resolver)
    except guard.Refused as refusal:
        raise BadTool(f"allow_private or allow_hosts: {refusal}") from refusal


def ca_path(ca_file: str | None, base_dir: str) -> str | None:
    """Where the certificates are.

    :raises BadTool: where there is no such file.
    """
    if ca_file is None:
        return None
    path = Path(base_dir) / Path(ca_file).expanduser()
    if not path.is_file():
        raise BadTool(f"ca_file names {path}, which is no file")
    return str(path)


def checked_header(name: str) -> str:
    """``name``, if it is a header that may be set.

    :raises BadTool: if not.
    """
    if _HEADER.fullmatch(name) is None or name.lower() in _OWN_HEADERS:
        raise BadTool(f"headers: {name!r} is no header that can be set here")
    return name


# kinds


def _python(name: str, table: ToolTable, shop: Shop) -> Tool:
    function = _function(name, table.function, shop)
    if not callable(function):
        raise BadTool("function: leads to something that can't be called")
    said = _said(table, declared(function))
    made = PythonTool(name, function, said, shop.threads)
    made.spec = replace(made.spec, policy=table.policy)
    return made


def _function(name: str, path: str | None, shop: Shop) -> Any:
    if path is None:
        found = [point for point in entry_points(group=GROUP) if point.name == name]
        if not found:
            raise BadTool(
                f'needs function = "module:function"; no installed package offers {name!r}'
            )
        path = found[0].value
    if _IMPORT.fullmatch(path) is None:
        raise BadTool(f'function: {path!r} must be written "module:function"')
    if shop.base_dir not in sys.path:  # at the end, so that it hides nothing
        sys.path.append(shop.base_dir)
    module, _, attributes = path.partition(":")
    try:
        found_object: Any = importlib.import_module(module)
        for attribute in attributes.split("."):
            found_object = getattr(found_object, attribute)
    except Exception as error:  # a stranger's module may raise anything on import
        raise BadTool(f"function: {path!r} can't be imported: {_words(error)}") from error
    return found_object


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:300]


def _said(table: ToolTable, declared_by_author: Declared) -> Declared:
    """The file's word where it has one, else the author's."""
    own: dict[str, Any] = {
        "description": table.description,
        "idempotent": table.idempotent,
        "read_only": table.read_only,
        "timeout": table.timeout,
        "output_cap": table.max_output,
    }
    return replace(
        declared_by_author, **{key: value for key, value in own.items() if value is not None}
    )


def _spec(name: str, table: ToolTable, **more: Any) -> ToolSpec:
    said = _said(table, Declared())
    return ToolSpec(
        name=name,
        description=said.description or "",
        idempotent=said.idempotent,
        read_only=said.read_only,
        timeout=said.timeout,
        output_cap=said.output_cap,
        policy=table.policy,
        **more,
    )


def _http(name: str, table: ToolTable, shop: Shop) -> Tool:
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
    shop.doors.append(door)
    return HttpTool(_spec(name, table, kind="http", parameters=parameters), template, door)


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


def _builtin(name: str, table: ToolTable, shop: Shop) -> Tool:
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
    shop.doors.append(door)
    table = table.model_copy(update={"description": table.description or fetch.DESCRIPTION})
    spec = _spec(name, table, kind="builtin", parameters=fetch.PARAMETERS)
    return fetch.HttpGet(replace(spec, read_only=True), watch, door)


_KINDS: Mapping[str, Build] = {"python": _python, "http": _http, "builtin": _builtin}
_ALL = frozenset({"kind", "description", "timeout", "max_output", "policy"})
_TAKES: Mapping[str, frozenset[str]] = {
    "python": _ALL | {"function", "idempotent", "read_only"},
    "http": _ALL
    | {"method", "url", "headers", "body", "parameters", "allow_hosts", "allow_private"}
    | {"ca_file", "idempotent", "read_only"},
    "builtin": _ALL | {"function", "allow_hosts", "allow_private", "ca_file"},
}
"""The keys that say something for each kind; others are refused, since they would say nothing."""


def _given(table: ToolTable) -> set[str]:
    """The keys whose value is not the default's."""
    return {
        name
        for name, field in ToolTable.model_fields.items()
        if getattr(table, name) != field.get_default(call_default_factory=True)
    }


def _plain(value: Any) -> Any:
    """TOML's numbers as JSON has them."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
