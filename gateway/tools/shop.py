"""What tools are built with, and the settings that several kinds share. Must not know kinds."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

from adapters.canonical.record import record
from gateway.settings.rooms import ToolTable
from gateway.structured.bounds import SchemaRefused
from gateway.structured.check import Schemas
from gateway.tools import guard
from gateway.tools.base import ToolSpec
from gateway.tools.function import BadTool, Declared
from gateway.tools.threads import Threads

_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OWN_HEADERS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "accept-encoding", "te",
     "upgrade", "trailer", "proxy-authorization"}
)  # fmt: skip

_SCHEMAS = Schemas()


class Closing(Protocol):
    """Something that is open until it is closed."""

    @property
    def busy(self) -> bool:
        """Whether a call through it is under way."""
        ...

    async def close(self) -> None:
        """Close it."""
        ...


@record(frozen=True, slots=True)
class Shop:
    """What tools are built with. ``opened`` is what was opened on the way; the shop's owner closes
    it."""

    threads: Threads
    base_dir: str
    opened: list[Closing]
    resolver: guard.Resolver = guard.system_resolver


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

    :raises BadTool: where there are none.
    """
    if ca_file is None:
        return None
    path = Path(base_dir) / Path(ca_file).expanduser()
    if not path.is_file():
        raise BadTool(f"ca_file names {path}, which is no file")
    try:
        ssl.create_default_context(cafile=path)
    except (ssl.SSLError, OSError) as error:
        raise BadTool(f"ca_file names {path}, which has no certificate that can be read") from error
    return str(path)


def checked_header(name: str) -> str:
    """``name``, if it is a header that may be set.

    :raises BadTool: if not.
    """
    if _HEADER.fullmatch(name) is None or name.lower() in _OWN_HEADERS:
        raise BadTool(f"headers: {name!r} is no header that can be set here")
    return name


def said(table: ToolTable, declared_by_author: Declared) -> Declared:
    """How a tool behaves: the file's word where it has one, else the author's."""
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


def spec(name: str, table: ToolTable, **more: Any) -> ToolSpec:
    """The spec of a tool that has no author's word but the file's."""
    word = said(table, Declared())
    return ToolSpec(
        name=name,
        description=word.description or "",
        idempotent=word.idempotent,
        read_only=word.read_only,
        timeout=word.timeout,
        output_cap=word.output_cap,
        policy=table.policy,
        **more,
    )


def _plain(value: Any) -> Any:
    """TOML's numbers as JSON has them."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
