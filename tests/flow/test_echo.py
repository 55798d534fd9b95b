"""What is masked of a provider's words, and what stays readable."""

from __future__ import annotations

import json

import pytest

from gateway.flow.echo import without_echo

BODY = json.dumps(
    {
        "model": "gpt-5.2-canary",
        "max_tokens": 10,
        "response_format": {"type": "json_schema"},
        "messages": [
            {"role": "user", "content": "My number is 4711-0815-99, call me before noon please"},
            {"role": "user", "content": "我的身份证号码是一个秘密，请不要告诉别人"},
        ],
    }
).encode()

ROWS = [
    ("Bad value 4711-0815-99 here", "Bad value […] here"),
    ("Bad value '4711-0815-99'.", "Bad value […]"),
    ("It says: call me before noon please", "It says: […]"),
    ("无效：身份证号码是一个秘密", "[…]"),
    ("max_tokens is too large: 100000", "max_tokens is too large: 100000"),
    ("json_schema is not supported by gpt-5.2-canary", None),
    ("Call the number", "Call the number"),
    ("", ""),
]


@pytest.mark.parametrize(("words", "left"), ROWS)
def test_masking(words: str, left: str | None) -> None:
    assert without_echo(words, BODY) == (words if left is None else left)


@pytest.mark.parametrize("body", [b"", b"no json", b"[]", b'"text 4711-0815-99"'])
def test_any_body(body: bytes) -> None:
    """What is no request tells of no text, but for a text by itself."""
    left = "some words […]" if b"4711" in body else "some words 4711-0815-99"
    assert without_echo("some words 4711-0815-99", body) == left


def test_deep_and_large() -> None:
    deep = b'{"a":' * 500 + b'"a secret-0815 text"' + b"}" * 500
    assert without_echo("see secret-0815 now", deep) == "see […] now"
