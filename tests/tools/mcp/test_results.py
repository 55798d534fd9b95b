"""Results of MCP tools become parts."""

from __future__ import annotations

from typing import Any

import mcp_types as protocol
import pytest

from adapters.canonical.parts import Inline, Media, Text
from gateway.tools.mcp.results import MOST_MEDIA, outcome


def result(*content: Any, **more: Any) -> protocol.CallToolResult:
    return protocol.CallToolResult(content=list(content), **more)


def embedded(resource: Any) -> protocol.EmbeddedResource:
    return protocol.EmbeddedResource(type="resource", resource=resource)


@pytest.mark.parametrize(
    ("block", "part"),
    [
        (protocol.TextContent(type="text", text="hi"), Text("hi")),
        (
            protocol.ImageContent(type="image", data="AAAA", mime_type="image/png"),
            Media("image", Inline("image/png", "AAAA")),
        ),
        (
            protocol.ImageContent(type="image", data="AAAA", mime_type="image/svg+xml"),
            Text("[a picture of type image/svg+xml]"),
        ),
        (
            protocol.AudioContent(type="audio", data="AAAA", mime_type="audio/wav"),
            Media("audio", Inline("audio/wav", "AAAA")),
        ),
        (
            protocol.ResourceLink(type="resource_link", name="n", uri="file:///x", description="d"),
            Text("[n <file:///x>: d]"),
        ),
        (embedded(protocol.TextResourceContents(uri="file:///x", text="body")), Text("body")),
        (
            embedded(
                protocol.BlobResourceContents(uri="file:///x", blob="AA", mime_type="image/gif")
            ),
            Media("image", Inline("image/gif", "AA")),
        ),
        (
            embedded(protocol.BlobResourceContents(uri="file:///x", blob="AA")),
            Text("[file:///x, bytes]"),
        ),
    ],
)
def test_each_kind_of_block(block: Any, part: Any) -> None:
    assert outcome(result(block), 1000).content == (part,)


def test_errors_and_structure_are_kept() -> None:
    text = protocol.TextContent(type="text", text="no")
    failed = outcome(result(text, is_error=True, structured_content={"why": 1}), 1000)
    assert failed.is_error
    assert failed.structured == {"why": 1}


def test_structure_alone_is_shown() -> None:
    assert outcome(result(structured_content={"a": "ü"}), 1000).content == (Text('{"a": "ü"}'),)
    assert outcome(result(), 1000).content == (Text("(no content)"),)


def test_text_is_cut_and_pictures_are_bounded() -> None:
    long = outcome(result(protocol.TextContent(type="text", text="x" * 5000)), 200)
    (part,) = long.content
    assert isinstance(part, Text)
    assert len(part.text) <= 200
    big = protocol.ImageContent(
        type="image", data="A" * (MOST_MEDIA // 2 + 1), mime_type="image/png"
    )
    first, second = outcome(result(big, big), 200).content
    assert isinstance(first, Media)
    assert second == Text("[image/png, too large to be shown]")
