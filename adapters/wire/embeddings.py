"""``/embeddings``, which all OpenAI-compatible providers share whichever chat API they speak.

Both directions of the wire: the call to a provider, its answer, and the two forms of a vector.
"""

from __future__ import annotations

import base64
import binascii
import struct
from typing import Any

from adapters.canonical.embedding import EmbeddingRequest, Embeddings, Form, Vector
from adapters.canonical.events import Usage
from adapters.canonical.faults import Fault
from adapters.wire import errors
from adapters.wire.call import Encoded, WireCall
from adapters.wire.json import dumps_kept, loads
from adapters.wire.usage import Counts

PATH = "/embeddings"


def encode(request: EmbeddingRequest, model: str) -> Encoded:
    """The provider's own request for ``model``. What the caller left out stays out."""
    body: dict[str, Any] = {**request.extras, "model": model, "input": list(request.inputs)}
    for name, value in (
        ("dimensions", request.dimensions),
        ("encoding_format", request.form),
        ("user", request.end_user),
    ):
        if value is not None:
            body[name] = value
    return Encoded(WireCall(PATH, dumps_kept(body), stream=False))


def decode(data: bytes, asked: int) -> Embeddings:
    """The vectors in a provider's answer, in the order of the inputs whatever theirs.

    :param asked: how many inputs there were.
    :raises Fault: ``protocol_error`` for anything but exactly one vector an input, and whatever
        an error inside a successful answer means.
    """
    try:
        body = loads(data)
    except ValueError:
        raise _broken("the body is no JSON") from None
    if not isinstance(body, dict):
        raise _broken("the body is no object")
    if body.get("error") is not None:
        raise errors.in_band(body["error"])
    items = body.get("data")
    if not isinstance(items, list) or len(items) != asked:
        raise _broken(f"data is no list of {asked} vectors")
    placed: dict[int, Vector] = {}
    for place, item in enumerate(items):
        index = item.get("index", place) if isinstance(item, dict) else None
        vector = item.get("embedding") if isinstance(item, dict) else None
        if isinstance(index, int) and isinstance(vector, list | str):
            placed[index] = vector
    if placed.keys() != set(range(asked)):
        raise _broken("indices of the vectors are missing or doubled")
    model = body.get("model")
    return Embeddings(
        model if isinstance(model, str) and model else None,
        tuple(placed[index] for index in range(asked)),
        read_usage(body.get("usage")),
    )


def read_usage(raw: object) -> Usage | None:
    """Token counts of an embedding call: there is no output."""
    if raw is None:
        return None
    counts = Counts(raw)
    tokens = counts.take("prompt_tokens")
    if tokens is None:
        tokens = counts.take("total_tokens")
    return Usage(input=tokens, output=0, invalid=counts.invalid)


def in_form(vector: Vector, form: Form) -> Vector:
    """``vector`` in ``form``; the same object if it is in it already.

    :raises Fault: ``protocol_error`` if it is not what it claims to be.
    """
    if isinstance(vector, str) == (form == "base64"):
        return vector
    try:
        if isinstance(vector, str):
            packed = base64.b64decode(vector, validate=True)
            return list(struct.unpack(f"<{len(packed) // 4}f", packed))
        return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
    except (binascii.Error, struct.error, OverflowError, TypeError):
        raise _broken("a vector holds something else than 32-bit floats") from None


def _broken(what: str) -> Fault:
    return Fault(
        "protocol_error",
        "The provider's answer does not follow the embeddings protocol.",
        detail=what,
    )
