"""Who made which sealed reasoning, so that nobody else is given it (design section 5).

A seal says nothing of its maker to anyone else, and a caller's bytes may not be marked. So the
makers of seals that passed are remembered by digest, without any content: here, bounded, and in
the store for restarts and other replicas. What is signed is checked by the model's family, on
whichever platform; what is sealed can be read only with its maker's own keys, so it is the
provider's. A seal that nobody saw being made (a conversation that began elsewhere) counts as made
by the alias's first target of its protocol.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from adapters.canonical.events import Event, PartAnnotated, PartStarted
from adapters.canonical.parts import Part, Thinking
from adapters.canonical.request import Message, Request
from gateway.settings.snapshot import Alias, Target
from gateway.store.seals import Seal, SealBook

ENTRIES = 100_000
"""Seals remembered, 16 bytes and a name each; the oldest leave first."""

ASKED = 1_000
"""Seals of one request that the store is asked for, the latest ones."""


class Maker(NamedTuple):
    """Which provider made a seal, with a model of which family."""

    provider: str
    family: str


def maker_of(target: Target) -> Maker:
    """Who ``target`` is, as far as seals go."""
    deployment = target.deployment
    return Maker(deployment.provider.name, deployment.facts.family)


class Makers:
    """Makers by the digest of what they sealed."""

    __slots__ = ("_entries", "_limit")

    def __init__(self, limit: int = ENTRIES) -> None:
        self._limit = limit
        self._entries: OrderedDict[bytes, Maker] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def keep(self, seal: str, maker: Maker) -> None:
        """Remember ``maker`` as the one who made ``seal``."""
        self._remember(_digest(seal), maker)

    def _remember(self, digest: bytes, maker: Maker) -> None:
        self._entries[digest] = maker
        self._entries.move_to_end(digest)
        if len(self._entries) > self._limit:
            self._entries.popitem(last=False)

    def maker(self, seal: str) -> Maker | None:
        """Who made ``seal``, if that is remembered."""
        return self._entries.get(_digest(seal))

    async def learn(self, request: Request, book: SealBook) -> None:
        """Read from the ``book`` who made the seals of ``request`` that are not remembered.

        :raises Fault: ``store_unavailable``.
        """
        digests = map(_digest, _seals(request))
        unknown = [digest for digest in digests if digest not in self._entries][-ASKED:]
        for seal in await book.seals(unknown) if unknown else ():
            self._remember(seal.digest, Maker(seal.provider, seal.family))

    def bound(self, request: Request, alias: Alias, target: Target) -> Request:
        """``request`` as ``target`` may see it: reasoning that another one sealed belongs to no
        protocol any more, so that the encoder leaves it out and names it."""
        if not any(isinstance(part, Thinking) for m in request.messages for part in m.parts):
            return request
        messages = tuple(self._message(message, alias, target) for message in request.messages)
        return replace(request, messages=messages)

    def _message(self, message: Message, alias: Alias, target: Target) -> Message:
        parts: tuple[Part, ...] = tuple(
            _unbound(part)
            if isinstance(part, Thinking) and not self._may_see(part, alias, target)
            else part
            for part in message.parts
        )
        return message if parts == message.parts else replace(message, parts=parts)

    def _may_see(self, part: Thinking, alias: Alias, target: Target) -> bool:
        if part.dialect != target.deployment.provider.dialect:
            return True  # of another protocol: the encoder's own matter
        own = maker_of(target)
        if part.sealed is not None:
            return self._made(part.sealed, alias, target).provider == own.provider
        if part.signature is not None:
            return self._made(part.signature, alias, target).family == own.family
        return True

    def _made(self, seal: str, alias: Alias, target: Target) -> Maker:
        known = self.maker(seal)
        if known is not None:
            return known
        dialect = target.deployment.provider.dialect
        first = next(t for t in alias.targets if t.deployment.provider.dialect == dialect)
        return maker_of(first)


def _seals(request: Request) -> Iterator[str]:
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, Thinking):
                seal = part.sealed if part.sealed is not None else part.signature
                if seal is not None:
                    yield seal


def _unbound(part: Thinking) -> Thinking:
    return replace(part, dialect=None, signature=None, sealed=None)


def _digest(seal: str) -> bytes:
    return hashlib.blake2b(seal.encode(), digest_size=16).digest()


class Watch:
    """A stage that changes nothing and remembers who made the seals that pass.

    ``seen`` are those of this answer, for the books.
    """

    __slots__ = ("_maker", "_makers", "seen")

    def __init__(self, makers: Makers, target: Target) -> None:
        self._makers = makers
        self._maker = maker_of(target)
        self.seen: list[Seal] = []

    def _keep(self, seal: str) -> None:
        self._makers.keep(seal, self._maker)
        self.seen.append(Seal(_digest(seal), *self._maker))

    def feed(self, events: list[Event]) -> list[Event]:
        """Look at ``events`` and pass them on."""
        for event in events:
            kind = type(event)
            if kind is not PartAnnotated and kind is not PartStarted:
                continue  # most of a stream
            if isinstance(event, PartAnnotated):
                if event.key in ("signature", "sealed") and isinstance(event.value, str):
                    self._keep(event.value)
            elif isinstance(event, PartStarted) and isinstance(event.head, Thinking):
                for seal in (event.head.signature, event.head.sealed):
                    if seal is not None:
                        self._keep(seal)
        return events
