"""What must fit together across the tables of a file whose shape is right.

Each check adds to the findings and goes on: a person sees everything at once.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from ipaddress import ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit

from gateway.settings.load.facts import NO_PRICES, check_words
from gateway.settings.load.findings import Findings
from gateway.settings.load.positions import Path
from gateway.settings.load.prices import PriceBook
from gateway.settings.load.references import References, Unresolved, has_reference
from gateway.settings.load.shape import nearest
from gateway.settings.model import AliasTable, Config, ProviderTable

DEMO_KEY = "demo"
"""The one key that may stand in a file in plain sight, and only on loopback."""
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OWN_HEADERS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "content-type", "accept"}
)
_RESERVED = ("agent:", "workflow:")


def check_tables(config: Config, raw: Mapping[str, Any], findings: Findings) -> None:
    """Run every check of this module over ``config``; names are taken from ``raw``, so that a
    table with a fault of its own still counts as defined."""
    providers = _names(raw, "providers")
    aliases = _names(raw, "models")
    _check_server(config, findings)
    for name, provider in config.providers.items():
        _check_provider(provider, ("providers", name), findings)
    for name, alias in config.models.items():
        _check_alias(name, alias, config, providers, findings)
    for name, table in config.facts.items():
        _check_facts_name(name, providers, findings)
        check_words(table, ("facts", name), findings)
    _check_keys(config, aliases, findings)
    for alias_name, agent in config.agents.items():
        _check_model(agent.model, ("agents", alias_name, "model"), aliases, findings)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach ``host``."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def url_fault(url: str) -> str | None:
    """Why ``url`` is no address of a provider, or ``None``."""
    try:
        parts = urlsplit(url)
        port_fault = parts.port == 0
    except ValueError:
        return "is no URL"
    if parts.scheme not in ("http", "https") or not parts.hostname or port_fault:
        return "must be an http:// or https:// URL with a host"
    if parts.username is not None or parts.password is not None:
        return "must not hold a user or password; keys belong in api_key"
    if parts.query or parts.fragment:
        return "must not have a ? or # part"
    return None


def walk_text(raw: Any, path: Path = ()) -> Iterable[tuple[Path, str]]:
    """Every text in ``raw`` with its key path."""
    if isinstance(raw, str):
        yield path, raw
    elif isinstance(raw, Mapping):
        for key, value in raw.items():
            yield from walk_text(value, (*path, key))
    elif isinstance(raw, list):
        for index, value in enumerate(raw):
            yield from walk_text(value, (*path, index))


def check_vendors(config: Config, prices: PriceBook, findings: Findings) -> None:
    """A provider's price list must be one that the price package has."""
    for name, provider in config.providers.items():
        if provider.prices in (None, NO_PRICES):
            continue
        known = (NO_PRICES, *prices.vendors())
        if provider.prices not in known:
            findings.add(
                ("providers", name, "prices"),
                f"{provider.prices!r} is no price list{nearest(str(provider.prices), known)} "
                f"(known: {', '.join(sorted(known))})",
            )


PLACES = {
    ("store", "url"): "text",
    ("server", "pepper"): "secret",
    ("observe", "metrics_token"): "secret",
    ("providers", "*", "base_url"): "text",
    ("providers", "*", "api_key"): "secret",
    ("providers", "*", "proxy"): "text",
    ("providers", "*", "headers", "*"): "text",
    ("keys", "*", "key"): "secret",
    ("tools", "*", "url"): "text",
    ("tools", "*", "headers", "*"): "text",
    ("mcp", "*", "url"): "text",
    ("mcp", "*", "headers", "*"): "text",
    ("mcp", "*", "env", "*"): "text",
}
"""Where ``${VARIABLE}`` means something; ``*`` is any name or index. A ``secret`` is the whole
of one reference, in a ``text`` it may stand amid others."""
_FREE_TEXT = frozenset({"agents", "workflows", "tools"})
"""Tables whose texts may hold a ``${`` of their own: instructions and templates."""


def check_references(raw: Mapping[str, Any], references: References, findings: Findings) -> None:
    """Follow every reference of the file, also those of tables with a fault of their own, and
    refuse ``${…}`` where nothing expands it."""
    follow = {"secret": references.secret, "text": references.text}
    for path, text in walk_text(raw):
        kind = reference_kind(path)
        if kind is None:
            if path[0] not in _FREE_TEXT and has_reference(text):
                findings.add(path, "has ${…}, which is not expanded here; write the value itself")
            continue
        if path[0] == "keys" and text == DEMO_KEY:
            continue
        try:
            follow[kind](text)
        except Unresolved as fault:
            findings.add(path, str(fault))


def reference_kind(path: Path) -> str | None:
    """``secret`` or ``text`` where references at ``path`` are resolved, else ``None``."""
    for place, kind in PLACES.items():
        if len(path) == len(place) and all(
            wanted in ("*", step) for wanted, step in zip(place, path, strict=True)
        ):
            return kind
    return None


def _names(raw: Mapping[str, Any], table: str) -> frozenset[str]:
    names = raw.get(table)
    return frozenset(names) if isinstance(names, Mapping) else frozenset()


def _check_server(config: Config, findings: Findings) -> None:
    server = config.server
    for index, address in enumerate(server.forwarded_allow_ips):
        if address != "*" and not _is_network(address):
            findings.add(
                ("server", "forwarded_allow_ips", index),
                'must be an IP address, a network like "10.0.0.0/8", or "*"',
            )
    for index, origin in enumerate(server.cors):
        if origin != "*" and not _is_origin(origin):
            findings.add(
                ("server", "cors", index),
                'must be an origin without a path, like "https://app.example.com"',
            )
    if is_loopback(server.host):
        return
    if not config.keys:
        findings.add(
            ("server", "host"),
            f"{server.host} can be reached from other machines, and no key is defined. Add a "
            "[[keys]] table, or listen on 127.0.0.1",
        )


def _is_network(text: str) -> bool:
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return True


def _is_origin(text: str) -> bool:
    parts = urlsplit(text)
    return parts.scheme in ("http", "https") and text == f"{parts.scheme}://{parts.netloc}"


def _check_provider(provider: ProviderTable, path: Path, findings: Findings) -> None:
    if provider.simulator and provider.base_url is not None:
        findings.add(
            (*path, "simulator"), "can't stand beside base_url: it brings an address of its own"
        )
    if not provider.simulator and provider.base_url is None:
        findings.add(path, "needs a base_url")
    for name in provider.headers:
        if not _HEADER.fullmatch(name) or name.lower() in _OWN_HEADERS:
            findings.add((*path, "headers", name), "is no header that can be set here")


def _check_alias(
    name: str,
    alias: AliasTable,
    config: Config,
    providers: Collection[str],
    findings: Findings,
) -> None:
    path: Path = ("models", name)
    if name.startswith(_RESERVED):
        findings.add(path, "must not begin with agent: or workflow:, which name runs as models")
    if alias.strategy == "weighted" and not any(target.weight for target in alias.targets):
        findings.add((*path, "targets"), "needs a weight above 0 on at least one target")
    for index, target in enumerate(alias.targets):
        spot = (*path, "targets", index)
        if target.provider not in providers:
            findings.add(
                (*spot, "provider"),
                f"{target.provider!r} is no provider of this file"
                f"{nearest(target.provider, providers)}{_listed(providers)}",
            )
        if target.facts is not None:
            check_words(target.facts, (*spot, "facts"), findings)
        provider = config.providers.get(target.provider)
        if alias.kind == "embedding" and provider and provider.dialect == "anthropic-messages":
            findings.add((*spot, "provider"), "speaks Anthropic Messages, which has no embeddings")


def _check_facts_name(name: str, providers: Collection[str], findings: Findings) -> None:
    provider, slash, model = name.partition("/")
    if not slash or not model:
        findings.add(("facts", name), 'must be named "provider/model"')
    elif provider not in providers:
        findings.add(
            ("facts", name),
            f"{provider!r} is no provider of this file{nearest(provider, providers)}",
        )


def _check_keys(config: Config, aliases: Collection[str], findings: Findings) -> None:
    seen: dict[str, int] = {}
    for index, key in enumerate(config.keys):
        if key.name in seen:
            findings.add(
                ("keys", index, "name"),
                f"{key.name!r} is the name of keys[{seen[key.name]}] too; names must differ",
            )
        seen.setdefault(key.name, index)
        for number, model in enumerate(key.models or ()):
            _check_model(model, ("keys", index, "models", number), aliases, findings)


def _check_model(model: str, path: Path, aliases: Collection[str], findings: Findings) -> None:
    if model not in aliases and not model.startswith(_RESERVED):
        findings.add(
            path, f"{model!r} is no model of this file{nearest(model, aliases)}{_listed(aliases)}"
        )


def _listed(names: Collection[str]) -> str:
    return f" (defined: {', '.join(sorted(names))})" if names else " (none is defined)"
