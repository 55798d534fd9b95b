"""Where a tool may connect: the rules for URLs, hosts and addresses.

A URL is taken apart by a strict grammar of our own, so that no other reading of it exists: what
a parser might guess at (numbers for addresses, other scripts, user names, blanks) is refused.
The host is resolved once, *every* address it has is checked, and the caller connects to a
checked address and to nothing else; so a name that changes its address in between (rebinding)
gains nothing. Must not know an HTTP client.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from adapters.canonical.record import record

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""Host and port to addresses as text; raises ``OSError`` where there are none."""

UNREACHABLE = "The address can't be reached from here."
"""All that a model is told, whatever was refused: which addresses exist inside, and what stands
behind them, must not be found out by asking (case X04)."""

PORTS = {"http": 80, "https": 443}
MOST_ADDRESSES = 8

_URL = re.compile(
    r"(?P<scheme>https?)://"
    r"(?:\[(?P<six>[0-9a-f:.]+)\]|(?P<host>[a-z0-9._-]+))"
    r"(?::(?P<port>[0-9]{1,5}))?"
    r"(?:[/?#][!-~]*)?",
    re.IGNORECASE,
)
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")

NOT_GLOBAL_4 = {
    "0.0.0.0/8": "this network",
    "10.0.0.0/8": "private",
    "100.64.0.0/10": "shared by carriers",
    "127.0.0.0/8": "loopback",
    "168.63.129.16/32": "metadata of a cloud",
    "169.254.0.0/16": "link-local, metadata of clouds",
    "172.16.0.0/12": "private",
    "192.0.0.0/24": "protocol assignments",
    "192.0.2.0/24": "documentation",
    "192.31.196.0/24": "AS112",
    "192.52.193.0/24": "AMT",
    "192.88.99.0/24": "6to4 relays",
    "192.168.0.0/16": "private",
    "192.175.48.0/24": "AS112",
    "198.18.0.0/15": "benchmarks",
    "198.51.100.0/24": "documentation",
    "203.0.113.0/24": "documentation",
    "224.0.0.0/4": "multicast",
    "240.0.0.0/4": "reserved, broadcast",
}
"""IANA's registry of special-purpose IPv4 addresses, and one that a cloud took for itself. A table
of our own, since what Python calls global has changed between patch releases."""

GLOBAL_6 = IPv6Network("2000::/3")
"""The only part of IPv6 that is handed out for use on the internet."""
NOT_GLOBAL_6 = {
    "2001::/23": "protocol assignments, Teredo",
    "2001:db8::/32": "documentation",
    "2002::/16": "6to4, an IPv4 address inside",
    "3fff::/20": "documentation",
}
"""IANA's registry of special-purpose IPv6 addresses, inside :data:`GLOBAL_6`."""

_REFUSED: tuple[tuple[Network, str], ...] = tuple(
    (ip_network(network), why) for network, why in (NOT_GLOBAL_4 | NOT_GLOBAL_6).items()
)


class Refused(Exception):
    """A URL or an address that must not be connected to; the text is for the log only."""


@record(frozen=True, slots=True)
class Place:
    """What a URL connects to: ``host`` in lower case, an IPv6 address without brackets."""

    scheme: str
    host: str
    port: int


def place(url: str) -> Place:
    """The place that ``url`` leads to.

    :raises Refused: for anything but a plain ``http`` or ``https`` URL of ASCII characters,
        without user or password, whose host is a DNS name or an address in its one usual
        spelling (no ``2130706433``, ``0177.0.0.1``, ``127.1``, ``[::1%eth0]``, no final dot).
    """
    match = _URL.fullmatch(url)
    if match is None:
        raise Refused("no plain http or https URL")
    scheme = match["scheme"].lower()
    port = PORTS[scheme] if match["port"] is None else int(match["port"])
    if not 0 < port < 65536:
        raise Refused(f"port {port}")
    if match["six"] is not None:
        return Place(scheme, str(_literal(match["six"], IPv6Address)), port)
    return Place(scheme, checked_host(match["host"]), port)


def checked_host(host: str) -> str:
    """``host`` in lower case, if it is a DNS name or a usual IPv4 address.

    :raises Refused: for every other spelling. A name whose last label is a number is taken for
        an address by resolvers, so it must be one.
    """
    host = host.lower()
    labels = host.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return str(_literal(host, IPv4Address))
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise Refused("no DNS name")
    return host


def _literal(text: str, kind: type[Address]) -> Address:
    try:
        return kind(text)
    except ValueError as error:
        raise Refused(f"{text[:80]!r} is no usual spelling of an address") from error


def objection(address: Address, allowed: Iterable[Network] = ()) -> str | None:
    """Why ``address`` must not be connected to, or ``None``.

    ``allowed`` are the networks that the operator listed. An IPv4 address inside an IPv6 one
    (``::ffff:10.0.0.1``) is refused as what it is spelled as: it is outside :data:`GLOBAL_6`.
    """
    if getattr(address, "scope_id", None) is not None:
        return "it has a zone"
    if any(address in network for network in allowed):
        return None
    if isinstance(address, IPv6Address) and address not in GLOBAL_6:
        return "outside 2000::/3"
    return next((why for network, why in _REFUSED if address in network), None)


async def system_resolver(host: str, port: int) -> list[str]:
    """The addresses that this machine's own resolver knows."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return [str(entry[4][0]) for entry in found]


@record(frozen=True, slots=True)
class HostRule:
    """One entry of ``allow_hosts``: ``example.com``, ``*.example.com`` (names below it),
    ``*`` (any), each for the scheme's usual port unless ``:port`` follows."""

    name: str
    port: int | None

    def covers(self, where: Place) -> bool:
        """Whether ``where`` is meant by this rule."""
        if where.port != (PORTS[where.scheme] if self.port is None else self.port):
            return False
        if self.name.startswith("*."):
            return where.host.endswith(self.name[1:])
        return self.name in ("*", where.host)


def host_rule(text: str) -> HostRule:
    """Read an entry of ``allow_hosts``.

    :raises Refused: where it is none.
    """
    name, colon, port = text.lower().partition(":")
    if colon and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise Refused(f"{text!r} has no port after its colon")
    if name != "*":
        checked_host(name.removeprefix("*."))
    return HostRule(name, int(port) if colon else None)


def network(text: str) -> Network:
    """Read an entry of ``allow_private``: an address or a network.

    :raises Refused: where it is none.
    """
    try:
        return ip_network(text, strict=False)
    except ValueError as error:
        raise Refused(f"{text!r} is no address and no network") from error


@record(frozen=True, slots=True)
class Guard:
    """Decides for one tool or server where it may connect.

    :param allowed: networks beyond the internet that the operator listed (``allow_private``).
    :param hosts: hosts that may be asked for; ``None`` where the operator wrote the URL.
    """

    allowed: tuple[Network, ...] = ()
    hosts: tuple[HostRule, ...] | None = None
    resolver: Resolver = system_resolver

    def admit(self, url: str) -> Place:
        """The place behind ``url``, if its spelling and its host may be used.

        :raises Refused: if not.
        """
        where = place(url)
        if self.hosts is not None and not any(rule.covers(where) for rule in self.hosts):
            raise Refused(f"{where.host}:{where.port} is not in allow_hosts")
        return where

    async def addresses(self, host: str, port: int) -> tuple[str, ...]:
        """The checked addresses of ``host``, in the resolver's order; connect to one of them.

        :raises Refused: where there is none, or where one of them is not allowed: a name that
            has addresses inside and outside is a trap, not a choice.
        """
        try:
            found = [host] if _is_literal(host) else await self.resolver(host, port)
        except OSError as error:
            raise Refused(f"{host} has no address") from error
        checked = tuple(dict.fromkeys(self._checked(host, text) for text in found))
        if not checked:
            raise Refused(f"{host} has no address")
        return checked[:MOST_ADDRESSES]

    def _checked(self, host: str, text: str) -> str:
        try:
            address = ip_address(text)
        except ValueError as error:
            raise Refused(f"{host} resolves to {text[:80]!r}") from error
        why = objection(address, self.allowed)
        if why is not None:
            raise Refused(f"{host} leads to {address} ({why}); list it in allow_private to allow")
        return str(address)


def _is_literal(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def guard(
    allow_private: Iterable[str],
    allow_hosts: Iterable[str] | None = None,
    resolver: Resolver = system_resolver,
) -> Guard:
    """A guard from the settings of a tool or a server.

    :raises Refused: for an entry that can't be read.
    """
    hosts = None if allow_hosts is None else tuple(map(host_rule, allow_hosts))
    return Guard(tuple(map(network, allow_private)), hosts, resolver)
