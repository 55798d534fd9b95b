"""The mapping page, joined from the tables of both sides: ``python -m tests.mapping.page``.

A northbound table says which canonical field a caller's field becomes, a southbound one what a
provider is sent for that; together they say how each field fares on each way through.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from adapters.dialects.base import Field
from adapters.registry import DIALECTS
from gateway.northbound import completions, embeddings
from gateway.northbound.anthropic_messages import MESSAGES
from gateway.northbound.openai_chat import CHAT
from gateway.northbound.openai_responses import RESPONSES

PAGE = Path(__file__).parents[2] / "docs" / "mapping.md"

NORTH: tuple[tuple[str, str, str, Mapping[str, Field]], ...] = (
    ("Chat Completions", "/v1/chat/completions", "openai-chat", CHAT.FIELDS),
    ("Responses", "/v1/responses", "openai-responses", RESPONSES.FIELDS),
    ("Messages", "/v1/messages", "anthropic-messages", MESSAGES.FIELDS),
    ("Legacy completions", "/v1/completions", "openai-chat", completions.FIELDS),
)
SOUTH: tuple[tuple[str, str], ...] = (
    ("Chat", "openai-chat"),
    ("Responses", "openai-responses"),
    ("Messages", "anthropic-messages"),
)

OURS = {
    "sampling.n": "as many calls",
    "sampling.stop": "the gateway ends the answer",
    "truncate": "the gateway trims",
}
"""What the gateway does itself where a protocol refuses it, or has no word for it."""

OWN = ("memory.", "style.", "prompt")
"""Canonical places that no provider sees: the gateway acts on them."""

INTRO = """# How each field fares

Which field of a caller's request becomes which field of the provider's, for every pair of
protocols. This page is made from the code's own tables (`python -m tests.mapping.page`), and a
test holds it equal to them.

- `name`: sent to the provider under this name, converted where the two protocols differ.
- **as it is**: caller and provider speak the same protocol, and the field goes through untouched.
- *dropped*: left out and named in the `x-gateway-dropped` header; with `x-gateway-strict: true` it
  is a 400 instead.
- *refused*: a 400 that names the field, because leaving it out would change what the caller gets.
- *own*: the gateway's own matter; no provider sees it.
- *as many calls*, *the gateway ...*: the protocol can't, so the gateway does it.

What a model's facts say comes on top: a field that the model refuses is dropped and named, a value
out of its range is clamped and named in `x-gateway-adjusted`. Fields that no table knows go through
to providers of the caller's own protocol and are dropped and named elsewhere; names that could
choose a host, a key or a header go nowhere.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([INTRO, *(_section(*north) for north in NORTH), _embeddings()])


def _section(title: str, path: str, dialect: str, fields: Mapping[str, Field]) -> str:
    lines = [f"## {title}: `{path}`", ""]
    lines += ["| field | Chat providers | Responses providers | Messages providers |"]
    lines += ["| --- | --- | --- | --- |"]
    for name, field in sorted(fields.items()):
        cells = [cell(field, dialect, south) for _, south in SOUTH]
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    notes = list(_notes(fields))
    if notes:
        lines += ["", *notes]
    return "\n".join([*lines, ""])


def cell(field: Field, north: str, south: str) -> str:
    """How ``field`` of a caller of ``north`` fares at a provider of ``south``."""
    if field.state != "mapped" or field.to is None:
        return f"*{field.state}*"
    if field.to.startswith(OWN):
        return "*own*"
    if field.to in ("extras", "headers"):
        return "**as it is**" if north == south else "*dropped*"
    rows = [row for name, row in DIALECTS[south].FIELDS.items() if _covers(field.to, name)]
    sent = dict.fromkeys(f"`{row.to}`" for row in rows if row.state == "mapped" and row.to)
    if sent:
        return ", ".join(sent)
    if field.to in OURS:
        return f"*{OURS[field.to]}*"
    states = {row.state for row in rows if row.state != "mapped"}
    return f"*{states.pop()}*" if states else "*own*"


def _covers(canonical: str, name: str) -> bool:
    """Whether the southbound row ``name`` is ``canonical`` or a part of it."""
    part = name.startswith(canonical + ".") and not name.endswith(".extras")
    return name == canonical or part


def _notes(fields: Mapping[str, Field]) -> Iterator[str]:
    for name, field in sorted(fields.items()):
        if field.note and not field.note.startswith("Sent on to providers of the same dialect"):
            yield f"- `{name}`: {field.note}"


def _embeddings() -> str:
    lines = ["## Embeddings: `/v1/embeddings`", ""]
    lines += ["The same fields go to providers that speak Chat or Responses; providers that speak"]
    lines += ["Messages have no embeddings, which the configuration says at start.", ""]
    names = ", ".join(f"`{name}`" for name in sorted(embeddings.FIELDS))
    lines += [f"{names}. Whatever form the provider sends vectors in, the caller gets the one"]
    lines += ["that `encoding_format` asked for, `float` where it asked for none."]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write(f"{PAGE} written\n")
