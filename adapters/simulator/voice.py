"""What a protocol must be able to do, and the small things that all of them need."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import count

from adapters.canonical.record import record
from adapters.simulator.words import Answer, Ask, Body, Frame, FrameKind, Trouble, Usage
from adapters.wire.json import dumps

_ALPHABET = "0123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_PIECES = re.compile(r"\S{1,24}\s{0,8}|\s{1,32}")


class Mint:
    """Fresh ids in the vendors' shapes; the same for the same history of one simulator."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def new(self, prefix: str, length: int = 24) -> str:
        """``prefix`` and ``length`` letters and digits."""
        digest = hashlib.sha512(f"{prefix}{next(self._numbers)}".encode()).digest()
        return prefix + "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:length])


@record(frozen=True, slots=True)
class Told:
    """All that a protocol needs to write an answer. ``created`` is Unix seconds."""

    ask: Ask
    answer: Answer
    usage: Usage | None
    body: Body
    mint: Mint
    created: int


@record(frozen=True, slots=True)
class Voice:
    """One vendor protocol.

    ``judge`` refuses what the vendor refuses; ``read`` understands the rest. ``whole`` and
    ``stream`` write the same answer as one body and as frames. ``error`` is the body of an
    error, ``break_off`` the frames of one in the middle of a stream. ``headers`` go on every
    answer.
    """

    name: str
    judge: Callable[[Body, Mapping[str, str]], None]
    read: Callable[[Body], Ask]
    whole: Callable[[Told], bytes]
    stream: Callable[[Told], tuple[Frame, ...]]
    error: Callable[[Trouble, str], bytes]
    break_off: Callable[[Trouble, Sequence[Frame]], tuple[Frame, ...]]
    headers: Callable[[Mint], Mapping[str, str]]


def pieces(text: str, given: tuple[str, ...] = ()) -> tuple[str, ...]:
    """``text`` as a stream cuts it: at words, long ones in between."""
    return given or tuple(_PIECES.findall(text))


def nibbles(text: str, size: int = 6) -> tuple[str, ...]:
    """JSON as a stream cuts it: anywhere."""
    return tuple(text[at : at + size] for at in range(0, len(text), size))


def event(kind: FrameKind, value: object, name: str | None = None) -> Frame:
    """One SSE event as the vendors write it, named or not."""
    data = dumps(value)
    if name is None:
        return Frame(kind, b"data: " + data + b"\n\n")
    return Frame(kind, b"event: " + name.encode() + b"\ndata: " + data + b"\n\n")


def padding(number: int) -> str:
    """The ``obfuscation`` that OpenAI adds to deltas so that lengths tell nothing."""
    return _ALPHABET[number * 7 % 40 :][: 4 + number * 5 % 13]


def argument_text(value: object) -> str:
    """Compact JSON as text."""
    return dumps(value).decode()


def as_mapping(value: object) -> Mapping[str, object]:
    """``value`` if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}
