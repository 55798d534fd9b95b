"""What a caller asks to be embedded, and the vectors that came.

Apart from :mod:`adapters.canonical.request`, because nothing of a conversation is in it. Must
not know any vendor's JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from adapters.canonical.events import Usage
from adapters.canonical.parts import NO_EXTRAS
from adapters.canonical.record import record

Form = Literal["float", "base64"]
"""How a vector is written: a list of numbers, or base64 of little-endian 32-bit floats."""

Vector = list[float] | str
"""A vector in either form; the text is base64."""


@record(frozen=True, slots=True)
class EmbeddingRequest:
    """``inputs`` are texts or token arrays, one vector each, in order.

    ``form`` is the caller's word or ``None``, which means ``float`` to them and is not sent on.
    """

    model: str
    inputs: tuple[str | tuple[int, ...], ...]
    dimensions: int | None = None
    form: Form | None = None
    end_user: str | None = None
    extras: Mapping[str, Any] = NO_EXTRAS


@record(frozen=True, slots=True)
class Embeddings:
    """The answer: ``vectors[i]`` belongs to ``inputs[i]``."""

    model: str | None
    vectors: tuple[Vector, ...]
    usage: Usage | None = None
